package model

import "dorylus/kernels"

// Ctx is what an op sees: the rows of one block, and the matrices they lie in.
type Ctx struct {
	S kernels.Stream
	// Full are the matrices by buffer index, Level the level of each; only those
	// that the step names need be set. Rows is the block's row range within each
	// level's matrices, and at the end, where the Level of PerBlock buffers points, its
	// own.
	Full  []*kernels.Mat
	Level []int
	Rows  []kernels.Span
	// IDs are the user's vertex indices of all rows of each level: the row ids of
	// dropout. nil: the row itself.
	IDs [][]int32
	// Self maps, for each hop, the rows of its upper level to the same vertices'
	// rows in the lower one; nil: the levels hold the same rows.
	Self [][]int32
	// Seen lists, for each level, the rows of the block that the loss can reach,
	// counted within the block; nil: all of them.
	Seen [][]int32
	// SparseX are the sparse input features, one graph row per row of level 0.
	SparseX kernels.Graph
	// Sparse is SparseX in host memory.
	Sparse *kernels.CSR
	// Weights and Grads are by parameter index.
	Weights, Grads []*kernels.Mat

	// Labels has the class of each row of the last level, -1 where the row is not
	// trained on; ClassW weighs the classes (nil: 1); LossScale is one over the
	// sum of the training rows' weights. The block's loss goes to Loss[0].
	Labels []int32
	ClassW *kernels.Mat
	// Targets has the classes of every row of the last level in multi-label data,
	// where Labels is 0 for the rows that are trained on.
	Targets   *kernels.CSR
	LossScale float32
	Loss      []float64

	// Parts, of a context of several blocks, are the blocks by level; nil: it is of one.
	// Loss has one of each.
	Parts []kernels.Blocks

	Block int // the first
	Epoch int
	Seed  uint64
	Train bool // dropout is on
	// Scratch is a matrix whose contents last until the op returns. Slot tells
	// several of one op apart.
	Scratch func(slot, rows, cols int) *kernels.Mat
}

// Span is the block's row range in the buffer.
func (c *Ctx) Span(buf int) kernels.Span { return c.Rows[c.Level[buf]] }

// Mat is the block's rows of the buffer.
func (c *Ctx) Mat(buf int) *kernels.Mat { return c.Full[buf].Sub(c.Span(buf)) }

// SeenRows are the rows of the block in the buffer that the loss can reach. It may
// use the scratch slot.
func (c *Ctx) SeenRows(buf, slot int) *kernels.Mat {
	m, seen := c.Mat(buf), c.Seen[c.Level[buf]]
	if seen == nil {
		return m
	}
	rows := c.Scratch(slot, len(seen), m.Cols)
	c.S.GatherRows(rows, m, seen)
	return rows
}

// SelfRows are the rows of buf, a buffer of level hop, that belong to the block's
// vertices of level hop+1. It may use scratch slot 1.
func (c *Ctx) SelfRows(buf, hop int) *kernels.Mat {
	ids := c.Self[hop]
	if ids == nil {
		return c.Mat(buf)
	}
	span := c.Rows[hop+1]
	full := c.Full[buf]
	rows := c.Scratch(1, span.Len(), full.Cols)
	c.S.GatherRows(rows, full, ids[span.Lo:span.Hi])
	return rows
}

// AddToSelf adds d, one row per vertex of the block in level hop+1, to the same
// vertices' rows of buf, a buffer of level hop.
func (c *Ctx) AddToSelf(buf int, d *kernels.Mat, hop int) {
	ids := c.Self[hop]
	if ids == nil {
		m := c.Mat(buf)
		c.S.Add(m, m, d)
		return
	}
	span := c.Rows[hop+1]
	c.S.AddRows(c.Full[buf], d, ids[span.Lo:span.Hi])
}

// Drop is the dropout of rate p on whole-level matrices, keyed for a layer
// (0: the input); off outside training.
func (c *Ctx) Drop(p float32, level, layer int) kernels.Dropout {
	if !c.Train || p == 0 {
		return kernels.Dropout{}
	}
	return kernels.Dropout{P: p, Key: kernels.DropKey(c.Seed, c.Epoch, layer), IDs: c.IDs[level]}
}

// BlockDrop is Drop for a matrix that holds only the block's rows.
func (c *Ctx) BlockDrop(p float32, level, layer int) kernels.Dropout {
	d := c.Drop(p, level, layer)
	if d.P == 0 {
		return d
	}
	span := c.Rows[level]
	if d.IDs == nil {
		ids := make([]int32, span.Len())
		for i := range ids {
			ids[i] = int32(span.Lo + i)
		}
		d.IDs = ids
		return d
	}
	d.IDs = d.IDs[span.Lo:span.Hi]
	return d
}

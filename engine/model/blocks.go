package model

import "dorylus/kernels"

// A Ctx may be of several blocks, one behind the other (Ctx.Parts), where a device
// likes few large ops better than many small ones. Ops on rows then take the rows of all;
// gradients and losses, which are sums over rows, are made for each block and, the
// gradients, added up in the tree of sums over blocks.

// together makes gradients of blocks at once.
func (c *Ctx) together() kernels.BlockSummer { return c.S.(kernels.BlockSummer) }

// gradGEMM sets the gradient of parameter p to aᵀ·b, over rows of a level.
func (c *Ctx) gradGEMM(p int, a, b *kernels.Mat, level int) {
	if c.Parts == nil {
		c.S.GEMM(c.Grads[p], a, b, kernels.TN, nil)
		return
	}
	c.together().BlockGEMM(c.Grads[p], a, b, &c.Parts[level])
}

// gradColSum sets the gradient of parameter p to the sum of a level's rows.
func (c *Ctx) gradColSum(p int, x *kernels.Mat, level int) {
	if c.Parts == nil {
		c.S.ColSum(c.Grads[p], x, kernels.Span{Hi: x.Rows})
		return
	}
	c.together().BlockColSum(c.Grads[p], x, &c.Parts[level])
}

// gradHeadDot sets the gradient of parameter p to that of HeadDot.
func (c *Ctx) gradHeadDot(p int, d, x *kernels.Mat, level int) {
	if c.Parts == nil {
		c.S.HeadDotGrad(c.Grads[p], d, x)
		return
	}
	c.together().BlockHeadDotGrad(c.Grads[p], d, x, &c.Parts[level])
}

// firstPartSlot is the first scratch slot of eachPart; ops use those below.
const firstPartSlot = 8

// eachPart sets gradients by an op that has no form for several blocks: f sets grads, those
// of the parameters in order, from the rows of a block, counted from the first of all.
func (c *Ctx) eachPart(level int, params []int, f func(grads []*kernels.Mat, rows kernels.Span)) {
	slot := func(k int) []*kernels.Mat {
		out := make([]*kernels.Mat, len(params))
		for i, p := range params {
			if out[i] = c.Grads[p]; k > 0 {
				out[i] = c.Scratch(firstPartSlot+(k-1)*len(c.Grads)+p, c.Grads[p].Rows, c.Grads[p].Cols)
			}
		}
		return out
	}
	if c.Parts == nil {
		f(slot(0), kernels.Span{Hi: c.Rows[level].Len()})
		return
	}
	parts := &c.Parts[level]
	parts.Fold(func(i, k int) { f(slot(k), parts.Span(i)) }, func(into, from int) {
		to, add := slot(into), slot(from)
		for i := range to {
			c.S.Add(to[i], to[i], add[i])
		}
	})
}

// lossOf sets a buffer of the last level to the gradient of the loss, and the loss of each
// block.
func (c *Ctx) lossOf(d, logits *kernels.Mat, level int, multi bool) {
	rows := c.Rows[level]
	labels := c.Labels[rows.Lo:rows.Hi]
	if !multi {
		if c.Parts == nil {
			c.S.SoftmaxXent(d, c.Loss, logits, labels, c.ClassW, c.LossScale, kernels.Span{Hi: logits.Rows})
		} else {
			c.together().BlockSoftmaxXent(d, c.Loss, logits, labels, c.ClassW, c.LossScale, &c.Parts[level])
		}
		return
	}
	t := &kernels.CSR{Cols: c.Targets.Cols, RowPtr: c.Targets.RowPtr[rows.Lo : rows.Hi+1], Col: c.Targets.Col}
	if c.Parts == nil {
		c.S.SigmoidBCE(d, c.Loss, logits, t, labels, c.ClassW, c.LossScale)
	} else {
		c.together().BlockSigmoidBCE(d, c.Loss, logits, t, labels, c.ClassW, c.LossScale, &c.Parts[level])
	}
}

// Together is a context of all rows of several, which follow each other: blocks of one
// interval without those that have nothing to do. first is the block that is leaf 0 of the
// tree in which their sums are made. Gradients are those of the first; each has its place
// in Loss.
func Together(blocks []*Ctx, first int) *Ctx {
	c := *blocks[0]
	last := blocks[len(blocks)-1]
	c.Rows, c.Parts = make([]kernels.Span, len(c.Rows)), make([]kernels.Blocks, len(c.Rows))
	c.Loss = make([]float64, len(blocks))
	leaves := make([]int32, len(blocks))
	for i, b := range blocks {
		leaves[i] = int32(b.Block - first)
	}
	for k := range c.Rows {
		c.Rows[k] = kernels.Span{Lo: blocks[0].Rows[k].Lo, Hi: last.Rows[k].Hi}
		cuts := make([]int32, 1, len(blocks)+1)
		for _, b := range blocks {
			cuts = append(cuts, int32(b.Rows[k].Hi-c.Rows[k].Lo))
		}
		c.Parts[k] = kernels.Blocks{Cuts: cuts, Leaves: leaves}
	}
	c.Seen = nil // of single blocks
	return &c
}

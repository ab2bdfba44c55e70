// Package shard is the part of a job that stays with a worker: all that the tensor
// tasks of one interval need and that does not change from epoch to epoch.
package shard

import (
	"dorylus/engine"
	"dorylus/engine/model"
	"dorylus/kernels"
	"dorylus/lambda/codec"
)

// Shard is one interval of one pass. Rows are counted from the interval's first one in
// each level.
type Shard struct {
	Pass     engine.Pass
	Interval int
	Seed     uint64
	Train    bool
	// FirstBlock is the number of the interval's first block in the whole graph.
	FirstBlock int
	// Ptr has the rows of the interval's block b in level k as [Ptr[k][b],Ptr[k][b+1]).
	Ptr [][]int
	// IDs, Self and Seen are as in model.Ctx, by level (Self: by hop); Seen by block
	// and level.
	IDs, Self [][]int32
	Seen      [][][]int32
	Labels    []int32
	Targets   *kernels.CSR
	Sparse    *kernels.CSR
	ClassW    *kernels.Mat
	LossScale float32
	// Const are the constant buffers' rows that a tensor step reads; nil: none does.
	Const []*kernels.Mat
}

// Cut is the shard of an interval whose blocks' contexts are given, in order. Constant
// buffers share the memory of the contexts' where they can.
func Cut(prog *model.Program, pass engine.Pass, interval int, blocks []*model.Ctx) *Shard {
	first, last := blocks[0], blocks[len(blocks)-1]
	s := &Shard{
		Pass: pass, Interval: interval, Seed: first.Seed, Train: first.Train, FirstBlock: first.Block,
		ClassW: first.ClassW, LossScale: first.LossScale,
		IDs: make([][]int32, prog.Levels), Self: make([][]int32, prog.Levels-1), Const: make([]*kernels.Mat, len(prog.Bufs)),
	}
	span := func(level int) kernels.Span { return kernels.Span{Lo: first.Rows[level].Lo, Hi: last.Rows[level].Hi} }
	for k := range prog.Levels {
		rows := span(k)
		ptr := []int{0}
		for _, c := range blocks {
			ptr = append(ptr, c.Rows[k].Hi-rows.Lo)
		}
		s.Ptr = append(s.Ptr, ptr)
		s.IDs[k] = first.IDs[k][rows.Lo:rows.Hi]
		if k+1 == prog.Levels || first.Self[k] == nil {
			continue
		}
		up := span(k + 1)
		s.Self[k] = make([]int32, up.Len())
		for i, r := range first.Self[k][up.Lo:up.Hi] {
			s.Self[k][i] = r - int32(rows.Lo) // a vertex is in the same block at every level
		}
	}
	for _, c := range blocks {
		s.Seen = append(s.Seen, c.Seen)
	}
	out := span(prog.Levels - 1)
	if first.Labels != nil {
		s.Labels = first.Labels[out.Lo:out.Hi]
	}
	s.Targets, s.Sparse = rowsOf(first.Targets, out), rowsOf(first.Sparse, span(0))
	for i := range prog.Steps {
		if !prog.Steps[i].Kind.Tensor() {
			continue
		}
		for _, b := range prog.Steps[i].In {
			if prog.Bufs[b].Const && first.Full[b] != nil {
				s.Const[b] = first.Full[b].Sub(span(prog.Bufs[b].Level))
			}
		}
	}
	return s
}

// rowsOf is a part of g's rows, its offsets counted from 0; nil for nil.
func rowsOf(g *kernels.CSR, rows kernels.Span) *kernels.CSR {
	if g == nil {
		return nil
	}
	lo, hi := g.RowPtr[rows.Lo], g.RowPtr[rows.Hi]
	out := &kernels.CSR{Cols: g.Cols, RowPtr: make([]int64, rows.Len()+1), Col: g.Col[lo:hi]}
	for i := range out.RowPtr {
		out.RowPtr[i] = g.RowPtr[rows.Lo+i] - lo
	}
	if g.Val != nil {
		out.Val = g.Val[lo:hi]
	}
	return out
}

// Blocks is the number of blocks.
func (s *Shard) Blocks() int { return len(s.Ptr[0]) - 1 }

// Rows is the number of rows in a level, of blocks in the level behind the last one.
func (s *Shard) Rows(level int) int {
	if level == len(s.Ptr) {
		return s.Blocks()
	}
	return s.Ptr[level][s.Blocks()]
}

// Level is the level of a buffer, as model.Ctx counts.
func Level(prog *model.Program, buf int) int {
	if prog.Bufs[buf].PerBlock {
		return prog.Levels
	}
	return prog.Bufs[buf].Level
}

// Room is a shard with memory to work in: the contexts of its blocks on a device.
type Room struct {
	*Shard
	Full     []*kernels.Mat // by buffer: the interval's rows
	Contexts []*model.Ctx   // by block

	dev   kernels.Device
	owned []*kernels.Mat
	graph kernels.Graph
}

// Open allocates the buffers that tensor steps work on, and makes the sparse features
// resident. A shard that did not come from Cut has to be one that Fits.
func (s *Shard) Open(prog *model.Program, dev kernels.Device) (*Room, error) {
	r := &Room{Shard: s, Full: make([]*kernels.Mat, len(prog.Bufs)), dev: dev}
	if err := r.open(prog); err != nil {
		r.Close()
		return nil, err
	}
	levels := make([]int, len(prog.Bufs))
	for b := range prog.Bufs {
		levels[b] = Level(prog, b)
	}
	for b := range s.Blocks() {
		c := &model.Ctx{
			Full: r.Full, Level: levels, Rows: make([]kernels.Span, prog.Levels+1), IDs: s.IDs, Self: s.Self, Seen: s.Seen[b],
			SparseX: r.graph, Sparse: s.Sparse,
			Weights: make([]*kernels.Mat, len(prog.Params)), Grads: make([]*kernels.Mat, len(prog.Params)),
			Labels: s.Labels, Targets: s.Targets, ClassW: s.ClassW, LossScale: s.LossScale, Loss: make([]float64, 1),
			Block: s.FirstBlock + b, Seed: s.Seed, Train: s.Train,
		}
		for k := range prog.Levels {
			c.Rows[k] = kernels.Span{Lo: s.Ptr[k][b], Hi: s.Ptr[k][b+1]}
		}
		c.Rows[prog.Levels] = kernels.Span{Lo: b, Hi: b + 1}
		r.Contexts = append(r.Contexts, c)
	}
	return r, nil
}

func (r *Room) open(prog *model.Program) error {
	var err error
	if r.Sparse != nil {
		if r.graph, err = r.dev.Load(r.Sparse); err != nil {
			return err
		}
	}
	for _, b := range r.works(prog) {
		if err := r.buffer(prog, b); err != nil {
			return err
		}
	}
	return nil
}

func (r *Room) buffer(prog *model.Program, b int) error {
	spec := &prog.Bufs[b]
	if spec.Const {
		r.Full[b] = r.Const[b]
		return nil
	}
	m, err := r.dev.Alloc(r.shape(prog, b))
	if err != nil {
		return err
	}
	r.owned = append(r.owned, m)
	r.Full[b] = m
	if spec.Edges {
		r.Full[b] = &kernels.Mat{Rows: len(r.Sparse.Col), Cols: 1, Stride: 1, Host: m.Host, Addr: m.Addr}
	}
	return nil
}

// Close gives the memory back.
func (r *Room) Close() {
	for _, m := range r.owned {
		r.dev.Free(m)
	}
	if r.graph != nil {
		r.dev.Unload(r.graph)
	}
	r.owned, r.graph = nil, nil
}

// Key is the codec's key of a buffer's rows, or of a parameter's gradients.
func Key(index int, grad bool) codec.Key {
	if grad {
		return codec.Key(1<<32 + index)
	}
	return codec.Key(index)
}

package workload

import (
	"encoding/binary"
	"fmt"
	"slices"

	"dorylus/engine/graph"
	"dorylus/engine/model"
	"dorylus/engine/store"
	"dorylus/engine/task"
	"dorylus/kernels"
)

// Reach is which rows the training vertices depend on, level by level: what the servers of
// a run tell each other when they make their plans.
type Reach struct {
	st    *store.Store
	rows  []uint64   // of the lowest level so far
	below [][]uint64 // by distance from the last level
}

// NewReach begins with the seeds; nil: all.
func NewReach(st *store.Store, seeds []int32) *Reach {
	r := &Reach{st: st, rows: make([]uint64, (st.Meta.Vertices+63)/64)}
	for _, v := range seeds {
		r.rows[v>>6] |= 1 << (v & 63)
	}
	r.below = [][]uint64{r.rows}
	return r
}

// at is the rows at a distance from the last level, and their in-neighbours' in between.
func (r *Reach) at(distance int) []uint64 {
	in := r.st.In
	for len(r.below) <= distance {
		above := r.below[len(r.below)-1]
		rows := slices.Clone(above)
		for w, word := range above {
			for bit := 0; word != 0; bit, word = bit+1, word>>1 {
				if word&1 == 0 {
					continue
				}
				v := w*64 + bit
				for e := in.RowPtr[v]; e < in.RowPtr[v+1]; e++ {
					if u := in.Col[e]; in.Val == nil || in.Val[e] != 0 {
						rows[u>>6] |= 1 << (u & 63)
					}
				}
			}
		}
		r.below = append(r.below, rows)
	}
	return r.below[distance]
}

// answer is what all partitions together say of the rows of a level, as if one had all.
func (r *Reach) answer(distance int) [][]byte {
	rows := r.at(distance)
	data := binary.LittleEndian.AppendUint64(nil, 0)
	data = binary.LittleEndian.AppendUint64(data, uint64(r.st.Meta.Vertices))
	for _, w := range rows {
		data = binary.LittleEndian.AppendUint64(data, w)
	}
	return [][]byte{data}
}

// plan makes the plan of a partition as a run does, and keeps what is needed of it.
func (b *builder) plan(rank int) (*planned, error) {
	prog := b.o.Program
	opt := graph.Options{Seeds: b.o.Seeds, All: b.o.All, Levels: prog.Levels, Backward: make([]bool, prog.Levels-1), Skip: make([]bool, prog.Levels-1)}
	for k := range opt.Skip {
		opt.Skip[k] = true
	}
	for i := range b.steps {
		g := b.steps[i].Gather
		switch {
		case g == nil:
		case g.Reduce != nil:
			opt.Seen = true
		default:
			opt.Skip[g.Hop] = false
			opt.Backward[g.Hop] = opt.Backward[g.Hop] || g.Back
		}
	}
	if len(b.o.Cuts) > 1 {
		opt.Part = &graph.Part{Blocks: b.o.Cuts[rank], Rank: rank, Gather: func(key string, _ []byte) ([][]byte, error) {
			var plan, level int
			if _, err := fmt.Sscanf(key, "plan %d, rows of level %d", &plan, &level); err != nil {
				return nil, fmt.Errorf("%q is asked for: %w", key, err)
			}
			return b.o.Reach.answer(prog.Levels - 1 - level), nil
		}}
	}
	full, err := graph.Build(b.st, opt)
	if err != nil {
		return nil, err
	}
	p := &planned{plan: full, cuts: full.Cut(b.o.Intervals), graphs: map[hopSide]*shape{}, sources: map[hopSide][][]int32{}}
	if full.Own.Len() == 0 {
		p.cuts = nil
	}
	blocks := make([]task.Range, full.Blocks)
	for i := range blocks {
		blocks[i] = task.Range{Lo: i, Hi: i + 1}
	}
	for i := range b.steps {
		g := b.steps[i].Gather
		if g == nil || g.Reduce != nil {
			continue
		}
		key := side(&b.steps[i])
		from, to, csr := &full.Levels[g.Hop], &full.Levels[g.Hop+1], full.Hops[g.Hop].Fwd
		if g.Back {
			from, to, csr = to, from, full.Hops[g.Hop].Bwd
		}
		if _, done := p.sources[key]; !done {
			p.sources[key] = graph.Sources(csr, to, from, blocks, full.Own, key.self)
			p.graphs[hopSide{g.Hop, g.Back, false}] = shapeOf(csr, to.BlockPtr)
		}
	}
	p.same = make([]bool, len(full.Hops))
	for k := range p.same {
		p.same[k] = full.Hops[k].FwdSelf == nil
	}
	if b.o.Sparse {
		p.rows0 = b.features(&full.Levels[0])
	}
	p.memory = b.memory(p)
	b.constants(p)
	full.Hops, full.Seen = nil, nil
	for k := range full.Levels {
		full.Levels[k].Rows = nil
	}
	return p, nil
}

// shapeOf keeps the sizes of g.
func shapeOf(g *kernels.CSR, at []int) *shape {
	s := &shape{rows: g.Rows(), cols: g.Cols, at: at, edges: make([]int64, len(at))}
	for i, row := range at {
		s.edges[i] = g.RowPtr[row] - g.RowPtr[0]
	}
	return s
}

// features is the shape of a level's sparse features.
func (b *builder) features(l *graph.Level) *shape {
	g := b.st.Sparse
	s := &shape{rows: l.N, cols: g.Cols, sparse: true, at: l.BlockPtr, edges: make([]int64, len(l.BlockPtr))}
	n, block := int64(0), 0
	for i := 0; i <= l.N; i++ {
		for ; block < len(l.BlockPtr) && l.BlockPtr[block] == i; block++ {
			s.edges[block] = n
		}
		if i < l.N {
			v := l.Store(i)
			n += g.RowPtr[v+1] - g.RowPtr[v]
		}
	}
	return s
}

// constants counts the gathers that are made once, before the first epoch.
func (b *builder) constants(p *planned) {
	own := graph.BlockSpan(&b.st.Meta, p.plan.Own)
	if len(b.o.Cuts) == 1 {
		own = kernels.Span{Hi: b.st.Meta.Vertices}
	}
	edges := float64(b.st.In.RowPtr[own.Hi] - b.st.In.RowPtr[own.Lo])
	for _, buf := range b.used() {
		if made := b.o.Program.Bufs[buf].Made; made != nil {
			op := Gather
			if made.Run != nil {
				op = MaxGather
			}
			b.m.add(Key{Op: op, Cols: b.o.Program.Bufs[buf].Cols}, edges+float64(own.Len()))
		}
	}
	p.start = b.m.take()
}

// used are the buffers that a step names.
func (b *builder) used() []int {
	var out []int
	for i := range b.steps {
		out = append(append(out, b.steps[i].In...), b.steps[i].Out...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// contexts are those of a partition's blocks, on matrices without memory.
func (b *builder) contexts(p *planned) []*model.Ctx {
	prog := b.o.Program
	levels := make([]int, len(prog.Bufs))
	full := make([]*kernels.Mat, len(prog.Bufs))
	for i, spec := range prog.Bufs {
		levels[i] = spec.Level
		rows := p.plan.Levels[spec.Level].N
		if spec.PerBlock {
			levels[i], rows = prog.Levels, b.blocks.N
		}
		full[i] = hollow(rows, spec.Cols)
		if spec.Edges && p.rows0 != nil {
			full[i] = hollow(p.rows0.Edges(), 1)
		}
	}
	mats := make([]*kernels.Mat, len(prog.Params))
	for i, s := range prog.Params {
		mats[i] = hollow(s.Rows, s.Cols)
	}
	ids, self := make([][]int32, prog.Levels), make([][]int32, len(p.same))
	for k := range ids {
		ids[k] = b.zeros[:p.plan.Levels[k].N]
	}
	for k, same := range p.same {
		if !same {
			self[k] = b.zeros[:p.plan.Levels[k+1].N]
		}
	}
	last := p.plan.Levels[prog.Levels-1].N
	targets := &kernels.CSR{Cols: 1, RowPtr: make([]int64, last+1)}
	var out []*model.Ctx
	for block := p.plan.Own.Lo; block < p.plan.Own.Hi; block++ {
		c := &model.Ctx{
			S: b.m, Full: full, Level: levels, Rows: make([]kernels.Span, prog.Levels+1), IDs: ids, Self: self, Seen: make([][]int32, prog.Levels),
			Weights: mats, Grads: mats, Labels: b.zeros[:last], Targets: targets, Loss: make([]float64, 1), Block: block, Train: b.o.Train,
			Scratch: func(_, rows, cols int) *kernels.Mat { return hollow(rows, cols) },
		}
		if p.rows0 != nil {
			c.SparseX = p.rows0
		}
		for k := range prog.Levels {
			c.Rows[k] = p.plan.Levels[k].Block(block)
		}
		c.Rows[prog.Levels] = b.blocks.Block(block)
		out = append(out, c)
	}
	return out
}

// hollow is a matrix that has a shape and no memory.
func hollow(rows, cols int) *kernels.Mat {
	return &kernels.Mat{Rows: rows, Cols: cols, Stride: kernels.PadCols(cols)}
}

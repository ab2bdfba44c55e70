package workload

import (
	"dorylus/engine/graph"
	"dorylus/engine/model"
	"dorylus/kernels"
)

// Memory is what a server needs for a pass, in bytes.
type Memory struct {
	Matrices  int64 // activations, gradients, published rows
	Constants int64 // features, or their gather, in the order of the plan
	Edges     int64 // those that are not the store's own
	Index     int64 // row numbers
	// Store is the part of the store that its edges, features and rows are: mapped, and
	// read at least once.
	Store int64
	// Start is what the gathers of constants need besides, until they are made.
	Start int64
}

// Sum is all of it that is there during an epoch.
func (m Memory) Sum() int64 { return m.Matrices + m.Constants + m.Edges + m.Index }

// memory adds up what the plan of a partition takes.
func (b *builder) memory(p *planned) Memory {
	var m Memory
	st, prog, plan := b.st, b.o.Program, p.plan
	alone := len(b.o.Cuts) == 1
	bytes := func(rows, cols int) int64 { return 4 * int64(rows) * int64(kernels.PadCols(cols)) }
	for _, buf := range b.used() {
		spec := &prog.Bufs[buf]
		l := &plan.Levels[spec.Level]
		rows := l.N
		if !alone && !spec.Published { // memory that nobody touches is none
			rows = l.Span(plan.Own).Len()
		}
		switch {
		case spec.PerBlock:
			rows = b.blocks.N
		case buf == model.X && b.o.Sparse:
			m.Constants += 8 * (p.rows0.edges[len(p.rows0.edges)-1] + int64(rows))
			continue
		case spec.Edges:
			m.Matrices += 4 * p.rows0.edges[len(p.rows0.edges)-1]
			continue
		case spec.Const && l.Rows == nil && spec.Made == nil:
			continue // the store's own
		}
		if spec.Const {
			m.Constants += bytes(rows, spec.Cols)
			if spec.Made != nil && l.Rows != nil && alone {
				m.Constants += bytes(st.Meta.Vertices, spec.Cols) // of all rows, from which it is picked
			}
			if spec.Made != nil && !alone {
				m.Start = max(m.Start, b.panels(buf, plan, bytes(rows, spec.Cols)))
			}
			continue
		}
		m.Matrices += bytes(rows, spec.Cols)
		if spec.Published && b.o.Shared {
			m.Matrices += bytes(rows, spec.Cols)
		}
	}
	seen := map[*kernels.CSR]bool{st.In: true, st.Out: true}
	own := graph.BlockSpan(&st.Meta, plan.Own)
	shared := func(g, of *kernels.CSR) bool { // the same memory
		lo := of.RowPtr[own.Lo]
		return len(g.Col) > 0 && int(lo) < len(of.Col) && &g.Col[0] == &of.Col[lo]
	}
	for k := range plan.Hops {
		h := &plan.Hops[k]
		for _, g := range []*kernels.CSR{h.Fwd, h.Bwd} {
			if g != nil && !seen[g] {
				seen[g] = true
				m.Edges += 8 * int64(len(g.RowPtr))
				if !shared(g, st.In) && !shared(g, st.Out) {
					m.Edges += 4*int64(len(g.Col)) + 4*int64(len(g.Val))
				}
			}
		}
		m.Index += 4 * int64(len(h.FwdSelf)+len(h.BwdSelf))
	}
	for k := range plan.Levels {
		m.Index += 8 * int64(plan.Levels[k].N) // row and user's number
	}
	loads := graph.Loads(st, nil)
	m.Store = loads[plan.Own.Lo].Between(loads[plan.Own.Hi]).Bytes
	return m
}

// panels are the columns of sources that a partition holds while it gathers a constant, a
// few at a time, as engine/pipeline does, and what it has touched of the store meanwhile.
func (b *builder) panels(buf int, plan *graph.Plan, constant int64) int64 {
	const budget, touched = 64 << 20, 32 << 20
	sources := int64(b.sourcesOf(plan))
	for s := b.o.Program.Bufs[buf].Made.Src; b.o.Program.Bufs[s].Made != nil; s = b.o.Program.Bufs[s].Made.Src {
		sources += int64(b.st.Meta.Vertices) // of nearly all, before long
	}
	row := 4 * int64(kernels.PadCols(b.o.Program.Bufs[buf].Cols))
	return touched + max(min(sources*row, max(budget, constant/4)), sources*4*kernels.Align)
}

// sourcesOf is the number of rows that the in-edges of own rows come from, with themselves.
func (b *builder) sourcesOf(plan *graph.Plan) int {
	own := graph.BlockSpan(&b.st.Meta, plan.Own)
	seen, n := make([]bool, b.st.Meta.Vertices), own.Len()
	for v := own.Lo; v < own.Hi; v++ {
		seen[v] = true
	}
	in := b.st.In
	for _, u := range in.Col[in.RowPtr[own.Lo]:in.RowPtr[own.Hi]] {
		if !seen[u] {
			seen[u] = true
			n++
		}
	}
	return n
}

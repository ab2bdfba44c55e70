package pipeline

import (
	"fmt"

	"dorylus/engine/graph"
	"dorylus/engine/model"
	"dorylus/engine/store"
	"dorylus/kernels"
)

// inputs are the things on the device that all passes of a run share: resident
// graphs, normalisation vectors and constant buffers. Everything in it is made
// once and read-only afterwards.
type inputs struct {
	dev kernels.Device
	st  *store.Store

	norms  map[normKey]*kernels.Mat
	graphs map[*kernels.CSR]kernels.Graph
	kept   map[string]*kernels.Mat   // gathers of constants over all rows
	shares map[constKey]*kernels.Mat // constants of a partition
	owned  []*kernels.Mat
}

func newInputs(dev kernels.Device, st *store.Store) *inputs {
	return &inputs{dev: dev, st: st, norms: map[normKey]*kernels.Mat{}, graphs: map[*kernels.CSR]kernels.Graph{}, kept: map[string]*kernels.Mat{}, shares: map[constKey]*kernels.Mat{}}
}

// normKey names a normalisation vector of the rows of a level: nil for all.
type normKey struct {
	level *graph.Level
	what  graph.Norm
}

// norm is a vector of one value per row of l, nil for all rows; the vector itself is
// nil where all values are 1.
func (in *inputs) norm(l *graph.Level, what graph.Norm) *kernels.Mat {
	if l != nil && l.Rows == nil {
		l = nil
	}
	key := normKey{l, what}
	m, ok := in.norms[key]
	if !ok {
		var rows []int32
		if l != nil {
			rows = l.Rows
		}
		m = vector(graph.NormOf(in.st.In, rows, what))
		in.norms[key] = m
	}
	return m
}

// alloc is a zeroed matrix that close frees.
func (in *inputs) alloc(rows, cols int) (*kernels.Mat, error) {
	m, err := in.dev.Alloc(rows, cols)
	if err != nil {
		return nil, err
	}
	in.owned = append(in.owned, m)
	return m, nil
}

// load makes a graph resident, once.
func (in *inputs) load(g *kernels.CSR) (kernels.Graph, error) {
	if g == nil {
		return nil, nil
	}
	if r, ok := in.graphs[g]; ok {
		return r, nil
	}
	r, err := in.dev.Load(g)
	if err != nil {
		return nil, err
	}
	in.graphs[g] = r
	return r, nil
}

// vector is a column vector of host values; nil for nil.
func vector(v []float32) *kernels.Mat {
	if v == nil {
		return nil
	}
	return &kernels.Mat{Rows: len(v), Cols: 1, Stride: 1, Host: v}
}

// constant is the constant buffer b of prog for a level: the dense features, or
// a gather of them that is made at first use and kept. Of a partition only its own rows
// are set.
func (in *inputs) constant(prog *model.Program, b int, level *graph.Level, own kernels.Span, w *workers) (*kernels.Mat, error) {
	if level.Rows == nil {
		return in.full(prog, b, w)
	}
	if level.N == 0 {
		return in.alloc(0, prog.Bufs[b].Cols)
	}
	key := constKey{prog.Bufs[b].Name, &level.Rows[0], own}
	if m, ok := in.shares[key]; ok {
		return m, nil
	}
	m, err := in.alloc(level.N, prog.Bufs[b].Cols)
	if err != nil {
		return nil, err
	}
	in.shares[key] = m
	if prog.Bufs[b].Made != nil && own.Len() < level.N {
		return m, in.make(prog, b, m, own, level.Rows, w)
	}
	full, err := in.full(prog, b, w)
	if err != nil {
		return nil, err
	}
	err = w.each(own.Len(), 4096, func(s kernels.Stream, rows kernels.Span) error {
		rows = kernels.Span{Lo: own.Lo + rows.Lo, Hi: own.Lo + rows.Hi}
		s.GatherRows(m.Sub(rows), full, level.Rows[rows.Lo:rows.Hi])
		return s.Wait()
	})
	return m, err
}

// constKey names a constant of some rows: levels of the same rows have the same list.
type constKey struct {
	name string
	rows *int32
	own  kernels.Span
}

// full is the constant buffer b of prog for all rows.
func (in *inputs) full(prog *model.Program, b int, w *workers) (*kernels.Mat, error) {
	spec := prog.Bufs[b]
	if spec.Made == nil {
		return in.dense()
	}
	if m, ok := in.kept[spec.Name]; ok {
		return m, nil
	}
	src, err := in.full(prog, spec.Made.Src, w)
	if err != nil {
		return nil, err
	}
	g, err := in.load(in.st.In)
	if err != nil {
		return nil, err
	}
	m, err := in.alloc(in.st.Meta.Vertices, spec.Cols)
	if err != nil {
		return nil, err
	}
	// Wide rows gain from long spans, which reuse a tile of sources more often.
	err = in.gatherConstant(prog, b, m, kernels.Span{Hi: m.Rows}, max(in.st.Meta.Vertices/(4*w.n)+1, 4096), g, src, in.gather(spec.Made, nil, nil, nil), w)
	in.kept[spec.Name] = m
	return m, err
}

// make gathers the constant buffer b for the rows span of m, which are store rows. What
// it gathers is made for its sources alone, from the store: a second hop of
// constants makes rows again that another partition has, and needs no exchange for it.
func (in *inputs) make(prog *model.Program, b int, m *kernels.Mat, span kernels.Span, rows []int32, w *workers) error {
	spec := prog.Bufs[b]
	hop := graph.Around(in.st.In, rows[span.Lo:span.Hi])
	from, to := &hop.Sources, &hop.Rows
	src, err := in.dev.Alloc(from.N, prog.Bufs[spec.Made.Src].Cols)
	if err != nil {
		return err
	}
	defer in.dev.Free(src)
	if prog.Bufs[spec.Made.Src].Made != nil {
		err = in.make(prog, spec.Made.Src, src, kernels.Span{Hi: from.N}, from.Rows, w)
	} else {
		var x *kernels.Mat
		if x, err = in.dense(); err == nil {
			err = w.each(from.N, 4096, func(s kernels.Stream, r kernels.Span) error {
				s.GatherRows(src.Sub(r), x, from.Rows[r.Lo:r.Hi])
				return s.Wait()
			})
		}
	}
	if err != nil {
		return err
	}
	g, err := in.dev.Load(hop.Edges)
	if err != nil {
		return err
	}
	defer in.dev.Unload(g)
	ga := in.gather(spec.Made, to, from, hop.Self)
	for key := range in.norms { // nobody sees these levels again
		if key.level == to || key.level == from {
			delete(in.norms, key)
		}
	}
	return in.gatherConstant(prog, b, m.Sub(span), kernels.Span{Hi: span.Len()}, max(span.Len()/(4*w.n)+1, 4096), g, src, ga, w)
}

// gatherConstant runs the gather that makes buffer b for rows of m.
func (in *inputs) gatherConstant(prog *model.Program, b int, m *kernels.Mat, rows kernels.Span, size int, g kernels.Graph, src *kernels.Mat, ga kernels.Gather, w *workers) error {
	run := prog.Bufs[b].Made.Run
	return w.each(rows.Len(), size, func(s kernels.Stream, r kernels.Span) error {
		r = kernels.Span{Lo: rows.Lo + r.Lo, Hi: rows.Lo + r.Hi}
		if run != nil {
			c := &model.Ctx{S: s, Full: make([]*kernels.Mat, len(prog.Bufs))}
			c.Full[b] = m
			run(c, &model.GatherArgs{G: g, Src: src, Args: ga, Rows: r})
		} else {
			s.SpMM(m, g, src, ga, r)
		}
		return s.Wait()
	})
}

// dense are the features as a matrix: the store's, or its sparse ones spelt out for
// a model that needs every value of a row.
func (in *inputs) dense() (*kernels.Mat, error) {
	g := in.st.Sparse
	if in.st.Dense != nil || g == nil {
		return in.st.Dense, nil
	}
	const name = "X dense"
	if m, ok := in.kept[name]; ok {
		return m, nil
	}
	m, err := in.alloc(g.Rows(), g.Cols)
	if err != nil {
		return nil, fmt.Errorf("make the sparse features dense, %d x %d values: %w", g.Rows(), g.Cols, err)
	}
	for v := range g.Rows() {
		row := m.Row(v)
		for e := g.RowPtr[v]; e < g.RowPtr[v+1]; e++ {
			row[g.Col[e]] = 1
			if g.Val != nil {
				row[g.Col[e]] = g.Val[e]
			}
		}
	}
	in.kept[name] = m
	return m, nil
}

// gather are the normalisation and self term of g between the levels dst and src
// (nil: all rows); self is as in graph.Hop.
func (in *inputs) gather(g *model.Gather, dst, src *graph.Level, self []int32) kernels.Gather {
	loops := func() kernels.Self { return kernels.Self{On: true, Col: self, W: in.norm(dst, graph.SelfLoop)} }
	switch g.Norm {
	case model.NormGCN:
		return kernels.Gather{Scale: kernels.Scale{Row: in.norm(dst, graph.GCNScale), Col: in.norm(src, graph.GCNScale)}, Self: loops()}
	case model.NormSelf:
		return kernels.Gather{Self: loops()}
	case model.NormMean:
		// A mean divides by what comes into the upper level's row, whichever way
		// the gather goes.
		if g.Back {
			return kernels.Gather{Scale: kernels.Scale{Col: in.norm(src, graph.MeanScale)}}
		}
		return kernels.Gather{Scale: kernels.Scale{Row: in.norm(dst, graph.MeanScale)}}
	}
	return kernels.Gather{}
}

func (in *inputs) close() {
	for _, g := range in.graphs {
		in.dev.Unload(g)
	}
	for _, m := range in.owned {
		in.dev.Free(m)
	}
	in.graphs, in.owned, in.kept, in.shares = nil, nil, nil, nil
}

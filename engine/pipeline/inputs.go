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

	self  []float32 // per store row; nil: 1
	scale []float32 // D^-½ per store row
	mean  []float32 // one over the sum of in-edge weights per store row; 0 for none

	graphs map[*kernels.CSR]kernels.Graph
	kept   map[string]*kernels.Mat // gathers of constants over all rows
	owned  []*kernels.Mat
}

func newInputs(dev kernels.Device, st *store.Store) *inputs {
	in := &inputs{dev: dev, st: st, graphs: map[*kernels.CSR]kernels.Graph{}, kept: map[string]*kernels.Mat{}}
	in.self, _ = graph.SelfWeights(st.In)
	in.scale = graph.GCNScale(st.In, in.self)
	in.mean = graph.MeanScale(st.In)
	return in
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
// a gather of them that is made for all rows at first use and kept.
func (in *inputs) constant(prog *model.Program, b int, level *graph.Level, w *workers) (*kernels.Mat, error) {
	full, err := in.full(prog, b, w)
	if err != nil || level.Rows == nil {
		return full, err
	}
	m, err := in.alloc(level.N, full.Cols)
	if err != nil {
		return nil, err
	}
	err = w.each(level.N, 4096, func(s kernels.Stream, rows kernels.Span) error {
		s.GatherRows(m.Sub(rows), full, level.Rows[rows.Lo:rows.Hi])
		return s.Wait()
	})
	return m, err
}

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
	ga := in.gather(spec.Made, nil, nil, nil)
	// Wide rows gain from long spans, which reuse a tile of sources more often.
	span := max(in.st.Meta.Vertices/(4*w.n)+1, 4096)
	err = w.each(m.Rows, span, func(s kernels.Stream, rows kernels.Span) error {
		if run := spec.Made.Run; run != nil {
			c := &model.Ctx{S: s, Full: make([]*kernels.Mat, len(prog.Bufs))}
			c.Full[b] = m
			run(c, &model.GatherArgs{G: g, Src: src, Args: ga, Rows: rows})
		} else {
			s.SpMM(m, g, src, ga, rows)
		}
		return s.Wait()
	})
	in.kept[spec.Name] = m
	return m, err
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
	pick := func(l *graph.Level, v []float32) *kernels.Mat {
		if l != nil {
			v = l.Pick(v)
		}
		return vector(v)
	}
	loops := kernels.Self{On: true, Col: self, W: pick(dst, in.self)}
	switch g.Norm {
	case model.NormGCN:
		return kernels.Gather{Scale: kernels.Scale{Row: pick(dst, in.scale), Col: pick(src, in.scale)}, Self: loops}
	case model.NormSelf:
		return kernels.Gather{Self: loops}
	case model.NormMean:
		// A mean divides by what comes into the upper level's row, whichever way
		// the gather goes.
		if g.Back {
			return kernels.Gather{Scale: kernels.Scale{Col: pick(src, in.mean)}}
		}
		return kernels.Gather{Scale: kernels.Scale{Row: pick(dst, in.mean)}}
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
	in.graphs, in.owned, in.kept = nil, nil, nil
}

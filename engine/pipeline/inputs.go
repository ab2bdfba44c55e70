package pipeline

import (
	"errors"
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
	dev    kernels.Device
	st     *store.Store
	hosted bool           // the host can address the device's memory
	stream kernels.Stream // for put; nil where hosted

	norms  map[normKey]*kernels.Mat
	graphs map[*kernels.CSR]kernels.Graph
	kept   map[string]*kernels.Mat   // gathers of constants over all rows
	shares map[constKey]*kernels.Mat // constants of a partition
	owned  []*kernels.Mat
	lists  [][]int32 // that the device keeps

	panelBytes int // see constants.go
}

func newInputs(dev kernels.Device, st *store.Store) (*inputs, error) {
	in := &inputs{
		dev: dev, st: st, panelBytes: panelBytes,
		norms: map[normKey]*kernels.Mat{}, graphs: map[*kernels.CSR]kernels.Graph{}, kept: map[string]*kernels.Mat{}, shares: map[constKey]*kernels.Mat{},
	}
	var err error
	if in.hosted, err = addressable(dev); err == nil && !in.hosted {
		in.stream, err = dev.NewStream()
	}
	return in, err
}

// normKey names a normalisation vector of the rows of a level: nil for all.
type normKey struct {
	level *graph.Level
	what  graph.Norm
}

// norm is a vector of one value per row of l, nil for all rows; the vector itself is
// nil where all values are 1.
func (in *inputs) norm(l *graph.Level, what graph.Norm) (*kernels.Mat, error) {
	if l != nil && l.Rows == nil {
		l = nil
	}
	key := normKey{l, what}
	if m, ok := in.norms[key]; ok {
		return m, nil
	}
	var rows []int32
	if l != nil {
		rows = l.Rows
	}
	m, err := in.column(in.normOf(rows, what))
	if err == nil {
		in.norms[key] = m
	}
	return m, err
}

// alloc is a zeroed matrix that close frees.
func (in *inputs) alloc(purpose kernels.Purpose, rows, cols int) (*kernels.Mat, error) {
	m, err := kernels.AllocFor(in.dev, purpose, rows, cols)
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

// constant is the constant buffer b of prog for a level: the dense features, or
// a gather of them that is made at first use and kept. Of a partition only its own rows
// are set.
func (in *inputs) constant(prog *model.Program, b int, level *graph.Level, plan *graph.Plan, w *workers) (*kernels.Mat, error) {
	spec, own := &prog.Bufs[b], level.Span(plan.Own)
	all := plan.Own.Len() == plan.Blocks
	switch {
	case level.Rows == nil && (all || spec.Made == nil && in.st.Dense != nil && in.hosted):
		return in.full(prog, b, w)
	case level.N == 0:
		return in.alloc(purposeOf(spec), 0, spec.Cols)
	}
	key := constKey{name: spec.Name, own: own}
	if level.Rows != nil {
		key.rows = &level.Rows[0]
	}
	if m, ok := in.shares[key]; ok {
		return m, nil
	}
	m, err := in.alloc(purposeOf(spec), level.N, spec.Cols)
	if err != nil {
		return nil, err
	}
	in.shares[key] = m
	mine := m.Sub(own)
	rows := storeRows(level, own)
	switch {
	case spec.Made == nil:
		return m, in.features(mine, rows, 0, w)
	case !all:
		return m, in.make(prog, b, mine, rows, w)
	}
	full, err := in.full(prog, b, w)
	if err != nil {
		return nil, err
	}
	return m, in.pick(mine, full, rows, w)
}

// constKey names a constant of some rows: levels of the same rows have the same list, nil
// for all rows.
type constKey struct {
	name string
	rows *int32
	own  kernels.Span
}

// storeRows are the rows of the store that a span of a level has.
func storeRows(l *graph.Level, span kernels.Span) []int32 {
	if l.Rows != nil {
		return l.Rows[span.Lo:span.Hi]
	}
	rows := make([]int32, span.Len())
	for i := range rows {
		rows[i] = int32(span.Lo + i)
	}
	return rows
}

// pick copies rows of src, ascending; nil: all.
func (in *inputs) pick(dst, src *kernels.Mat, rows []int32, w *workers) error {
	return w.each(dst.Rows, 4096, func(s kernels.Stream, r kernels.Span) error {
		if rows == nil {
			s.Copy(dst.Sub(r), src.Sub(r))
		} else {
			s.GatherRows(dst.Sub(r), src, rows[r.Lo:r.Hi])
		}
		return s.Wait()
	})
}

// full is the constant buffer b of prog for all rows.
func (in *inputs) full(prog *model.Program, b int, w *workers) (*kernels.Mat, error) {
	spec := prog.Bufs[b]
	if spec.Made == nil {
		return in.dense(w)
	}
	if m, ok := in.kept[spec.Name]; ok {
		return m, nil
	}
	g, err := in.load(in.st.In)
	if err != nil {
		return nil, err
	}
	m, err := in.alloc(kernels.FirstGather, in.st.Meta.Vertices, spec.Cols)
	if err != nil {
		return nil, err
	}
	in.kept[spec.Name] = m
	if !in.hosted {
		return m, in.makeAll(prog, b, m, g, w)
	}
	src, err := in.full(prog, spec.Made.Src, w)
	if err != nil {
		return nil, err
	}
	ga, err := in.gather(spec.Made, nil, nil, nil)
	if err != nil {
		return nil, err
	}
	return m, in.gatherConstant(prog, b, m, g, src, ga, w)
}

// gatherConstant runs the gather that makes buffer b for all rows of m.
func (in *inputs) gatherConstant(prog *model.Program, b int, m *kernels.Mat, g kernels.Graph, src *kernels.Mat, ga kernels.Gather, w *workers) error {
	run := prog.Bufs[b].Made.Run
	// Wide rows gain from long spans, which reuse a tile of sources more often.
	return w.each(m.Rows, max(m.Rows/(4*w.n)+1, 4096), func(s kernels.Stream, r kernels.Span) error {
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

// allFeatures names the features of all rows among what is kept.
const allFeatures = "X dense"

// dense are the features of all rows as a matrix: the store's own, or put on a device
// that cannot read them there, or the sparse ones spelt out for a model that needs every
// value of a row.
func (in *inputs) dense(w *workers) (*kernels.Mat, error) {
	if in.st.Dense != nil && in.hosted || in.st.Dense == nil && in.st.Sparse == nil {
		return in.st.Dense, nil
	}
	if m, ok := in.kept[allFeatures]; ok {
		return m, nil
	}
	rows, cols := in.st.Meta.Vertices, in.st.Meta.Features
	m, err := in.alloc(kernels.Features, rows, cols)
	if err != nil {
		return nil, fmt.Errorf("make the features dense on %s, %d x %d values: %w", in.dev.Name(), rows, cols, err)
	}
	in.kept[allFeatures] = m
	return m, in.features(m, nil, 0, w)
}

// gather are the normalisation and self term of g between the levels dst and src
// (nil: all rows); self is as in graph.Hop.
func (in *inputs) gather(g *model.Gather, dst, src *graph.Level, self []int32) (kernels.Gather, error) {
	var errs []error
	norm := func(l *graph.Level, what graph.Norm) *kernels.Mat {
		m, err := in.norm(l, what)
		if err != nil {
			errs = append(errs, err)
		}
		return m
	}
	loops := func() kernels.Self { return kernels.Self{On: true, Col: self, W: norm(dst, graph.SelfLoop)} }
	var ga kernels.Gather
	switch g.Norm {
	case model.NormGCN:
		ga = kernels.Gather{Scale: kernels.Scale{Row: norm(dst, graph.GCNScale), Col: norm(src, graph.GCNScale)}, Self: loops()}
	case model.NormSelf:
		ga = kernels.Gather{Self: loops()}
	case model.NormMean:
		// A mean divides by what comes into the upper level's row, whichever way
		// the gather goes.
		if g.Back {
			ga = kernels.Gather{Scale: kernels.Scale{Col: norm(src, graph.MeanScale)}}
		} else {
			ga = kernels.Gather{Scale: kernels.Scale{Row: norm(dst, graph.MeanScale)}}
		}
	}
	return ga, errors.Join(errs...)
}

// close gives back what the device holds. Nothing may run on it any more.
func (in *inputs) close() {
	for _, g := range in.graphs {
		in.dev.Unload(g)
	}
	for _, m := range in.owned {
		in.dev.Free(m)
	}
	if k, ok := in.dev.(kernels.Keeper); ok {
		for _, v := range in.lists {
			k.Drop(v)
		}
	}
	if in.stream != nil {
		in.stream.Close()
	}
	in.graphs, in.owned, in.kept, in.shares, in.lists, in.stream = nil, nil, nil, nil, nil, nil
}

package pipeline

import (
	"slices"

	"dorylus/engine/graph"
	"dorylus/engine/model"
	"dorylus/kernels"
)

// A partition gathers its constants, such as Â·X, from the store, where its ghosts'
// features lie: for some columns after the other, all its rows, so that the sources take
// a few columns of memory and not their whole width, which is that of all the graph
// where nearly every row is somebody's neighbour. A gather's columns have nothing to do
// with each other, so the bits are those of a gather of whole rows. What comes into
// memory of the mapped store is let go of on the way. The price is that features
// are read as often as there are panels of columns.
const (
	panelBytes = 64 << 20 // of sources, unless the constants themselves are much larger
	panelAlign = 64       // columns, or fewer where these would take too much
	touchBytes = 32 << 20 // of the store, between two trims
)

// constHop is one gather of a chain of constants.
type constHop struct {
	buf  int // that it makes
	hood *graph.Neighbourhood
	g    kernels.Graph
	ga   kernels.Gather
}

// make gathers the constant buffer b for rows of the store into m, one row for each. What
// it gathers is made for its sources alone, from the store: a second hop of
// constants makes rows again that another partition has, and needs no exchange for it.
func (in *inputs) make(prog *model.Program, b int, m *kernels.Mat, rows []int32, w *workers) error {
	var hops []constHop
	sources := 0
	for ; prog.Bufs[b].Made != nil; b = prog.Bufs[b].Made.Src {
		hood := graph.Around(in.st.In, rows)
		g, err := in.dev.Load(hood.Edges)
		if err != nil {
			return err
		}
		defer in.dev.Unload(g)
		ga, err := in.gather(prog.Bufs[b].Made, &hood.Rows, &hood.Sources, hood.Self)
		if err != nil {
			return err
		}
		hops = append(hops, constHop{b, hood, g, ga})
		rows = hood.Sources.Rows
		sources += hood.Sources.N
	}
	defer in.forget(hops)
	in.st.Trim()
	return in.makePanels(prog, hops, sources, m, w)
}

// makeAll is make for all rows, on a device that cannot read the store: the features pass
// through its memory once, unless they are there as a whole.
func (in *inputs) makeAll(prog *model.Program, b int, m *kernels.Mat, g kernels.Graph, w *workers) error {
	var hops []constHop
	rows := in.st.Meta.Vertices
	for ; prog.Bufs[b].Made != nil; b = prog.Bufs[b].Made.Src {
		ga, err := in.gather(prog.Bufs[b].Made, nil, nil, nil)
		if err != nil {
			return err
		}
		hops = append(hops, constHop{b, &graph.Neighbourhood{Sources: graph.Level{N: rows}}, g, ga})
	}
	if reads(prog, b) {
		if _, err := in.dense(w); err != nil {
			return err
		}
	}
	return in.makePanels(prog, hops, len(hops)*rows, m, w)
}

// reads says that a step of the program reads or sets a buffer.
func reads(prog *model.Program, buf int) bool {
	return slices.ContainsFunc(prog.Steps, func(s model.Step) bool {
		return slices.Contains(s.In, buf) || slices.Contains(s.Out, buf)
	})
}

// forget drops the norms of levels that nobody sees again.
func (in *inputs) forget(hops []constHop) {
	for key, m := range in.norms {
		for _, h := range hops {
			if key.level == &h.hood.Rows || key.level == &h.hood.Sources {
				delete(in.norms, key)
				in.free(m)
			}
		}
	}
}

// makePanels makes the columns of m, some at a time.
func (in *inputs) makePanels(prog *model.Program, hops []constHop, sources int, m *kernels.Mat, w *workers) error {
	width := in.panel(sources, m)
	for lo := 0; lo < m.Cols; lo += width {
		if err := in.makePanel(prog, hops, m.Columns(lo, min(lo+width, m.Cols)), lo, w); err != nil {
			return err
		}
	}
	return nil
}

// panel is how many columns of m are made at a time, from so many rows of sources.
func (in *inputs) panel(sources int, m *kernels.Mat) int {
	budget := max(in.panelBytes, m.Rows*m.Stride) // a quarter of the bytes of m
	width := budget / (4 * max(sources, 1))
	if width >= panelAlign {
		return width / panelAlign * panelAlign
	}
	return max(width/kernels.Align, 1) * kernels.Align
}

// makePanel makes columns from col on, as many as m has, of what the first hop makes.
func (in *inputs) makePanel(prog *model.Program, hops []constHop, m *kernels.Mat, col int, w *workers) error {
	h := &hops[0]
	if x := in.kept[allFeatures]; x != nil && len(hops) == 1 && h.hood.Sources.Rows == nil {
		return in.gatherConstant(prog, h.buf, m, h.g, x.Columns(col, col+m.Cols), h.ga, w)
	}
	src, err := in.dev.Alloc(h.hood.Sources.N, m.Cols) // for a while
	if err != nil {
		return err
	}
	defer in.dev.Free(src)
	if len(hops) > 1 {
		err = in.makePanel(prog, hops[1:], src, col, w)
	} else {
		err = in.features(src, h.hood.Sources.Rows, col, w)
	}
	if err != nil {
		return err
	}
	return in.gatherConstant(prog, h.buf, m, h.g, src, h.ga, w)
}

// features copies columns of the features from col on, as many as m has, of rows of the
// store, ascending; nil: all.
func (in *inputs) features(m *kernels.Mat, rows []int32, col int, w *workers) error {
	width := kernels.PadCols(in.st.Meta.Features)
	piece := max(touchBytes/(4*width), 1)
	for lo := 0; lo < m.Rows; lo += piece {
		span := kernels.Span{Lo: lo, Hi: min(lo+piece, m.Rows)}
		dst, some := m.Sub(span), rows
		if rows != nil {
			some = rows[span.Lo:span.Hi]
		}
		var err error
		if x := in.st.Dense; x == nil {
			err = in.spell(dst, some, span.Lo, col, w)
		} else {
			x = x.Columns(col, col+m.Cols)
			if rows == nil {
				x = x.Sub(span)
			}
			err = in.pick(dst, x, some, w)
		}
		if err != nil {
			return err
		}
		in.st.Trim()
	}
	return nil
}

// spell is features for sparse ones: rows, or as many as m has from first on.
func (in *inputs) spell(m *kernels.Mat, rows []int32, first, col int, w *workers) error {
	g := in.st.Sparse
	return w.each(m.Rows, min(4096, max(touchBytes/(4*m.Cols), 1)), func(s kernels.Stream, r kernels.Span) error {
		some := m.Sub(r)
		if !in.hosted {
			some = kernels.FromSlice(r.Len(), m.Cols, make([]float32, r.Len()*m.Cols))
		}
		for i := r.Lo; i < r.Hi; i++ {
			v := first + i
			if rows != nil {
				v = int(rows[i])
			}
			row := some.Row(i - r.Lo)
			for e := g.RowPtr[v]; e < g.RowPtr[v+1]; e++ {
				c := int(g.Col[e]) - col
				if c < 0 || c >= m.Cols {
					continue
				}
				row[c] = 1
				if g.Val != nil {
					row[c] = g.Val[e]
				}
			}
		}
		if !in.hosted {
			s.Copy(m.Sub(r), some)
		}
		return s.Wait()
	})
}

// normOf is graph.NormOf of the store. Of all rows it reads the edges piece by piece.
func (in *inputs) normOf(rows []int32, what graph.Norm) []float32 {
	if rows != nil {
		return graph.NormOf(in.st.In, rows, what)
	}
	out := make([]float32, in.st.Meta.Vertices)
	ones := true
	for lo := 0; lo < len(out); {
		span := kernels.Span{Lo: lo, Hi: lo + 1}
		ptr := in.st.In.RowPtr
		for span.Hi < len(out) && 4*(ptr[span.Hi+1]-ptr[lo]) <= touchBytes {
			span.Hi++
		}
		part := out[span.Lo:span.Hi]
		if values := graph.NormOf(in.st.In, storeRows(&graph.Level{}, span), what); values != nil {
			copy(part, values)
			ones = false
		} else {
			for i := range part {
				part[i] = 1
			}
		}
		in.st.Trim()
		lo = span.Hi
	}
	if ones {
		return nil
	}
	return out
}

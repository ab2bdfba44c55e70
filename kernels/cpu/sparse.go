//go:build cgo && amd64 && linux

package cpu

import (
	native "dorylus/csrc/cpu"
	"dorylus/kernels"
)

// SpMM gathers; the loop is in kernels.Stream.
func (s *stream) SpMM(dst *kernels.Mat, g kernels.Graph, x *kernels.Mat, ga kernels.Gather, rows kernels.Span) {
	kernels.CheckSpMM(dst, g, x, ga, rows)
	kernels.CheckHost("SpMM", dst, x, ga.Scale.Row, ga.Scale.Col, ga.Self.W, ga.W, biasOf(ga.Ep))
	r := s.own("SpMM", g)
	if !s.runs("SpMM") || rows.Len() == 0 || dst.Cols == 0 {
		return
	}
	p, err := r.plan(x, rows)
	if err == nil && p.pack > len(s.scratch)/4 {
		err = s.growScratch(4 * p.pack)
	}
	if err != nil {
		s.fail("SpMM", err)
		return
	}
	n := native.Gather{
		RowPtr: r.RowPtr, Col: r.Col, W: weights(r, ga.W),
		Tile: p.tile, TileLD: r.Rows(), Tiles: p.tiles, TileRows: r.tileRows, Sources: r.Cols(),
		Group: p.group, Panel: p.panel,
		RS: host(ga.Scale.Row), CS: host(ga.Scale.Col),
		X: x.Host, LDX: x.Stride, Y: dst.Host, LDY: dst.Stride, Cols: x.Cols,
		Lo: rows.Lo, Hi: rows.Hi, Ep: epilogue(ga.Ep),
	}
	if ga.Self.On {
		n.SelfOn, n.SelfCol, n.SelfW = true, ga.Self.Col, host(ga.Self.W)
	}
	if p.pack > 0 {
		n.Pack = floats(s.scratch)
	}
	s.table.SpMM(&n)
}

// weights is w, or the graph's own values where w is nil.
func weights(g *graph, w *kernels.Mat) []float32 {
	if w != nil {
		return w.Host
	}
	return g.Val
}

// SpMMT scatters; the loop is in kernels.Stream.
func (s *stream) SpMMT(dst *kernels.Mat, g kernels.Graph, w, x *kernels.Mat, rows kernels.Span) {
	kernels.CheckSpMMT(dst, g, w, x, rows)
	kernels.CheckHost("SpMMT", dst, x, w)
	r := s.own("SpMMT", g)
	if !s.runs("SpMMT") || dst.Cols == 0 {
		return
	}
	s.table.SpMMT(r.RowPtr, r.Col, weights(r, w), x.Host, x.Stride, dst.Host, dst.Stride, dst.Rows, dst.Cols, rows.Lo, rows.Hi)
}

// SDDMM sets one inner product per edge.
func (s *stream) SDDMM(dst *kernels.Mat, g kernels.Graph, x, y *kernels.Mat, rows kernels.Span) {
	kernels.CheckSDDMM(dst, g, x, y, rows)
	kernels.CheckHost("SDDMM", dst, x, y)
	r := s.own("SDDMM", g)
	if !s.runs("SDDMM") {
		return
	}
	s.table.SDDMM(r.RowPtr, r.Col, x.Host, x.Stride, y.Host, y.Stride, dst.Host, x.Cols, rows.Lo, rows.Hi)
}

// EdgeDropout drops and scales the values of edges.
func (s *stream) EdgeDropout(dst *kernels.Mat, g kernels.Graph, d kernels.Dropout, rows kernels.Span) {
	kernels.CheckEdgeDropout(dst, g, d, rows)
	kernels.CheckHost("EdgeDropout", dst)
	r := s.own("EdgeDropout", g)
	if !s.runs("EdgeDropout") {
		return
	}
	s.table.EdgeDropout(r.RowPtr, r.Col, r.Val, dst.Host, dropout(d), rows.Lo, rows.Hi)
}

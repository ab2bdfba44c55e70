package ref

import "dorylus/kernels"

// SpMM gathers; the loop is in kernels.Stream.
func (s *stream) SpMM(dst *kernels.Mat, g kernels.Graph, x *kernels.Mat, ga kernels.Gather, rows kernels.Span) {
	kernels.CheckSpMM(dst, g, x, ga, rows)
	kernels.CheckHost("SpMM", dst, x, ga.Scale.Row, ga.Scale.Col, ga.Self.W, ga.W, bias(ga.Ep))
	r := own("SpMM", g)
	if !s.runs("SpMM") {
		return
	}
	rows = within(dst, rows)
	rs, cs, sw, w := column(ga.Scale.Row), column(ga.Scale.Col), column(ga.Self.W), values(r, ga.W)
	for v := rows.Lo; v < rows.Hi; v++ {
		acc := s.zeros(dst.Cols)
		lo, hi := r.RowPtr[v], r.RowPtr[v+1]
		terms := hi > lo
		if u := selfOf(ga.Self, v); u >= 0 {
			axpy(acc, at(sw, v)*at(cs, u), x.Row(u))
			terms = true
		}
		e := int(lo)
		for ; e+4 <= int(hi); e += 4 {
			u0, u1, u2, u3 := int(r.Col[e]), int(r.Col[e+1]), int(r.Col[e+2]), int(r.Col[e+3])
			axpy4(acc, at(cs, u0)*at(w, e), at(cs, u1)*at(w, e+1), at(cs, u2)*at(w, e+2), at(cs, u3)*at(w, e+3),
				x.Row(u0), x.Row(u1), x.Row(u2), x.Row(u3))
		}
		for ; e < int(hi); e++ {
			u := int(r.Col[e])
			axpy(acc, at(cs, u)*at(w, e), x.Row(u))
		}
		if rs != nil && terms {
			f := float64(rs[v])
			for c := range acc {
				acc[c] *= f
			}
		}
		finish(dst.Row(v), acc, v, ga.Ep)
	}
}

// selfOf is the source row of v itself, -1 where it adds nothing.
func selfOf(self kernels.Self, v int) int {
	switch {
	case !self.On:
		return -1
	case self.Col == nil:
		return v
	}
	return int(self.Col[v])
}

// SpMMT scatters; the loop is in kernels.Stream. The sums are as wide as dst.
func (s *stream) SpMMT(dst *kernels.Mat, g kernels.Graph, w, x *kernels.Mat, rows kernels.Span) {
	kernels.CheckSpMMT(dst, g, w, x, rows)
	kernels.CheckHost("SpMMT", dst, x, w)
	r := own("SpMMT", g)
	if !s.runs("SpMMT") || dst.Cols == 0 {
		return
	}
	n := dst.Cols
	acc, val := s.zeros(dst.Rows*n), values(r, w)
	for v := rows.Lo; v < rows.Hi; v++ {
		y := x.Row(v)
		for e := r.RowPtr[v]; e < r.RowPtr[v+1]; e++ {
			u := int(r.Col[e])
			axpy(acc[u*n:(u+1)*n], at(val, int(e)), y)
		}
	}
	for u := range dst.Rows {
		finish(dst.Row(u), acc[u*n:(u+1)*n], u, nil)
	}
}

// SDDMM sets one inner product per edge.
func (s *stream) SDDMM(dst *kernels.Mat, g kernels.Graph, x, y *kernels.Mat, rows kernels.Span) {
	kernels.CheckSDDMM(dst, g, x, y, rows)
	kernels.CheckHost("SDDMM", dst, x, y)
	r := own("SDDMM", g)
	if !s.runs("SDDMM") {
		return
	}
	for v := rows.Lo; v < rows.Hi; v++ {
		for e := r.RowPtr[v]; e < r.RowPtr[v+1]; e++ {
			if x.Cols == 0 {
				dst.Host[e] = 0
				continue
			}
			dst.Host[e] = float32(dot(x.Row(int(r.Col[e])), y.Row(v)))
		}
	}
}

// EdgeDropout drops and scales the values of edges.
func (s *stream) EdgeDropout(dst *kernels.Mat, g kernels.Graph, d kernels.Dropout, rows kernels.Span) {
	kernels.CheckEdgeDropout(dst, g, d, rows)
	kernels.CheckHost("EdgeDropout", dst)
	r := own("EdgeDropout", g)
	if !s.runs("EdgeDropout") {
		return
	}
	keep, threshold := keepScale(d), d.Threshold()
	for v := rows.Lo; v < rows.Hi; v++ {
		row := rowKey(d, v)
		for e := r.RowPtr[v]; e < r.RowPtr[v+1]; e++ {
			if d.P > 0 && !kernels.DropKeep(row, uint32(r.Col[e]), threshold) {
				dst.Host[e] = 0
				continue
			}
			dst.Host[e] = float32(at(r.Val, int(e)) * keep)
		}
	}
}

// column is the values of an n x 1 matrix with stride 1; nil stays nil.
func column(m *kernels.Mat) []float32 {
	if m == nil {
		return nil
	}
	return m.Host
}

// values is w, or the graph's own where w is nil.
func values(g *graph, w *kernels.Mat) []float32 {
	if w != nil {
		return w.Host
	}
	return g.Val
}

// at is f[i], or 1 where f is nil.
func at(f []float32, i int) float64 {
	if f == nil {
		return 1
	}
	return float64(f[i])
}

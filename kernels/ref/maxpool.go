package ref

import (
	"math"

	"dorylus/kernels"
)

// SpMMMax gathers by the maximum.
func (s *stream) SpMMMax(dst, arg *kernels.Mat, g kernels.Graph, x *kernels.Mat, rows kernels.Span) {
	kernels.CheckSpMMMax(dst, arg, g, x, rows)
	kernels.CheckHost("SpMMMax", dst, arg, x)
	r := own("SpMMMax", g)
	if !s.runs("SpMMMax") {
		return
	}
	rows = within(dst, rows)
	for v := rows.Lo; v < rows.Hi; v++ {
		acc := s.zeros(2 * dst.Cols)
		top, from := acc[:dst.Cols], acc[dst.Cols:]
		for c := range from {
			from[c] = -1
		}
		for e := r.RowPtr[v]; e < r.RowPtr[v+1]; e++ {
			if !(at(r.Val, int(e)) > 0) {
				continue
			}
			for c, a := range x.Row(int(r.Col[e])) {
				if a, t := float64(a), top[c]; from[c] < 0 || a > t || math.IsNaN(a) && !math.IsNaN(t) {
					top[c], from[c] = a, float64(r.Col[e])
				}
			}
		}
		finish(dst.Row(v), top, v, nil)
		if arg != nil {
			for c, u := range from {
				arg.Row(v)[c] = kernels.ArgBits(int32(u))
			}
		}
	}
}

// SpMMMaxBack hands gradients to the rows that the maxima came from.
func (s *stream) SpMMMaxBack(dx *kernels.Mat, back kernels.Graph, dy, arg *kernels.Mat, rows kernels.Span) {
	kernels.CheckSpMMMaxBack(dx, back, dy, arg, rows)
	kernels.CheckHost("SpMMMaxBack", dx, dy, arg)
	r := own("SpMMMaxBack", back)
	if !s.runs("SpMMMaxBack") {
		return
	}
	rows = within(dx, rows)
	for u := rows.Lo; u < rows.Hi; u++ {
		acc := s.zeros(dx.Cols)
		for e := r.RowPtr[u]; e < r.RowPtr[u+1]; e++ {
			v := int(r.Col[e])
			if e > r.RowPtr[u] && int(r.Col[e-1]) == v {
				continue // a duplicate
			}
			from := arg.Row(v)
			for c, d := range dy.Row(v) {
				if int(kernels.ArgOf(from[c])) == u {
					acc[c] += float64(d)
				}
			}
		}
		finish(dx.Row(u), acc, u, nil)
	}
}

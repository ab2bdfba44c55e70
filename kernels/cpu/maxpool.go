//go:build cgo && amd64 && linux

package cpu

import "dorylus/kernels"

// SpMMMax gathers by the maximum.
func (s *stream) SpMMMax(dst, arg *kernels.Mat, g kernels.Graph, x *kernels.Mat, rows kernels.Span) {
	kernels.CheckSpMMMax(dst, arg, g, x, rows)
	kernels.CheckHost("SpMMMax", dst, arg, x)
	r := s.own("SpMMMax", g)
	if !s.runs("SpMMMax") || dst.Cols == 0 || rows.Len() == 0 {
		return
	}
	lda := 0
	if arg != nil {
		lda = arg.Stride
	}
	s.table.SpMMMax(r.RowPtr, r.Col, r.Val, x.Host, x.Stride, dst.Host, dst.Stride, host(arg), lda, dst.Cols, rows.Lo, rows.Hi)
}

// SpMMMaxBack hands gradients to the rows that the maxima came from.
func (s *stream) SpMMMaxBack(dx *kernels.Mat, back kernels.Graph, dy, arg *kernels.Mat, rows kernels.Span) {
	kernels.CheckSpMMMaxBack(dx, back, dy, arg, rows)
	kernels.CheckHost("SpMMMaxBack", dx, dy, arg)
	r := s.own("SpMMMaxBack", back)
	if !s.runs("SpMMMaxBack") || dx.Cols == 0 || rows.Len() == 0 {
		return
	}
	s.table.SpMMMaxBack(r.RowPtr, r.Col, dy.Host, dy.Stride, arg.Host, arg.Stride, dx.Host, dx.Stride, dx.Cols, rows.Lo, rows.Hi)
}

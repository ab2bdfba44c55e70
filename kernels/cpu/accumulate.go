//go:build cgo && amd64 && linux

package cpu

import "dorylus/kernels"

// AddRows adds rows to the rows that ids names.
func (s *stream) AddRows(dst, src *kernels.Mat, ids []int32) {
	kernels.CheckAddRows(dst, src, ids)
	kernels.CheckHost("AddRows", dst, src)
	if !s.runs("AddRows") || dst.Cols == 0 {
		return
	}
	s.table.AddRows(src.Host, src.Stride, ids, dst.Host, dst.Stride, dst.Cols)
}

// AddScaled sets dst = a + (c + s)·b.
func (s *stream) AddScaled(dst, a, b *kernels.Mat, c float32, by *kernels.Mat) {
	kernels.CheckAddScaled(dst, a, b, c, by)
	kernels.CheckHost("AddScaled", dst, a, b, by)
	if !s.runs("AddScaled") || dst.Cols == 0 {
		return
	}
	if by != nil {
		c += by.Host[0]
	}
	s.table.AddScaled(a.Host, a.Stride, b.Host, b.Stride, c, dst.Host, dst.Stride, dst.Rows, dst.Cols)
}

// Dot is the sum of the products of all values.
func (s *stream) Dot(dst, a, b *kernels.Mat) {
	kernels.CheckDot(dst, a, b)
	kernels.CheckHost("Dot", dst, a, b)
	if !s.runs("Dot") {
		return
	}
	dst.Host[0] = float32(s.table.Dot(a.Host, a.Stride, b.Host, b.Stride, a.Rows, a.Cols))
}

// ColDot is the sum of the products of each column.
func (s *stream) ColDot(dst, a, b *kernels.Mat) {
	kernels.CheckColDot(dst, a, b)
	kernels.CheckHost("ColDot", dst, a, b)
	if !s.runs("ColDot") || a.Cols == 0 {
		return
	}
	s.table.ColDot(a.Host, a.Stride, b.Host, b.Stride, dst.Host, a.Rows, a.Cols)
}

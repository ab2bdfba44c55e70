package ref

import "dorylus/kernels"

// AddGEMM sets dst = epilogue(dst + op(a)·op(b)).
func (s *stream) AddGEMM(dst, a, b *kernels.Mat, t kernels.Trans, ep *kernels.Epilogue) {
	kernels.CheckAddGEMM(dst, a, b, t, ep)
	kernels.CheckHost("AddGEMM", dst, a, b, bias(ep))
	if s.runs("AddGEMM") {
		s.product(dst, a, b, t, ep, true)
	}
}

// AddRows adds rows to the rows that ids names.
func (s *stream) AddRows(dst, src *kernels.Mat, ids []int32) {
	kernels.CheckAddRows(dst, src, ids)
	kernels.CheckHost("AddRows", dst, src)
	if !s.runs("AddRows") || dst.Cols == 0 {
		return
	}
	for i, id := range ids {
		if id < 0 {
			continue
		}
		d := dst.Row(int(id))
		for c, v := range src.Row(i) {
			d[c] += v
		}
	}
}

// AddScaled sets dst = a + (c + s)·b.
func (s *stream) AddScaled(dst, a, b *kernels.Mat, c float32, by *kernels.Mat) {
	kernels.CheckAddScaled(dst, a, b, c, by)
	kernels.CheckHost("AddScaled", dst, a, b, by)
	if !s.runs("AddScaled") {
		return
	}
	f := float64(c)
	if by != nil {
		f += float64(by.Host[0])
	}
	for r := range rowsOf(dst) {
		d, x, y := dst.Row(r), a.Row(r), b.Row(r)
		for i := range d {
			d[i] = float32(float64(x[i]) + f*float64(y[i]))
		}
	}
}

// Dot is the sum of the products of all values.
func (s *stream) Dot(dst, a, b *kernels.Mat) {
	kernels.CheckDot(dst, a, b)
	kernels.CheckHost("Dot", dst, a, b)
	if !s.runs("Dot") {
		return
	}
	var sum float64
	for r := range rowsOf(a) {
		sum += dot(a.Row(r), b.Row(r))
	}
	dst.Host[0] = float32(sum)
}

// ColDot is the sum of the products of each column.
func (s *stream) ColDot(dst, a, b *kernels.Mat) {
	kernels.CheckColDot(dst, a, b)
	kernels.CheckHost("ColDot", dst, a, b)
	if !s.runs("ColDot") || a.Cols == 0 {
		return
	}
	acc := s.zeros(a.Cols)
	for r := range a.Rows {
		x, y := a.Row(r), b.Row(r)
		for c := range acc {
			acc[c] += float64(x[c]) * float64(y[c])
		}
	}
	finish(dst.Row(0), acc, 0, nil)
}

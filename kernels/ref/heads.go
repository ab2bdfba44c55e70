package ref

import "dorylus/kernels"

// HeadDot takes the inner product of each head of a row with that head's row of a.
func (s *stream) HeadDot(dst, x, a *kernels.Mat) {
	kernels.CheckHeadDot(dst, x, a)
	kernels.CheckHost("HeadDot", dst, x, a)
	if !s.runs("HeadDot") {
		return
	}
	d := a.Cols
	for r := range rowsOf(dst) {
		for h := range dst.Cols {
			if d == 0 {
				dst.Row(r)[h] = 0
				continue
			}
			dst.Row(r)[h] = float32(dot(x.Row(r)[h*d:(h+1)*d], a.Row(h)))
		}
	}
}

// HeadOuterAdd adds multiples of a's rows to the heads of each row.
func (s *stream) HeadOuterAdd(dx, d, a *kernels.Mat) {
	kernels.CheckHeadOuterAdd(dx, d, a)
	kernels.CheckHost("HeadOuterAdd", dx, d, a)
	if !s.runs("HeadOuterAdd") {
		return
	}
	for r := range rowsOf(dx) {
		acc := s.zeros(dx.Cols)
		axpy(acc, 1, dx.Row(r))
		for h, f := range d.Row(r) {
			axpy(acc[h*a.Cols:(h+1)*a.Cols], float64(f), a.Row(h))
		}
		finish(dx.Row(r), acc, r, nil)
	}
}

// HeadDotGrad sums multiples of the heads over the rows.
func (s *stream) HeadDotGrad(da, d, x *kernels.Mat) {
	kernels.CheckHeadDotGrad(da, d, x)
	kernels.CheckHost("HeadDotGrad", da, d, x)
	if !s.runs("HeadDotGrad") || x.Cols == 0 {
		return
	}
	n := da.Cols
	acc := s.zeros(x.Cols)
	for r := range x.Rows {
		for h, f := range d.Row(r) {
			axpy(acc[h*n:(h+1)*n], float64(f), x.Row(r)[h*n:(h+1)*n])
		}
	}
	for h := range da.Rows {
		finish(da.Row(h), acc[h*n:(h+1)*n], h, nil)
	}
}

// HeadMean averages over the heads.
func (s *stream) HeadMean(dst, x *kernels.Mat, heads int, ep *kernels.Epilogue) {
	kernels.CheckHeadMean(dst, x, heads, ep)
	kernels.CheckHost("HeadMean", dst, x, bias(ep))
	if !s.runs("HeadMean") {
		return
	}
	d := dst.Cols
	for r := range rowsOf(dst) {
		acc := s.zeros(d)
		for h := range heads {
			axpy(acc, 1, x.Row(r)[h*d:(h+1)*d])
		}
		for c := range acc {
			acc[c] /= float64(heads)
		}
		finish(dst.Row(r), acc, r, ep)
	}
}

// HeadSpread hands each head its share of a gradient.
func (s *stream) HeadSpread(dx, d *kernels.Mat, heads int) {
	kernels.CheckHeadSpread(dx, d, heads)
	kernels.CheckHost("HeadSpread", dx, d)
	if !s.runs("HeadSpread") {
		return
	}
	for r := range rowsOf(d) {
		out := dx.Row(r)
		for c, v := range d.Row(r) {
			share := float32(float64(v) / float64(heads))
			for h := range heads {
				out[h*d.Cols+c] = share
			}
		}
	}
}

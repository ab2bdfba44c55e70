//go:build cgo && amd64 && linux

package cpu

import "dorylus/kernels"

// HeadDot takes the inner product of each head of a row with that head's row of a.
func (s *stream) HeadDot(dst, x, a *kernels.Mat) {
	kernels.CheckHeadDot(dst, x, a)
	kernels.CheckHost("HeadDot", dst, x, a)
	if !s.runs("HeadDot") || dst.Cols == 0 {
		return
	}
	s.table.HeadDot(x.Host, x.Stride, a.Host, a.Stride, dst.Host, dst.Stride, dst.Rows, a.Rows, a.Cols)
}

// HeadOuterAdd adds multiples of a's rows to the heads of each row.
func (s *stream) HeadOuterAdd(dx, d, a *kernels.Mat) {
	kernels.CheckHeadOuterAdd(dx, d, a)
	kernels.CheckHost("HeadOuterAdd", dx, d, a)
	if !s.runs("HeadOuterAdd") || dx.Cols == 0 {
		return
	}
	s.table.HeadOuterAdd(d.Host, d.Stride, a.Host, a.Stride, dx.Host, dx.Stride, dx.Rows, a.Rows, a.Cols)
}

// HeadDotGrad sums multiples of the heads over the rows.
func (s *stream) HeadDotGrad(da, d, x *kernels.Mat) {
	kernels.CheckHeadDotGrad(da, d, x)
	kernels.CheckHost("HeadDotGrad", da, d, x)
	if !s.runs("HeadDotGrad") || x.Cols == 0 {
		return
	}
	s.table.HeadDotGrad(d.Host, d.Stride, x.Host, x.Stride, da.Host, da.Stride, x.Rows, da.Rows, da.Cols)
}

// HeadMean averages over the heads, and then runs the epilogue.
func (s *stream) HeadMean(dst, x *kernels.Mat, heads int, ep *kernels.Epilogue) {
	kernels.CheckHeadMean(dst, x, heads, ep)
	kernels.CheckHost("HeadMean", dst, x, biasOf(ep))
	if !s.runs("HeadMean") || dst.Cols == 0 {
		return
	}
	s.table.HeadMean(x.Host, x.Stride, dst.Host, dst.Stride, dst.Rows, heads, dst.Cols)
	if ep != nil {
		s.table.Forward(epilogue(ep), dst.Host, dst.Stride, dst.Host, dst.Stride, dst.Cols, 0, dst.Rows)
	}
}

// HeadSpread hands each head its share of a gradient.
func (s *stream) HeadSpread(dx, d *kernels.Mat, heads int) {
	kernels.CheckHeadSpread(dx, d, heads)
	kernels.CheckHost("HeadSpread", dx, d)
	if !s.runs("HeadSpread") || d.Cols == 0 {
		return
	}
	s.table.HeadSpread(d.Host, d.Stride, dx.Host, dx.Stride, d.Rows, heads, d.Cols)
}

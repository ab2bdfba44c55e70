//go:build cgo && amd64 && linux

package cpu

import (
	"dorylus/kernels"
)

// GEMM multiplies, in one call on this thread, and then runs the epilogue.
func (s *stream) GEMM(dst, a, b *kernels.Mat, t kernels.Trans, ep *kernels.Epilogue) {
	kernels.CheckGEMM(dst, a, b, t, ep)
	kernels.CheckHost("GEMM", dst, a, b, biasOf(ep))
	if s.runs("GEMM") {
		s.product(dst, a, b, t, ep, false)
	}
}

// AddGEMM adds a product, in one call on this thread, and then runs the epilogue.
func (s *stream) AddGEMM(dst, a, b *kernels.Mat, t kernels.Trans, ep *kernels.Epilogue) {
	kernels.CheckAddGEMM(dst, a, b, t, ep)
	kernels.CheckHost("AddGEMM", dst, a, b, biasOf(ep))
	if s.runs("AddGEMM") {
		s.product(dst, a, b, t, ep, true)
	}
}

func (s *stream) product(dst, a, b *kernels.Mat, t kernels.Trans, ep *kernels.Epilogue, add bool) {
	if dst.Rows == 0 || dst.Cols == 0 {
		return
	}
	k := a.Cols
	if t == kernels.TN {
		k = a.Rows
	}
	switch {
	case k > 0:
		multiply(s.table, t == kernels.TN, t == kernels.NT, add, dst, a, b, k)
	case !add:
		zero(dst)
	}
	if ep != nil {
		s.table.Forward(epilogue(ep), dst.Host, dst.Stride, dst.Host, dst.Stride, dst.Cols, 0, dst.Rows)
	}
}

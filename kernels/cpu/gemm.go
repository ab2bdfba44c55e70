//go:build cgo && amd64 && linux

package cpu

import (
	"dorylus/kernels"
)

// GEMM multiplies, in one call on this thread, and then runs the epilogue.
func (s *stream) GEMM(dst, a, b *kernels.Mat, t kernels.Trans, ep *kernels.Epilogue) {
	kernels.CheckGEMM(dst, a, b, t, ep)
	kernels.CheckHost("GEMM", dst, a, b, biasOf(ep))
	if !s.runs("GEMM") || dst.Rows == 0 || dst.Cols == 0 {
		return
	}
	k := a.Cols
	if t == kernels.TN {
		k = a.Rows
	}
	if k == 0 {
		zero(dst)
	} else {
		multiply(s.table, t == kernels.TN, t == kernels.NT, dst, a, b, k)
	}
	if ep != nil {
		s.table.Forward(epilogue(ep), dst.Host, dst.Stride, dst.Host, dst.Stride, dst.Cols, 0, dst.Rows)
	}
}

//go:build cgo && amd64 && linux && !noblas

package cpu

import (
	"fmt"

	"dorylus/csrc/blas"
	native "dorylus/csrc/cpu"
	"dorylus/kernels"
)

func multiply(_ *native.Table, ta, tb, add bool, dst, a, b *kernels.Mat, k int) {
	native.RaceMat(a.Host, a.Stride, a.Cols, a.Rows, false)
	native.RaceMat(b.Host, b.Stride, b.Cols, b.Rows, false)
	native.RaceMat(dst.Host, dst.Stride, dst.Cols, dst.Rows, true)
	sgemm := blas.SGEMM
	if add {
		sgemm = blas.AddSGEMM
	}
	sgemm(ta, tb, dst.Rows, dst.Cols, k, a.Host, a.Stride, b.Host, b.Stride, dst.Host, dst.Stride)
}

// products names the library behind GEMM, as far as it decides bits and speed.
func products() string {
	s := fmt.Sprintf("OpenBLAS %s, core %s", blas.Version(), blas.Core())
	if f := blas.Forced(); f != "" {
		s += fmt.Sprintf(" (OPENBLAS_CORETYPE=%s)", f)
	}
	return s
}

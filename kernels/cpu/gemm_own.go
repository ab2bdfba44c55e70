//go:build cgo && amd64 && linux && noblas

package cpu

import (
	native "dorylus/csrc/cpu"
	"dorylus/kernels"
)

func multiply(t *native.Table, ta, tb, add bool, dst, a, b *kernels.Mat, k int) {
	native.RaceMat(a.Host, a.Stride, a.Cols, a.Rows, false)
	native.RaceMat(b.Host, b.Stride, b.Cols, b.Rows, false)
	native.RaceMat(dst.Host, dst.Stride, dst.Cols, dst.Rows, true)
	t.GEMM(ta, tb, add, dst.Rows, dst.Cols, k, a.Host, a.Stride, b.Host, b.Stride, dst.Host, dst.Stride)
}

// products names the library behind GEMM, as far as it decides bits and speed.
func products() string { return "own matrix product (built without OpenBLAS)" }

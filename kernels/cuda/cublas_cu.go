//go:build cuda && cgo && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"unsafe"

	"dorylus/csrc/cublas"
	"dorylus/kernels"
)

func (cuDriver) CUBLAS(files []string) (library, error) {
	l, err := cublas.Open(files)
	if err != nil {
		return nil, err
	}
	return cuLibrary{l}, nil
}

type cuLibrary struct{ *cublas.Library }

// libraryError turns the library's error into ours.
func libraryError(err error) error {
	var e *cublas.Error
	if errors.As(err, &e) {
		return &LibraryError{Op: e.Op, Status: e.Status, Text: e.Text}
	}
	return err
}

func (l cuLibrary) Products(s stream, workspace address, bytes int64) (products, error) {
	on := s.(*cuStream).s // a struct of the handle alone
	h, err := l.Create(*(*uintptr)(unsafe.Pointer(&on)), uintptr(workspace), bytes)
	if err != nil {
		return nil, libraryError(err)
	}
	return cuProducts{h}, nil
}

type cuProducts struct{ h *cublas.Handle }

func (p cuProducts) Close() error { return libraryError(p.h.Destroy()) }

// computeTypes are what cuBLAS may do with the operands of a product.
var computeTypes = map[string]cublas.Compute{"fp32": cublas.FP32, "tf32": cublas.TF32, "bf16": cublas.BF16}

// GEMM makes the transpose of the product: what lies here by rows lies there by columns,
// transposed, so dst = a·b is dstᵀ = bᵀ·aᵀ, with the operands as they lie.
func (p cuProducts) GEMM(g product) error {
	return libraryError(p.h.GEMM(cublas.Product{
		TransA: g.t == kernels.NT, TransB: g.t == kernels.TN,
		M: int32(g.dst.cols), N: int32(g.dst.rows), K: int32(g.k),
		A: uintptr(g.b.p), LDA: int32(g.b.ld), B: uintptr(g.a.p), LDB: int32(g.a.ld), C: uintptr(g.dst.p), LDC: int32(g.dst.ld),
		Add: g.add, Compute: computeTypes[g.precision],
	}))
}

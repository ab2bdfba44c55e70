// Package cublas opens NVIDIA's library of dense products, cuBLAS, at run time. Nothing
// is linked against it and nothing of it is needed to build: the prototypes are our own,
// by its public reference. A program that does not call Open never loads it.
//
// cuBLAS counts matrices by columns: a matrix of ours, whose rows are ld values apart, is
// to it the transpose, whose columns are.
//
// Without the tag cuda, without cgo, or elsewhere than on Linux on amd64 and arm64, only
// what this file has exists, and Open refuses.
package cublas

import (
	"fmt"
	"strings"
)

// Product is C = op(A)·op(B), or C + op(A)·op(B) where Add is set, by columns: op(A) has
// M rows, op(B) N columns, and K is what is summed over. Addresses are of the device, and
// leading dimensions are the values from a column to the next.
type Product struct {
	TransA, TransB bool
	M, N, K        int32
	A              uintptr
	LDA            int32
	B              uintptr
	LDB            int32
	C              uintptr
	LDC            int32
	Add            bool
	Compute        Compute
}

// Compute says how precise a product of float32 has to be (cublasComputeType_t).
type Compute int32

const (
	// FP32 keeps at least the 24 bits of float32 everywhere: TF32, which has 11, is not
	// allowed. Its pedantic sister forbids optimisations that keep them as well.
	FP32 Compute = 68
	// BF16 allows operands to be cut to bfloat16 or TF32, TF32 to TF32. Sums are in float32.
	BF16 Compute = 75
	TF32 Compute = 77
)

// Missing is the error of Open where no library can be used: what was tried, and why it
// was not it, in the words of the dynamic linker where these are known.
type Missing struct {
	Tried   []string
	Reasons []string // one of each
}

func (e *Missing) Error() string {
	return fmt.Sprintf("searched %s: %s", strings.Join(e.Tried, ", "), strings.Join(e.Reasons, "; "))
}

// Error is a failed call of the library.
type Error struct {
	Op     string // the library's function
	Status int    // the library's, never 0
	Text   string // what the library says of the status; may be ""
}

func (e *Error) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("%s: cuBLAS status %d", e.Op, e.Status)
	}
	return fmt.Sprintf("%s: cuBLAS status %d: %s", e.Op, e.Status, e.Text)
}

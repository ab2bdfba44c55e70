package store

import (
	"fmt"
	"unsafe"

	"dorylus/kernels"
)

// paddedStride is the distance between the rows of features.npy, in values.
func paddedStride(cols int) int { return kernels.PadCols(cols) }

func address(data []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(data))) }

// OnHugePages asks the system to back s, freshly made, with huge pages where it has
// them, and returns it. Scattered reads and writes over large arrays then miss
// fewer address translations.
func OnHugePages[T element](s []T) []T {
	adviseHuge(bytesOf(s))
	return s
}

// invert is the inverse of a permutation, or an error that says where order is
// not one.
func invert(order []int32) ([]int32, error) {
	rank := make([]int32, len(order))
	for v := range rank {
		rank[v] = -1
	}
	for r, v := range order {
		if v < 0 || int(v) >= len(order) {
			return nil, fmt.Errorf("row %d is vertex %d, want 0..%d", r, v, len(order)-1)
		}
		if rank[v] >= 0 {
			return nil, fmt.Errorf("vertex %d is at row %d and at row %d", v, rank[v], r)
		}
		rank[v] = int32(r)
	}
	return rank, nil
}

// sameAsTranspose says that g, columns ascending, equals its transpose, values
// included. As the edges (u,v) into u come by ascending v, each must match the
// next entry of row v that none has matched yet.
func sameAsTranspose(g *kernels.CSR) bool {
	at := append([]int64(nil), g.RowPtr[:g.Rows()]...)
	for v := range g.Rows() {
		for e := g.RowPtr[v]; e < g.RowPtr[v+1]; e++ {
			u := g.Col[e]
			back := at[u]
			if back == g.RowPtr[u+1] || g.Col[back] != int32(v) || g.Val != nil && g.Val[back] != g.Val[e] {
				return false
			}
			at[u]++
		}
	}
	return true
}

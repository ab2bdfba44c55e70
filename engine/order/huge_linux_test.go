package order

import (
	"context"
	"math"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"dorylus/kernels"
)

// A graph of more than 2^31 edges, whose columns are memory that nobody has written but
// for the last vertices', which form two groups: the bounded methods order it by samples
// and keep each group together.
func TestBoundedMethodsBeyond31Bits(t *testing.T) {
	const (
		n      = 1 << 14
		degree = 132000
		group  = 100
		edges  = n * degree
	)
	if edges <= math.MaxInt32 {
		t.Fatal("the graph is not huge")
	}
	b, err := unix.Mmap(-1, 0, 4*edges, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		t.Skipf("SKIPPED: this system does not lend %d MiB of address space: %v", 4*edges>>20, err)
	}
	defer unix.Munmap(b)
	g := &kernels.CSR{Cols: n, Col: unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(b))), edges)}
	unix.Madvise(b[:4*(n-2*group)*degree>>21<<21], unix.MADV_HUGEPAGE) // fewer faults
	for v := range n + 1 {
		g.RowPtr = append(g.RowPtr, int64(v)*degree)
	}
	for v := n - 2*group; v < n; v++ {
		row := g.Col[g.RowPtr[v]:g.RowPtr[v+1]]
		first := n - group
		if v < first {
			first -= group
		}
		for j := range row {
			row[j] = int32(first + j*group/degree)
		}
	}
	for _, method := range []string{LPA, Stream} {
		r, err := compute(context.Background(), Graph{g, g}, method, Options{Method: method, Threads: 2, Seed: 1, Progress: func(int64, int64) {}})
		if err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		if _, err := invert(r.Order, n); err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		for _, first := range []int{n - 2*group, n - group} {
			in := map[int32]int{}
			for v := first; v < first+group; v++ {
				in[r.Cluster[v]]++
			}
			most := 0
			for _, k := range in {
				most = max(most, k)
			}
			if most < group*9/10 {
				t.Errorf("%s: vertices %d to %d, which only know each other, are in clusters of at most %d of them", method, first, first+group-1, most)
			}
		}
	}
}

package devices

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"dorylus/kernels"
	"dorylus/kernels/invariant"
)

// The virtual graph: hubRows rows of hubEdges edges, all from row 0 and of weight 0,
// which are memory that nobody has written, and after them hugeTail ordinary rows,
// whose edges lie beyond 2^31.
const (
	hubRows    = 64
	hubEdges   = 1<<25 + 999
	hugeTail   = 128
	hugeDegree = 40
	hugeCols   = 500
	hugeFirst  = hubRows * hubEdges // the first edge of the tail
	hugeEdges  = hugeFirst + hugeTail*hugeDegree
	hugeRows   = hubRows + hugeTail
)

// virtual is n zeros that take memory where they are written.
func virtual[T int32 | float32](t *testing.T, n int) []T {
	t.Helper()
	b, err := unix.Mmap(-1, 0, 4*n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		t.Skipf("SKIPPED: this system does not lend %d MiB of address space: %v", 4*n>>20, err)
	}
	t.Cleanup(func() { unix.Munmap(b) })
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// TestEdgesBeyond31Bits: rows whose edges have numbers beyond 2^31 get the bits of the
// same rows in a graph of their own, from every op that walks over edges.
func TestEdgesBeyond31Bits(t *testing.T) {
	if testing.Short() || invariant.Enabled {
		t.Skip("SKIPPED: it reads 8 GiB, which takes minutes under the race detector")
	}
	rng := rand.New(rand.NewPCG(31, 2))
	small := &kernels.CSR{Cols: hugeCols, RowPtr: []int64{0}}
	for range hugeTail {
		row := rng.Perm(hugeCols)[:hugeDegree]
		slices.Sort(row)
		for _, c := range row {
			small.Col = append(small.Col, int32(c))
			small.Val = append(small.Val, rng.Float32())
		}
		small.RowPtr = append(small.RowPtr, int64(len(small.Col)))
	}
	big := &kernels.CSR{Cols: hugeCols, Col: virtual[int32](t, hugeEdges), Val: virtual[float32](t, hugeEdges)}
	// To read it all is a few thousand faults with huge pages, two million without.
	unix.Madvise(unsafe.Slice((*byte)(unsafe.Pointer(&big.Col[0])), 4*hugeFirst), unix.MADV_HUGEPAGE)
	for v := range hubRows + 1 {
		big.RowPtr = append(big.RowPtr, int64(v)*hubEdges)
	}
	for _, at := range small.RowPtr[1:] {
		big.RowPtr = append(big.RowPtr, hugeFirst+at)
	}
	copy(big.Col[hugeFirst:], small.Col)
	copy(big.Val[hugeFirst:], small.Val)
	edge := kernels.FromSlice(hugeEdges, 1, virtual[float32](t, hugeEdges)) // one value per edge

	// In tiles of four source rows, the device that has tiles goes from tile to tile.
	for _, c := range []struct{ name, tileKiB string }{{"ref", ""}, {"cpu", ""}, {"cpu", "1"}} {
		name := c.name
		t.Setenv("DORYLUS_TILE_KIB", c.tileKiB)
		dev, err := Open(name)
		if err != nil {
			t.Logf("SKIPPED: %s: %v", name, err)
			continue
		}
		defer dev.Close()
		want, _ := overEdges(t, dev, small, kernels.FromSlice(len(small.Col), 1, make([]float32, len(small.Col))), 0, packed)
		got, ops := overEdges(t, dev, big, edge, hubRows, spread)
		for i, op := range ops {
			if !slices.Equal(got[i], want[i]) {
				t.Errorf("%s: %s over edges from %d on differs from the same rows alone, first at value %d of %d", name, op, hugeFirst, firstDifference(got[i], want[i]), len(want[i]))
			}
		}
	}
}

// packed is a matrix whose rows follow each other.
func packed(_ *testing.T, rows, cols int) *kernels.Mat {
	return kernels.FromSlice(rows, cols, make([]float32, rows*cols))
}

// spread is a matrix whose last rows, a quarter of them at least, lie beyond the value
// of number 2^31.
func spread(t *testing.T, rows, cols int) *kernels.Mat {
	stride := 1<<31/(rows*2/3) + 16
	return &kernels.Mat{Rows: rows, Cols: cols, Stride: stride, Host: virtual[float32](t, rows*stride)}
}

func firstDifference(a, b []float32) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// overEdges runs every op that walks over edges on the rows of g from first on, and
// returns what each has set there. mat makes the matrices.
func overEdges(t *testing.T, dev kernels.Device, g *kernels.CSR, edge *kernels.Mat, first int, mat func(t *testing.T, rows, cols int) *kernels.Mat) (results [][]float32, ops []string) {
	t.Helper()
	h, err := dev.Load(g)
	if err != nil {
		t.Fatalf("%s: %v", dev.Name(), err)
	}
	defer dev.Unload(h)
	if h.Edges() != len(g.Col) {
		t.Errorf("%s: the graph has %d edges, want %d", dev.Name(), h.Edges(), len(g.Col))
	}
	s, err := dev.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const width, heads = 6, 2
	rows := kernels.Span{Lo: first, Hi: g.Rows()}
	// Values depend on the row counted from the first one, so that both graphs agree.
	fill := func(n, cols, from, salt int) *kernels.Mat {
		m := mat(t, n, cols)
		rng := rand.New(rand.NewPCG(uint64(salt), 5))
		for v := from; v < n; v++ {
			for c := range m.Row(v) {
				m.Row(v)[c] = rng.Float32() - 0.5
			}
		}
		return m
	}
	ids := make([]int32, g.Rows())
	for v := range ids {
		ids[v] = int32(v - first)
	}
	n := g.Rows()
	x, y := fill(hugeCols, width, 0, 1), fill(n, width, first, 2)
	as, ad := fill(hugeCols, heads, 0, 3), fill(n, heads, first, 4)
	lse, dot := fill(hugeCols, heads, 0, 5), fill(hugeCols, heads, 0, 6)
	keep := func(op string, m *kernels.Mat, lo, hi int) {
		t.Helper()
		if err := s.Wait(); err != nil {
			t.Fatalf("%s: %s: %v", dev.Name(), op, err)
		}
		ops = append(ops, op)
		var values []float32
		for v := lo; v < hi; v++ {
			values = append(values, m.Row(v)...)
		}
		results = append(results, values)
	}
	out := func(op string, cols int, do func(dst *kernels.Mat)) {
		t.Helper()
		dst := mat(t, n, cols)
		do(dst)
		keep(op, dst, first, n)
	}
	edges := func(op string, do func()) {
		t.Helper()
		do()
		keep(op, edge, int(g.RowPtr[first]), len(g.Col))
	}
	out("SpMM", width, func(d *kernels.Mat) { s.SpMM(d, h, x, kernels.Gather{}, rows) })
	edges("SDDMM", func() { s.SDDMM(edge, h, x, y, rows) })
	out("SpMM with a weight per edge", width, func(d *kernels.Mat) { s.SpMM(d, h, x, kernels.Gather{W: edge}, rows) })
	edges("EdgeDropout", func() { s.EdgeDropout(edge, h, kernels.Dropout{P: 0.5, Key: 7, IDs: ids}, rows) })
	back := mat(t, hugeCols, width)
	s.SpMMT(back, h, edge, y, rows)
	keep("SpMMT", back, 0, hugeCols)
	arg := mat(t, n, width)
	out("SpMMMax", width, func(d *kernels.Mat) { s.SpMMMax(d, arg, h, x, rows) })
	from := mat(t, hugeCols, width)
	for v := range hugeCols {
		for c := range from.Row(v) {
			from.Row(v)[c] = kernels.ArgBits(int32(first + (v+c)%hugeTail))
		}
	}
	out("SpMMMaxBack", width, func(d *kernels.Mat) { s.SpMMMaxBack(d, h, x, from, rows) })
	p := kernels.Attention{Heads: heads, Slope: 0.2, Drop: kernels.Dropout{P: 0.3, Key: 9}, DstIDs: ids}
	sums := mat(t, n, heads)
	out("GAT", width, func(d *kernels.Mat) { s.GAT(d, sums, h, x, as, ad, p, nil, rows) })
	keep("GAT's sums", sums, first, n)
	out("GATBackDst", heads, func(d *kernels.Mat) {
		s.GATBackDst(d, mat(t, n, heads), h, x, as, ad, sums, y, p, rows)
	})
	p.SrcIDs, p.DstIDs = ids, nil
	das := mat(t, n, heads)
	out("GATBackSrc", width, func(d *kernels.Mat) { s.GATBackSrc(d, das, h, y, ad, as, lse, dot, x, p, rows) })
	keep("GATBackSrc's scores", das, first, n)
	for i, op := range ops {
		if !slices.ContainsFunc(results[i], func(v float32) bool { return v != 0 }) {
			t.Errorf("%s: %s over %d rows gives zeros only", dev.Name(), op, g.Rows())
		}
	}
	return results, ops
}

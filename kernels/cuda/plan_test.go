package cuda

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"dorylus/kernels"
)

// TestSlices: slices cover all terms, begin at multiples of 16, are many only where
// tiles are few, and stay within what dk_gemm_sum takes; sums over columns have one.
func TestSlices(t *testing.T) {
	for _, c := range []struct {
		m, n, k, slices int
		terms           int32
	}{
		{128, 41, 233000, 64, 3648}, // a gradient of weights
		{602, 128, 233000, 6, 38848},
		{602, 128, 4096, 6, 688},
		{233000, 128, 602, 1, 602}, // enough tiles
		{10, 10, 511, 1, 511},
		{10, 10, 512, 2, 256},
		{10, 10, 0, 1, 1},
		{1, 1, 1 << 30, 64, 1 << 24},
	} {
		slices, terms := slicesOf(kernels.TN, c.m, c.n, c.k)
		if slices != c.slices || terms != c.terms {
			t.Errorf("%d x %d over %d: %d slices of %d, want %d of %d", c.m, c.n, c.k, slices, terms, c.slices, c.terms)
		}
		if slices, terms := slicesOf(kernels.NT, c.m, c.n, c.k); slices != 1 || int(terms) != max(c.k, 1) {
			t.Errorf("%d x %d over %d columns: %d slices of %d, want one of all", c.m, c.n, c.k, slices, terms)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		m, n, k := 1+rng.IntN(3000), 1+rng.IntN(700), rng.IntN(1<<20)
		slices, terms := slicesOf(kernels.TN, m, n, k)
		if slices < 1 || slices > 64 || int64(slices)*int64(terms) < int64(k) || int64(slices-1)*int64(terms) >= int64(max(k, 1)) || slices > 1 && terms%16 != 0 {
			t.Fatalf("%d x %d over %d: %d slices of %d terms", m, n, k, slices, terms)
		}
	}
}

// TestForms: the least tile that holds a row, tiles of 32 columns where a wider one of
// all rows would leave the cache.
func TestForms(t *testing.T) {
	x := &runner{d: &Device{info: deviceInfo{L2: 50 << 20}}}
	for _, c := range []struct {
		rows, cols int
		on16       bool
		want       form
	}{
		{1000, 1, true, g8}, {1000, 32, true, g8}, {1000, 33, true, g16}, {1000, 65, true, g32}, {1000, 602, true, g32},
		{232965, 128, true, g8}, {232965, 41, true, g16}, {300000, 41, true, g8}, {80000, 128, true, g32}, {1000, 8, false, s8}, {1000, 9, false, s32},
	} {
		if f := x.formOf(c.rows, c.cols, c.on16); f != c.want {
			t.Errorf("%d x %d, on 16 bytes %v: form %s, want %s", c.rows, c.cols, c.on16, f.name, c.want.name)
		}
	}
	for tile, want := range map[int]form{32: g8, 64: g16, 128: g32} {
		x := &runner{d: &Device{info: deviceInfo{L2: 50 << 20}, opt: Options{Cut: Cut{Tile: tile}}}}
		if f, single := x.formOf(232965, 128, true), x.formOf(1000, 9, false); f != want || single != s32 {
			t.Errorf("tiles of %d columns: forms %s and %s, want %s and %s", tile, f.name, single.name, want.name, s32.name)
		}
	}
	if n := g8.blocks(33, 128); n != 4*2 {
		t.Errorf("33 rows of 128 columns by g8: %d blocks, want 8", n)
	}
}

// TestTransposed: edges in the order of their columns, with their places.
func TestTransposed(t *testing.T) {
	g := &kernels.CSR{Cols: 4, RowPtr: []int64{0, 3, 3, 5}, Col: []int32{1, 1, 3, 0, 1}}
	back, perm := transposed(g)
	want := &kernels.CSR{Cols: 3, RowPtr: []int64{0, 1, 4, 4, 5}, Col: []int32{2, 0, 0, 2, 0}}
	if !reflect.DeepEqual(back, want) || !reflect.DeepEqual(perm, []int64{3, 0, 1, 4, 2}) {
		t.Errorf("got %+v by %v, want %+v", back, perm, want)
	}
	if err := back.Validate(); err != nil {
		t.Error(err)
	}
}

// TestLongRows: which rows, in how many chunks, and those of a span.
func TestLongRows(t *testing.T) {
	rowptr := []int64{0}
	for _, n := range []int64{4095, 4096, 0, 4097, 9000, 1} {
		rowptr = append(rowptr, rowptr[len(rowptr)-1]+n)
	}
	l := longRowsOf(rowptr, longRow, edgeChunk)
	if !reflect.DeepEqual(l.rows, []int32{1, 3, 4}) || !reflect.DeepEqual(l.chunks, []int64{0, 2, 5, 10}) {
		t.Errorf("rows %v with chunks %v", l.rows, l.chunks)
	}
	for _, c := range []struct {
		rows   kernels.Span
		i0, i1 int
		chunks int64
	}{{kernels.Span{Lo: 0, Hi: 6}, 0, 3, 10}, {kernels.Span{Lo: 2, Hi: 4}, 1, 2, 3}, {kernels.Span{Lo: 2, Hi: 3}, 1, 1, 0}, {kernels.Span{Lo: 1, Hi: 1}, 0, 0, 0}} {
		if i0, i1 := l.cut(c.rows); i0 != c.i0 || i1 != c.i1 || l.count(i0, i1) != c.chunks {
			t.Errorf("rows %v: [%d,%d), %d chunks; want [%d,%d), %d", c.rows, i0, i1, l.count(i0, i1), c.i0, c.i1, c.chunks)
		}
	}
	if none := longRowsOf([]int64{0, 3}, longRow, edgeChunk); none.chunks != nil || none.count(0, 0) != 0 {
		t.Errorf("a graph without long rows: %+v", none)
	}
}

// TestSortAdds: rows ascend, places within a row too, ids below 0 are left out.
func TestSortAdds(t *testing.T) {
	to, start, from := sortAdds([]int32{7, -1, 2, 7, 0, -5, 2, 7})
	if !reflect.DeepEqual(to, []int32{0, 2, 7}) || !reflect.DeepEqual(start, []int64{0, 1, 3, 6}) || !reflect.DeepEqual(from, []int32{4, 2, 6, 0, 3, 7}) {
		t.Errorf("to %v, start %v, from %v", to, start, from)
	}
	if to, _, _ := sortAdds([]int32{-1}); to != nil {
		t.Errorf("nothing to add goes to %v", to)
	}
}

// TestTiles: parts cover a matrix once, none larger than was allowed.
func TestTiles(t *testing.T) {
	for _, size := range [][3]int{{5, 7, 100}, {5, 7, 14}, {5, 7, 7}, {5, 7, 3}, {5, 7, 1}, {0, 7, 3}, {5, 0, 3}} {
		rows, cols, most := size[0], size[1], size[2]
		seen := make([]int, rows*cols)
		err := tiles(rows, cols, int64(most), func(p tile) error {
			if p.rows()*p.cols() > most || p.rows() < 1 || p.cols() < 1 {
				t.Errorf("%v: part %+v", size, p)
			}
			for r := p.r0; r < p.r1; r++ {
				for c := p.c0; c < p.c1; c++ {
					seen[r*cols+c]++
				}
			}
			return nil
		})
		for i, n := range seen {
			if n != 1 {
				t.Errorf("%v: value %d is in %d parts", size, i, n)
			}
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// TestBlockBytes: enough, and not much more.
func TestBlockBytes(t *testing.T) {
	for n, want := range map[int64]int64{1: 512, 512: 512, 513: 1024, 40000: 40448, 1 << 30: 1 << 30, 1<<30 + 1: 1<<30 + 1<<24} {
		if got := BlockBytes(n); got != want {
			t.Errorf("%d bytes take %d, want %d", n, got, want)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		n := 1 + rng.Int64N(1<<uint(1+rng.IntN(40)))
		if b := BlockBytes(n); b < n || b-n >= max(512, n/64+1) || BlockBytes(b) != b {
			t.Fatalf("%d bytes take %d", n, b)
		}
	}
}

// TestCut: bounds by which rows are sorted are those asked for, and what makes no sense is
// refused with its numbers.
func TestCut(t *testing.T) {
	g := &kernels.CSR{Cols: 1, RowPtr: []int64{0, 3, 43, 5043}, Col: make([]int32, 5043)}
	for _, c := range []struct {
		cut        Cut
		wide, long int // how many rows
	}{{Cut{}, 1, 1}, {Cut{Wide: 41}, 0, 1}, {Cut{Wide: 3, Long: 40}, 1, 2}, {Cut{Long: 6000}, 2, 0}} {
		if err := c.cut.check(); err != nil {
			t.Fatal(err)
		}
		got := (&Device{opt: Options{Cut: c.cut}}).csrOf(g)
		if len(got.wide.rows) != c.wide || len(got.long.rows) != c.long {
			t.Errorf("%+v: wide rows %v, long rows %v; want %d and %d", c.cut, got.wide.rows, got.long.rows, c.wide, c.long)
		}
	}
	for _, c := range []struct {
		cut  Cut
		want string
	}{{Cut{Long: 32}, "wide from 32 edges on and long from 32"}, {Cut{Wide: -1}, "wide from -1"}, {Cut{Tile: 48}, "tiles of 48 columns"}} {
		if err := c.cut.check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.cut, err, c.want)
		}
	}
}

//go:build cuda && cgo && linux && (amd64 || arm64)

package conform

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"dorylus/csrc/cuemu"
	"dorylus/kernels"
	"dorylus/kernels/cuda"
	"dorylus/kernels/cuda/internal/watch"
)

// bench is a device with a stream, and what was taken of it.
type bench struct {
	*testing.T
	d *cuda.Device
	s kernels.Stream
}

func open(t *testing.T, o cuda.Options) *bench {
	t.Helper()
	d, err := cuda.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	if emu, err := cuemu.Loaded(o.Driver); err == nil && watch.Launch == nil {
		launches := &signatures{emu: emu, seen: map[string]string{}}
		watch.Launch = launches.check
		t.Cleanup(func() { watch.Launch = nil; launches.report(t) })
	}
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t, d, s}
}

func (b *bench) close() {
	b.Helper()
	if err := b.s.Close(); err != nil {
		b.Error(err)
	}
	if err := b.d.Close(); err != nil {
		b.Error(err)
	}
}

func (b *bench) wait() {
	b.Helper()
	if err := b.s.Wait(); err != nil {
		b.Fatal(err)
	}
}

// put is a matrix of values.
func (b *bench) put(rows, cols int, values []float32) *kernels.Mat {
	b.Helper()
	m, err := b.d.Alloc(rows, cols)
	if err != nil {
		b.Fatal(err)
	}
	if values != nil {
		b.s.Put(m, values)
	}
	return m
}

func (b *bench) get(m *kernels.Mat) []float32 {
	b.Helper()
	v := make([]float32, m.Rows*m.Cols)
	b.s.Get(v, m)
	b.wait()
	return v
}

func values(rng *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = 2*rng.Float32() - 1
	}
	return v
}

// boundaries is a graph with rows on both sides of every bound at which a gather
// changes its form.
func boundaries(rng *rand.Rand, cols int) *kernels.CSR {
	g := &kernels.CSR{Cols: cols, RowPtr: []int64{0}}
	for _, n := range []int{0, 1, 4095, 31, 32, 33, 4097, 7, 4096, 500, 0, 6200, 3} {
		var row []int32
		for range n {
			row = append(row, int32(rng.IntN(cols)))
		}
		slices.Sort(row)
		g.Col = append(g.Col, row...)
		g.RowPtr = append(g.RowPtr, int64(len(g.Col)))
	}
	g.Val = values(rng, len(g.Col))
	return g
}

// TestGatherBounds: SpMM and SpMMT with rows of every kind, in every form, whole and in
// spans that cut between long rows; bits do not depend on the span.
func TestGatherBounds(t *testing.T) { gatherBounds(t, cuda.Cut{}) }

// TestGatherCuts is that of other bounds and tiles, which measurements ask for.
func TestGatherCuts(t *testing.T) {
	for _, c := range []cuda.Cut{{Wide: 4, Long: 1000, Tile: 64}, {Wide: 1, Long: 2, Tile: 128}} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) { gatherBounds(t, c) })
	}
}

func gatherBounds(t *testing.T, cut cuda.Cut) {
	const seed = 11
	rng := rand.New(rand.NewPCG(seed, 1))
	b := open(t, cuda.Options{Driver: cuemu.Driver(t), Cut: cut})
	defer b.close()
	defer func() { watch.Parts = 0 }()
	for i, c := range []struct {
		cols, width, stride int
	}{{50, 5, 5}, {50, 9, 9}, {40, 32, 32}, {40, 40, 48}, {30, 100, 112}, {9000, 100, 112}} {
		watch.Parts = int64(i%2) * 2000 // some long rows at a time, or all
		csr := boundaries(rng, c.cols)
		g, err := b.d.Load(csr)
		if err != nil {
			t.Fatal(err)
		}
		rows := csr.Rows()
		xs, ys := values(rng, c.cols*c.width), values(rng, rows*c.width)
		place := func(rows int, v []float32) (whole, view *kernels.Mat) { // a view with the stride of the case
			whole = b.put(1, rows*c.stride, nil)
			view = &kernels.Mat{Rows: rows, Cols: c.width, Stride: c.stride, Addr: whole.Addr}
			if v != nil {
				b.s.Put(view, v)
			}
			return whole, view
		}
		m1, x := place(c.cols, xs)
		m2, y := place(rows, ys)
		m3, whole := place(rows, nil)
		m4, parts := place(rows, nil)
		m5, back := place(c.cols, nil)
		m6, some := place(c.cols, nil)
		b.s.SpMM(whole, g, x, kernels.Gather{}, kernels.Span{Hi: rows})
		for _, s := range []kernels.Span{{Lo: 8, Hi: rows}, {Lo: 0, Hi: 3}, {Lo: 3, Hi: 3}, {Lo: 3, Hi: 7}, {Lo: 7, Hi: 8}} {
			b.s.SpMM(parts, g, x, kernels.Gather{}, s)
		}
		b.s.SpMMT(back, g, nil, y, kernels.Span{Hi: rows})
		b.s.SpMMT(some, g, nil, y, kernels.Span{Lo: 2, Hi: 7})
		b.wait()
		got, inParts := b.get(whole), b.get(parts)
		want, size := make([]float64, rows*c.width), make([]float64, rows*c.width)
		wantBack, sizeBack := make([]float64, c.cols*c.width), make([]float64, c.cols*c.width)
		wantSome, sizeSome := make([]float64, c.cols*c.width), make([]float64, c.cols*c.width)
		for v := range rows {
			for e := csr.RowPtr[v]; e < csr.RowPtr[v+1]; e++ {
				u, w := int(csr.Col[e]), float64(csr.Val[e])
				for k := range c.width {
					p, q := w*float64(xs[u*c.width+k]), w*float64(ys[v*c.width+k])
					want[v*c.width+k] += p
					size[v*c.width+k] += math.Abs(p)
					wantBack[u*c.width+k] += q
					sizeBack[u*c.width+k] += math.Abs(q)
					if v >= 2 && v < 7 {
						wantSome[u*c.width+k] += q
						sizeSome[u*c.width+k] += math.Abs(q)
					}
				}
			}
		}
		near := func(what string, got []float32, want, size []float64) {
			t.Helper()
			for i := range got {
				// A sum in chunks of 2,048, in runs of at most 256: some 300 roundings.
				if tol := 320 * size[i] / (1 << 24); !(math.Abs(float64(got[i])-want[i]) <= tol) {
					t.Fatalf("%s of width %d, %d columns, seed %d: value [%d,%d] is %v, want %v ± %.2g", what, c.width, c.cols, seed, i/c.width, i%c.width, got[i], want[i], tol)
				}
			}
		}
		near("SpMM", got, want, size)
		near("SpMMT", b.get(back), wantBack, sizeBack)
		near("SpMMT of rows [2,7)", b.get(some), wantSome, sizeSome)
		for i := range got {
			if math.Float32bits(got[i]) != math.Float32bits(inParts[i]) {
				t.Fatalf("SpMM of width %d, %d columns, seed %d: value [%d,%d] is %v whole and %v in spans", c.width, c.cols, seed, i/c.width, i%c.width, got[i], inParts[i])
			}
		}
		for _, m := range []*kernels.Mat{m1, m2, m3, m4, m5, m6} {
			b.d.Free(m)
		}
		b.d.Unload(g)
	}
}

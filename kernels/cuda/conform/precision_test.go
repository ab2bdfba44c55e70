//go:build cuda && cgo && linux && (amd64 || arm64)

package conform

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"dorylus/csrc/cuemu"
	"dorylus/kernels"
	"dorylus/kernels/cuda"
)

// TestPrecision: products are as near to the exact ones as their operands' rounding
// allows, 2^-11 with TF32 and 2^-8 with bfloat16, and not much nearer: they are made
// as was asked for.
func TestPrecision(t *testing.T) {
	if !cuemu.OnGPU() {
		emulated(t, "")
	}
	testPrecision(t, cuda.Options{Driver: cuemu.Driver(t)}, 0.01, 1.1)
	_, err := cuda.Open(cuda.Options{Driver: cuemu.Driver(t), Precision: "fp16"})
	if want := `precision "fp16", want one of [fp32 tf32 bf16]`; err == nil || !contains(err, want) {
		t.Errorf("precision fp16: %v, want %q", err, want)
	}
}

// TestCUBLASPrecision: so does the library, which may cut operands instead of rounding
// them, at twice the error, and make them finer than was asked for.
func TestCUBLASPrecision(t *testing.T) {
	o, _ := products(t)
	least := 0.01
	if cuemu.OnGPU() {
		least = 0
	}
	testPrecision(t, o, least, 2.1)
}

func testPrecision(t *testing.T, o cuda.Options, least, most float64) {
	const m, k, n, seed = 70, 600, 48, 3
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, p := range []struct {
		name        string
		rounds      float64
		least, most float64 // of the largest error, in roundings of the operands
	}{{"fp32", 0x1p-24, 0, 40}, {"tf32", 0x1p-11, least, most}, {"bf16", 0x1p-8, least, most}} {
		t.Run(p.name, func(t *testing.T) {
			o := o
			o.Precision = p.name
			b := open(t, o)
			defer b.close()
			for _, tr := range []kernels.Trans{kernels.NN, kernels.NT, kernels.TN} {
				ar, ac, br, bc := m, k, k, n
				if tr == kernels.TN {
					ar, ac = k, m
				}
				if tr == kernels.NT {
					br, bc = n, k
				}
				av, bv := values(rng, ar*ac), values(rng, br*bc)
				x, y, d := b.put(ar, ac, av), b.put(br, bc, bv), b.put(m, n, nil)
				b.s.GEMM(d, x, y, tr, nil)
				got := b.get(d)
				worst := 0.0
				for i := range m {
					for j := range n {
						sum, size := 0.0, 0.0
						for l := range k {
							p, q := i*k+l, l*n+j
							if tr == kernels.TN {
								p = l*m + i
							}
							if tr == kernels.NT {
								q = j*k + l
							}
							t := float64(av[p]) * float64(bv[q])
							sum += t
							size += math.Abs(t)
						}
						worst = max(worst, math.Abs(float64(got[i*n+j])-sum)/size)
					}
				}
				if r := worst / (2 * p.rounds); !(r >= p.least && r <= p.most) {
					t.Errorf("product %d, seed %d: the largest error is %.3g roundings of both operands, want %v to %v", tr, seed, r, p.least, p.most)
				}
				b.d.Free(x)
				b.d.Free(y)
				b.d.Free(d)
			}
		})
	}
}

// TestGatherPrecision: with bf16 gathered rows are rounded, and nothing else; rows of
// every kind, with the same bits in spans.
func TestGatherPrecision(t *testing.T) {
	const cols, width, seed = 50, 24, 9
	rng := rand.New(rand.NewPCG(seed, 1))
	b := open(t, cuda.Options{Driver: cuemu.Driver(t), Precision: "bf16"})
	defer b.close()
	csr := boundaries(rng, cols)
	rows := csr.Rows()
	g, err := b.d.Load(csr)
	if err != nil {
		t.Fatal(err)
	}
	xs, self := values(rng, cols*width), make([]int32, rows)
	for v := range self {
		self[v] = int32(cols - 1 - v)
	}
	x, y, z := b.put(cols, width, xs), b.put(rows, width, nil), b.put(rows, width, nil)
	ga := kernels.Gather{Self: kernels.Self{On: true, Col: self}}
	b.s.SpMM(y, g, x, ga, kernels.Span{Hi: rows})
	for _, s := range []kernels.Span{{Lo: 0, Hi: 5}, {Lo: 5, Hi: rows}} {
		b.s.SpMM(z, g, x, ga, s)
	}
	got, parts := b.get(y), b.get(z)
	rounded := 0
	for v := range rows {
		for k := range width {
			sum, full, size := 0.0, 0.0, 0.0
			add := func(w float64, u int) {
				r := bfloat(xs[u*width+k])
				sum += w * r
				full += w * float64(xs[u*width+k])
				size += math.Abs(w * r)
			}
			add(1, int(self[v]))
			for e := csr.RowPtr[v]; e < csr.RowPtr[v+1]; e++ {
				add(float64(csr.Val[e]), int(csr.Col[e]))
			}
			i := v*width + k
			if tol := 320 * size / (1 << 24); !(math.Abs(float64(got[i])-sum) <= tol) {
				t.Fatalf("seed %d: value [%d,%d] is %v, want %v ± %.2g", seed, v, k, got[i], sum, tol)
			}
			if math.Abs(float64(got[i])-full) > size/(1<<12) {
				rounded++
			}
			if math.Float32bits(got[i]) != math.Float32bits(parts[i]) {
				t.Fatalf("seed %d: value [%d,%d] is %v whole and %v in spans", seed, v, k, got[i], parts[i])
			}
		}
	}
	if rounded == 0 {
		t.Error("no value differs from that of rows that are not rounded")
	}
	for _, m := range []*kernels.Mat{x, y, z} {
		b.d.Free(m)
	}
	b.d.Unload(g)
}

// bfloat is x rounded to bfloat16, nearest even.
func bfloat(x float32) float64 {
	bits := math.Float32bits(x)
	bits += 0x7fff + bits>>16&1
	return float64(math.Float32frombits(bits &^ 0xffff))
}

// TestEmulatedDevices: a product has the same bits on devices of another kind, and what
// an old one cannot do is refused.
func TestEmulatedDevices(t *testing.T) {
	const m, k, n, seed = 30, 3000, 20, 5
	var first []float32
	for _, cc := range []string{"7.0", "8.0", "9.0"} {
		_, lib := emulated(t, "cc="+cc)
		rng := rand.New(rand.NewPCG(seed, 1))
		b := open(t, cuda.Options{Driver: lib})
		x, y, d := b.put(k, m, values(rng, k*m)), b.put(k, n, values(rng, k*n)), b.put(m, n, nil)
		b.s.GEMM(d, x, y, kernels.TN, nil)
		got := b.get(d)
		if first == nil {
			first = got
		}
		if fmt.Sprint(got) != fmt.Sprint(first) {
			t.Errorf("capability %s: other bits than 7.0, seed %d", cc, seed)
		}
		want := "PTX sm_80, emulated"
		if cc == "7.0" {
			want = "PTX sm_70, emulated"
		}
		if text := b.d.Describe(); !b.d.Emulated() || !contains(fmt.Errorf("%s", text), cc+", driver 12.8, "+want) {
			t.Errorf("it describes itself as %q, want %q in it", text, want)
		}
		for _, m := range []*kernels.Mat{x, y, d} {
			b.d.Free(m)
		}
		b.close()
	}
	_, lib := emulated(t, "cc=7.5")
	if _, err := cuda.Open(cuda.Options{Driver: lib, Precision: "tf32"}); err == nil || !contains(err, "needs capability 8.0") {
		t.Errorf("TF32 with capability 7.5: %v", err)
	}
	_, lib = emulated(t, "cc=6.1")
	if _, err := cuda.Open(cuda.Options{Driver: lib}); err == nil || !contains(err, "compute capability 6.1, 7.0 needed; use a newer GPU") {
		t.Errorf("capability 6.1: %v", err)
	}
	_, lib = emulated(t, "devices=2")
	if _, err := cuda.Open(cuda.Options{Driver: lib, Ordinal: 2}); err == nil || !contains(err, "open cuda:2: the driver shows 2 devices, numbered from 0") {
		t.Errorf("the third of two devices: %v", err)
	}
}

//go:build cgo && amd64 && !noblas

package blas

import (
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"
)

// product is op(a)·op(b) in float64, and the sum of the terms' magnitudes.
func product(ta, tb bool, m, n, k int, a []float32, lda int, b []float32, ldb int) (c, mag []float64) {
	c, mag = make([]float64, m*n), make([]float64, m*n)
	for i := range m {
		for j := range n {
			for p := range k {
				ia, ib := i*lda+p, p*ldb+j
				if ta {
					ia = p*lda + i
				}
				if tb {
					ib = j*ldb + p
				}
				x, y := a[ia], b[ib]
				t := float64(x) * float64(y)
				c[i*n+j] += t
				mag[i*n+j] += math.Abs(t)
			}
		}
	}
	return c, mag
}

func TestSGEMM(t *testing.T) {
	const seed = 7
	r := rand.New(rand.NewPCG(seed, 0))
	for _, s := range [][3]int{{1, 1, 1}, {5, 7, 3}, {33, 41, 128}, {128, 16, 300}} {
		for _, tr := range [][2]bool{{false, false}, {false, true}, {true, false}} {
			m, n, k := s[0], s[1], s[2]
			lda, ldb, ldc := k+3, n+2, n+5
			rowsA, rowsB := m, k
			if tr[0] {
				lda, rowsA = m+3, k
			}
			if tr[1] {
				ldb, rowsB = k+2, n
			}
			a, b, c := randoms(r, rowsA*lda), randoms(r, rowsB*ldb), randoms(r, m*ldc)
			before := append([]float32(nil), c...)
			SGEMM(tr[0], tr[1], m, n, k, a, lda, b, ldb, c, ldc)
			want, mag := product(tr[0], tr[1], m, n, k, a, lda, b, ldb)
			for i := range m {
				for j := range ldc {
					got := c[i*ldc+j]
					if j >= n {
						if got != before[i*ldc+j] {
							t.Fatalf("seed %d %v trans %v: padding at (%d,%d) became %v", seed, s, tr, i, j, got)
						}
						continue
					}
					if d := math.Abs(float64(got) - want[i*n+j]); d > mag[i*n+j]*float64(k+2)*0x1p-24 {
						t.Fatalf("seed %d %v trans %v: (%d,%d) is %v, want %v", seed, s, tr, i, j, got, want[i*n+j])
					}
				}
			}
		}
	}
}

func TestManyCallersGetTheSameBits(t *testing.T) {
	const m, n, k = 64, 48, 96
	r := rand.New(rand.NewPCG(1, 0))
	a, b := randoms(r, m*k), randoms(r, k*n)
	want := make([]float32, m*n)
	SGEMM(false, false, m, n, k, a, k, b, n, want, n)
	var wg sync.WaitGroup
	for g := range 200 {
		wg.Go(func() {
			c := make([]float32, m*n)
			for range 5 {
				SGEMM(false, false, m, n, k, a, k, b, n, c, n)
				for i := range c {
					if c[i] != want[i] {
						t.Errorf("caller %d: value %d is %v, alone it is %v", g, i, c[i], want[i])
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

func TestDescribe(t *testing.T) {
	if Version() == "unknown" || Core() == "" {
		t.Errorf("version %q, core %q: both must be known", Version(), Core())
	}
	t.Logf("OpenBLAS %s, core %s, forced %q", Version(), Core(), Forced())
}

func randoms(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func TestWorkBuffersAskForHugePages(t *testing.T) {
	c := make([]float32, 1)
	SGEMM(false, false, 1, 1, 1, []float32{2}, 1, []float32{3}, 1, c, 1)
	if c[0] != 6 {
		t.Fatalf("2·3 is %v", c[0])
	}
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
		t.Skipf("this kernel has no huge pages to ask for: %v", err)
	}
	if want := min(runtime.GOMAXPROCS(0), 64); hugePages != want {
		t.Errorf("%d work buffers have been advised, want %d", hugePages, want)
	}
}

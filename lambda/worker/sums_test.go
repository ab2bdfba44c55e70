package worker

import (
	"math"
	"math/rand/v2"
	"testing"

	"dorylus/kernels"
)

// tree is the sum over [lo,hi) in the graph server's order, said another way: a run is cut
// at the largest power of two below its length. nil is zero.
func tree(of map[int]float32, lo, hi int) *float32 {
	if hi-lo == 1 {
		if x, ok := of[lo]; ok {
			return &x
		}
		return nil
	}
	half := 1
	for 2*half < hi-lo {
		half *= 2
	}
	a, b := tree(of, lo, lo+half), tree(of, lo+half, hi)
	if a == nil {
		return b
	}
	if b != nil {
		*a += *b
	}
	return a
}

// Runs of any length, blocks without rows left out, have the bits of the tree; the
// matrices under way are few, and all come back.
func TestSumsAreThoseOfTheTree(t *testing.T) {
	dev := device(t)
	s := sums{dev: dev, free: make([][]*kernels.Mat, 2)}
	defer s.close()
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 1 + r.IntN(40)
		of := map[int]float32{}
		for b := range n {
			if r.IntN(4) > 0 {
				of[b] = float32(r.NormFloat64() * math.Pow(10, float64(r.IntN(9)-4)))
			}
		}
		most := 0
		for b := range n {
			x, ok := of[b]
			if !ok {
				continue
			}
			var mats []*kernels.Mat
			for p := range 2 {
				m, err := s.take(p, 1, 2)
				if err != nil {
					t.Fatal(err)
				}
				m.Row(0)[0], m.Row(0)[1] = x, -x
				mats = append(mats, m)
			}
			if err := s.add(b, []int{0, 1}, mats); err != nil {
				t.Fatal(err)
			}
			most = max(most, len(s.parts))
		}
		if want := tree(of, 0, n); want != nil {
			got, err := s.total()
			if err != nil {
				t.Fatal(err)
			}
			for p, m := range got {
				if m.Row(0)[0] != *want || m.Row(0)[1] != -*want {
					t.Fatalf("seed %d, parameter %d: the sum of %v is %v, want %v", seed, p, of, m.Row(0), *want)
				}
			}
		}
		s.drop()
		if most > 7 { // one of each size up to 32, and the block
			t.Errorf("seed %d: %d sums of %d blocks were under way", seed, most, n)
		}
	}
	if len(s.free[0]) != len(s.free[1]) || len(s.free[0]) > 7 {
		t.Errorf("%d and %d matrices are there in the end", len(s.free[0]), len(s.free[1]))
	}
}

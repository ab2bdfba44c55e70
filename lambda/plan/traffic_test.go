package plan

import (
	"slices"
	"testing"

	"dorylus/engine/model"
	"dorylus/kernels"
)

// The sums, written out for two layers: n rows at every level, widths f, h and c, blocks
// B in I intervals.
func TestBytesOfTwoLayersAreAsCounted(t *testing.T) {
	const n, f, h, c, blocks, intervals, workers = 1000, 70, 11, 7, 12, 5, 3
	cfg := model.Config{Model: "gcn", Layers: 2, Hidden: h, Features: f, Classes: c, Activation: kernels.ReLU}
	prog, err := cfg.Build()
	if err != nil {
		t.Fatal(err)
	}
	s := Shape{Rows: []int{n, n, n}, NonZeros: -1, Intervals: intervals, Blocks: blocks, Workers: workers, Width: 4}
	got := Compare(cfg, prog, s)
	const w1, w2 = f * h, h * c
	const grads = blocks * (w1 + w2)
	// AV1 and ∇AV1 are sent A_1; H_1, A_2, dA_2, A_2 again, H_1 again, dH_1 are of width h;
	// H_2 back, to the loss and to ∇AV2, its gradient back and there again of width c.
	if want := int64(4 * (n*(2*f+6*h+5*c) + intervals*(w1+2*w2) + grads)); got.Naive != want {
		t.Errorf("naive %d bytes, want %d", got.Naive, want)
	}
	// Z_2 = H_1·W_2 back, logits there, their gradient back, dZ_2 there.
	if want := int64(4 * (n*4*c + workers*(w1+w2) + grads)); got.Planned != want {
		t.Errorf("planned %d bytes, want %d", got.Planned, want)
	}
	if sum := got.Planned + got.Order + got.Fusion + got.Residency + got.Remade; sum != got.Naive {
		t.Errorf("the parts add up to %d, want %d: %+v", sum, got.Naive, got)
	}
	for what, part := range map[string]int64{"order": got.Order, "fusion": got.Fusion, "residency": got.Residency, "rematerialisation": got.Remade} {
		if part <= 0 {
			t.Errorf("%s takes %d bytes off, want some", what, part)
		}
	}
	s.Width = 2
	if half := Compare(cfg, prog, s); 2*half.Naive != got.Naive || 2*half.Planned != got.Planned {
		t.Errorf("at half the width %d and %d bytes, want half of %d and %d", half.Naive, half.Planned, got.Naive, got.Planned)
	}
}

// For every model: the parts add up, none but the order costs anything, and nothing is
// planned that the naive protocol does not move too.
func TestSavingsOfEveryModel(t *testing.T) {
	for _, name := range model.Names() {
		for _, dropout := range []float32{0, 0.5} {
			for _, sparse := range []bool{false, true} {
				cfg := model.Config{Model: name, Layers: 3, Hidden: 8, Features: 50, Classes: 4, Heads: 2, OutHeads: 1, Hops: 2, Alpha: 0.1,
					Dropout: 0.5, InputDropout: dropout, Sparse: sparse, Bias: true, Activation: kernels.ReLU}
				prog, err := cfg.Build()
				if err != nil {
					t.Fatal(err)
				}
				s := Shape{Rows: slices.Repeat([]int{300}, prog.Levels), NonZeros: -1, Intervals: 4, Blocks: 8, Workers: 2, Width: 4}
				if sparse {
					s.NonZeros = 900
				}
				got := Compare(cfg, prog, s)
				if sum := got.Planned + got.Order + got.Fusion + got.Residency + got.Remade; sum != got.Naive || got.Planned <= 0 ||
					got.Fusion < 0 || got.Residency < 0 || got.Remade < 0 || got.Factor() < 1 {
					t.Errorf("%s, input dropout %v, sparse %v:\n%v", name, dropout, sparse, got)
				}
			}
		}
	}
}

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
	const n, f, h, c, blocks, sums, intervals, workers = 1000, 70, 11, 7, 12, 8, 5, 3
	cfg := model.Config{Model: "gcn", Layers: 2, Hidden: h, Features: f, Classes: c, Activation: kernels.ReLU}
	prog, err := cfg.Build()
	if err != nil {
		t.Fatal(err)
	}
	s := Shape{Rows: []int{n, n, n}, NonZeros: -1, Intervals: intervals, Blocks: blocks, Sums: sums, Workers: workers, Width: 4}
	got := Compare(cfg, prog, s)
	const w1, w2 = f * h, h * c
	const grads = blocks * (w1 + w2)
	// AV1 and ∇AV1 are sent A_1; H_1, A_2, dA_2, A_2 again, H_1 again, dH_1 are of width h;
	// H_2 back, to the loss and to ∇AV2, its gradient back and there again of width c.
	if want := int64(4 * (n*(2*f+6*h+5*c) + intervals*(w1+2*w2) + grads)); got.Naive != want {
		t.Errorf("naive %d bytes, want %d", got.Naive, want)
	}
	// Z_2 = H_1·W_2 back, logits there, their gradient back, dZ_2 there.
	if want := int64(4 * (n*4*c + workers*(w1+w2) + sums*(w1+w2))); got.Planned != want {
		t.Errorf("planned %d bytes, want %d", got.Planned, want)
	}
	for _, x := range []struct {
		what      string
		got, want int64
	}{
		// ∇AV2 is sent neither A_2, H_2 nor dH_2, the loss no H_2.
		{"fusion", got.Fusion, n*(h+3*c) + intervals*w2},
		// A_1 twice, H_1 for ∇AV1; weights go to three workers, not to five tasks.
		{"residency", got.Residency, n*(2*f+h) + (intervals-workers)*(w1+w2)},
		// dH_2 stays.
		{"rematerialisation", got.Remade, n * c},
		// H_1 and A_2, dA_2 and dH_1 are of width h; products first, four of c and no H_2.
		{"order", got.Order, n * (4*h - 3*c)},
		{"merging", got.Merged, (blocks - sums) * (w1 + w2)},
	} {
		if x.got != 4*x.want {
			t.Errorf("%s takes %d bytes off, want %d", x.what, x.got, 4*x.want)
		}
	}
	s.Width = 2
	if half := Compare(cfg, prog, s); 2*half.Naive != got.Naive || 2*half.Planned != got.Planned {
		t.Errorf("at half the width %d and %d bytes, want half of %d and %d", half.Naive, half.Planned, got.Naive, got.Planned)
	}
}

// For every model: none but the order costs anything, that only where it is another, and
// what is planned has all that must travel whatever a worker holds.
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
				var least int64
				for i, step := range New(prog, len(prog.Steps)).Steps {
					if step == nil {
						continue
					}
					for _, b := range step.Ships {
						rows := 300
						if prog.Bufs[b].PerBlock {
							rows = 8
						}
						least += int64(4 * rows * prog.Bufs[b].Cols)
					}
					for _, p := range prog.Steps[i].Grads {
						least += int64(4 * 8 * prog.Params[p].Rows * prog.Params[p].Cols)
					}
				}
				if got.Fusion < 0 || got.Residency < 0 || got.Remade < 0 || name != "gcn" && got.Order != 0 || got.Planned < least || got.Factor() < 1 {
					t.Errorf("%s, input dropout %v, sparse %v: results and gradients alone are %d bytes:\n%v", name, dropout, sparse, least, got)
				}
			}
		}
	}
}

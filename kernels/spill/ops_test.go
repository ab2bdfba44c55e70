package spill

import (
	"testing"

	"dorylus/kernels/ref"
	"dorylus/kernels/spill/spilltest"
)

// TestEachOperand: every op with all of its operands spilled, and with each alone, in
// tiles of 8 columns and an arena that makes it run in many pieces.
func TestEachOperand(t *testing.T) {
	for _, o := range spilltest.Ops {
		t.Run(o.Name, func(t *testing.T) {
			host, err := ref.Open()
			if err != nil {
				t.Fatal(err)
			}
			want := spilltest.Outcome(t, host, o)
			for spilled := -1; spilled < len(o.Shapes); spilled++ {
				n, seed := -1, uint64(spilled+1)
				d, err := openFake(o.Arena(), 8, seed, func(int, int) bool { n++; return spilled < 0 || n == spilled })
				if err != nil {
					t.Fatal(err)
				}
				got := spilltest.Outcome(t, d, o)
				for i := range want {
					if err := spilltest.Same(want[i], got[i], o.Exact); err != nil {
						t.Errorf("operand %d of %v, spilled %d (-1: all), seed %d: %v", i, o.Shapes, spilled, seed, err)
					}
				}
			}
		})
	}
}

package cuda

import (
	"testing"

	"dorylus/kernels"
	"dorylus/kernels/spill"
)

// TestMakePlan: what a plan calls resident the pool can hold, in blocks of any size.
func TestMakePlan(t *testing.T) {
	for _, n := range []int64{8 << 10, 100_001, 1<<20 + 1, 5_000_000, 1<<30 + 1} {
		limit := chunkBytes*chunkCount + BlockBytes(n)
		p := MakePlan(spill.Budget{Limit: limit - 1}, "", []spill.Need{{Purpose: kernels.Weights, Bytes: n}})
		if p.Verdict != spill.Refused {
			t.Errorf("%d bytes and transfers on a device of %d: %v, want refused", n, limit-1, p.Verdict)
		}
		p = MakePlan(spill.Budget{Limit: limit + n/16}, "", []spill.Need{{Purpose: kernels.Weights, Bytes: n}})
		if p.Verdict != spill.Resident {
			t.Errorf("%d bytes and transfers on a device of %d: %v, want resident", n, limit+n/16, p.Verdict)
		}
	}
}

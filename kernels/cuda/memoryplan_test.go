package cuda

import (
	"testing"

	"dorylus/kernels"
	"dorylus/kernels/spill"
)

// TestMakePlan: what a plan calls resident the pool can hold, in blocks of any size.
func TestMakePlan(t *testing.T) {
	for _, n := range []int64{8 << 10, 100_001, 1<<20 + 1, 5_000_000, 1<<30 + 1} {
		block := BlockBytes(n)
		limit := chunkBytes*chunkCount + block + block/marginShare + marginLeast
		need := []spill.Need{{Purpose: kernels.Weights, Bytes: block}}
		if p := MakePlan(spill.Budget{Limit: limit - 1}, "", need, nil); p.Verdict != spill.Refused || p.Short != 1 {
			t.Errorf("%d bytes and transfers on a device of %d: %v, short of %d, want refused for 1", n, limit-1, p.Verdict, p.Short)
		}
		if p := MakePlan(spill.Budget{Limit: limit}, "", need, nil); p.Verdict != spill.Resident {
			t.Errorf("%d bytes and transfers on a device of %d: %v, want resident", n, limit, p.Verdict)
		}
	}
}

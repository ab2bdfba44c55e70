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

// TestSettle: what does not fit with blocks summed at once is planned with each alone, and
// what lacks less says how much.
func TestSettle(t *testing.T) {
	const least = chunkCount*chunkBytes + marginLeast
	for _, c := range []struct {
		limit, together, alone int64
		verdict                spill.Verdict
		isAlone                bool
		short                  int64
	}{
		{least + 400<<10, 300 << 10, 100 << 10, spill.Resident, false, 0},
		{least + 200<<10, 300 << 10, 100 << 10, spill.Resident, true, 0},
		{least, 300 << 10, 256 << 10, spill.Refused, true, 257 << 10},
		{least, 256 << 10, 300 << 10, spill.Refused, true, 257 << 10},
	} {
		costs := []Costs{{Limit: c.limit}, {Limit: c.limit, Products: CUBLASProducts}}
		plans, err := Settle(costs, func(costs []Costs) (plans []*spill.Plan, err error) {
			for _, k := range costs {
				need := spill.Need{Purpose: kernels.Weights, Bytes: c.alone}
				if k.Together() {
					need.Bytes = c.together
				}
				plans = append(plans, MakePlan(spill.Budget{Limit: k.Limit}, "", []spill.Need{need}, nil))
			}
			return plans, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if p := plans[0]; p.Verdict != c.verdict || p.Alone != c.isAlone || p.Short != c.short {
			t.Errorf("%+v: %v, blocks alone %v, short of %d", c, p.Verdict, p.Alone, p.Short)
		}
		if p := plans[1]; p.Alone || p.Verdict == spill.Refused && p.Short < c.alone {
			t.Errorf("%+v: by cuBLAS blocks alone %v, short of %d", c, p.Alone, p.Short)
		}
	}
}

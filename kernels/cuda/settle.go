package cuda

import "dorylus/kernels/spill"

// Settle plans the memory of devices with these costs by plan. A device that sums over
// blocks in one op takes more scratch memory and fewer gradients than one that takes blocks
// alone, and what streams takes them alone: a device on which not everything fits is planned
// again as one that does. Of two ways that both do not fit, the one that lacks less says how
// much that is.
func Settle(costs []Costs, plan func(costs []Costs) ([]*spill.Plan, error)) ([]*spill.Plan, error) {
	short := make([]int64, len(costs)) // of all at once, by device
	for {
		plans, err := plan(costs)
		if err != nil {
			return nil, err
		}
		again := false
		for i, p := range plans {
			switch {
			case p.Verdict != spill.Resident && costs[i].Together():
				short[i], costs[i].Alone, again = p.Lacks(), true, true
			case p.Verdict == spill.Refused && short[i] > 0:
				p.Short = min(p.Short, short[i])
			}
			p.Alone = costs[i].Alone
		}
		if !again {
			return plans, nil
		}
	}
}

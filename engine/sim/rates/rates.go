// Package rates says how long a unit of work takes on one core: measured here in a few
// seconds on the kernels that a run would use, or worked out from given speeds.
package rates

import (
	"fmt"

	"dorylus/engine/sim/workload"
)

// Speeds are those of one core while all cores work.
type Speeds struct {
	Gather float64 // bytes a second of rows that are picked from anywhere
	Flops  float64 // floating point operations a second in dense products
	Values float64 // bytes a second that are read and written in order
}

// Validate reports a speed that is none.
func (s Speeds) Validate() error {
	if !(s.Gather > 0) || !(s.Flops > 0) || !(s.Values > 0) {
		return fmt.Errorf("speeds of a core: gather %v, products %v, values %v: all must be above 0", s.Gather, s.Flops, s.Values)
	}
	return nil
}

// PerUnit is the seconds of a unit of each key at these speeds.
func (s Speeds) PerUnit(keys []workload.Key) []float64 {
	out := make([]float64, len(keys))
	for i, k := range keys {
		out[i] = k.GatherBytes()/s.Gather + k.Flops()/s.Flops + k.ValueBytes()/s.Values
	}
	return out
}

// Rate is what a kind of work was measured at.
type Rate struct {
	Key     workload.Key
	PerUnit float64 // seconds of one core
	// Measured says that the op itself was run; others follow from the speeds of those that
	// are like it.
	Measured bool
}

// Text is the rate in words: "gather 128: 6.2 ns an edge, 82.6 GB/s".
func (r Rate) Text() string {
	text := fmt.Sprintf("%v: %.3g ns", r.Key, r.PerUnit*1e9)
	switch {
	case r.Key.Flops() > 0:
		text += fmt.Sprintf(" a row, %.1f GFLOP/s", r.Key.Flops()/r.PerUnit/1e9)
	case r.Key.GatherBytes() > 0:
		text += fmt.Sprintf(" an edge, %.1f GB/s", r.Key.GatherBytes()/r.PerUnit/1e9)
	default:
		text += fmt.Sprintf(" a value, %.1f GB/s", r.Key.ValueBytes()/r.PerUnit/1e9)
	}
	return text
}

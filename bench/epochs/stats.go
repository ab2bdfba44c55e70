//go:build cgo && amd64 && linux

package main

import (
	"encoding/json"
	"math"
	"slices"
)

// spread is a quantity that was measured several times.
type spread struct {
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
}

// MarshalJSON writes null for what was not measured.
func (s spread) MarshalJSON() ([]byte, error) {
	if math.IsNaN(s.Median) {
		return []byte("null"), nil
	}
	type plain spread
	return json.Marshal(plain(s))
}

func spreadOf(x []float64) spread {
	if len(x) == 0 {
		return spread{math.NaN(), math.NaN(), math.NaN()}
	}
	x = slices.Sorted(slices.Values(x))
	n := len(x)
	return spread{Median: (x[(n-1)/2] + x[n/2]) / 2, Least: x[0], Most: x[n-1]}
}

// ratios divides what was measured in the same round.
func ratios(a, b []float64) []float64 {
	var out []float64
	for i := range min(len(a), len(b)) {
		if a[i] > 0 && b[i] > 0 {
			out = append(out, a[i]/b[i])
		}
	}
	return out
}

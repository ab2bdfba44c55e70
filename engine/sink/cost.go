package sink

import (
	"fmt"
	"math"
	"strings"

	"dorylus/engine/cost"
)

// total is the key of the sum in Summary.Cost.
const total = "total"

// charge writes a bill into s. Where the total is not known, a part of 0 may only
// be one that could not be priced, so that it is null as well.
func (s *Summary) charge(b cost.Bill) {
	s.Cost = map[string]Number{}
	sum, known := b.Total()
	for _, p := range b.Parts() {
		s.Cost[p.Key] = Number(p.Cost.USD())
		if !known && p.Cost == 0 {
			s.Cost[p.Key] = Number(math.NaN())
		}
	}
	s.Cost[total] = Number(sum.USD())
	if !known {
		s.Cost[total] = Number(math.NaN())
	}
	s.Value = Number(cost.Value(float64(s.TotalSeconds), float64(s.Cost[total])))
}

// mergeCost takes the mean of each part and adds the means up; the value is that of
// the mean time and cost.
func (s *Summary) mergeCost(runs []Summary) {
	s.Cost = map[string]Number{}
	var sum cost.Dollars
	known := true
	for _, p := range (cost.Bill{}).Parts() {
		mean := 0.0
		for _, r := range runs {
			mean += float64(r.Cost[p.Key]) / float64(len(runs))
		}
		s.Cost[p.Key] = Number(mean)
		if known = known && !math.IsNaN(mean); known {
			d := cost.FromUSD(mean)
			s.Cost[p.Key] = Number(d.USD())
			sum += d
		}
	}
	s.Cost[total] = Number(sum.USD())
	for _, r := range runs {
		if !known || !r.Cost[total].Known() {
			s.Cost[total] = Number(math.NaN())
		}
		if r.CostNote != s.CostNote {
			s.CostNote = runs[0].CostNote + "; other runs differ in this"
		}
	}
	s.Value = Number(cost.Value(float64(s.TotalSeconds), float64(s.Cost[total])))
}

// costWords is the bill in a line: the total, the parts that are not 0, and by what
// prices.
func (s Summary) costWords() string {
	if !s.Cost[total].Known() {
		return s.CostNote
	}
	var parts []string
	for _, p := range (cost.Bill{}).Parts() {
		if d := cost.FromUSD(float64(s.Cost[p.Key])); d != 0 {
			parts = append(parts, p.Name+" "+d.Exact())
		}
	}
	text := cost.FromUSD(float64(s.Cost[total])).Exact()
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	if s.Value.Known() {
		text += fmt.Sprintf("; value %.4g (1/(seconds·dollars))", float64(s.Value))
	}
	return text + "\nPriced     " + s.CostNote
}

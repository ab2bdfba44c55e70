package kerneltest

import "math"

// u is half the distance from 1 to the next float32: the relative error of one
// rounding.
const u = 1.0 / (1 << 24)

// A value is what an element should be, and how far from it a float32
// computation may end.
type value struct{ v, tol float64 }

// exactly allows no difference.
func exactly(v float64) value { return value{v: v} }

// miss is the distance of got in tolerances: at most 1 is right. NaN is right
// only for NaN, an infinity only for itself.
func (w value) miss(got float64) float64 {
	switch {
	case math.IsNaN(w.v) && math.IsNaN(got), w.v == got:
		return 0
	case math.IsNaN(w.v), math.IsInf(w.v, 0), math.IsNaN(got), math.IsInf(got, 0), w.tol == 0:
		return math.Inf(1)
	}
	return math.Abs(got-w.v) / w.tol
}

// A sum is what an op adds up for one element: the value in float64, and the sum
// of the absolute terms, which bounds the rounding errors: each of n terms takes
// part in at most n additions and carries its own product's roundings, whatever
// the order of the sum and whether products are fused.
type sum struct {
	v, abs float64
	n      int
	exact  bool // the operands are small integers: no order rounds at all
}

// add adds the product of the factors.
func (s *sum) add(factors ...float64) {
	p := 1.0
	for _, f := range factors {
		p *= f
	}
	s.v += p
	s.abs += math.Abs(p)
	s.n++
}

// value is the sum with its tolerance; extra counts the roundings besides those
// of n additions.
func (s *sum) value(extra int) value {
	if s.exact {
		return value{v: s.v}
	}
	return value{v: s.v, tol: float64(s.n+extra) * u * s.abs}
}

package ref

import (
	"math"

	"dorylus/kernels"
)

// Adam is one step, in float64 per element; the formula is in kernels.Stream.
func (s *stream) Adam(p, g, m, v *kernels.Mat, h kernels.Adam) {
	kernels.CheckAdam(p, g, m, v, h)
	kernels.CheckHost("Adam", p, g, m, v)
	if !s.runs("Adam") {
		return
	}
	b1, b2, eps := float64(h.Beta1), float64(h.Beta2), float64(h.Eps)
	decay, l2 := 1.0, float64(h.WeightDecay)
	if h.Decoupled {
		decay, l2 = 1-float64(h.LR)*l2, 0
	}
	rate := float64(h.LR) / (1 - math.Pow(b1, float64(h.Step)))
	root := math.Sqrt(1 - math.Pow(b2, float64(h.Step)))
	for r := range rowsOf(p) {
		pr, gr, mr, vr := p.Row(r), g.Row(r), m.Row(r), v.Row(r)
		for c := range pr {
			w, d := float64(pr[c]), float64(gr[c])
			if h.Decoupled {
				w *= decay
			} else {
				d += l2 * w
			}
			m1 := b1*float64(mr[c]) + (1-b1)*d
			v1 := b2*float64(vr[c]) + (1-b2)*d*d
			mr[c], vr[c] = float32(m1), float32(v1)
			pr[c] = float32(w - rate*m1/(math.Sqrt(v1)/root+eps))
		}
	}
}

// SGD is one step, in float64 per element; the formula is in kernels.Stream.
func (s *stream) SGD(p, g, m *kernels.Mat, h kernels.SGD) {
	kernels.CheckSGD(p, g, m, h)
	kernels.CheckHost("SGD", p, g, m)
	if !s.runs("SGD") {
		return
	}
	lr, mom, l2 := float64(h.LR), float64(h.Momentum), float64(h.WeightDecay)
	for r := range rowsOf(p) {
		pr, gr := p.Row(r), g.Row(r)
		for c := range pr {
			w := float64(pr[c])
			d := float64(gr[c]) + l2*w
			if h.Momentum != 0 {
				mr := m.Row(r)
				if h.Step > 1 {
					d += mom * float64(mr[c])
				}
				mr[c] = float32(d)
			}
			pr[c] = float32(w - lr*d)
		}
	}
}

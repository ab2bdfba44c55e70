package kerneltest

import (
	"math"

	"dorylus/kernels"
)

func optimCases() []Case {
	return append(byWidth("Adam", adam), byWidth("SGD", sgd)...)
}

// adam: one step from given moments, at several steps, plain and decoupled.
func adam(l *lab, width int) {
	const rows = 5
	all := kernels.Span{Hi: rows}
	for i, h := range []kernels.Adam{
		{LR: 0.01, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Step: 1},
		{LR: 0.01, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: 5e-4, Step: 2},
		{LR: 0.1, Beta1: 0.8, Beta2: 0.99, Eps: 1e-3, WeightDecay: 0.1, Decoupled: true, Step: 1000},
		{LR: 0.1, Beta1: 0, Beta2: 0, Eps: 1e-8, Decoupled: true, Step: 1},
	} {
		t := l.trial(layouts[i%len(layouts)], "Adam %+v of %d x %d", h, rows, width)
		p, g := t.in("p", rows, width, random(l.rng, false)), t.in("g", rows, width, random(l.rng, false))
		m, v := t.in("m", rows, width, random(l.rng, false)), t.in("v", rows, width, positive(l.rng, false))
		p.out, m.out, v.out = true, true, true
		if i == 1 { // nothing has moved yet: the step is 0 over eps
			for r := range rows {
				g.img[g.at(r, 0)], p.img[p.at(r, 0)], m.img[m.at(r, 0)], v.img[v.at(r, 0)] = 0, 0, 0, 0
			}
		}
		t.run(func(s kernels.Stream) { s.Adam(p.view, g.view, m.view, v.view, h) })

		b1, b2, wd := float64(h.Beta1), float64(h.Beta2), float64(h.WeightDecay)
		grad := func(r, c int) value {
			w := sum{}
			w.add(g.val(r, c))
			if !h.Decoupled {
				w.add(wd, p.val(r, c))
			}
			return w.value(1)
		}
		first := func(r, c int) value {
			d, s := grad(r, c), sum{}
			s.add(b1, m.val(r, c))
			s.add(1-b1, d.v)
			w := s.value(2)
			w.tol += (1 - b1) * d.tol
			return w
		}
		second := func(r, c int) value {
			d, s := grad(r, c), sum{}
			s.add(b2, v.val(r, c))
			s.add(1-b2, d.v, d.v)
			w := s.value(3)
			w.tol += 2 * (1 - b2) * math.Abs(d.v) * d.tol
			return w
		}
		t.check(m, all, first)
		t.check(v, all, second)
		t.check(p, all, func(r, c int) value {
			rate := float64(h.LR) / (1 - math.Pow(b1, float64(h.Step)))
			root := math.Sqrt(1 - math.Pow(b2, float64(h.Step)))
			m1, v1 := first(r, c), second(r, c)
			w := p.val(r, c)
			if h.Decoupled {
				w *= 1 - float64(h.LR)*wd
			}
			den := math.Sqrt(v1.v)/root + float64(h.Eps)
			step := rate * m1.v / den
			tol := rate*m1.tol/den + 8*u*math.Abs(step) + 3*u*math.Abs(w)
			if v1.v > 0 {
				tol += math.Abs(step) * v1.tol / v1.v
			}
			return value{v: w - step, tol: tol}
		})
		l.release()
	}
}

// sgd: without and with momentum and decay; step 1 does not read the buffer.
func sgd(l *lab, width int) {
	const rows = 5
	all := kernels.Span{Hi: rows}
	for i, h := range []kernels.SGD{
		{LR: 0.1, Step: 1},
		{LR: 0.1, WeightDecay: 0.01, Step: 4},
		{LR: 0.1, Momentum: 0.9, WeightDecay: 0.01, Step: 1},
		{LR: 0.1, Momentum: 0.9, WeightDecay: 0.01, Step: 2},
	} {
		t := l.trial(layouts[i%len(layouts)], "SGD %+v of %d x %d", h, rows, width)
		p, g := t.in("p", rows, width, random(l.rng, false)), t.in("g", rows, width, random(l.rng, false))
		m := t.in("m", rows, width, func(int, int) float32 {
			if h.Step == 1 {
				return poison
			}
			return 2*l.rng.Float32() - 1
		})
		p.out, m.out = true, h.Momentum != 0
		mm := m.view
		if i == 0 {
			mm = nil
		}
		t.run(func(s kernels.Stream) { s.SGD(p.view, g.view, mm, h) })
		grad := func(r, c int) value {
			s := sum{}
			s.add(g.val(r, c))
			s.add(float64(h.WeightDecay), p.val(r, c))
			if h.Momentum != 0 && h.Step > 1 {
				s.add(float64(h.Momentum), m.val(r, c))
			}
			return s.value(1)
		}
		if m.out {
			t.check(m, all, grad)
		}
		t.check(p, all, func(r, c int) value {
			d, lr := grad(r, c), float64(h.LR)
			return value{v: p.val(r, c) - lr*d.v, tol: lr*d.tol + 2*u*(math.Abs(lr*d.v)+math.Abs(p.val(r, c)))}
		})
		l.release()
	}
}

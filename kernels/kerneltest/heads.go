package kerneltest

import (
	"fmt"
	"math"

	"dorylus/kernels"
)

func headCases() []Case {
	var cases []Case
	for _, s := range headSizes {
		cases = append(cases, Case{fmt.Sprintf("Heads/%dx%d", s[0], s[1]), func(l *lab) { heads(l, s[0], s[1]) }})
	}
	return append(cases, Case{"Heads/mean", headMean}, Case{"Heads/special", headSpecial})
}

// heads: the scores of every vertex, and their gradients.
func heads(l *lab, h, d int) {
	for i, lay := range layouts {
		for _, rows := range []int{0, 1, 23} {
			l.headOps(lay, rows, h, d, i == 0, random(l.rng, i == 0))
		}
	}
}

func (l *lab) headOps(lay layout, rows, h, d int, exact bool, fill func(r, c int) float32) {
	defer l.release()
	all := kernels.Span{Hi: rows}
	t := l.trial(lay, "HeadDot of %d x %d heads of %d, exact %v", rows, h, d, exact)
	x, a, dst := t.in("x", rows, h*d, fill), t.in("a", h, d, fill), t.result("dst", rows, h)
	t.run(func(s kernels.Stream) { s.HeadDot(dst.view, x.view, a.view) })
	t.check(dst, all, func(r, k int) value {
		s := sum{exact: exact}
		for c := range d {
			s.add(x.val(r, k*d+c), a.val(k, c))
		}
		return s.value(0)
	})

	t = l.trial(lay, "HeadOuterAdd of %d x %d heads of %d, exact %v", rows, h, d, exact)
	dx, g, a := t.in("dx", rows, h*d, fill), t.in("d", rows, h, fill), t.in("a", h, d, fill)
	dx.out = true
	t.run(func(s kernels.Stream) { s.HeadOuterAdd(dx.view, g.view, a.view) })
	t.check(dx, all, func(r, c int) value {
		s := sum{exact: exact}
		s.add(dx.val(r, c))
		s.add(g.val(r, c/d), a.val(c/d, c%d))
		return s.value(1)
	})

	t = l.trial(lay, "HeadDotGrad of %d x %d heads of %d, exact %v", rows, h, d, exact)
	x, g = t.in("x", rows, h*d, fill), t.in("d", rows, h, fill)
	da := t.result("da", h, d)
	t.run(func(s kernels.Stream) { s.HeadDotGrad(da.view, g.view, x.view) })
	t.check(da, kernels.Span{Hi: h}, func(k, c int) value {
		s := sum{exact: exact}
		for r := range rows {
			s.add(g.val(r, k), x.val(r, k*d+c))
		}
		return s.value(1)
	})

	t = l.trial(lay, "HeadSpread of %d x %d to %d heads", rows, d, h)
	g, wide := t.in("d", rows, d, fill), t.result("dx", rows, h*d)
	t.run(func(s kernels.Stream) { s.HeadSpread(wide.view, g.view, h) })
	t.check(wide, all, func(r, c int) value {
		v := g.val(r, c%d) / float64(h)
		return value{v: v, tol: 2 * u * math.Abs(v)}
	})
}

// headMean: means with every epilogue.
func headMean(l *lab) {
	const rows = 9
	for i, ep := range append(epilogues(l, rows), nil) {
		for _, h := range []int{1, 3, 8} {
			d := []int{1, 8, 41, 7}[i%4]
			t := l.trial(layouts[i%len(layouts)], "HeadMean of %d heads of %d, %s", h, d, describe(ep))
			x, dst := t.in("x", rows, h*d, random(l.rng, false)), t.result("dst", rows, d)
			full, bias := t.bias(ep, i%2 == 1, d, false)
			t.run(func(s kernels.Stream) { s.HeadMean(dst.view, x.view, h, full) })
			t.check(dst, kernels.Span{Hi: rows}, func(r, c int) value {
				var s sum
				for k := range h {
					s.add(x.val(r, k*d+c), 1/float64(h))
				}
				return epilogue(s, 3, full, bias, r, c)
			})
			l.release()
		}
	}
}

// headSpecial: NaN and Inf stay in their heads.
func headSpecial(l *lab) {
	for i, bad := range []float64{math.NaN(), math.Inf(1)} {
		n := 0
		l.headOps(layouts[1+i], 11, 3, 9, true, func(int, int) float32 {
			if n++; n%37 == 5 {
				return float32(bad)
			}
			return float32(l.rng.IntN(3))
		})
	}
}

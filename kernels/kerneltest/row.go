package kerneltest

import (
	"math"
	"slices"

	"dorylus/kernels"
)

func rowCases() []Case {
	var cases []Case
	cases = append(cases, byWidth("Forward", forward)...)
	cases = append(cases, byWidth("Backward", backwardWidth)...)
	cases = append(cases, byWidth("ColSum", colSum)...)
	return append(cases, Case{"Forward/special", forwardSpecial}, Case{"Backward/special", backwardSpecial}, Case{"Forward/spans", forwardSpans})
}

// forward: every epilogue, into another matrix and in place, a part of the rows.
func forward(l *lab, width int) {
	const rows = 11
	span := kernels.Span{Lo: 2, Hi: 9}
	for i, ep := range append(epilogues(l, rows), nil) {
		lay := layouts[i%len(layouts)]
		for _, inPlace := range []bool{false, true} {
			t := l.trial(lay, "Forward of rows [2,9) of %d x %d, %s, in place %v", rows, width, describe(ep), inPlace)
			x := t.in("x", rows, width, func(int, int) float32 { return 6*l.rng.Float32() - 3 })
			dst := x
			if inPlace {
				x.out = true
			} else {
				dst = t.result("dst", rows, width)
			}
			full, bias := t.bias(ep, i%2 == 1, width, false)
			t.run(func(s kernels.Stream) { s.Forward(dst.view, x.view, full, span) })
			t.check(dst, span, func(r, c int) value {
				var s sum
				s.add(x.val(r, c))
				return epilogue(s, 0, full, bias, r, c)
			})
			l.release()
		}
	}
}

// forwardSpecial: NaN and Inf pass through each activation as the table of
// kernels.Act says; dropped ones become 0.
func forwardSpecial(l *lab) {
	values := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0, float32(math.Copysign(0, -1)), -100, 100, 1e-30, -1e-30, -1e-4, 1e-4}
	all := kernels.Span{Hi: 9}
	for _, ep := range epilogues(l, all.Hi) {
		t := l.trial(layouts[1], "Forward of NaN and Inf, %s", describe(ep))
		x := t.in("x", all.Hi, 23, func(r, c int) float32 { return values[(r*23+c)%len(values)] })
		dst := t.result("dst", all.Hi, 23)
		t.run(func(s kernels.Stream) { s.Forward(dst.view, x.view, ep, all) })
		t.check(dst, all, func(r, c int) value {
			var s sum
			s.add(x.val(r, c))
			w := epilogue(s, 0, ep, nil, r, c)
			if math.IsInf(w.v, 0) {
				return exactly(w.v)
			}
			return w
		})
		l.release()
	}
}

// backwardWidth: the derivative at what Forward gave, with the same mask, into
// another matrix and in place.
func backwardWidth(l *lab, width int) {
	const rows = 11
	span := kernels.Span{Lo: 1, Hi: 10}
	for i, ep := range append(epilogues(l, rows), nil) {
		for _, inPlace := range []bool{false, true} {
			t := l.trial(layouts[i%len(layouts)], "Backward of rows [1,10) of %d x %d, %s, in place %v", rows, width, describe(ep), inPlace)
			y := t.in("y", rows, width, func(r, c int) float32 {
				var s sum
				s.add(float64(6*l.rng.Float32() - 3))
				return float32(epilogue(s, 0, ep, nil, r, c).v)
			})
			dy := t.in("dy", rows, width, random(l.rng, false))
			dx := dy
			if inPlace {
				dy.out = true
			} else {
				dx = t.result("dx", rows, width)
			}
			t.run(func(s kernels.Stream) { s.Backward(dx.view, dy.view, y.view, ep, span) })
			t.check(dx, span, func(r, c int) value { return backward(ep, dy.val(r, c), y.val(r, c), r, c) })
			l.release()
		}
	}
}

// backwardSpecial: NaN gradients pass where the activation let the value pass.
func backwardSpecial(l *lab) {
	all := kernels.Span{Hi: 4}
	for _, ep := range epilogues(l, all.Hi) {
		t := l.trial(layouts[2], "Backward of NaN, %s", describe(ep))
		ys := []float32{0.5, 0, -0.5, float32(math.NaN())}
		if ep.Act == kernels.ReLU {
			ys[2] = 0
		}
		y := t.in("y", all.Hi, 19, func(_, c int) float32 { return ys[c%4] })
		dy := t.in("dy", all.Hi, 19, func(_, c int) float32 {
			if c%3 == 0 {
				return float32(math.NaN())
			}
			return 1
		})
		dx := t.result("dx", all.Hi, 19)
		t.run(func(s kernels.Stream) { s.Backward(dx.view, dy.view, y.view, ep, all) })
		t.check(dx, all, func(r, c int) value { return backward(ep, dy.val(r, c), y.val(r, c), r, c) })
		l.release()
	}
}

// colSum: sums over part of the rows; an empty span gives 0.
func colSum(l *lab, width int) {
	const rows = 97
	for i, span := range []kernels.Span{{Lo: 0, Hi: rows}, {Lo: 3, Hi: 90}, {Lo: 5, Hi: 6}, {Lo: 4, Hi: 4}} {
		for _, exact := range []bool{true, false} {
			t := l.trial(layouts[i%len(layouts)], "ColSum of rows %v of %d x %d, exact %v", span, rows, width, exact)
			x, dst := t.in("x", rows, width, random(l.rng, exact)), t.result("dst", 1, width)
			if !exact && span.Len() > 1 {
				x.img[x.at(span.Lo, 0)] = float32(math.NaN())
			}
			t.run(func(s kernels.Stream) { s.ColSum(dst.view, x.view, span) })
			t.check(dst, kernels.Span{Hi: 1}, func(_, c int) value {
				s := sum{exact: exact}
				for r := span.Lo; r < span.Hi; r++ {
					s.add(x.val(r, c))
				}
				return s.value(0)
			})
			l.release()
		}
	}
}

// pieces cuts n rows into spans of odd lengths, an empty one among them.
func pieces(n int) []kernels.Span {
	var spans []kernels.Span
	for lo, step := 0, 1; lo < n; step += 2 {
		hi := min(lo+step, n)
		spans = append(spans, kernels.Span{Lo: lo, Hi: hi}, kernels.Span{Lo: hi, Hi: hi})
		lo = hi
	}
	return spans
}

// onePass compares the bits of an output made in one call with those made in
// pieces, last piece first.
func (t *trial) onePass(whole, parts *array, n int, op func(s kernels.Stream, dst *kernels.Mat, rows kernels.Span)) {
	t.run(func(s kernels.Stream) {
		op(s, whole.view, kernels.Span{Hi: n})
		spans := pieces(n)
		slices.Reverse(spans)
		for _, rows := range spans {
			op(s, parts.view, rows)
		}
	})
	all := kernels.Span{Hi: whole.view.Rows}
	w, p := whole.bits(all), parts.bits(all)
	for i := range w {
		if w[i] != p[i] {
			cols := whole.view.Cols
			t.failf("%s: dst[%d,%d] is %v in one call and %v in pieces", t.what, i/cols, i%cols, math.Float32frombits(w[i]), math.Float32frombits(p[i]))
			return
		}
	}
}

// forwardSpans: bits of Forward and Backward do not depend on the span.
func forwardSpans(l *lab) {
	const rows, width = 50, 41
	for _, ep := range epilogues(l, rows) {
		t := l.trial(layouts[2], "Forward in pieces, %s", describe(ep))
		x := t.in("x", rows, width, func(int, int) float32 { return 6*l.rng.Float32() - 3 })
		whole, parts := t.result("whole", rows, width), t.result("parts", rows, width)
		t.onePass(whole, parts, rows, func(s kernels.Stream, dst *kernels.Mat, r kernels.Span) { s.Forward(dst, x.view, ep, r) })

		t = l.trial(layouts[2], "Backward in pieces, %s", describe(ep))
		x = t.in("dy", rows, width, random(l.rng, false))
		y := t.in("y", rows, width, func(int, int) float32 { return l.rng.Float32() })
		whole, parts = t.result("whole", rows, width), t.result("parts", rows, width)
		t.onePass(whole, parts, rows, func(s kernels.Stream, dst *kernels.Mat, r kernels.Span) {
			s.Backward(dst, x.view, y.view, ep, r)
		})
		l.release()
	}
}

package kerneltest

import (
	"math"

	"dorylus/kernels"
)

func maxCases() []Case {
	return append(append(byWidth("SpMMMax", spmmMax), byWidth("SpMMMaxBack", spmmMaxBack)...),
		Case{"SpMMMax/special", spmmMaxSpecial}, Case{"SpMMMax/spans", spmmMaxSpans})
}

// maxOf is dst and arg of (v,c).
func maxOf(g *kernels.CSR, x *array, v, c int) (top float64, from int32) {
	from = -1
	for e := g.RowPtr[v]; e < g.RowPtr[v+1]; e++ {
		if g.Val != nil && !(g.Val[e] > 0) {
			continue
		}
		if a := x.val(int(g.Col[e]), c); from < 0 || a > top || math.IsNaN(a) && !math.IsNaN(top) {
			top, from = a, g.Col[e]
		}
	}
	return top, from
}

// maximum is one SpMMMax to compare; exact fills make ties.
func (l *lab) maximum(lay layout, rows, cols, width int, span kernels.Span, val, arg bool, fill func(r, c int) float32) {
	l.maximumOf(lay, toy(l.rng, rows, cols, val), width, span, arg, fill)
}

func (l *lab) maximumOf(lay layout, csr *kernels.CSR, width int, span kernels.Span, arg bool, fill func(r, c int) float32) {
	defer l.release()
	rows, cols := csr.Rows(), csr.Cols
	t := l.trial(lay, "SpMMMax of rows [%d,%d) of %d x %d, width %d, val %v, arg %v", span.Lo, span.Hi, rows, cols, width, csr.Val != nil, arg)
	g := l.load(csr)
	x, dst := t.in("x", cols, width, fill), t.result("dst", rows, width)
	var am *kernels.Mat
	var from *array
	if arg {
		from = t.result("arg", rows, width)
		am = from.view
	}
	t.run(func(s kernels.Stream) { s.SpMMMax(dst.view, am, g, x.view, span) })
	t.check(dst, span, func(v, c int) value { top, _ := maxOf(csr, x, v, c); return exactly(top) })
	if !arg {
		return
	}
	for v := span.Lo; v < span.Hi; v++ {
		for c := range width {
			if _, u := maxOf(csr, x, v, c); kernels.ArgOf(from.got[from.at(v, c)]) != u {
				t.failf("%s: arg[%d,%d] is %d, want %d", t.what, v, c, kernels.ArgOf(from.got[from.at(v, c)]), u)
				return
			}
		}
	}
	t.untouched(from, func(r, _ int) bool { return r >= span.Lo && r < span.Hi })
}

// spmmMax: with ties and without, weights of all signs.
func spmmMax(l *lab, width int) {
	for i, lay := range layouts {
		for _, exact := range []bool{true, false} {
			l.maximum(lay, 30, 23, width, kernels.Span{Lo: 3, Hi: 29}, i != 1, true, random(l.rng, exact))
			l.maximum(lay, 30, 23, width, kernels.Span{Lo: 3, Hi: 29}, i == 1, false, random(l.rng, exact))
		}
	}
	below := func(int, int) float32 { return -1 - l.rng.Float32() }
	l.maximum(layouts[2], 30, 23, width, kernels.Span{Hi: 30}, false, true, below)
	l.maximum(layouts[1], 9, 7, width, kernels.Span{Lo: 4, Hi: 4}, false, true, below)
	l.maximum(layouts[1], 9, 0, width, kernels.Span{Hi: 9}, false, true, below)
	l.maximum(layouts[1], 0, 5, width, kernels.Span{}, false, true, below)
}

// spmmMaxSpecial: NaN is the largest, the first of several is taken; -Inf is a
// value like others.
func spmmMaxSpecial(l *lab) {
	inf := float32(math.Inf(1))
	for i, bad := range []float32{float32(math.NaN()), inf, -inf} {
		l.maximum(layouts[i], 30, 23, 17, kernels.Span{Hi: 30}, i == 2, true, func(r, c int) float32 {
			if (r+c)%5 == 0 {
				return bad
			}
			return float32(l.rng.IntN(5))
		})
	}
	l.maximum(layouts[0], 30, 23, 17, kernels.Span{Hi: 30}, false, true, func(int, int) float32 { return -inf })
}

// spmmMaxBack: each gradient goes to the row that the maximum came from, once,
// however often the edge is listed; numbers that name no row go nowhere.
func spmmMaxBack(l *lab, width int) {
	const rows, cols = 23, 30 // sources, destinations
	for i, lay := range layouts {
		for _, span := range []kernels.Span{{Hi: rows}, {Lo: 4, Hi: 20}, {Lo: 3, Hi: 3}} {
			l.maximumBack(lay, toy(l.rng, rows, cols, i == 1), width, span, i == 0, random(l.rng, i == 0))
		}
	}
}

// maximumBack is one SpMMMaxBack along csr to compare.
func (l *lab) maximumBack(lay layout, csr *kernels.CSR, width int, span kernels.Span, exact bool, fill func(r, c int) float32) {
	defer l.release()
	rows, cols := csr.Rows(), csr.Cols
	t := l.trial(lay, "SpMMMaxBack of rows [%d,%d) of %d x %d, width %d", span.Lo, span.Hi, rows, cols, width)
	g := l.load(csr)
	dy := t.in("dy", cols, width, fill)
	arg := t.in("arg", cols, width, func(v, c int) float32 {
		if (v+c)%6 == 0 {
			return kernels.ArgBits(int32(l.rng.IntN(3)*1000 - 1))
		}
		return kernels.ArgBits(int32(l.rng.IntN(rows)))
	})
	dx := t.result("dx", rows, width)
	t.run(func(s kernels.Stream) { s.SpMMMaxBack(dx.view, g, dy.view, arg.view, span) })
	listed := make([]map[int32]bool, rows)
	for r := range listed {
		listed[r] = map[int32]bool{}
		for _, v := range csr.Col[csr.RowPtr[r]:csr.RowPtr[r+1]] {
			listed[r][v] = true
		}
	}
	t.check(dx, span, func(r, c int) value {
		s := sum{exact: exact}
		for v := range cols {
			if listed[r][int32(v)] && int(kernels.ArgOf(arg.img[arg.at(v, c)])) == r {
				s.add(dy.val(v, c))
			}
		}
		return s.value(0)
	})
}

// spmmMaxSpans: bits do not depend on the span.
func spmmMaxSpans(l *lab) {
	const rows, cols, width = 60, 41, 41
	t := l.trial(layouts[2], "SpMMMaxBack in pieces")
	g := l.load(toy(l.rng, rows, cols, false))
	dy := t.in("dy", cols, width, random(l.rng, false))
	arg := t.in("arg", cols, width, func(int, int) float32 { return kernels.ArgBits(int32(l.rng.IntN(rows))) })
	whole, parts := t.result("whole", rows, width), t.result("parts", rows, width)
	t.onePass(whole, parts, rows, func(s kernels.Stream, dst *kernels.Mat, r kernels.Span) {
		s.SpMMMaxBack(dst, g, dy.view, arg.view, r)
	})
}

package kerneltest

import (
	"math"

	"dorylus/kernels"
)

func edgeCases() []Case {
	var cases []Case
	cases = append(cases, byWidth("SpMMT", spmmt)...)
	cases = append(cases, byWidth("SDDMM", sddmm)...)
	return append(cases, Case{"EdgeDropout/values", edgeDropout}, Case{"SDDMM/special", sddmmSpecial}, Case{"SpMMT/special", spmmtSpecial})
}

// edgeRows marks the edges of the rows in a span.
func edgeRows(g *kernels.CSR, rows kernels.Span) kernels.Span {
	return kernels.Span{Lo: int(g.RowPtr[rows.Lo]), Hi: int(g.RowPtr[rows.Hi])}
}

// scatter is one SpMMT to compare.
func (l *lab) scatter(lay layout, rows, cols, width int, span kernels.Span, val, w, exact bool, fill func(r, c int) float32) {
	l.scatterOf(lay, toy(l.rng, rows, cols, val), width, span, w, exact, fill)
}

func (l *lab) scatterOf(lay layout, csr *kernels.CSR, width int, span kernels.Span, w, exact bool, fill func(r, c int) float32) {
	defer l.release()
	rows, cols := csr.Rows(), csr.Cols
	t := l.trial(lay, "SpMMT of rows [%d,%d) of %d x %d, width %d, val %v w %v, exact %v", span.Lo, span.Hi, rows, cols, width, csr.Val != nil, w, exact)
	g := l.load(csr)
	x, dst := t.in("x", rows, width, fill), t.result("dst", cols, width)
	want := &gathered{g: csr, x: x}
	var wm *kernels.Mat
	if w {
		want.w = t.col("w", len(csr.Col), random(l.rng, exact))
		wm = want.w.view
	}
	t.run(func(s kernels.Stream) { s.SpMMT(dst.view, g, wm, x.view, span) })
	t.check(dst, kernels.Span{Hi: cols}, func(u, c int) value {
		s := sum{exact: exact}
		for v := span.Lo; v < span.Hi; v++ {
			for e := csr.RowPtr[v]; e < csr.RowPtr[v+1]; e++ {
				if int(csr.Col[e]) == u {
					s.add(want.weight(e), x.val(v, c))
				}
			}
		}
		return s.value(1)
	})
}

// spmmt: part of the rows scatters, the rest of dst is 0.
func spmmt(l *lab, width int) {
	for i, lay := range layouts {
		for _, exact := range []bool{true, false} {
			l.scatter(lay, 30, 23, width, kernels.Span{Lo: 3, Hi: 29}, i != 1, i == 2, exact, random(l.rng, exact))
		}
	}
	l.scatter(layouts[1], 9, 7, width, kernels.Span{Lo: 4, Hi: 4}, false, false, true, random(l.rng, true))
	l.scatter(layouts[1], 9, 0, width, kernels.Span{Hi: 9}, false, false, true, random(l.rng, true))
	l.scatter(layouts[1], 0, 5, width, kernels.Span{}, false, false, true, random(l.rng, true))
}

// spmmtSpecial: NaN and Inf go where their row's edges go, through 0 weights too.
func spmmtSpecial(l *lab) {
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		l.scatter(layouts[2], 30, 23, 9, kernels.Span{Hi: 30}, true, false, true, func(r, c int) float32 {
			if r == 8 && c == 4 {
				return float32(bad)
			}
			return 1
		})
	}
}

// inner is one SDDMM to compare.
func (l *lab) inner(lay layout, rows, cols, width int, span kernels.Span, exact bool, fill func(r, c int) float32) {
	defer l.release()
	t := l.trial(lay, "SDDMM of rows [%d,%d) of %d x %d, width %d, exact %v", span.Lo, span.Hi, rows, cols, width, exact)
	csr := toy(l.rng, rows, cols, true)
	g := l.load(csr)
	x, y := t.in("x", cols, width, fill), t.in("y", rows, width, fill)
	dst := t.resultCol("dst", len(csr.Col))
	rowOf := make([]int, len(csr.Col))
	for v := range rows {
		for e := csr.RowPtr[v]; e < csr.RowPtr[v+1]; e++ {
			rowOf[e] = v
		}
	}
	t.run(func(s kernels.Stream) { s.SDDMM(dst.view, g, x.view, y.view, span) })
	t.check(dst, edgeRows(csr, span), func(e, _ int) value {
		s := sum{exact: exact}
		for c := range width {
			s.add(x.val(int(csr.Col[e]), c), y.val(rowOf[e], c))
		}
		return s.value(0)
	})
}

// sddmm: inner products per edge, edges outside the span untouched, and bits that
// do not depend on the span.
func sddmm(l *lab, width int) {
	for _, lay := range layouts {
		for _, exact := range []bool{true, false} {
			l.inner(lay, 30, 23, width, kernels.Span{Lo: 3, Hi: 29}, exact, random(l.rng, exact))
		}
	}
	l.inner(layouts[1], 9, 7, width, kernels.Span{Lo: 4, Hi: 4}, true, random(l.rng, true))
	l.inner(layouts[1], 9, 0, width, kernels.Span{Hi: 9}, true, random(l.rng, true))
	l.inner(layouts[1], 9, 7, 0, kernels.Span{Hi: 9}, true, random(l.rng, true))

	const rows = 40
	t := l.trial(layouts[2], "SDDMM in pieces, width %d", width)
	csr := toy(l.rng, rows, 23, false)
	g := l.load(csr)
	x, y := t.in("x", 23, width, random(l.rng, false)), t.in("y", rows, width, random(l.rng, false))
	whole, parts := t.resultCol("whole", len(csr.Col)), t.resultCol("parts", len(csr.Col))
	t.onePass(whole, parts, rows, func(s kernels.Stream, dst *kernels.Mat, r kernels.Span) { s.SDDMM(dst, g, x.view, y.view, r) })
	l.release()
}

// sddmmSpecial: NaN, Inf and 0 times Inf.
func sddmmSpecial(l *lab) {
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		l.inner(layouts[2], 30, 23, 9, kernels.Span{Hi: 30}, true, func(r, c int) float32 {
			if r == 8 && c == 4 {
				return float32(bad)
			}
			return float32(r % 2)
		})
	}
}

// edgeDropout: the graph's values, or 1, dropped by the mask of row and column.
func edgeDropout(l *lab) {
	const rows, cols = 40, 23
	for i, d := range []kernels.Dropout{
		{}, {P: 0.5, Key: 77}, {P: 0.25, Key: 78}, {P: 0.9, Key: 79, IDs: scattered(l.rng, rows)},
	} {
		for _, val := range []bool{false, true} {
			for _, span := range []kernels.Span{{Hi: rows}, {Lo: 4, Hi: 33}, {Lo: 7, Hi: 7}} {
				t := l.trial(layouts[i%len(layouts)], "EdgeDropout %v of rows %v, values %v, ids %v", d.P, span, val, d.IDs != nil)
				csr := toy(l.rng, rows, cols, val)
				g := l.load(csr)
				hold(t, "Val", csr.Val)
				hold(t, "IDs", d.IDs)
				dst := t.resultCol("dst", len(csr.Col))
				t.run(func(s kernels.Stream) { s.EdgeDropout(dst.view, g, d, span) })
				v := 0
				t.check(dst, edgeRows(csr, span), func(e, _ int) value {
					for int64(e) >= csr.RowPtr[v+1] {
						v++
					}
					w := 1.0
					if csr.Val != nil {
						w = float64(csr.Val[e])
					}
					switch {
					case d.P == 0:
						return exactly(w)
					case drops(d, v, int(csr.Col[e])):
						return exactly(0)
					}
					w *= float64(d.KeepScale())
					return value{v: w, tol: 2 * u * math.Abs(w)}
				})
				l.release()
			}
		}
	}
}

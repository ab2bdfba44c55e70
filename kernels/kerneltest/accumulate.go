package kerneltest

import (
	"math"

	"dorylus/kernels"
)

func accumulateCases() []Case {
	var cases []Case
	for _, tr := range []kernels.Trans{kernels.NN, kernels.NT, kernels.TN} {
		cases = append(cases, byWidth("AddGEMM/"+transposition[tr], func(l *lab, width int) { addGEMM(l, tr, width) })...)
	}
	cases = append(cases, byWidth("AddRows", addRows)...)
	cases = append(cases, byWidth("AddScaled", addScaled)...)
	return append(append(cases, byWidth("Dot", dots)...), Case{"AddGEMM/special", addGEMMSpecial}, Case{"AddGEMM/epilogue", addGEMMEpilogue})
}

// addGEMM: every transposition, with the width as each of the three sizes.
func addGEMM(l *lab, tr kernels.Trans, width int) {
	for i, lay := range layouts {
		exact := i == 0
		product{m: 13, k: 37, n: width, tr: tr, exact: exact, add: true}.try(l, lay)
		product{m: 5, k: width, n: 9, tr: tr, exact: exact, add: true}.try(l, lay)
		product{m: width, k: 3, n: 4, tr: tr, exact: exact, add: true}.try(l, lay)
	}
	product{m: 3, k: 0, n: width, tr: tr, add: true}.try(l, layouts[0])
	product{m: 0, k: 3, n: width, tr: tr, add: true}.try(l, layouts[0])
	product{m: 3, k: 3, n: 0, tr: tr, add: true}.try(l, layouts[0])
}

func addGEMMEpilogue(l *lab) {
	for i, ep := range epilogues(l, 11) {
		tr := []kernels.Trans{kernels.NN, kernels.NT, kernels.TN}[i%3]
		product{m: 11, k: 29, n: 23, tr: tr, ep: ep, bias: i%2 == 0, add: true}.try(l, layouts[i%len(layouts)])
		product{m: 11, k: 0, n: 23, tr: tr, ep: ep, bias: i%2 == 1, add: true}.try(l, layouts[i%len(layouts)])
	}
}

// addGEMMSpecial: NaN and Inf of dst stay, those of the product come in.
func addGEMMSpecial(l *lab) {
	for _, tr := range []kernels.Trans{kernels.NN, kernels.NT, kernels.TN} {
		n := 0
		product{m: 9, k: 10, n: 17, tr: tr, add: true, fill: func(int, int) float32 {
			if n++; n%83 == 7 {
				return []float32{float32(math.NaN()), float32(math.Inf(1))}[n/83%2]
			}
			return float32(l.rng.IntN(3))
		}}.try(l, layouts[2])
	}
}

// addRows: rows that occur often, once, and not at all; ids below 0.
func addRows(l *lab, width int) {
	const rows, n = 9, 40
	for i, lay := range layouts {
		exact := i == 0
		t := l.trial(lay, "AddRows of %d x %d to %d, exact %v", n, width, rows, exact)
		ids := make([]int32, n)
		for k := range ids {
			ids[k] = []int32{int32(l.rng.IntN(rows - 2)), -1, 3, math.MinInt32}[l.rng.IntN(4)]
		}
		hold(t, "ids", ids)
		dst, src := t.in("dst", rows, width, random(l.rng, exact)), t.in("src", n, width, random(l.rng, exact))
		dst.out = true
		src.img[src.at(1, 0)] = float32(math.NaN())
		t.run(func(s kernels.Stream) { s.AddRows(dst.view, src.view, ids) })
		t.check(dst, kernels.Span{Hi: rows}, func(r, c int) value {
			s := sum{exact: exact}
			s.add(dst.val(r, c))
			for k, at := range ids {
				if int(at) == r {
					s.add(src.val(k, c))
				}
			}
			return s.value(0)
		})
		t = l.trial(lay, "AddRows of no rows")
		dst, src = t.in("dst", rows, width, random(l.rng, exact)), t.in("src", 0, width, random(l.rng, exact))
		t.run(func(s kernels.Stream) { s.AddRows(dst.view, src.view, nil) })
		l.release()
	}
}

// addScaled: with and without the second factor, in place of either.
func addScaled(l *lab, width int) {
	const rows = 7
	for i, lay := range layouts {
		for place := range 3 { // dst: another matrix, a, b
			for _, with := range []bool{false, true} {
				exact := i == 0
				t := l.trial(lay, "AddScaled of %d x %d, factor %v, exact %v, place %d", rows, width, with, exact, place)
				fill := random(l.rng, exact)
				a, b, by := t.in("a", rows, width, fill), t.in("b", rows, width, fill), t.in("s", 1, 1, fill)
				var bm *kernels.Mat
				c, f := float32(1.5), 1.5
				if with {
					bm = by.view
					f += by.val(0, 0)
				}
				dst := []*array{nil, a, b}[place]
				if place == 0 {
					dst = t.result("dst", rows, width)
				}
				dst.out = true
				t.run(func(s kernels.Stream) { s.AddScaled(dst.view, a.view, b.view, c, bm) })
				t.check(dst, kernels.Span{Hi: rows}, func(r, k int) value {
					s := sum{exact: exact}
					s.add(a.val(r, k))
					s.add(f, b.val(r, k))
					w := s.value(1)
					if with && !exact { // the factor's own rounding
						w.tol += u * (1.5 + math.Abs(by.val(0, 0))) * math.Abs(b.val(r, k))
					}
					return w
				})
				l.release()
			}
		}
	}
}

// dots: of all values and of each column.
func dots(l *lab, width int) {
	for i, lay := range layouts {
		for _, rows := range []int{0, 1, 53} {
			exact := i == 0
			t := l.trial(lay, "Dot and ColDot of %d x %d, exact %v", rows, width, exact)
			a, b := t.in("a", rows, width, random(l.rng, exact)), t.in("b", rows, width, random(l.rng, exact))
			if i == 2 && rows > 1 {
				a.img[a.at(7, width-1)] = float32(math.Inf(1))
			}
			all, cols := t.result("dst", 1, 1), t.result("column sums", 1, width)
			t.run(func(s kernels.Stream) {
				s.Dot(all.view, a.view, b.view)
				s.ColDot(cols.view, a.view, b.view)
			})
			t.check(all, kernels.Span{Hi: 1}, func(int, int) value {
				s := sum{exact: exact}
				for r := range rows {
					for c := range width {
						s.add(a.val(r, c), b.val(r, c))
					}
				}
				return s.value(1)
			})
			t.check(cols, kernels.Span{Hi: 1}, func(_, c int) value {
				s := sum{exact: exact}
				for r := range rows {
					s.add(a.val(r, c), b.val(r, c))
				}
				return s.value(1)
			})
			l.release()
		}
	}
}

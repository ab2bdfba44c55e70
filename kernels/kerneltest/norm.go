package kerneltest

import (
	"math"

	"dorylus/kernels"
)

func normCases() []Case {
	cases := append(byWidth("LayerNorm", layerNorm), byWidth("ColMoments", colMoments)...)
	cases = append(cases, byWidth("ColAffine", colAffine)...)
	return append(cases, Case{"LayerNorm/special", layerNormSpecial}, Case{"LayerNorm/rows", layerNormRows})
}

// rowMoments are a row's mean and its error, and its inverse deviation and the
// relative error of that.
type rowMoments struct{ mean, off, inv, rel float64 }

// perRow is f, computed once for each row.
func perRow[T any](f func(r int) T) func(r int) T {
	known := map[int]T{}
	return func(r int) T {
		v, ok := known[r]
		if !ok {
			v = f(r)
			known[r] = v
		}
		return v
	}
}

// normal is one LayerNorm and its gradient to compare.
func (l *lab) normal(lay layout, rows, width int, eps float32, inPlace bool, fill func(r, c int) float32) {
	defer l.release()
	all, n := kernels.Span{Hi: rows}, float64(width)
	t := l.trial(lay, "LayerNorm of %d x %d, eps %v", rows, width, eps)
	x := t.in("x", rows, width, fill)
	gamma, beta := t.in("gamma", 1, width, random(l.rng, false)), t.in("beta", 1, width, random(l.rng, false))
	dst, stat := t.result("dst", rows, width), t.result("stat", rows, 2)
	t.run(func(s kernels.Stream) { s.LayerNorm(dst.view, stat.view, x.view, gamma.view, beta.view, eps) })
	// A mean that is off by e adds up to e to each distance, and twice
	// |x-m|e + e² to each square.
	moments := perRow(func(r int) rowMoments {
		var mean, off float64
		var abs, square, dist float64
		for c := range width {
			mean += x.val(r, c) / n
			abs += math.Abs(x.val(r, c)) / n
		}
		off = u * (n + 2) * abs
		for c := range width {
			d := x.val(r, c) - mean
			square += d * d / n
			dist += math.Abs(d) / n
		}
		total := square + float64(eps)
		wrong := u*(n+6)*total + 2*dist*(off+u*dist) + off*off
		return rowMoments{mean: mean, off: off, inv: 1 / math.Sqrt(total), rel: wrong/total + 4*u}
	})
	t.check(stat, all, func(r, c int) value {
		m := moments(r)
		if c == 0 {
			return value{v: m.mean, tol: m.off}
		}
		return value{v: m.inv, tol: m.inv * m.rel}
	})
	t.check(dst, all, func(r, c int) value {
		m := moments(r)
		g, b := gamma.val(0, c), beta.val(0, c)
		d := x.val(r, c) - m.mean
		v := d*m.inv*g + b
		return value{v: v, tol: math.Abs(m.inv*g)*(m.off+math.Abs(d)*(m.rel+4*u)) + 2*u*(math.Abs(v)+math.Abs(b))}
	})

	t = l.trial(lay, "LayerNormBack of %d x %d, eps %v, in place %v", rows, width, eps, inPlace)
	x2 := t.in("x", rows, width, func(r, c int) float32 { return x.img[x.at(r, c)] })
	gamma, dy := t.in("gamma", 1, width, random(l.rng, false)), t.in("dy", rows, width, random(l.rng, false))
	st := t.in("stat", rows, 2, func(r, c int) float32 {
		m := moments(r)
		return float32([]float64{m.mean, m.inv}[c])
	})
	dgamma, dbeta, dx := t.result("dgamma", 1, width), t.result("dbeta", 1, width), dy
	if inPlace {
		dy.out = true
	} else {
		dx = t.result("dx", rows, width)
	}
	t.run(func(s kernels.Stream) {
		s.LayerNormBack(dx.view, dgamma.view, dbeta.view, dy.view, x2.view, st.view, gamma.view)
	})
	hat := func(r, c int) float64 { return (x2.val(r, c) - st.val(r, 0)) * st.val(r, 1) }
	sums := perRow(func(r int) (s [2]sum) {
		for k := range width {
			s[0].add(dy.val(r, k), gamma.val(0, k))
			s[1].add(dy.val(r, k), gamma.val(0, k), hat(r, k))
		}
		return s
	})
	t.check(dx, all, func(r, c int) value {
		g, gx := sums(r)[0], sums(r)[1]
		a := dy.val(r, c) * gamma.val(0, c)
		inv, h := st.val(r, 1), hat(r, c)
		v := inv * (a - g.v/n - h*gx.v/n)
		tol := math.Abs(inv) * (g.value(6).tol/n + math.Abs(h)*gx.value(12).tol/n + 6*u*(math.Abs(a)+math.Abs(g.v/n)+math.Abs(h*gx.v/n)))
		return value{v: v, tol: tol}
	})
	t.check(dgamma, kernels.Span{Hi: 1}, func(_, c int) value {
		var s sum
		for r := range rows {
			s.add(dy.val(r, c), hat(r, c))
		}
		return s.value(4)
	})
	t.check(dbeta, kernels.Span{Hi: 1}, func(_, c int) value {
		var s sum
		for r := range rows {
			s.add(dy.val(r, c))
		}
		return s.value(0)
	})
}

// layerNorm: rows of one value too, rows far from 0, constant rows.
func layerNorm(l *lab, width int) {
	for i, lay := range layouts {
		for _, rows := range []int{0, 1, 13} {
			l.normal(lay, rows, width, 1e-5, rows == 1, random(l.rng, false))
			l.normal(lay, rows, width, 1e-5, i == 1, func(r, c int) float32 {
				if r%3 == 0 {
					return 1.5
				}
				return 30 + l.rng.Float32()
			})
		}
	}
}

// layerNormSpecial: NaN and Inf make their row NaN, and no other.
func layerNormSpecial(l *lab) {
	for i, bad := range []float64{math.NaN(), math.Inf(1)} {
		l.normal(layouts[i], 9, 17, 1e-5, i == 1, func(r, c int) float32 {
			if r == 4 && c == 11 {
				return float32(bad)
			}
			return l.rng.Float32()
		})
	}
}

// layerNormRows: a row's bits do not depend on the other rows of the call.
func layerNormRows(l *lab) {
	const rows, width = 50, 41
	t := l.trial(layouts[2], "LayerNorm in pieces")
	x, gamma, beta := t.in("x", rows, width, random(l.rng, false)), t.in("gamma", 1, width, random(l.rng, false)), t.in("beta", 1, width, random(l.rng, false))
	stat := t.result("stat", rows, 2)
	whole, parts := t.result("whole", rows, width), t.result("parts", rows, width)
	t.onePass(whole, parts, rows, func(s kernels.Stream, dst *kernels.Mat, r kernels.Span) {
		s.LayerNorm(dst.Sub(r), stat.view.Sub(r), x.view.Sub(r), gamma.view, beta.view, 1e-5)
	})
}

// colMoments: no rows, one row, many; columns far from 0.
func colMoments(l *lab, width int) {
	for i, lay := range layouts {
		for _, rows := range []int{0, 1, 97} {
			t := l.trial(lay, "ColMoments of %d x %d", rows, width)
			x := t.in("x", rows, width, func(int, int) float32 { return float32(10*i) + l.rng.Float32() })
			if i == 2 && rows > 1 {
				x.img[x.at(5, width-1)] = float32(math.NaN())
			}
			dst := t.result("dst", 2, width)
			t.run(func(s kernels.Stream) { s.ColMoments(dst.view, x.view) })
			n := math.Max(float64(rows), 1)
			t.check(dst, kernels.Span{Hi: 2}, func(k, c int) value {
				var s sum
				for r := range rows {
					s.add(x.val(r, c))
				}
				mean, off := s.v/n, s.value(2).tol/n
				if k == 0 {
					return value{v: mean, tol: off}
				}
				var square, dist float64
				for r := range rows {
					d := x.val(r, c) - mean
					square += d * d
					dist += math.Abs(d)
				}
				return value{v: square, tol: u*(n+6)*square + 2*dist*off + n*off*off + 2*u*dist*math.Abs(mean)}
			})
			l.release()
		}
	}
}

// colAffine: with and without the second matrix, in place of either.
func colAffine(l *lab, width int) {
	const rows = 11
	for i, lay := range layouts {
		for place := range 3 { // dst: another matrix, x, y
			for _, two := range []bool{false, true} {
				if place == 2 && !two {
					continue
				}
				exact := i == 0
				t := l.trial(lay, "ColAffine of %d x %d, two matrices %v, exact %v, place %d", rows, width, two, exact, place)
				fill := random(l.rng, exact)
				x, a, d := t.in("x", rows, width, fill), t.in("a", 1, width, fill), t.in("d", 1, width, fill)
				var y, b *array
				var ym, bm *kernels.Mat
				if two {
					y, b = t.in("y", rows, width, fill), t.in("b", 1, width, fill)
					ym, bm = y.view, b.view
				}
				dst := []*array{nil, x, y}[place]
				if place == 0 {
					dst = t.result("dst", rows, width)
				}
				dst.out = true
				if i == 1 {
					x.img[x.at(3, width/2)] = float32(math.Inf(1))
					a.img[a.at(0, width/2)] = 0
				}
				t.run(func(s kernels.Stream) { s.ColAffine(dst.view, x.view, ym, a.view, bm, d.view) })
				t.check(dst, kernels.Span{Hi: rows}, func(r, c int) value {
					s := sum{exact: exact}
					s.add(a.val(0, c), x.val(r, c))
					if two {
						s.add(b.val(0, c), y.val(r, c))
					}
					s.add(d.val(0, c))
					return s.value(1)
				})
				l.release()
			}
		}
	}
}

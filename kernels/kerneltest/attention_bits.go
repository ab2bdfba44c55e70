package kerneltest

import (
	"math"

	"dorylus/kernels"
)

// gatSpans: bits do not depend on the span.
func gatSpans(l *lab, heads, d int) {
	const rows, cols = 50, 41
	for i, lay := range layouts {
		p := attend{rows: rows, cols: cols, heads: heads, d: d, degree: 30, val: i == 1, self: true, selfCol: true, p: 0.4, slope: 0.2, ids: i == 2, ep: &kernels.Epilogue{Act: kernels.ELU, Drop: kernels.Dropout{P: 0.4, Key: 9}}}
		gatPieces(l, lay, p)
	}
}

// gatPieces compares p over all rows with p span by span.
func gatPieces(l *lab, lay layout, p attend) {
	rows, cols, heads, d := p.rows, p.cols, p.heads, p.d
	t := l.trial(lay, "GAT in pieces of %v", p)
	f := p.operands(t, false)
	sums, parts := t.result("lse", rows, heads), t.result("lse in parts", rows, heads)
	whole, pieces := t.result("whole", rows, heads*d), t.result("parts", rows, heads*d)
	t.onePass(whole, pieces, rows, func(s kernels.Stream, dst *kernels.Mat, r kernels.Span) {
		to := sums.view
		if dst == pieces.view {
			to = parts.view
		}
		s.GAT(dst, to, f.g, f.x.view, f.as.view, f.ad.view, f.at, p.ep, r)
	})
	t.sameArrays(sums, parts)

	t = l.trial(lay, "GATBackDst in pieces of %v", p)
	f = p.operands(t, false)
	shift := t.in("lse", rows, heads, random(l.rng, false))
	dy := t.in("dy", rows, heads*d, random(l.rng, false))
	dots, dotParts := t.result("dot", rows, heads), t.result("dot in parts", rows, heads)
	dad, dadParts := t.result("dad", rows, heads), t.result("dad in parts", rows, heads)
	t.onePass(dad, dadParts, rows, func(s kernels.Stream, dst *kernels.Mat, r kernels.Span) {
		to := dots.view
		if dst == dadParts.view {
			to = dotParts.view
		}
		s.GATBackDst(dst, to, f.g, f.x.view, f.as.view, f.ad.view, shift.view, dy.view, f.at, r)
	})
	t.sameArrays(dots, dotParts)

	t = l.trial(lay, "GATBackSrc in pieces of %v", p)
	f = p.operands(t, true)
	shift, dot := t.in("lse", cols, heads, random(l.rng, false)), t.in("dot", cols, heads, random(l.rng, false))
	dy = t.in("dy", cols, heads*d, random(l.rng, false))
	das, dasParts := t.result("das", rows, heads), t.result("das in parts", rows, heads)
	dx, dxParts := t.result("dx", rows, heads*d), t.result("dx in parts", rows, heads*d)
	t.onePass(dx, dxParts, rows, func(s kernels.Stream, dst *kernels.Mat, r kernels.Span) {
		to := das.view
		if dst == dxParts.view {
			to = dasParts.view
		}
		s.GATBackSrc(dst, to, f.g, f.x.view, f.as.view, f.ad.view, shift.view, dot.view, dy.view, f.at, r)
	})
	t.sameArrays(das, dasParts)
	l.release()
}

// sameArrays compares two outputs bit by bit.
func (t *trial) sameArrays(a, b *array) {
	all := kernels.Span{Hi: a.view.Rows}
	x, y := a.bits(all), b.bits(all)
	for i := range x {
		if x[i] != y[i] {
			t.failf("%s: %s and %s differ at [%d,%d]: %v and %v", t.what, a.name, b.name, i/a.view.Cols, i%a.view.Cols, math.Float32frombits(x[i]), math.Float32frombits(y[i]))
			return
		}
	}
}

// gatDropout: with one source per row, an alpha is 1 and its mask shows: the bits
// of the edge, head by head, the same along the graph and its transpose.
func gatDropout(l *lab) {
	const rows, cols = 40, 57
	for i, heads := range []int{1, 3, 8, 20} {
		for _, ids := range []bool{false, true} {
			t := l.trial(layouts[1], "the mask of alphas, %d heads, ids %v", heads, ids)
			csr := &kernels.CSR{Cols: cols, RowPtr: make([]int64, rows+1)}
			turned := &kernels.CSR{Cols: rows, RowPtr: make([]int64, cols+1)}
			for v := range rows {
				csr.Col = append(csr.Col, int32((v*7+3)%cols))
				csr.RowPtr[v+1] = int64(v + 1)
			}
			for u := range cols {
				for v := range rows {
					if int(csr.Col[v]) == u {
						turned.Col = append(turned.Col, int32(v))
					}
				}
				turned.RowPtr[u+1] = int64(len(turned.Col))
			}
			g, back := l.load(csr), l.load(turned)
			p := kernels.Attention{Heads: heads, Slope: 0.2, Drop: kernels.Dropout{P: []float32{0.5, 0.9}[i%2], Key: kernels.DropKey(l.seed, i, 1)}}
			if ids {
				p.SrcIDs, p.DstIDs = scattered(l.rng, cols), scattered(l.rng, rows)
				p.SrcIDs[4], p.DstIDs[9] = -1, math.MinInt32
			}
			ones, none := func(int, int) float32 { return 1 }, func(int, int) float32 { return 0 }
			x, as, ad := t.in("x", cols, 2*heads, ones), t.in("as", cols, heads, none), t.in("ad", rows, heads, none)
			sums, dots := t.in("lse 0", rows, heads, none), t.in("dot 0", rows, heads, none)
			dst, out := t.result("dst", rows, 2*heads), t.result("lse", rows, heads)
			dx, das := t.result("dx", cols, 2*heads), t.result("das", cols, heads)
			dy := t.in("dy", rows, 2*heads, ones)
			t.run(func(s kernels.Stream) {
				s.GAT(dst.view, out.view, g, x.view, as.view, ad.view, p, nil, kernels.Span{Hi: rows})
				s.GATBackSrc(dx.view, das.view, back, x.view, as.view, ad.view, sums.view, dots.view, dy.view, p, kernels.Span{Hi: cols})
			})
			keep := float64(p.Drop.KeepScale())
			mask := func(u, v, h int) float64 {
				if kernels.DropKeep(kernels.DropRow(p.Drop.Key, id(p.DstIDs, v)), uint32(id(p.SrcIDs, u))*uint32(heads)+uint32(h), p.Drop.Threshold()) {
					return keep
				}
				return 0
			}
			t.check(dst, kernels.Span{Hi: rows}, func(v, c int) value {
				w := mask(int(csr.Col[v]), v, c/2)
				return value{v: w, tol: 4 * u * w}
			})
			t.check(dx, kernels.Span{Hi: cols}, func(r, c int) value {
				var w float64
				for _, v := range turned.Col[turned.RowPtr[r]:turned.RowPtr[r+1]] {
					w += mask(r, int(v), c/2)
				}
				return value{v: w, tol: 8 * u * w}
			})
			l.release()
		}
	}
}

// gatColumns: as, ad, lse, dot and their gradients as columns of one matrix give
// the bits of matrices of their own, and touch nothing else of it.
func gatColumns(l *lab) {
	const n, heads, d = 30, 8, 8
	all := kernels.Span{Hi: n}
	p := attend{rows: n, cols: n, heads: heads, d: d, self: true, slope: 0.2, p: 0.3, degree: 20}
	t := l.trial(layouts[0], "GAT with views of one matrix")
	f := p.operands(t, false)
	dy := t.in("dy", n, heads*d, random(l.rng, false))
	var apart, views [6]*array
	for i, name := range []string{"lse", "dot", "dad", "das", "as", "ad"} {
		if i < 4 {
			apart[i] = t.result(name, n, heads)
		}
	}
	apart[4], apart[5] = f.as, f.ad
	one := t.result("one matrix", n, 7*heads)
	for i := range views {
		views[i] = &array{view: one.view.Columns(i*heads, (i+1)*heads)}
	}
	y, dx, y2, dx2 := t.result("y", n, heads*d), t.result("dx", n, heads*d), t.result("y of views", n, heads*d), t.result("dx of views", n, heads*d)
	run := func(s kernels.Stream, m [6]*array, y, dx *array) {
		lse, dot, dad, das, as, ad := m[0].view, m[1].view, m[2].view, m[3].view, m[4].view, m[5].view
		s.GAT(y.view, lse, f.g, f.x.view, as, ad, f.at, nil, all)
		s.GATBackDst(dad, dot, f.g, f.x.view, as, ad, lse, dy.view, f.at, all)
		s.GATBackSrc(dx.view, das, f.g, f.x.view, as, ad, lse, dot, dy.view, f.at, all)
	}
	t.run(func(s kernels.Stream) {
		s.Copy(views[4].view, f.as.view)
		s.Copy(views[5].view, f.ad.view)
		run(s, apart, y, dx)
		run(s, views, y2, dx2)
	})
	t.sameArrays(y, y2)
	t.sameArrays(dx, dx2)
	for i := range 4 {
		t.untouched(apart[i], func(int, int) bool { return true })
		for r := range n {
			for h := range heads {
				a, b := apart[i].got[apart[i].at(r, h)], one.got[one.at(r, i*heads+h)]
				if math.Float32bits(a) != math.Float32bits(b) {
					t.failf("%s: %s[%d,%d] is %v in a matrix of its own and %v as a view", t.what, apart[i].name, r, h, a, b)
					return
				}
			}
		}
	}
	t.untouched(one, func(_, c int) bool { return c < 6*heads })
}

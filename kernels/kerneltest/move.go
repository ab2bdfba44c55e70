package kerneltest

import (
	"math"

	"dorylus/kernels"
)

// special are bit patterns that moves must carry over unchanged.
var special = []uint32{0, 1 << 31, 0x7f800000, 0xff800000, 0x7fc00001, 0x7f800001, 1, 0x807fffff, 0x7f7fffff}

// anyBits fills with random values and, here and there, special patterns.
func (l *lab) anyBits() func(r, c int) float32 {
	return func(int, int) float32 {
		if l.rng.IntN(8) == 0 {
			return math.Float32frombits(special[l.rng.IntN(len(special))])
		}
		return l.rng.Float32()
	}
}

func moveCases() []Case {
	var cases []Case
	cases = append(cases, byWidth("Move", move)...)
	cases = append(cases, byWidth("Rows", moveRows)...)
	return append(cases, Case{"Move/empty", moveNothing})
}

// sameBits compares rows of an output with what a copy should have put there.
func (t *trial) sameBits(a *array, rows kernels.Span, want func(r, c int) float32) {
	for r := rows.Lo; r < rows.Hi; r++ {
		for c := range a.view.Cols {
			if g, w := a.got[a.at(r, c)], want(r, c); math.Float32bits(g) != math.Float32bits(w) {
				t.failf("%s: %s[%d,%d] is %v (%#x), want %v (%#x)", t.what, a.name, r, c, g, math.Float32bits(g), w, math.Float32bits(w))
				return
			}
		}
	}
	t.untouched(a, func(r, _ int) bool { return r >= rows.Lo && r < rows.Hi })
}

// move: Put, Get, Copy and Zero carry bits; Add rounds once.
func move(l *lab, width int) {
	const rows = 5
	all := kernels.Span{Hi: rows}
	for _, lay := range layouts {
		t := l.trial(lay, "Put of %d x %d", rows, width)
		dst := t.result("dst", rows, width)
		src := make([]float32, rows*width)
		fill := l.anyBits()
		for i := range src {
			src[i] = fill(0, 0)
		}
		hold(t, "src", src)
		t.run(func(s kernels.Stream) { s.Put(dst.view, src) })
		t.sameBits(dst, all, func(r, c int) float32 { return src[r*width+c] })

		t = l.trial(lay, "Get of %d x %d", rows, width)
		x := t.in("src", rows, width, l.anyBits())
		got := make([]float32, rows*width)
		t.run(func(s kernels.Stream) { s.Get(got, x.view) })
		for i, v := range got {
			if w := x.img[x.at(i/width, i%width)]; math.Float32bits(v) != math.Float32bits(w) {
				t.failf("%s: dst[%d] is %v, want %v", t.what, i, v, w)
				break
			}
		}

		t = l.trial(lay, "Copy of %d x %d", rows, width)
		x, dst = t.array("src", rows, width, layouts[l.rng.IntN(len(layouts))], l.anyBits()), t.result("dst", rows, width)
		t.run(func(s kernels.Stream) { s.Copy(dst.view, x.view) })
		t.sameBits(dst, all, func(r, c int) float32 { return x.img[x.at(r, c)] })

		t = l.trial(lay, "Zero of %d x %d", rows, width)
		dst = t.result("dst", rows, width)
		t.run(func(s kernels.Stream) { s.Zero(dst.view) })
		t.sameBits(dst, all, func(int, int) float32 { return 0 })

		for alias := range 3 {
			t = l.trial(lay, "Add of %d x %d, alias %d", rows, width, alias)
			a, b := t.in("a", rows, width, random(l.rng, false)), t.in("b", rows, width, l.anyBits())
			dst = [...]func() *array{
				func() *array { return t.result("dst", rows, width) },
				func() *array { a.out = true; return a },
				func() *array { b.out = true; return b },
			}[alias]()
			t.run(func(s kernels.Stream) { s.Add(dst.view, a.view, b.view) })
			t.check(dst, all, func(r, c int) value {
				return exactly(float64(a.img[a.at(r, c)] + b.img[b.at(r, c)]))
			})
		}
	}
}

// moveRows: GatherRows and ScatterRows, with repeats where they are allowed.
func moveRows(l *lab, width int) {
	const rows, n = 23, 17
	for _, lay := range layouts {
		ids := make([]int32, n)
		for i := range ids {
			ids[i] = int32(l.rng.IntN(rows))
		}
		ids[3], ids[4] = 0, rows-1
		t := l.trial(lay, "GatherRows of %d from %d x %d", n, rows, width)
		src, dst := t.in("src", rows, width, l.anyBits()), t.result("dst", n, width)
		hold(t, "ids", ids)
		t.run(func(s kernels.Stream) { s.GatherRows(dst.view, src.view, ids) })
		t.sameBits(dst, kernels.Span{Hi: n}, func(r, c int) float32 { return src.img[src.at(int(ids[r]), c)] })

		to := make([]int32, 0, rows)
		for _, p := range l.rng.Perm(rows)[:n] {
			to = append(to, int32(p))
		}
		from := make(map[int]int)
		for i, r := range to {
			from[int(r)] = i
		}
		t = l.trial(lay, "ScatterRows of %d into %d x %d", n, rows, width)
		src, dst = t.in("src", n, width, l.anyBits()), t.result("dst", rows, width)
		hold(t, "ids", to)
		t.run(func(s kernels.Stream) { s.ScatterRows(dst.view, src.view, to) })
		t.sameBits(dst, kernels.Span{Hi: rows}, func(r, c int) float32 {
			if i, ok := from[r]; ok {
				return src.img[src.at(i, c)]
			}
			return poison
		})
	}
}

// moveNothing: matrices without rows or columns.
func moveNothing(l *lab) {
	for _, size := range [][2]int{{0, 7}, {5, 0}, {0, 0}} {
		t := l.trial(layouts[0], "moves of %d x %d", size[0], size[1])
		a, b := t.in("a", size[0], size[1], random(l.rng, false)), t.result("b", size[0], size[1])
		t.run(func(s kernels.Stream) {
			s.Put(b.view, nil)
			s.Get(nil, a.view)
			s.Copy(b.view, a.view)
			s.Zero(b.view)
			s.Add(b.view, a.view, a.view)
			s.ToBF16(nil, a.view)
			s.FromBF16(b.view, nil)
		})
		t.untouched(b, func(int, int) bool { return false })
	}
	t := l.trial(layouts[0], "no rows")
	a, b := t.in("a", 4, 7, random(l.rng, false)), t.result("b", 0, 7)
	t.run(func(s kernels.Stream) { s.GatherRows(b.view, a.view, nil) })
	t = l.trial(layouts[0], "no rows")
	a, b = t.in("a", 0, 7, random(l.rng, false)), t.result("b", 4, 7)
	t.run(func(s kernels.Stream) { s.ScatterRows(b.view, a.view, nil) })
	t.untouched(b, func(int, int) bool { return false })
}

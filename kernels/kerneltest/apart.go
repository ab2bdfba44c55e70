package kerneltest

import (
	"math"
	"strings"

	"dorylus/kernels"
)

// Cases of devices whose memory the host cannot address. Others pass them by.

func apartCases() []Case {
	return []Case{
		{"Apart/moves", apartMoves},
		{"Apart/refused", apartRefused},
		{"Keeper/lists", keepLists},
		{"Keeper/held", keepHeld},
	}
}

// apart says that the device's memory is its own.
func (l *lab) apart() bool {
	m := l.alloc(1, 1)
	if m.Host == nil && m.Addr == 0 {
		l.failf("Alloc(1, 1) has neither Host nor Addr")
	}
	return m.Host == nil
}

// hostMat is a host matrix of random bits, laid out as lay, and its buffer.
func (l *lab) hostMat(rows, cols int, lay layout) (*kernels.Mat, []float32) {
	m := &kernels.Mat{Rows: rows, Cols: cols, Stride: lay.stride(cols)}
	buf := make([]float32, lay.off+extentOf(m)+guards)
	for i := range buf {
		buf[i] = poison
	}
	m.Host = buf[lay.off : lay.off+extentOf(m)]
	fill := l.anyBits()
	for r := range rows {
		for c := range cols {
			m.Host[r*m.Stride+c] = fill(r, c)
		}
	}
	return m, buf
}

// apartMoves: Copy and GatherRows take host matrices, and see each other's results in
// the order of the stream.
func apartMoves(l *lab) {
	if !l.apart() {
		return
	}
	const rows, n = 23, 17
	for _, width := range widths {
		for i, lay := range layouts {
			host, _ := l.hostMat(rows, width, lay)
			t := l.trial(layouts[(i+1)%len(layouts)], "Copy of a host matrix of %d x %d, %s", rows, width, lay.name)
			dst := t.result("dst", rows, width)
			t.run(func(s kernels.Stream) { s.Copy(dst.view, host) })
			t.sameBits(dst, kernels.Span{Hi: rows}, func(r, c int) float32 { return host.Host[r*host.Stride+c] })

			ids := make([]int32, n)
			for i := range ids {
				ids[i] = int32(l.rng.IntN(rows))
			}
			t = l.trial(layouts[(i+1)%len(layouts)], "GatherRows of %d of a host matrix of %d x %d, %s", n, rows, width, lay.name)
			dst = t.result("dst", n, width)
			hold(t, "ids", ids)
			t.run(func(s kernels.Stream) { s.GatherRows(dst.view, host, ids) })
			t.sameBits(dst, kernels.Span{Hi: n}, func(r, c int) float32 { return host.Host[int(ids[r])*host.Stride+c] })

			t = l.trial(layouts[(i+1)%len(layouts)], "Copy of %d x %d to a host matrix, %s", rows, width, lay.name)
			src := t.in("src", rows, width, l.anyBits())
			back, buf := l.hostMat(rows, width, lay)
			before := append([]float32(nil), buf...)
			t.run(func(s kernels.Stream) { s.Copy(back, src.view) })
			for r := range rows {
				for c := range width {
					at := lay.off + r*back.Stride + c
					before[at] = src.img[src.at(r, c)]
				}
			}
			for at := range buf {
				if g, w := math.Float32bits(buf[at]), math.Float32bits(before[at]); g != w {
					t.failf("%s: value %d of the host's memory is %#x, want %#x", t.what, at, g, w)
					break
				}
			}
			l.release()
		}
	}
	a, b := l.alloc(4, 9), l.alloc(4, 9)
	one, _ := l.hostMat(4, 9, layouts[1])
	two, _ := l.hostMat(4, 9, layouts[1])
	l.s.Copy(a, one)
	l.s.Add(b, a, a)
	l.s.Copy(two, b)
	l.s.Zero(a)
	if err := l.s.Wait(); err != nil {
		l.failf("to the device, added, and back: %v", err)
	}
	for i, v := range one.Host {
		if w := v + v; two.Host[i] != w && w == w {
			l.failf("to the device, added, and back: value %d is %v, want %v", i, two.Host[i], w)
			break
		}
	}
	l.s.Copy(&kernels.Mat{Cols: 9, Stride: 9}, &kernels.Mat{Cols: 9, Stride: 9, Host: []float32{}})
	if err := l.s.Wait(); err != nil {
		l.failf("Copy of no rows: %v", err)
	}
}

// apartRefused: ops want the device's own matrices.
func apartRefused(l *lab) {
	if !l.apart() {
		return
	}
	g := l.load(toy(l.rng, 6, 6, false))
	d, e := l.alloc(6, 6), l.alloc(6, 6)
	h, _ := l.hostMat(6, 6, layouts[1])
	ids, all := make([]int32, 6), kernels.Span{Hi: 6}
	for i, b := range []struct {
		op   string
		call func(s kernels.Stream)
	}{
		{"Put", func(s kernels.Stream) { s.Put(h, make([]float32, 36)) }},
		{"Get", func(s kernels.Stream) { s.Get(make([]float32, 36), h) }},
		{"Zero", func(s kernels.Stream) { s.Zero(h) }},
		{"Add", func(s kernels.Stream) { s.Add(d, e, h) }},
		{"GEMM", func(s kernels.Stream) { s.GEMM(d, h, e, kernels.NN, nil) }},
		{"GEMM", func(s kernels.Stream) {
			s.GEMM(d, e, e, kernels.NN, &kernels.Epilogue{Bias: kernels.FromSlice(1, 6, make([]float32, 6))})
		}},
		{"SpMM", func(s kernels.Stream) { s.SpMM(d, g, h, kernels.Gather{}, all) }},
		{"ScatterRows", func(s kernels.Stream) { s.ScatterRows(d, h, []int32{0, 1, 2, 3, 4, 5}) }},
		{"ScatterRows", func(s kernels.Stream) { s.ScatterRows(h, d, []int32{0, 1, 2, 3, 4, 5}) }},
		{"GatherRows", func(s kernels.Stream) { s.GatherRows(h, d, ids) }},
		{"AddRows", func(s kernels.Stream) { s.AddRows(d, h, ids) }},
		{"Forward", func(s kernels.Stream) { s.Forward(d, h, nil, all) }},
		{"Backward", func(s kernels.Stream) { s.Backward(d, h, e, nil, all) }},
		{"SGD", func(s kernels.Stream) { s.SGD(d, h, nil, kernels.SGD{Step: 1}) }},
	} {
		if err := refused(b.op, func() { b.call(l.s) }); err != nil {
			l.failf("call %d with a host matrix: %v", i, err)
		}
	}
	if err := l.s.Wait(); err != nil {
		l.failf("after calls that were refused: %v", err)
	}
}

// keepLists: ops read kept lists and parts of them, the copy and not the list.
func keepLists(l *lab) {
	k, ok := l.dev.(kernels.Keeper)
	if !ok {
		if l.apart() {
			l.failf("the device's memory is its own, but it is no kernels.Keeper")
		}
		return
	}
	const rows, n, width = 40, 30, 9
	ids := make([]int32, n)
	for i, p := range l.rng.Perm(rows)[:n] {
		ids[i] = int32(p)
	}
	for _, err := range []error{k.Keep(ids), k.Keep(ids), k.Keep(nil), k.Keep(ids[:0])} {
		if err != nil {
			l.failf("Keep: %v", err)
			return
		}
	}
	if err := k.Keep(ids[:3]); err == nil {
		l.failf("Keep of the first 3 of %d kept values gave no error", n)
	}
	k.Drop(nil)
	for round := range 2 { // kept twice, and the last time not at all
		for _, part := range []kernels.Span{{Hi: n}, {Lo: 3, Hi: n}, {Lo: 7, Hi: 8}, {Lo: 1, Hi: 20}} {
			list := ids[part.Lo:part.Hi]
			t := l.trial(layouts[round], "kept rows %v", part)
			src, dst := t.in("src", rows, width, l.anyBits()), t.result("dst", len(list), width)
			to, sum := t.result("to", rows, width), t.in("sum", rows, width, random(l.rng, true))
			add := t.in("add", len(list), width, random(l.rng, true))
			sum.out = true
			t.run(func(s kernels.Stream) {
				s.GatherRows(dst.view, src.view, list)
				s.ScatterRows(to.view, dst.view, list)
				s.AddRows(sum.view, add.view, list)
			})
			t.sameBits(dst, kernels.Span{Hi: len(list)}, func(r, c int) float32 { return src.img[src.at(int(list[r]), c)] })
			at := map[int]int{}
			for i, id := range list {
				at[int(id)] = i
			}
			t.sameBits(to, kernels.Span{Hi: rows}, func(r, c int) float32 {
				if _, ok := at[r]; ok {
					return src.img[src.at(r, c)]
				}
				return poison
			})
			t.check(sum, kernels.Span{Hi: rows}, func(r, c int) value {
				v := sum.val(r, c)
				if i, ok := at[r]; ok {
					v += add.val(i, c)
				}
				return exactly(v)
			})
			l.release()
		}
		k.Drop(ids)
	}
	if err := refused("Drop", func() { k.Drop(ids) }); err != nil {
		l.failf("Drop of a list that is not kept: %v", err)
	}
}

// keepHeld: Close names lists that are still kept.
func keepHeld(l *lab) {
	dev, err := l.open()
	if err != nil {
		l.failf("open a second device: %v", err)
		return
	}
	k, ok := dev.(kernels.Keeper)
	if !ok {
		if err := dev.Close(); err != nil {
			l.failf("Close: %v", err)
		}
		return
	}
	ids := []int32{3, 1, 2}
	if err := k.Keep(ids); err != nil {
		l.failf("Keep: %v", err)
	}
	switch err := dev.Close(); {
	case err == nil:
		l.failf("Close with a list in hand reported nothing")
	case !strings.Contains(err.Error(), "list"):
		l.failf("Close with a list in hand does not name it: %v", err)
	}
	k.Drop(ids)
	if err := dev.Close(); err != nil {
		l.failf("Close after everything was given back: %v", err)
	}
}

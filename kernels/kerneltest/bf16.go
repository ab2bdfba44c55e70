package kerneltest

import (
	"math"

	"dorylus/kernels"
)

func bf16Cases() []Case {
	return append(byWidth("BF16", bf16), Case{"BF16/rounding", bf16Rounding})
}

// nearest is the bfloat16 next to v, found by measuring the distance to both
// neighbours in float64: ties go to the even one.
func nearest(v float32) uint16 {
	down := math.Float32bits(v) &^ 0xffff
	up := down + 0x10000
	lo, hi := float64(math.Float32frombits(down)), float64(math.Float32frombits(up))
	if up&0x7fffffff == 0x7f800000 {
		hi = math.Copysign(0x1p128, float64(v)) // where the next number would be
	}
	x := float64(v)
	switch a, b := math.Abs(x-lo), math.Abs(hi-x); {
	case a < b, a == b && down>>16&1 == 0:
		return uint16(down >> 16)
	}
	return uint16(up >> 16)
}

func nan16(b uint16) bool { return b&0x7fff > 0x7f80 }

// bf16: whole matrices there and back, packed on the short side.
func bf16(l *lab, width int) {
	const rows = 5
	for _, lay := range layouts {
		t := l.trial(lay, "ToBF16 of %d x %d", rows, width)
		src := t.in("src", rows, width, l.anyBits())
		dst := make([]uint16, rows*width+2)
		for i := range dst {
			dst[i] = 0xa5a5
		}
		t.run(func(s kernels.Stream) { s.ToBF16(dst[1:1+rows*width:1+rows*width], src.view) })
		if dst[0] != 0xa5a5 || dst[len(dst)-1] != 0xa5a5 {
			t.failf("%s: wrote around dst", t.what)
		}
		dst = dst[1 : 1+rows*width]
		t.rounded(dst, func(i int) float32 { return src.img[src.at(i/width, i%width)] })

		t = l.trial(lay, "FromBF16 of %d x %d", rows, width)
		hold(t, "src", dst)
		back := t.result("dst", rows, width)
		t.run(func(s kernels.Stream) { s.FromBF16(back.view, dst) })
		t.sameBits(back, kernels.Span{Hi: rows}, func(r, c int) float32 {
			return math.Float32frombits(uint32(dst[r*width+c]) << 16)
		})
		l.release()
	}
}

// rounded compares short values with their source.
func (t *trial) rounded(got []uint16, src func(i int) float32) {
	for i, g := range got {
		v := src(i)
		if v != v {
			if !nan16(g) {
				t.failf("%s: dst[%d] is %#x for NaN %#x", t.what, i, g, math.Float32bits(v))
				return
			}
			continue
		}
		w := nearest(v)
		if math.IsInf(float64(v), 0) {
			w = uint16(math.Float32bits(v) >> 16)
		}
		if g != w {
			t.failf("%s: dst[%d] is %#x for %v (%#x), want %#x", t.what, i, g, v, math.Float32bits(v), w)
			return
		}
	}
}

// bf16Rounding: ties, neighbours of ties, the largest values, denormals and NaN of
// every kind, at many exponents.
func bf16Rounding(l *lab) {
	var in []float32
	for _, low := range []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0xffff} {
		for high := uint32(0); high < 0x10000; high += 37 {
			in = append(in, math.Float32frombits(high<<16|low))
		}
		for _, high := range []uint32{0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fff, 0, 0x8000, 0x3f80, 0x3f81} {
			in = append(in, math.Float32frombits(high<<16|low))
		}
	}
	t := l.trial(layouts[1], "ToBF16 of %d chosen values", len(in))
	src := t.in("src", 1, len(in), func(_, c int) float32 { return in[c] })
	dst := make([]uint16, len(in))
	t.run(func(s kernels.Stream) { s.ToBF16(dst, src.view) })
	t.rounded(dst, func(i int) float32 { return in[i] })
}

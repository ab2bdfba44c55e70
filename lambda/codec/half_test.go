package codec

import (
	"math"
	"testing"

	"dorylus/kernels"
	"dorylus/kernels/devices"
)

// Between each two neighbouring halves: the middle goes to the even one, and the next
// floats on either side of it to the nearer one. So every float rounds right.
func TestRounding(t *testing.T) {
	for _, f := range []struct {
		name string
		to   func(float32) uint16
		from func(uint16) float32
		inf  uint16
	}{{"fp16", fp16, fromFP16, 0x7c00}, {"bf16", bf16, fromBF16, 0x7f80}} {
		for h := range f.inf {
			lo, hi := float64(f.from(h)), float64(f.from(h+1))
			if h+1 == f.inf { // beyond the largest comes what would be the next step
				hi = 2*lo - float64(f.from(h-1))
			}
			mid := float32((lo + hi) / 2)
			even := h + h&1
			for _, c := range []struct {
				v    float32
				want uint16
			}{{float32(lo), h}, {math.Nextafter32(mid, 0), h}, {mid, even}, {math.Nextafter32(mid, math.MaxFloat32), h + 1}} {
				if mid == 0 { // the middle of bf16's least steps is below float32's own least
					continue
				}
				if got := f.to(c.v); got != c.want {
					t.Fatalf("%s of %g (%08x) is %04x, want %04x", f.name, c.v, math.Float32bits(c.v), got, c.want)
				}
				if got := f.to(-c.v); got != c.want|0x8000 {
					t.Fatalf("%s of %g is %04x, want %04x", f.name, -c.v, got, c.want|0x8000)
				}
			}
		}
		for _, v := range []float32{math.MaxFloat32, float32(math.Inf(1))} {
			if got := f.to(v); got != f.inf {
				t.Errorf("%s of %g is %04x, want infinity", f.name, v, got)
			}
		}
		for _, nan := range []uint32{0x7f800001, 0xff800001, 0x7fffffff, 0xffa00000, 0x7fc00000} {
			got := f.to(math.Float32frombits(nan))
			if back := f.from(got); back == back || got>>15 != uint16(nan>>31) {
				t.Errorf("%s of NaN %08x is %04x, want a NaN of the same sign", f.name, nan, got)
			}
		}
		for h := range 1 << 16 {
			if v := f.from(uint16(h)); v == v && f.to(v) != uint16(h) {
				t.Errorf("%s %04x comes back as %04x", f.name, h, f.to(v))
			}
		}
	}
}

// The wire rounds as the kernels do, NaN payloads included.
func TestBF16AsKernels(t *testing.T) {
	d, err := devices.Open("ref")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	m := fill(newMat(1, 1<<17, 0), 4, rng(11))
	for i := range 1 << 16 { // all NaN tops, with and without low bits
		m.Host[i] = math.Float32frombits(uint32(i)<<16 | uint32(i&1))
	}
	want, back := make([]uint16, m.Cols), newMat(1, m.Cols, 0)
	s.ToBF16(want, kernels.FromSlice(1, m.Cols, m.Host))
	s.FromBF16(kernels.FromSlice(1, m.Cols, back.Host), want)
	if err := s.Wait(); err != nil {
		t.Fatal(err)
	}
	got := newMat(1, m.Cols, 0)
	if err := Decode(encoder(t, Options{Wire: BF16}).Append(nil, 0, m), got); err != nil {
		t.Fatal(err)
	}
	for i, v := range got.Row(0) {
		if math.Float32bits(v) != math.Float32bits(back.Host[i]) {
			t.Fatalf("%08x is %08x over the wire, %08x by the kernels", math.Float32bits(m.Host[i]), math.Float32bits(v), math.Float32bits(back.Host[i]))
		}
	}
}

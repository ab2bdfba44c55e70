package ref

import (
	"math"

	"dorylus/kernels"
)

// ToBF16 rounds to the nearest bfloat16, ties to even.
func (s *stream) ToBF16(dst []uint16, src *kernels.Mat) {
	kernels.CheckToBF16(dst, src)
	kernels.CheckHost("ToBF16", src)
	if !s.runs("ToBF16") {
		return
	}
	for r := range rowsOf(src) {
		out := dst[r*src.Cols:]
		for c, v := range src.Row(r) {
			out[c] = bf16(v)
		}
	}
}

// bf16 drops the low 16 bits of v: half of their range is added first, less one
// unless that makes a tie even. A NaN keeps its sign and becomes quiet, since its
// payload may sit in the bits that are dropped.
func bf16(v float32) uint16 {
	b := math.Float32bits(v)
	if v != v {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// FromBF16 widens; no value changes.
func (s *stream) FromBF16(dst *kernels.Mat, src []uint16) {
	kernels.CheckFromBF16(dst, src)
	kernels.CheckHost("FromBF16", dst)
	if !s.runs("FromBF16") {
		return
	}
	for r := range rowsOf(dst) {
		in := src[r*dst.Cols:]
		for c := range dst.Row(r) {
			dst.Row(r)[c] = math.Float32frombits(uint32(in[c]) << 16)
		}
	}
}

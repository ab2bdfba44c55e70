package codec

import "math"

// bf16 is v to the nearest bfloat16, ties to even, as kernels.Stream.ToBF16 rounds: a
// NaN keeps its sign and the top of its payload and becomes quiet.
func bf16(v float32) uint16 {
	b := math.Float32bits(v)
	if v != v {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// fromBF16 widens; no value changes.
func fromBF16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// fp16 is v to the nearest IEEE half, ties to even. From 65520 on that is infinity, below
// 2^-14 a subnormal, up to 2^-25 zero. A NaN keeps its sign and the top of its payload and
// becomes quiet.
func fp16(v float32) uint16 {
	b := math.Float32bits(v)
	sign := uint16(b >> 16 & 0x8000)
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000: // NaN
		return sign | 0x7e00 | uint16(b>>13&0x1ff)
	case b >= 0x477ff000: // 65520, halfway to 2^16
		return sign | 0x7c00
	case b >= 0x38800000: // 2^-14: the exponent is rebased, 13 bits are rounded away
		b += 0xfff + b>>13&1
		return sign | uint16((b-0x38000000)>>13)
	case b <= 0x33000000: // 2^-25, a tie that goes to zero
		return sign
	}
	// The value is m·2^(e-150); a half counts in 2^-24.
	e := b >> 23
	m := b&0x7fffff | 0x800000
	s := 126 - e // 14 to 24
	return sign | uint16((m+1<<(s-1)-1+m>>s&1)>>s)
}

// fromFP16 widens; no value changes, NaN payloads move to the top.
func fromFP16(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	m := uint32(h & 0x3ff)
	switch e := uint32(h >> 10 & 0x1f); e {
	case 0: // zero or a multiple of 2^-24
		return math.Float32frombits(sign | math.Float32bits(float32(m)*0x1p-24))
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | m<<13)
	default:
		return math.Float32frombits(sign | (e+112)<<23 | m<<13)
	}
}

package codec

import (
	"encoding/binary"
	"math/bits"
)

// bitmapLen is the number of bytes of one bit for each of n values.
func bitmapLen(n int) int { return n/8 + (n%8+7)/8 }

// filteredMax is the most bytes that filter f makes of raw bytes.
func filteredMax(f Filter, raw, width int) int {
	if f&Sparse != 0 {
		return bitmapLen(raw/width) + raw
	}
	return raw
}

// maxSections is the most sections that filters make: a bitmap and four planes.
const maxSections = 5

// sections are the lengths of the parts that filter f makes of n values in filtered
// bytes: the bitmap, and one plane for each byte of the values or all values as one.
func sections(f Filter, n, filtered, width int) []int {
	cuts := make([]int, 0, maxSections)
	if f&Sparse != 0 {
		cuts = append(cuts, bitmapLen(n))
		filtered -= bitmapLen(n)
	}
	if f&Shuffle == 0 {
		return append(cuts, filtered)
	}
	for range width {
		cuts = append(cuts, filtered/width)
	}
	return cuts
}

// apply writes src, values of the given width, filtered by f to dst and returns the
// bytes written. dst holds filteredMax bytes, tmp len(src); neither is src.
func apply(f Filter, dst, tmp, src []byte, width int) []byte {
	if f&Sparse == 0 {
		shuffle(dst, src, width)
		return dst[:len(src)]
	}
	bm := bitmapLen(len(src) / width)
	out := dst[bm:]
	if f&Shuffle != 0 {
		out = tmp
	}
	var n int
	if width == 4 {
		n = compact4(dst[:bm], out, src)
	} else {
		n = compact2(dst[:bm], out, src)
	}
	if f&Shuffle != 0 {
		shuffle(dst[bm:], tmp[:n], width)
	}
	return dst[:bm+n]
}

// undo is apply backwards: it fills dst from src. tmp holds len(dst) bytes.
func undo(f Filter, dst, tmp, src []byte, width int) error {
	if f&Sparse == 0 {
		unshuffle(dst, src, width)
		return nil
	}
	bm := bitmapLen(len(dst) / width)
	if len(src) < bm {
		return corrupt("%d bytes where the bits of %d values need %d", len(src), len(dst)/width, bm)
	}
	set := 0
	for _, b := range src[:bm] {
		set += bits.OnesCount8(b)
	}
	if n := len(dst) / width % 8; n != 0 && src[bm-1]>>n != 0 {
		return corrupt("a bit is set after the last of %d values", len(dst)/width)
	}
	vals := src[bm:]
	if len(vals) != set*width {
		return corrupt("%d bits are set, but %d bytes of values follow, want %d", set, len(vals), set*width)
	}
	if f&Shuffle != 0 {
		unshuffle(tmp, vals, width)
		vals = tmp[:len(vals)]
	}
	if width == 4 {
		spread4(dst, src[:bm], vals)
	} else {
		spread2(dst, src[:bm], vals)
	}
	return nil
}

// shuffle writes byte p of value i to dst[p*n+i].
func shuffle(dst, src []byte, width int) {
	n := len(src) / width
	if width == 4 {
		p0, p1, p2, p3 := dst[:n], dst[n:2*n], dst[2*n:3*n], dst[3*n:4*n]
		for i := range p0 {
			v := binary.LittleEndian.Uint32(src[4*i : 4*i+4])
			p0[i], p1[i], p2[i], p3[i] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
		}
		return
	}
	p0, p1 := dst[:n], dst[n:2*n]
	for i := range p0 {
		v := binary.LittleEndian.Uint16(src[2*i : 2*i+2])
		p0[i], p1[i] = byte(v), byte(v>>8)
	}
}

// unshuffle is shuffle backwards.
func unshuffle(dst, src []byte, width int) {
	n := len(src) / width
	if width == 4 {
		p0, p1, p2, p3 := src[:n], src[n:2*n], src[2*n:3*n], src[3*n:4*n]
		for i := range p0 {
			v := uint32(p0[i]) | uint32(p1[i])<<8 | uint32(p2[i])<<16 | uint32(p3[i])<<24
			binary.LittleEndian.PutUint32(dst[4*i:4*i+4], v)
		}
		return
	}
	p0, p1 := src[:n], src[n:2*n]
	for i := range p0 {
		binary.LittleEndian.PutUint16(dst[2*i:2*i+2], uint16(p0[i])|uint16(p1[i])<<8)
	}
}

// compact4 sets bit i of bitmap where 4-byte value i of src is not zero, copies those
// values to dst, and returns their bytes. It stores each value and moves on only past
// the non-zero ones, so that random zeros cost no mispredicted branch.
func compact4(bitmap, dst, src []byte) int {
	k := 0
	for g := range bitmap {
		in := src[32*g : min(32*g+32, len(src))]
		if zeros(in) {
			bitmap[g] = 0
			continue
		}
		var mask uint32
		out := dst[k:]
		at := 0
		for j := 0; j+4 <= len(in); j += 4 {
			v := binary.LittleEndian.Uint32(in[j : j+4])
			binary.LittleEndian.PutUint32(out[at:at+4], v)
			some := (v | -v) >> 31
			mask = mask>>1 | some<<7
			at += int(4 * some)
		}
		k += at
		bitmap[g] = byte(mask >> (8 - len(in)/4))
	}
	return k
}

// compact2 is compact4 for 2-byte values.
func compact2(bitmap, dst, src []byte) int {
	k := 0
	for g := range bitmap {
		in := src[16*g : min(16*g+16, len(src))]
		if zeros(in) {
			bitmap[g] = 0
			continue
		}
		var mask uint16
		out := dst[k:]
		at := 0
		for j := 0; j+2 <= len(in); j += 2 {
			v := binary.LittleEndian.Uint16(in[j : j+2])
			binary.LittleEndian.PutUint16(out[at:at+2], v)
			some := (v | -v) >> 15
			mask = mask>>1 | some<<7
			at += int(2 * some)
		}
		k += at
		bitmap[g] = byte(mask >> (8 - len(in)/2))
	}
	return k
}

// zeros says whether a whole group of bytes is zero; the last, shorter group counts
// as not.
func zeros(b []byte) bool {
	switch len(b) {
	case 32:
		return binary.LittleEndian.Uint64(b)|binary.LittleEndian.Uint64(b[8:])|
			binary.LittleEndian.Uint64(b[16:])|binary.LittleEndian.Uint64(b[24:]) == 0
	case 16:
		return binary.LittleEndian.Uint64(b)|binary.LittleEndian.Uint64(b[8:]) == 0
	}
	return false
}

// spread4 is compact4 backwards. There are as many values as bits set.
func spread4(dst, bitmap, vals []byte) {
	for g, mask := range bitmap {
		out := dst[32*g : min(32*g+32, len(dst))]
		switch {
		case mask == 0:
			clear(out)
		case len(vals) >= 32 && len(out) == 32:
			k := 0
			for j := 0; j < 32; j += 4 {
				bit := uint32(mask & 1)
				binary.LittleEndian.PutUint32(out[j:j+4], binary.LittleEndian.Uint32(vals[k:k+4])&-bit)
				k += int(4 * bit)
				mask >>= 1
			}
			vals = vals[k:]
		default: // near the end of the values
			clear(out)
			for ; mask != 0; mask &= mask - 1 {
				copy(out[4*bits.TrailingZeros8(mask):], vals[:4])
				vals = vals[4:]
			}
		}
	}
}

// spread2 is compact2 backwards.
func spread2(dst, bitmap, vals []byte) {
	for g, mask := range bitmap {
		out := dst[16*g : min(16*g+16, len(dst))]
		switch {
		case mask == 0:
			clear(out)
		case len(vals) >= 16 && len(out) == 16:
			k := 0
			for j := 0; j < 16; j += 2 {
				bit := uint16(mask & 1)
				binary.LittleEndian.PutUint16(out[j:j+2], binary.LittleEndian.Uint16(vals[k:k+2])&-bit)
				k += int(2 * bit)
				mask >>= 1
			}
			vals = vals[k:]
		default:
			clear(out)
			for ; mask != 0; mask &= mask - 1 {
				copy(out[2*bits.TrailingZeros8(mask):], vals[:2])
				vals = vals[2:]
			}
		}
	}
}

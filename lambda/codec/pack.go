package codec

import (
	"encoding/binary"
	"math"
	"unsafe"

	"dorylus/kernels"
)

// little says whether this machine keeps words as the wire does, low byte first.
var little = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// view is the memory of v as bytes.
func view[T float32 | int32](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

// swap turns the bytes of each 4-byte word of b around.
func swap(b []byte) {
	for ; len(b) >= 4; b = b[4:] {
		b[0], b[1], b[2], b[3] = b[3], b[2], b[1], b[0]
	}
}

// copyWords copies words between memory and wire order: both are the same bytes here,
// or each word is turned around.
func copyWords(dst, src []byte) {
	copy(dst, src)
	if !little {
		swap(dst[:len(src)])
	}
}

// packed is the values of m in one run of memory, or nil where its rows are padded.
func packed(m *kernels.Mat) []float32 {
	if n := m.Rows * m.Cols; n > 0 && (m.Stride == m.Cols || m.Rows == 1) {
		return m.Host[:n:n]
	}
	return nil
}

// packRows writes rows [s.Lo,s.Hi) of m in wire type d to dst, without padding.
func packRows(dst []byte, m *kernels.Mat, s kernels.Span, d DType) {
	if m.Cols == 0 {
		return
	}
	m = m.Sub(s)
	if all := packed(m); all != nil {
		packValues(dst, all, d)
		return
	}
	for i := range m.Rows {
		packValues(dst[i*m.Cols*d.width():], m.Row(i), d)
	}
}

func packValues(dst []byte, src []float32, d DType) {
	switch d {
	case BF16:
		dst = dst[:2*len(src)]
		for i, v := range src {
			binary.LittleEndian.PutUint16(dst[2*i:2*i+2], bf16(v))
		}
	case FP16:
		dst = dst[:2*len(src)]
		for i, v := range src {
			binary.LittleEndian.PutUint16(dst[2*i:2*i+2], fp16(v))
		}
	default:
		copyWords(dst, view(src))
	}
}

// unpackRows is packRows backwards, into all rows of m; the padding is not touched.
func unpackRows(m *kernels.Mat, src []byte, d DType) {
	if m.Cols == 0 {
		return
	}
	if all := packed(m); all != nil {
		unpackValues(all, src, d)
		return
	}
	for i := range m.Rows {
		unpackValues(m.Row(i), src[i*m.Cols*d.width():], d)
	}
}

func unpackValues(dst []float32, src []byte, d DType) {
	switch d {
	case BF16:
		src = src[:2*len(dst)]
		for i := range dst {
			dst[i] = fromBF16(binary.LittleEndian.Uint16(src[2*i : 2*i+2]))
		}
	case FP16:
		src = src[:2*len(dst)]
		for i := range dst {
			dst[i] = fromFP16(binary.LittleEndian.Uint16(src[2*i : 2*i+2]))
		}
	default:
		copyWords(view(dst), src[:4*len(dst)])
	}
}

// extent is the number of values that a matrix spans in memory.
func extent(m *kernels.Mat) int {
	if m.Rows == 0 || m.Cols == 0 {
		return 0
	}
	if m.Rows > 1 && m.Stride > (math.MaxInt-m.Cols)/(m.Rows-1) {
		return math.MaxInt
	}
	return (m.Rows-1)*m.Stride + m.Cols
}

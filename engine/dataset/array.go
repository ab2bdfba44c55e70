package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// numArray is an array whose values are still in a file. Each of its methods that
// reads values may be called once.
type numArray struct {
	name    string // for messages
	shape   []int
	n       int // elements
	kind    byte
	size    int // bytes per element
	big     bool
	fortran bool
	r       io.Reader
}

// newNumArray checks that avail bytes hold the array that h describes.
func newNumArray(name string, h npyHeader, r io.Reader, avail int64) (*numArray, error) {
	kind, size, big, err := h.elem()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	n, err := h.count()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if size > 0 && int64(n) > avail/int64(size) {
		return nil, fmt.Errorf("read %s: shape %v of %s needs %d bytes, the file has %d; it is truncated, copy it again", name, h.shape, h.descr, int64(n)*int64(size), avail)
	}
	return &numArray{name: name, shape: h.shape, n: n, kind: kind, size: size, big: big,
		fortran: h.fortran && len(h.shape) > 1, r: r}, nil
}

// dims is the shape as rows and columns; a vector is one column.
func (a *numArray) dims() (rows, cols int, err error) {
	switch len(a.shape) {
	case 1:
		return a.shape[0], 1, nil
	case 2:
		return a.shape[0], a.shape[1], nil
	}
	return 0, 0, fmt.Errorf("read %s: shape %v has %d dimensions, not 1 or 2", a.name, a.shape, len(a.shape))
}

// chunks hands the array's bytes on, little-endian, in whole elements, at most
// 64 KiB at a time; first is the index of the chunk's first element.
func (a *numArray) chunks(do func(b []byte, first int) error) error {
	per := max(1, (64<<10)/max(1, a.size))
	buf := make([]byte, min(per, max(a.n, 1))*a.size)
	for i := 0; i < a.n; {
		b := buf[:min(per, a.n-i)*a.size]
		if _, err := io.ReadFull(a.r, b); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return fmt.Errorf("read %s: record %d of %d: the file ends; it is truncated, copy it again", a.name, i, a.n)
			}
			return fmt.Errorf("read %s: record %d of %d: %w; the file is damaged", a.name, i, a.n, err)
		}
		if a.big {
			swapBytes(b, a.unit())
		}
		if err := do(b, i); err != nil {
			return err
		}
		i += len(b) / max(1, a.size)
	}
	// One read past the end lets a zip member's checksum be compared.
	if k, err := a.r.Read(make([]byte, 1)); k == 0 && err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %s: after record %d: %w; the file is damaged", a.name, a.n, err)
	}
	return nil
}

// unit is the number of bytes that byte order concerns.
func (a *numArray) unit() int {
	if a.kind == 'U' {
		return 4
	}
	if a.kind == 'S' {
		return 1
	}
	return a.size
}

func swapBytes(b []byte, unit int) {
	for i := 0; i+unit <= len(b); i += unit {
		slices.Reverse(b[i : i+unit])
	}
}

// decode calls put with each value of a numeric array as float64 and, for integer
// kinds, exactly as int64.
func (a *numArray) decode(put func(i int, f float64, v int64) error) error {
	var get func(b []byte) (float64, int64)
	le := binary.LittleEndian
	integer := func(v int64) (float64, int64) { return float64(v), v }
	float := func(f float64) (float64, int64) { return f, floatToInt(f) }
	switch {
	case a.kind == 'b' || a.kind == 'u' && a.size == 1:
		get = func(b []byte) (float64, int64) { return integer(int64(b[0])) }
	case a.kind == 'i' && a.size == 1:
		get = func(b []byte) (float64, int64) { return integer(int64(int8(b[0]))) }
	case a.kind == 'i' && a.size == 2:
		get = func(b []byte) (float64, int64) { return integer(int64(int16(le.Uint16(b)))) }
	case a.kind == 'u' && a.size == 2:
		get = func(b []byte) (float64, int64) { return integer(int64(le.Uint16(b))) }
	case a.kind == 'i' && a.size == 4:
		get = func(b []byte) (float64, int64) { return integer(int64(int32(le.Uint32(b)))) }
	case a.kind == 'u' && a.size == 4:
		get = func(b []byte) (float64, int64) { return integer(int64(le.Uint32(b))) }
	case a.kind == 'i' && a.size == 8:
		get = func(b []byte) (float64, int64) { return integer(int64(le.Uint64(b))) }
	case a.kind == 'u' && a.size == 8:
		get = func(b []byte) (float64, int64) {
			u := le.Uint64(b)
			return float64(u), int64(min(u, math.MaxInt64))
		}
	case a.kind == 'f' && a.size == 2:
		get = func(b []byte) (float64, int64) { return float(float64(halfToFloat(le.Uint16(b)))) }
	case a.kind == 'f' && a.size == 4:
		get = func(b []byte) (float64, int64) { return float(float64(math.Float32frombits(le.Uint32(b)))) }
	case a.kind == 'f' && a.size == 8:
		get = func(b []byte) (float64, int64) { return float(math.Float64frombits(le.Uint64(b))) }
	default:
		return fmt.Errorf("read %s: it holds %s, not numbers", a.name, kindName(a.kind))
	}
	return a.chunks(func(b []byte, first int) error {
		for i := 0; i < len(b); i += a.size {
			f, v := get(b[i:])
			if err := put(first+i/a.size, f, v); err != nil {
				return err
			}
		}
		return nil
	})
}

// notInteger marks a float without an exact int64.
const notInteger = math.MinInt64

func floatToInt(f float64) int64 {
	if f != math.Trunc(f) || math.Abs(f) >= 1<<62 {
		return notInteger
	}
	return int64(f)
}

func kindName(kind byte) string {
	switch kind {
	case 'U', 'S':
		return "strings"
	case 'O':
		return "pickled objects (never unpickled here)"
	case 'V':
		return "records"
	}
	return fmt.Sprintf("values of kind %q", kind)
}

// place is the row-major position of element i of the file.
func (a *numArray) place(i int) int {
	if !a.fortran || len(a.shape) != 2 {
		return i
	}
	rows, cols := a.shape[0], a.shape[1]
	return i%rows*cols + i/rows
}

// floats are the values in row-major order. Values that float32 cannot hold become
// infinite, which Check reports.
func (a *numArray) floats() ([]float32, error) {
	if a.kind == 'f' && a.size == 4 && !a.fortran {
		out := make([]float32, a.n)
		err := a.chunks(func(b []byte, first int) error {
			dst := out[first : first+len(b)/4]
			for i := range dst {
				dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
			}
			return nil
		})
		return out, err
	}
	if err := a.numeric(); err != nil {
		return nil, err
	}
	out := make([]float32, a.n)
	err := a.decode(func(i int, f float64, _ int64) error {
		out[a.place(i)] = float32(f)
		return nil
	})
	return out, err
}

// numeric refuses strings and objects before anything is allocated for them.
func (a *numArray) numeric() error {
	switch a.kind {
	case 'f', 'i', 'u', 'b':
		return nil
	}
	return fmt.Errorf("read %s: it holds %s, not numbers", a.name, kindName(a.kind))
}

// int64s are the values of an integer array, or of a float array of whole numbers.
func (a *numArray) int64s() ([]int64, error) {
	if err := a.numeric(); err != nil {
		return nil, err
	}
	out := make([]int64, a.n)
	err := a.decode(func(i int, f float64, v int64) error {
		if v == notInteger {
			return fmt.Errorf("read %s: record %d: %v is not a whole number", a.name, i, f)
		}
		out[a.place(i)] = v
		return nil
	})
	return out, err
}

// int32s are the values of an integer array that must lie in [lo,hi); what names a
// value in messages.
func (a *numArray) int32s(what string, lo, hi int64) ([]int32, error) {
	if err := a.numeric(); err != nil {
		return nil, err
	}
	out := make([]int32, a.n)
	err := a.decode(func(i int, f float64, v int64) error {
		if v < lo || v >= hi {
			return fmt.Errorf("read %s: record %d: %s %v is outside [%d,%d)", a.name, i, what, f, lo, hi)
		}
		out[a.place(i)] = int32(v)
		return nil
	})
	return out, err
}

// bools are the values of a bool array, or of a numeric one of zeros and ones.
func (a *numArray) bools() ([]bool, error) {
	if err := a.numeric(); err != nil {
		return nil, err
	}
	out := make([]bool, a.n)
	err := a.decode(func(i int, f float64, v int64) error {
		if v != 0 && v != 1 {
			return fmt.Errorf("read %s: record %d: mask value %v is neither 0 nor 1", a.name, i, f)
		}
		out[a.place(i)] = v == 1
		return nil
	})
	return out, err
}

// strings are the values of a string array, without their padding.
func (a *numArray) strings() ([]string, error) {
	if a.kind != 'U' && a.kind != 'S' {
		return nil, fmt.Errorf("read %s: it holds %s, not strings", a.name, kindName(a.kind))
	}
	out := make([]string, 0, min(a.n, 1<<20))
	if a.size == 0 {
		if a.n > 1<<20 {
			return nil, fmt.Errorf("read %s: %d strings of no characters", a.name, a.n)
		}
		return make([]string, a.n), nil
	}
	err := a.chunks(func(b []byte, first int) error {
		for i := 0; i < len(b); i += a.size {
			if a.kind == 'S' {
				out = append(out, strings.TrimRight(string(b[i:i+a.size]), "\x00"))
				continue
			}
			var s []byte
			for j := i; j < i+a.size; j += 4 {
				s = utf8.AppendRune(s, rune(binary.LittleEndian.Uint32(b[j:])&0x7fffffff))
			}
			out = append(out, strings.TrimRight(string(s), "\x00"))
		}
		return nil
	})
	return out, err
}

// halfToFloat is an IEEE half as float32.
func halfToFloat(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp, frac := uint32(h>>10)&0x1f, uint32(h)&0x3ff
	switch {
	case exp == 31:
		return math.Float32frombits(sign | 0xff<<23 | frac<<13)
	case exp == 0:
		f := float32(frac) / (1 << 24)
		if sign != 0 {
			f = -f
		}
		return f
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

package tensorbridge

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"unsafe"

	"codeberg.org/sbinet/npyio/npy"
)

// Value is what a .npy file of reference data may hold.
type Value interface {
	float32 | float64 | int32 | int64 | uint8 | bool
}

// dtypes are numpy's names of the types, little-endian.
var dtypes = map[reflect.Kind]string{
	reflect.Float32: "<f4", reflect.Float64: "<f8",
	reflect.Int32: "<i4", reflect.Int64: "<i8", reflect.Uint8: "|u1", reflect.Bool: "|b1",
}

// ReadNpy reads a whole array of T: its shape, empty for a single value, and its
// values in row-major (C) order. Arrays saved in Fortran order are put in C order.
// A file of another type, or of more or fewer bytes than its shape says, is an
// error.
func ReadNpy[T Value](path string) (shape []int, data []T, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read array: %w", err)
	}
	shape, data, err = parseNpy[T](raw)
	if err != nil {
		return nil, nil, fmt.Errorf("read array %s: %w", filepath.Base(path), err)
	}
	return shape, data, nil
}

func parseNpy[T Value](raw []byte) (shape []int, data []T, err error) {
	defer func() {
		if p := recover(); p != nil { // npyio slices corrupt headers out of range
			err = fmt.Errorf("corrupt header: %v", p)
		}
	}()
	if len(raw) >= 12 && raw[6] == 2 { // version 2 has room for headers of 4 GiB
		if n := binary.LittleEndian.Uint32(raw[8:]); int64(n) > int64(len(raw)) {
			return nil, nil, fmt.Errorf("a header of %d bytes in a file of %d", n, len(raw))
		}
	}
	rest := bytes.NewReader(raw)
	r, err := npy.NewReader(rest)
	if err != nil {
		return nil, nil, err
	}
	var zero T
	want := dtypes[reflect.TypeOf(zero).Kind()]
	if has := strings.Trim(r.Header.Descr.Type, `'"`); has != want {
		return nil, nil, fmt.Errorf("it holds %s, want %s", has, want)
	}
	shape = append([]int{}, r.Header.Descr.Shape...)
	n, err := count(shape, rest.Len())
	if err != nil {
		return nil, nil, err
	}
	// npyio takes the end of a file for zeros: compare the sizes first
	if need := n * int(unsafe.Sizeof(zero)); need != rest.Len() {
		return nil, nil, fmt.Errorf("shape %v of %s needs %d bytes, the file has %d", shape, want, need, rest.Len())
	}
	data = make([]T, 0)
	if n > 0 {
		if err := r.Read(&data); err != nil {
			return nil, nil, err
		}
	}
	if r.Header.Descr.Fortran {
		data = rowMajor(shape, data)
	}
	return shape, data, nil
}

// count is the number of elements of shape, none of which needs less than a byte.
func count(shape []int, limit int) (int, error) {
	n := 1
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("shape %v", shape)
		}
		if d > 0 && n > limit/d {
			return 0, fmt.Errorf("shape %v has more elements than the file has bytes (%d)", shape, limit)
		}
		n *= d
	}
	return n, nil
}

// rowMajor puts values whose first index runs fastest in the order in which the
// last one does.
func rowMajor[T any](shape []int, data []T) []T {
	if len(shape) < 2 {
		return data
	}
	out := make([]T, len(data))
	index := make([]int, len(shape))
	for i := range out {
		from, step := 0, 1
		for k, d := range shape {
			from += index[k] * step
			step *= d
		}
		out[i] = data[from]
		for k := len(shape) - 1; k >= 0; k-- {
			if index[k]++; index[k] < shape[k] {
				break
			}
			index[k] = 0
		}
	}
	return out
}

// WriteNpy writes values in row-major order as an array of the given shape; an
// empty shape is a single value. No dimension may be 0.
func WriteNpy[T Value](path string, shape []int, data []T) error {
	n := 1
	for _, d := range shape {
		if d <= 0 {
			return fmt.Errorf("write array %s: shape %v, want dimensions above 0", filepath.Base(path), shape)
		}
		n *= d
	}
	if n != len(data) {
		return fmt.Errorf("write array %s: shape %v of %d values", filepath.Base(path), shape, len(data))
	}
	// npyio takes the shape from the Go type: see data as an array of arrays
	typ := reflect.TypeFor[T]()
	for k := len(shape) - 1; k >= 0; k-- {
		typ = reflect.ArrayOf(shape[k], typ)
	}
	var buf bytes.Buffer
	if err := npy.Write(&buf, reflect.NewAt(typ, unsafe.Pointer(unsafe.SliceData(data))).Elem().Interface()); err != nil {
		return fmt.Errorf("write array %s: %w", filepath.Base(path), err)
	}
	if err := os.WriteFile(path, buf.Bytes(), 0o666); err != nil {
		return fmt.Errorf("write array: %w", err)
	}
	return nil
}

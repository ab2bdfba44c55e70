package store

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unsafe"
)

// The header of a .npy file, version 1.0: magic, version, the length of the rest,
// and a Python dictionary padded so that the data starts on a 64-byte boundary.
const (
	npyMagic = "\x93NUMPY"
	npyAlign = 64
	// npyMaxHeader bounds the header that is read: version 1.0 allows 65,535
	// bytes, numpy itself refuses more than 10,000.
	npyMaxHeader = 10000
)

// element is what an array of the store is made of.
type element interface {
	uint8 | int32 | int64 | float32
}

// dtype is numpy's name of T.
func dtype[T element]() string {
	var x T
	switch any(x).(type) {
	case uint8:
		return "|u1"
	case int32:
		return "<i4"
	case int64:
		return "<i8"
	default:
		return "<f4"
	}
}

// npyHeader is the header for an array.
func npyHeader(dtype string, shape []int) []byte {
	dims := make([]string, len(shape))
	for i, n := range shape {
		dims[i] = strconv.Itoa(n)
	}
	list := strings.Join(dims, ", ")
	if len(shape) == 1 {
		list += ","
	}
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", dtype, list)
	size := len(npyMagic) + 4 + len(dict) + 1
	pad := (npyAlign - size%npyAlign) % npyAlign
	h := append([]byte(npyMagic), 1, 0)
	h = binary.LittleEndian.AppendUint16(h, uint16(len(dict)+pad+1))
	h = append(h, dict...)
	h = append(h, strings.Repeat(" ", pad)...)
	return append(h, '\n')
}

// parseNpy reads the header at the start of data, which may go on after it.
func parseNpy(data []byte) (dtype string, shape []int, start int, err error) {
	if len(data) < 12 || string(data[:6]) != npyMagic {
		return "", nil, 0, fmt.Errorf("it does not begin as a .npy file does")
	}
	length, at := int(binary.LittleEndian.Uint16(data[8:])), 10
	switch major := data[6]; major {
	case 1:
	case 2, 3:
		length, at = int(binary.LittleEndian.Uint32(data[8:])), 12
	default:
		return "", nil, 0, fmt.Errorf("its .npy version is %d, known are 1 to 3", major)
	}
	if length > npyMaxHeader || at+length > len(data) {
		return "", nil, 0, fmt.Errorf("its .npy header claims %d bytes", length)
	}
	d := npyDict{rest: string(data[at : at+length])}
	dtype, shape, err = d.parse()
	if err != nil {
		return "", nil, 0, fmt.Errorf("its .npy header: %w", err)
	}
	return dtype, shape, at + length, nil
}

// npyDict reads the dictionary of a header: the three keys, in any order.
type npyDict struct{ rest string }

func (d *npyDict) skip() { d.rest = strings.TrimLeft(d.rest, " \t\n") }

func (d *npyDict) take(token string) bool {
	d.skip()
	if strings.HasPrefix(d.rest, token) {
		d.rest = d.rest[len(token):]
		return true
	}
	return false
}

func (d *npyDict) str() (string, bool) {
	d.skip()
	if d.rest == "" || d.rest[0] != '\'' && d.rest[0] != '"' {
		return "", false
	}
	end := strings.IndexByte(d.rest[1:], d.rest[0])
	if end < 0 {
		return "", false
	}
	s := d.rest[1 : 1+end]
	d.rest = d.rest[end+2:]
	return s, true
}

func (d *npyDict) tuple() ([]int, bool) {
	if !d.take("(") {
		return nil, false
	}
	shape := []int{}
	for !d.take(")") {
		d.skip()
		end := 0
		for end < len(d.rest) && d.rest[end] >= '0' && d.rest[end] <= '9' {
			end++
		}
		n, err := strconv.Atoi(d.rest[:end])
		if err != nil || len(shape) == 32 {
			return nil, false
		}
		shape = append(shape, n)
		d.rest = d.rest[end:]
		if !d.take(",") {
			return shape, d.take(")")
		}
	}
	return shape, true
}

func (d *npyDict) parse() (dtype string, shape []int, err error) {
	if !d.take("{") {
		return "", nil, fmt.Errorf("no dictionary")
	}
	ok := true
	for !d.take("}") {
		key, isKey := d.str()
		if !isKey || !d.take(":") {
			return "", nil, fmt.Errorf("no key at %.20q", d.rest)
		}
		switch key {
		case "descr":
			dtype, ok = d.str()
		case "shape":
			shape, ok = d.tuple()
		case "fortran_order":
			if d.take("True") {
				return "", nil, fmt.Errorf("fortran order: save the array in C order")
			}
			ok = d.take("False")
		default:
			ok = false
		}
		if !ok {
			return "", nil, fmt.Errorf("no value for key %.20q", key)
		}
		d.take(",")
	}
	if dtype == "" || shape == nil {
		return "", nil, fmt.Errorf("descr or shape is missing")
	}
	return dtype, shape, nil
}

// size is the number of values of a shape, or false if it overflows.
func size(shape []int) (int, bool) {
	n := 1
	for _, d := range shape {
		if d < 0 || d > 0 && n > math.MaxInt/16/d {
			return 0, false
		}
		n *= d
	}
	return n, true
}

// bytesOf is the memory of a slice, without a copy.
func bytesOf[T element](s []T) []byte {
	var x T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(x)))
}

// sliceOf is data as values of T, without a copy where its address allows that.
func sliceOf[T element](data []byte) []T {
	var x T
	width := int(unsafe.Sizeof(x))
	n := len(data) / width
	if n == 0 {
		return []T{}
	}
	if uintptr(unsafe.Pointer(unsafe.SliceData(data)))%uintptr(width) != 0 {
		out := make([]T, n)
		copy(bytesOf(out), data)
		return out
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(data))), n)
}

// littleEndian says that memory here has the byte order of the files.
func littleEndian() bool {
	return binary.NativeEndian.Uint16([]byte{1, 0}) == 1
}

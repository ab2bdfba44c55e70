package dataset

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// npyHeader is what a .npy file says about its array.
type npyHeader struct {
	descr   string // "<f4", "|i1", "<U19", "|O"
	fortran bool
	shape   []int
}

// maxHeader bounds a .npy header; numpy's own have 64 to 256 bytes.
const maxHeader = 1 << 16

// readNPYHeader reads the header from r and leaves r at the data. A reader of our
// own, since files are untrusted: lengths are bounded, and no array is unpickled.
func readNPYHeader(name string, r io.Reader) (h npyHeader, size int, err error) {
	var pre [12]byte
	if _, err := io.ReadFull(r, pre[:10]); err != nil {
		return h, 0, fmt.Errorf("read %s: byte 0: the file is too short for a .npy header", name)
	}
	if string(pre[:6]) != "\x93NUMPY" {
		return h, 0, fmt.Errorf("read %s: byte 0: starts with %q, not with numpy's mark; save it with numpy.save", name, pre[:6])
	}
	n, size := int(binary.LittleEndian.Uint16(pre[8:])), 10
	if pre[6] >= 2 {
		if pre[6] > 3 {
			return h, 0, fmt.Errorf("read %s: byte 6: .npy version %d is newer than 3; save it with an older numpy", name, pre[6])
		}
		if _, err := io.ReadFull(r, pre[10:12]); err != nil {
			return h, 0, fmt.Errorf("read %s: byte 10: the file ends inside its header", name)
		}
		n, size = int(binary.LittleEndian.Uint32(pre[8:])), 12
	}
	if n > maxHeader {
		return h, 0, fmt.Errorf("read %s: byte 8: a header of %d bytes is longer than any real one", name, n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return h, 0, fmt.Errorf("read %s: byte %d: the file ends inside its header", name, size)
	}
	h, err = parseNPYHeader(string(text))
	if err != nil {
		return h, 0, fmt.Errorf("read %s: byte %d: %w", name, size, err)
	}
	return h, size + n, nil
}

// parseNPYHeader reads {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
func parseNPYHeader(s string) (h npyHeader, err error) {
	value := func(key string) (string, bool) {
		_, rest, ok := strings.Cut(s, "'"+key+"'")
		if !ok {
			return "", false
		}
		rest = strings.TrimLeft(rest, " :")
		return rest, rest != ""
	}
	descr, ok := value("descr")
	if !ok {
		return h, fmt.Errorf("the header has no 'descr'")
	}
	if descr[0] == '\'' {
		h.descr, _, ok = strings.Cut(descr[1:], "'")
		if !ok {
			return h, fmt.Errorf("the header's 'descr' does not end")
		}
	} else {
		h.descr = "|V" // a record type: named so that messages can say it
	}
	order, ok := value("fortran_order")
	if !ok || !strings.HasPrefix(order, "True") && !strings.HasPrefix(order, "False") {
		return h, fmt.Errorf("the header has no 'fortran_order'")
	}
	h.fortran = strings.HasPrefix(order, "True")
	shape, ok := value("shape")
	if !ok || shape[0] != '(' || !strings.Contains(shape, ")") {
		return h, fmt.Errorf("the header has no 'shape'")
	}
	list, _, _ := strings.Cut(shape[1:], ")")
	for _, f := range strings.Split(list, ",") {
		f = strings.TrimSuffix(strings.TrimSpace(f), "L")
		if f == "" {
			continue
		}
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil || n < 0 {
			return h, fmt.Errorf("the header's shape has %q", f)
		}
		h.shape = append(h.shape, int(n))
	}
	return h, nil
}

// count is the number of elements, or an error where it overflows.
func (h npyHeader) count() (int, error) {
	n := 1
	for _, d := range h.shape {
		if d != 0 && n > math.MaxInt64/64/d {
			return 0, fmt.Errorf("shape %v is larger than memory can be", h.shape)
		}
		n *= d
	}
	return n, nil
}

// elem is the element's kind ('f', 'i', 'u', 'b', 'U', 'S', 'O', 'V'), its bytes and its byte order.
func (h npyHeader) elem() (kind byte, size int, big bool, err error) {
	d := h.descr
	if d != "" && strings.IndexByte("<>|=", d[0]) >= 0 {
		big = d[0] == '>'
		d = d[1:]
	}
	if d == "" {
		return 0, 0, false, fmt.Errorf("type %q is unknown", h.descr)
	}
	kind = d[0]
	if kind == 'O' || kind == 'V' {
		return kind, 0, big, nil
	}
	size, err = strconv.Atoi(d[1:])
	if err != nil || size < 0 || size > 1<<20 {
		return 0, 0, false, fmt.Errorf("type %q is unknown", h.descr)
	}
	valid := false
	switch kind {
	case 'f':
		valid = size == 2 || size == 4 || size == 8
	case 'i', 'u':
		valid = size == 1 || size == 2 || size == 4 || size == 8
	case 'b':
		valid = size == 1
	case 'U':
		size *= 4
		valid = true
	case 'S':
		valid = true
	}
	if !valid {
		return 0, 0, false, fmt.Errorf("type %q is not read; save it as float32, float64, an integer, bool or a string type", h.descr)
	}
	return kind, size, big, nil
}

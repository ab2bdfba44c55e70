package dataset

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/nlpodyssey/gopickle/pickle"
	"github.com/nlpodyssey/gopickle/types"
)

// unpickle decodes a pickle of numpy arrays, scipy CSR matrices and plain
// containers. Nothing in it is executed: classes outside the allow-list of
// pickleClass are refused by name. Every length in the file is checked against
// the file's own length before the decoder may allocate for it.
func unpickle(name string, data []byte) (value any, err error) {
	if at, err := scanPickle(data); err != nil {
		return nil, fmt.Errorf("read %s: byte %d: %w; the file is damaged or no pickle", name, at, err)
	}
	r := bytes.NewReader(data)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("read %s: byte %d: malformed pickle: %v", name, len(data)-r.Len(), p)
		}
	}()
	u := pickle.NewUnpickler(r)
	u.FindClass = pickleClass
	value, err = u.Load()
	if err != nil {
		return nil, fmt.Errorf("read %s: byte %d: %w", name, len(data)-r.Len(), err)
	}
	return value, nil
}

// pickleClass is the allow-list.
func pickleClass(module, name string) (any, error) {
	switch module + "." + name {
	case "numpy.ndarray":
		return arrayClass{}, nil
	case "numpy.dtype":
		return dtypeClass{}, nil
	case "numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct":
		return reconstructArray{}, nil
	case "scipy.sparse.csr.csr_matrix", "scipy.sparse._csr.csr_matrix":
		return csrClass{}, nil
	case "collections.defaultdict":
		return dictClass{}, nil
	case "__builtin__.list":
		return &types.List{}, nil
	case "__builtin__.dict":
		return &types.Dict{}, nil
	case "_codecs.encode": // how Python 3 writes bytes in protocol 2
		return encodeCall{}, nil
	}
	return nil, fmt.Errorf("class %s.%s is not one that a data set needs; nothing was executed", module, name)
}

// pickledArray stands for a numpy.ndarray.
type pickledArray struct {
	shape   []int
	dtype   *pickledDtype
	fortran bool
	data    string
}

// pickledDtype stands for a numpy.dtype: "i4", "f8", ...
type pickledDtype struct {
	code string
	big  bool
}

// pickledCSR stands for a scipy csr_matrix: its attributes by name.
type pickledCSR struct{ attr map[string]any }

type (
	arrayClass       struct{}
	dtypeClass       struct{}
	csrClass         struct{}
	dictClass        struct{}
	reconstructArray struct{}
	encodeCall       struct{}
)

func (arrayClass) PyNew(...any) (any, error)      { return &pickledArray{}, nil }
func (reconstructArray) Call(...any) (any, error) { return &pickledArray{}, nil }
func (csrClass) PyNew(...any) (any, error)        { return &pickledCSR{attr: map[string]any{}}, nil }
func (dictClass) Call(...any) (any, error)        { return types.NewDict(), nil }
func (dtypeClass) Call(args ...any) (any, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("numpy.dtype without a type code")
	}
	code, ok := args[0].(string)
	if !ok {
		return nil, fmt.Errorf("numpy.dtype with type code %T", args[0])
	}
	return &pickledDtype{code: strings.Clone(code)}, nil
}

func (encodeCall) Call(args ...any) (any, error) {
	if len(args) < 2 || args[1] != "latin1" {
		return nil, fmt.Errorf("_codecs.encode with another encoding than latin1")
	}
	s, ok := args[0].(string)
	if !ok {
		return nil, fmt.Errorf("_codecs.encode of %T", args[0])
	}
	out := make([]byte, 0, len(s))
	for _, r := range s {
		out = append(out, byte(r))
	}
	return string(out), nil
}

// PySetState takes numpy's (version, char, ...): only the byte order matters here.
func (d *pickledDtype) PySetState(state any) error {
	t, ok := state.(*types.Tuple)
	if !ok || t.Len() < 2 {
		return fmt.Errorf("numpy.dtype state %T", state)
	}
	order, ok := t.Get(1).(string)
	if !ok {
		return fmt.Errorf("numpy.dtype byte order %T", t.Get(1))
	}
	d.big = order == ">"
	return nil
}

// PySetState takes numpy's (version, shape, dtype, fortran, data).
func (a *pickledArray) PySetState(state any) error {
	t, ok := state.(*types.Tuple)
	if !ok || t.Len() != 5 {
		return fmt.Errorf("numpy.ndarray state of %T", state)
	}
	shape, ok := t.Get(1).(*types.Tuple)
	if !ok {
		return fmt.Errorf("numpy.ndarray shape %T", t.Get(1))
	}
	for i := range shape.Len() {
		n, ok := shape.Get(i).(int)
		if !ok || n < 0 || n > maxVertices {
			return fmt.Errorf("numpy.ndarray shape entry %v", shape.Get(i))
		}
		a.shape = append(a.shape, n)
	}
	if a.dtype, ok = t.Get(2).(*pickledDtype); !ok {
		return fmt.Errorf("numpy.ndarray dtype %T", t.Get(2))
	}
	a.fortran, _ = t.Get(3).(bool)
	switch data := t.Get(4).(type) {
	case string:
		a.data = data
	case []byte:
		a.data = string(data)
	default:
		return fmt.Errorf("numpy.ndarray data %T; only plain numbers are read", t.Get(4))
	}
	return nil
}

// PyDictSet takes one attribute.
func (m *pickledCSR) PyDictSet(key, value any) error {
	name, ok := key.(string)
	if !ok {
		return fmt.Errorf("csr_matrix attribute named by %T", key)
	}
	m.attr[name] = value
	return nil
}

// array is a as a numeric array that reads from memory.
func (a *pickledArray) array(name string) (*numArray, error) {
	if a.dtype == nil {
		return nil, fmt.Errorf("read %s: an array without a type", name)
	}
	order := "<"
	if a.dtype.big {
		order = ">"
	}
	h := npyHeader{descr: order + a.dtype.code, fortran: a.fortran, shape: a.shape}
	return newNumArray(name, h, strings.NewReader(a.data), int64(len(a.data)))
}

// get is the array that is attribute key.
func (m *pickledCSR) get(name, key string) (*numArray, error) {
	a, ok := m.attr[key].(*pickledArray)
	if !ok {
		return nil, fmt.Errorf("read %s: csr_matrix attribute %q is %T, not an array", name, key, m.attr[key])
	}
	return a.array(name + ": " + key)
}

// shape is the matrix's rows and columns; scipy has named it both ways.
func (m *pickledCSR) shape(name string) (rows, cols int, err error) {
	v := m.attr["_shape"]
	if v == nil {
		v = m.attr["shape"]
	}
	if t, ok := v.(*types.Tuple); ok && t.Len() == 2 {
		r, okR := t.Get(0).(int)
		c, okC := t.Get(1).(int)
		if okR && okC && r >= 0 && c >= 0 && r <= maxVertices && c <= maxVertices {
			return r, c, nil
		}
	}
	return 0, 0, fmt.Errorf("read %s: csr_matrix shape is %v, not two numbers", name, v)
}

// maxMarks bounds the nesting of containers; real files need about five.
const maxMarks = 1000

// scanPickle walks the opcodes of protocols 0 to 4 and refuses any length that
// runs past the end of the file, before a decoder allocates for it. It returns the
// byte at which it stopped.
func scanPickle(p []byte) (at int, err error) {
	marks := 0
	for i := 0; i < len(p); {
		op := p[i]
		arg := 0    // bytes of argument
		length := 0 // of which this many are a length, of data that follows
		switch op {
		case '.':
			return i, nil
		case '(':
			if marks++; marks > maxMarks {
				return i, fmt.Errorf("containers are nested more than %d deep", maxMarks)
			}
		case 'e', 'u', 't', 'l', 'd', '1', 'o', 'i', '\x90', '\x91':
			marks = max(0, marks-1)
		case '\x80', 'K', 'q', 'h':
			arg = 1
		case 'M':
			arg = 2
		case 'J', 'r', 'j':
			arg = 4
		case 'G', '\x95':
			arg = 8
		case 'U', 'C', '\x8a', '\x8c':
			length = 1
		case 'T', 'B', 'X', '\x8b':
			length = 4
		case '\x8d', '\x8e':
			length = 8
		}
		switch op {
		case 'I', 'L', 'F', 'S', 'V', 'g', 'p', 'P':
			arg, err = textLines(p[i+1:], 1)
		case 'c', 'i':
			arg, err = textLines(p[i+1:], 2)
		}
		if err != nil {
			return i, err
		}
		if arg+length > len(p)-i-1 {
			return i, fmt.Errorf("the file ends inside opcode 0x%02x", op)
		}
		if length > 0 {
			var n [8]byte
			copy(n[:], p[i+1:i+1+length])
			size := binary.LittleEndian.Uint64(n[:])
			if size > uint64(len(p)-i-1-length) {
				return i, fmt.Errorf("%d bytes announced, %d left", size, len(p)-i-1-length)
			}
			if op == '\x8a' && size == 0 || op == '\x8b' && size == 0 {
				return i, fmt.Errorf("a number of no bytes")
			}
			arg = length + int(size)
		}
		if op == '\x95' && binary.LittleEndian.Uint64(p[i+1:]) > uint64(len(p)-i-9) {
			return i, fmt.Errorf("a frame runs past the end of the file")
		}
		if op == '\x96' || op == '\x97' || op == '\x98' || op == '\x82' || op == '\x83' || op == '\x84' {
			return i, fmt.Errorf("opcode 0x%02x, which no data set needs", op)
		}
		i += 1 + arg
	}
	return len(p), fmt.Errorf("the file ends before the pickle does")
}

// textLines is the length of the first n lines of p, newlines included.
func textLines(p []byte, n int) (int, error) {
	total := 0
	for range n {
		i := bytes.IndexByte(p[total:], '\n')
		if i < 0 {
			return 0, fmt.Errorf("the file ends inside a text argument")
		}
		total += i + 1
	}
	return total, nil
}

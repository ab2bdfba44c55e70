package dataset

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"path"
	"strings"

	"github.com/nlpodyssey/gopickle/pickle"
	"github.com/nlpodyssey/gopickle/types"
)

// torchFile is a file written by torch.save: a pickle of objects, and the storages
// that its tensors are views of. Classes are taken from an allow-list and run no
// code; those of PyTorch Geometric become opaque containers of their state.
type torchFile struct {
	name     string
	storages map[string]*torchStorage
	member   func(key string) ([]byte, error) // reads a storage; nil: in the file after the pickle
}

// torchType is a kind of storage.
type torchType struct {
	kind   byte // as in numArray; 'g' is bfloat16
	size   int
	called string
}

var torchTypes = map[string]torchType{
	"FloatStorage": {'f', 4, "float32"}, "DoubleStorage": {'f', 8, "float64"}, "HalfStorage": {'f', 2, "float16"},
	"BFloat16Storage": {'g', 2, "bfloat16"}, "CharStorage": {'i', 1, "int8"}, "ShortStorage": {'i', 2, "int16"},
	"IntStorage": {'i', 4, "int32"}, "LongStorage": {'i', 8, "int64"}, "ByteStorage": {'u', 1, "uint8"}, "BoolStorage": {'b', 1, "bool"},
}

// torchStorage is a storage of n elements.
type torchStorage struct {
	typ  torchType
	n    int
	data []byte
}

// torchTensor is a view of a storage.
type torchTensor struct {
	storage       *torchStorage
	offset        int
	shape, stride []int
}

// torchObject is an instance of a class that is not looked into.
type torchObject struct {
	class string
	state any
	items types.Dict // of subclasses of dict
}

func (o *torchObject) PySetState(state any) error     { o.state = state; return nil }
func (o *torchObject) Set(key, value any)             { o.items.Set(key, value) }
func (o *torchObject) Append(any)                     {}
func (o *torchObject) Add(any)                        {}
func (o *torchObject) PyDictSet(key, value any) error { o.items.Set(key, value); return nil }

// torchClass makes them.
type torchClass struct{ class string }

func (c torchClass) PyNew(...any) (any, error) { return &torchObject{class: c.class}, nil }
func (c torchClass) Call(...any) (any, error)  { return &torchObject{class: c.class}, nil }

type rebuildTensor struct{}

// Call takes torch's (storage, offset, shape, stride, ...).
func (rebuildTensor) Call(args ...any) (any, error) {
	if len(args) < 4 {
		return nil, fmt.Errorf("a tensor of %d parts, not of storage, offset, shape and stride", len(args))
	}
	s, okS := args[0].(*torchStorage)
	offset, okO := args[1].(int)
	if !okS || !okO || offset < 0 {
		return nil, fmt.Errorf("a tensor of %T at %v", args[0], args[1])
	}
	t := &torchTensor{storage: s, offset: offset}
	for i, to := range []*[]int{&t.shape, &t.stride} {
		list, ok := args[2+i].(*types.Tuple)
		if !ok {
			return nil, fmt.Errorf("a tensor's shape or stride is %T", args[2+i])
		}
		for k := range list.Len() {
			n, ok := list.Get(k).(int)
			if !ok || n < 0 {
				return nil, fmt.Errorf("a tensor's shape or stride has %v", list.Get(k))
			}
			*to = append(*to, n)
		}
	}
	if len(t.shape) != len(t.stride) {
		return nil, fmt.Errorf("a tensor of shape %v has strides %v", t.shape, t.stride)
	}
	return t, nil
}

// rebuildParameter unwraps torch.nn.Parameter.
type rebuildParameter struct{}

func (rebuildParameter) Call(args ...any) (any, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("a parameter without a tensor")
	}
	return args[0], nil
}

// torchFindClass is the allow-list.
func torchFindClass(module, name string) (any, error) {
	switch module {
	case "torch":
		if t, ok := torchTypes[name]; ok {
			return t, nil
		}
		if name == "Size" || name == "device" {
			return torchClass{"torch." + name}, nil
		}
	case "torch._utils":
		switch name {
		case "_rebuild_tensor_v2", "_rebuild_tensor":
			return rebuildTensor{}, nil
		case "_rebuild_parameter":
			return rebuildParameter{}, nil
		case "_rebuild_sparse_tensor", "_rebuild_sparse_csr_tensor":
			return torchClass{"torch.sparse"}, nil
		}
	case "torch.serialization":
		if name == "_get_layout" {
			return torchClass{"torch.layout"}, nil
		}
	case "builtins", "__builtin__":
		if name == "set" || name == "slice" || name == "bytearray" {
			return torchClass{name}, nil
		}
	}
	for _, open := range []string{"torch_geometric", "torch_sparse", "pathlib", "ogb"} {
		if module == open || strings.HasPrefix(module, open+".") {
			return torchClass{module + "." + name}, nil
		}
	}
	return pickleClass(module, name)
}

// loadTorch decodes b.
func loadTorch(b *blob) (*torchFile, any, error) {
	f := &torchFile{name: b.name, storages: map[string]*torchStorage{}}
	r, size, err := b.readerAt()
	if err != nil {
		return nil, nil, err
	}
	var mark [4]byte
	if _, err := r.ReadAt(mark[:], 0); err != nil {
		return nil, nil, fmt.Errorf("read %s: byte 0: the file is too short for one by torch.save", b.name)
	}
	if string(mark[:]) == "PK\x03\x04" {
		value, err := f.loadZip(r, size)
		return f, value, err
	}
	data, err := b.bytes(maxFile)
	if err != nil {
		return nil, nil, err
	}
	value, err := f.loadLegacy(data)
	return f, value, err
}

// loadZip decodes the format since torch 1.6: PREFIX/data.pkl and PREFIX/data/KEY.
func (f *torchFile) loadZip(r io.ReaderAt, size int64) (any, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w; it is truncated, copy it again", f.name, err)
	}
	members := map[string]*zip.File{}
	prefix := ""
	for _, m := range z.File {
		members[m.Name] = m
		if path.Base(m.Name) == "data.pkl" && strings.Count(m.Name, "/") <= 1 {
			prefix = strings.TrimSuffix(m.Name, "data.pkl")
		}
		if path.Base(m.Name) == "constants.pkl" {
			return nil, fmt.Errorf("read %s: it is a TorchScript program, not data", f.name)
		}
	}
	read := func(name string) ([]byte, error) {
		m := members[name]
		if m == nil {
			return nil, fmt.Errorf("read %s: %s is missing from it; the file is damaged", f.name, name)
		}
		if m.Method != zip.Store || int64(m.UncompressedSize64) > size {
			return nil, fmt.Errorf("read %s: %s says it has %d bytes, in a file of %d; torch.save does not compress", f.name, name, m.UncompressedSize64, size)
		}
		rc, err := m.Open()
		if err != nil {
			return nil, fmt.Errorf("read %s: %s: %w", f.name, name, err)
		}
		defer rc.Close()
		data := make([]byte, m.UncompressedSize64)
		if _, err := io.ReadFull(rc, data); err != nil {
			return nil, fmt.Errorf("read %s: %s: %w; the file is damaged", f.name, name, err)
		}
		if _, err := rc.Read(make([]byte, 1)); err != io.EOF {
			return nil, fmt.Errorf("read %s: %s: %w; the file is damaged", f.name, name, err)
		}
		return data, nil
	}
	if m := members[prefix+"byteorder"]; m != nil {
		order, err := read(prefix + "byteorder")
		if err != nil {
			return nil, err
		}
		if string(order) != "little" {
			return nil, fmt.Errorf("read %s: its byte order is %q; save it on a little-endian machine", f.name, clip(string(order)))
		}
	}
	data, err := read(prefix + "data.pkl")
	if err != nil {
		return nil, err
	}
	f.member = func(key string) ([]byte, error) { return read(prefix + "data/" + key) }
	value, _, err := f.unpickle(data, 0)
	return value, err
}

// torchMagic and torchProtocol start a file of the format before torch 1.6.
const (
	torchMagic    = "\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
	torchProtocol = "\x80\x02M\xe9\x03."
)

// loadLegacy decodes the format before torch 1.6: five pickles (a mark, a version,
// system facts, the objects, the storages' keys), then each storage's length and bytes.
func (f *torchFile) loadLegacy(data []byte) (any, error) {
	if !bytes.HasPrefix(data, []byte(torchMagic+torchProtocol)) {
		return nil, fmt.Errorf("read %s: byte 0: it is no file of torch.save; a .pt file of another program must be saved again with it", f.name)
	}
	_, at, err := f.unpickle(data, len(torchMagic+torchProtocol))
	if err != nil {
		return nil, err
	}
	value, at, err := f.unpickle(data, at)
	if err != nil {
		return nil, err
	}
	keys, at, err := f.unpickle(data, at)
	if err != nil {
		return nil, err
	}
	list, ok := keys.(*types.List)
	if !ok {
		return nil, fmt.Errorf("read %s: byte %d: %T where the storages are listed", f.name, at, keys)
	}
	for _, k := range *list {
		key, _ := k.(string)
		s := f.storages[key]
		if s == nil || s.data != nil {
			return nil, fmt.Errorf("read %s: byte %d: storage %v belongs to no tensor; the file is damaged", f.name, at, k)
		}
		if len(data)-at < 8 {
			return nil, fmt.Errorf("read %s: byte %d: the file ends before storage %q; copy it again", f.name, at, clip(key))
		}
		n := binary.LittleEndian.Uint64(data[at:])
		at += 8
		if n != uint64(s.n) || n > uint64(len(data)-at)/uint64(s.typ.size) {
			return nil, fmt.Errorf("read %s: byte %d: storage %q has %d elements, its tensors say %d, and %d bytes are left", f.name, at, clip(key), n, s.n, len(data)-at)
		}
		s.data = data[at : at+s.n*s.typ.size]
		at += len(s.data)
	}
	return value, nil
}

// unpickle decodes the pickle at byte at and returns where it ends.
func (f *torchFile) unpickle(data []byte, at int) (value any, end int, err error) {
	stop, err := scanPickle(data[at:])
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: byte %d of the pickle: %w; the file is damaged", f.name, at+stop, err)
	}
	end = at + stop + 1
	r := bytes.NewReader(data[at:end])
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("read %s: byte %d of the pickle: malformed: %v", f.name, end-r.Len(), p)
		}
	}()
	u := pickle.NewUnpickler(r)
	u.FindClass = torchFindClass
	u.PersistentLoad = f.persistent
	if value, err = u.Load(); err != nil {
		return nil, 0, fmt.Errorf("read %s: byte %d of the pickle: %w", f.name, end-r.Len(), err)
	}
	return value, end, nil
}

// persistent is the storage of ("storage", type, key, device, elements, ...).
func (f *torchFile) persistent(id any) (any, error) {
	t, ok := id.(*types.Tuple)
	if !ok || t.Len() < 5 || t.Get(0) != "storage" {
		return nil, fmt.Errorf("%v where a storage is named", id)
	}
	typ, okT := t.Get(1).(torchType)
	key, okK := t.Get(2).(string)
	n, okN := t.Get(4).(int)
	if !okT || !okK || !okN || n < 0 || n > math.MaxInt64/8 {
		return nil, fmt.Errorf("a storage of type %T with key %v and %v elements", t.Get(1), t.Get(2), t.Get(4))
	}
	if t.Len() > 5 && t.Get(5) != nil {
		return nil, fmt.Errorf("a storage that is part of another; save the file with a newer torch")
	}
	if s := f.storages[key]; s != nil {
		if s.typ != typ || s.n != n {
			return nil, fmt.Errorf("storage %q is named with two types or lengths", clip(key))
		}
		return s, nil
	}
	s := &torchStorage{typ: typ, n: n}
	f.storages[key] = s
	if f.member == nil {
		return s, nil
	}
	data, err := f.member(key)
	if err != nil {
		return nil, err
	}
	if len(data)/typ.size < n {
		return nil, fmt.Errorf("storage %q has %d bytes for %d elements of %s", clip(key), len(data), n, typ.called)
	}
	s.data = data
	return s, nil
}

// array is the tensor's values, row-major; name is for messages.
func (t *torchTensor) array(name string) (*numArray, error) {
	s := t.storage
	n, top := 1, t.offset
	for i, d := range t.shape {
		if d > 0 && (n > math.MaxInt32*64/d || t.stride[i] > (math.MaxInt64/2)/d) {
			return nil, fmt.Errorf("read %s: shape %v is larger than its file", name, t.shape)
		}
		n *= d
		top += max(0, d-1) * t.stride[i]
	}
	switch {
	case n > 0 && (top < 0 || top >= s.n):
		return nil, fmt.Errorf("read %s: shape %v at %d ends at element %d of a storage of %d; the file is damaged", name, t.shape, t.offset, top, s.n)
	case n > s.n+1<<16:
		return nil, fmt.Errorf("read %s: shape %v repeats the %d values of its storage; call clone() before saving it", name, t.shape, s.n)
	case len(s.data) < s.n*s.typ.size:
		return nil, fmt.Errorf("read %s: its storage is missing from the file", name)
	}
	var data []byte
	if n > 0 {
		data = t.contiguous(n)
	}
	kind, size := s.typ.kind, s.typ.size
	if kind == 'g' { // the upper half of a float32
		wide := make([]byte, 2*len(data))
		for i := 0; i < len(data); i += 2 {
			wide[2*i+2], wide[2*i+3] = data[i], data[i+1]
		}
		kind, size, data = 'f', 4, wide
	}
	return &numArray{name: name, shape: t.shape, n: n, kind: kind, size: size, r: bytes.NewReader(data)}, nil
}

// contiguous is the tensor's bytes in row-major order.
func (t *torchTensor) contiguous(n int) []byte {
	size, data := t.storage.typ.size, t.storage.data
	dense, step := true, 1
	for i := len(t.shape) - 1; i >= 0; i-- {
		dense = dense && (t.shape[i] == 1 || t.stride[i] == step)
		step *= t.shape[i]
	}
	if dense {
		return data[t.offset*size : (t.offset+n)*size]
	}
	out := make([]byte, 0, n*size)
	at := make([]int, len(t.shape))
	pos := t.offset
	for range n {
		out = append(out, data[pos*size:(pos+1)*size]...)
		for i := len(at) - 1; i >= 0; i-- {
			at[i]++
			pos += t.stride[i]
			if at[i] < t.shape[i] {
				break
			}
			pos -= at[i] * t.stride[i]
			at[i] = 0
		}
	}
	return out
}

package dataset

import (
	"archive/zip"
	"fmt"
	"io"
	"sort"
	"strings"
)

// npz is an open .npz file: a zip of .npy members, stored or deflated.
type npz struct {
	blob    *blob
	members map[string]*zip.File // by key, without .npy
	open    []io.Closer
}

// openNPZ reads the directory of b and takes it over.
func openNPZ(b *blob) (*npz, error) {
	r, size, err := b.readerAt()
	if err == nil {
		var z *zip.Reader
		if z, err = zip.NewReader(r, size); err == nil {
			n := &npz{blob: b, members: map[string]*zip.File{}}
			for _, f := range z.File {
				n.members[strings.TrimSuffix(f.Name, ".npy")] = f
			}
			return n, nil
		}
		err = fmt.Errorf("read %s: byte %d of %d: %w; it is truncated or no .npz, copy it again", b.name, size, size, err)
	}
	b.Close()
	return nil, err
}

// Close releases the file.
func (n *npz) Close() error {
	for _, c := range n.open {
		c.Close()
	}
	return n.blob.Close()
}

// has says whether every key is there.
func (n *npz) has(keys ...string) bool {
	for _, k := range keys {
		if n.members[k] == nil {
			return false
		}
	}
	return true
}

// first is the first of keys that is there, or "".
func (n *npz) first(keys ...string) string {
	for _, k := range keys {
		if n.has(k) {
			return k
		}
	}
	return ""
}

// keys is the sorted names of the members.
func (n *npz) keys() string {
	var names []string
	for k := range n.members {
		names = append(names, k)
	}
	sort.Strings(names)
	if len(names) > 20 {
		names = append(names[:20], "…")
	}
	return strings.Join(names, ", ")
}

// array opens a member. Its size is bounded by what the compressed bytes can hold.
func (n *npz) array(key string) (*numArray, error) {
	name := n.blob.name + ": " + key
	f := n.members[key]
	if f == nil {
		return nil, fmt.Errorf("read %s: it is missing; the file has %s", name, n.keys())
	}
	size := int64(f.UncompressedSize64)
	if size < 0 || f.Method == zip.Store && size > n.blob.size || size > maxExpanded(min(int64(f.CompressedSize64), n.blob.size)) {
		return nil, fmt.Errorf("read %s: %d bytes are said to expand to %d, more than such data can; unpack it first if it is genuine", name, f.CompressedSize64, f.UncompressedSize64)
	}
	if f.Method != zip.Store && f.Method != zip.Deflate {
		return nil, fmt.Errorf("read %s: zip method %d is not read; save it with numpy.savez or savez_compressed", name, f.Method)
	}
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w; the file is damaged", name, err)
	}
	n.open = append(n.open, r)
	h, header, err := readNPYHeader(name, r)
	if err != nil {
		return nil, err
	}
	return newNumArray(name, h, r, size-int64(header))
}

// csr opens the members prefix+data, indices, indptr and shape.
func (n *npz) csr(prefix string) (csrParts, error) {
	p := csrParts{name: n.blob.name + ": " + strings.TrimRight(prefix, "_.")}
	var err error
	if p.rows, p.cols, err = n.shape(prefix + "shape"); err != nil {
		return p, err
	}
	if p.indptr, err = n.array(prefix + "indptr"); err != nil {
		return p, err
	}
	if p.indices, err = n.array(prefix + "indices"); err != nil {
		return p, err
	}
	if n.has(prefix + "data") {
		p.data, err = n.array(prefix + "data")
	}
	return p, err
}

// shape reads two numbers.
func (n *npz) shape(key string) (rows, cols int, err error) {
	a, err := n.array(key)
	if err != nil {
		return 0, 0, err
	}
	if a.n != 2 {
		return 0, 0, fmt.Errorf("read %s: %d numbers, not rows and columns", a.name, a.n)
	}
	v, err := a.int32s("size", 0, maxVertices)
	if err != nil {
		return 0, 0, err
	}
	return int(v[0]), int(v[1]), nil
}

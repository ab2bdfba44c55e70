package dataset

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"dorylus/kernels"
)

// featureTable is features as read, rows in the file's order.
type featureTable struct {
	name   string
	ids    []string // of each row; nil: row i is vertex i
	dense  *kernels.Mat
	sparse *kernels.CSR
}

var featureExts = slices.Concat([]string{".npy", ".npz", ".json"}, svmExts, textExts)

func (e *edgeList) readFeatures(ctx context.Context) error {
	b, err := e.part(e.in.opt.Features, e.tables.features, featureNames, featureExts)
	if b == nil || err != nil {
		return err
	}
	defer b.Close()
	e.raw.Files = append(e.raw.Files, path.Base(b.name))
	f := &featureTable{name: b.name}
	switch extOf(b.name) {
	case ".npy":
		err = f.readNPY(b)
	case ".npz":
		var z *npz
		if z, err = openNPZ(b); err == nil {
			err = f.readNPZ(z, e.raw)
		}
	case ".svm", ".libsvm", ".svmlight":
		e.spare, err = f.readSVM(ctx, b, e.raw)
	case ".json":
		err = f.readJSON(b, e.raw)
	default:
		err = f.readText(ctx, b)
	}
	if err != nil {
		return err
	}
	e.features = f
	if f.ids == nil {
		return e.declare(f.rows(), b.name)
	}
	return nil
}

func (f *featureTable) rows() int {
	if f.dense != nil {
		return f.dense.Rows
	}
	return f.sparse.Rows()
}

// openNPY reads the header of a .npy file, which may be compressed.
func openNPY(b *blob) (*numArray, error) {
	r, err := b.unpacked()
	if err != nil {
		return nil, err
	}
	h, header, err := readNPYHeader(b.name, r)
	if err != nil {
		return nil, err
	}
	avail := b.size - int64(header)
	if z, ok := r.(*bounded); ok {
		avail = z.left
	}
	return newNumArray(b.name, h, r, avail)
}

func (f *featureTable) readNPY(b *blob) error {
	a, err := openNPY(b)
	if err != nil {
		return err
	}
	rows, _, err := a.dims()
	if err != nil {
		return err
	}
	f.dense, err = a.matrix(rows)
	return err
}

// readNPZ reads scipy's save_npz of a CSR matrix, or the only array of a file.
func (f *featureTable) readNPZ(z *npz, raw *Raw) error {
	if z.has("indptr", "indices", "shape") {
		p, err := z.csr("")
		if err != nil {
			return err
		}
		p.name = z.blob.name
		var merged int64
		if f.sparse, merged, err = p.features(); err != nil {
			return err
		}
		raw.noteMerged(p.name, merged)
		return nil
	}
	key := z.first("features", "x", "feat", "arr_0")
	if key == "" && len(z.members) == 1 {
		key = z.keys()
	}
	if key == "" {
		return fmt.Errorf("read %s: neither a scipy CSR matrix nor an array called features; it has %s", z.blob.name, z.keys())
	}
	a, err := z.array(key)
	if err != nil {
		return err
	}
	rows, _, err := a.dims()
	if err != nil {
		return err
	}
	f.dense, err = a.matrix(rows)
	return err
}

// featureBlock is the rows of one block of text.
type featureBlock struct {
	ids    []string
	values []float32
}

// readText reads one row of numbers per line, after an id where there is a column for it.
func (f *featureTable) readText(ctx context.Context, b *blob) error {
	text, err := b.unpacked()
	if err != nil {
		return err
	}
	defer text.Close()
	l, first, rest, err := sniff(b.name, text)
	if err != nil {
		return err
	}
	if first == nil {
		return fmt.Errorf("read %s: it has no row of features", b.name)
	}
	id := -1
	if l.column("id", "node", "node_id", "nodeid", "vertex", "name", "index") == 0 || l.header == nil && !isNumber(first[0]) {
		id = 0
	}
	cols := l.cols
	if id == 0 {
		cols--
	}
	if cols == 0 {
		return fmt.Errorf("read %s: line %d: there is an id and no feature", b.name, l.skip+1)
	}
	var values []float32
	parse := func(b []byte) (featureBlock, int, error) { return parseFeatures(b, l.sep, id, cols) }
	err = parseLines(ctx, b.name, rest, l.skip, parse, func(p featureBlock) error {
		f.ids = append(f.ids, p.ids...)
		values = append(values, p.values...)
		return nil
	})
	if err != nil {
		return err
	}
	f.dense = kernels.FromSlice(len(values)/cols, cols, values)
	return nil
}

// parseFeatures reads a block of lines of cols numbers, with an id in column 0 if id is 0.
func parseFeatures(b []byte, sep byte, id, cols int) (p featureBlock, line int, err error) {
	for ; len(b) > 0; line++ {
		var text []byte
		text, b = nextLine(b)
		if isBlank(text) || isComment(text) {
			continue
		}
		s := unsafe.String(unsafe.SliceData(text), len(text))
		n, column := 0, 0
		for more := true; more; column++ {
			var field string
			field, s, more = nextField(s, sep)
			if column == id {
				p.ids = append(p.ids, strings.Clone(field))
				continue
			}
			n++
			x, err := strconv.ParseFloat(field, 32)
			if err != nil && !(math.IsInf(x, 0) && errors.Is(err, strconv.ErrRange)) {
				return p, line, atLine(line, "column %d: %q is not a number", column+1, clip(field))
			}
			p.values = append(p.values, float32(x))
		}
		if n != cols {
			return p, line, atLine(line, "%d features, but the first row has %d", n, cols)
		}
	}
	return p, line, nil
}

// nextField cuts the first field off s.
func nextField(s string, sep byte) (field, rest string, more bool) {
	if sep == ' ' {
		s = strings.TrimSpace(s)
		i := strings.IndexAny(s, " \t")
		if i < 0 {
			return s, "", false
		}
		return s[:i], s[i:], true
	}
	field, rest, more = strings.Cut(s, string(sep))
	field = strings.TrimSpace(field)
	if n := len(field); n > 1 && field[0] == '"' && field[n-1] == '"' {
		field = field[1 : n-1]
	}
	return field, rest, more
}

package dataset

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
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

// labelTable is labels as read.
type labelTable struct {
	name    string
	ids     []string // of each row; nil: row i is vertex i
	labels  []int32
	classes []string
}

var featureExts = append([]string{".npy", ".npz", ".json"}, textExts...)

func (e *edgeList) readFeatures(ctx context.Context) error {
	b, err := e.in.part(e.in.opt.Features, featureNames, featureExts)
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

func (e *edgeList) readLabels(ctx context.Context) error {
	b, err := e.in.part(e.in.opt.Labels, labelNames, append([]string{".npy"}, textExts...))
	if b == nil || err != nil {
		return err
	}
	defer b.Close()
	e.raw.Files = append(e.raw.Files, path.Base(b.name))
	t := &labelTable{name: b.name}
	if extOf(b.name) == ".npy" {
		a, err := openNPY(b)
		if err != nil {
			return err
		}
		rows, _, err := a.dims()
		if err != nil {
			return err
		}
		if a.kind == 'U' || a.kind == 'S' {
			names, err := a.strings()
			if err != nil {
				return err
			}
			err = t.set(names)
			if err != nil {
				return err
			}
		} else if t.labels, err = a.labels(rows); err != nil {
			return err
		}
	} else if err := t.readText(ctx, b, e.in.opt); err != nil {
		return err
	}
	e.labels = t
	if t.ids == nil {
		return e.declare(len(t.labels), b.name)
	}
	return nil
}

// readText reads a label per line, or an id and a label.
func (t *labelTable) readText(ctx context.Context, b *blob, opt Options) error {
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
		return fmt.Errorf("read %s: it has no label", b.name)
	}
	id, label, err := labelColumns(l, opt)
	if err != nil {
		return fmt.Errorf("read %s: line %d: %w", b.name, l.skip, err)
	}
	var labels []string
	row := func(fields []string) error {
		if len(fields) != l.cols {
			return fmt.Errorf("%d columns, but the first line has %d", len(fields), l.cols)
		}
		labels = append(labels, strings.Clone(strings.TrimSpace(fields[label])))
		if id >= 0 {
			t.ids = append(t.ids, strings.Clone(strings.TrimSpace(fields[id])))
		}
		return nil
	}
	if err := eachRow(ctx, b.name, rest, l, row); err != nil {
		return err
	}
	return t.set(labels)
}

// labelColumns is the places of id (-1: none) and label.
func labelColumns(l layout, opt Options) (id, label int, err error) {
	named := func(name string) (int, error) {
		if i := l.column(name); i >= 0 {
			return i, nil
		}
		return 0, fmt.Errorf("no column is called %q%s; there are %s", name, suggest(name, l.header), strings.Join(l.header, ", "))
	}
	label = l.cols - 1
	if opt.LabelColumn != "" {
		if label, err = named(opt.LabelColumn); err != nil {
			return 0, 0, err
		}
	} else if i := l.column("label", "class", "target", "y"); i >= 0 {
		label = i
	}
	switch {
	case opt.IDColumn != "":
		id, err = named(opt.IDColumn)
	case l.cols == 1:
		id = -1
	default:
		if id = l.column("id", "node_id", "nodeid", "node", "vertex"); id < 0 {
			id = 0
		}
	}
	if err == nil && id == label {
		err = fmt.Errorf("column %d is both id and label; name the columns", id+1)
	}
	return id, label, err
}

// eachRow calls row with the fields of every row of a table.
func eachRow(ctx context.Context, name string, r io.Reader, l layout, row func(fields []string) error) error {
	if l.sep == ' ' {
		type line struct {
			fields []string
			n      int
		}
		parse := func(b []byte) (lines []line, n int, err error) {
			for ; len(b) > 0; n++ {
				var text []byte
				if text, b = nextLine(b); !isBlank(text) && !isComment(text) {
					lines = append(lines, line{strings.Fields(string(text)), n})
				}
			}
			return lines, n, nil
		}
		return parseLines(ctx, name, r, l.skip, parse, func(lines []line) error {
			for _, x := range lines {
				if err := row(x.fields); err != nil {
					return &lineError{x.n, err}
				}
			}
			return nil
		})
	}
	c := csv.NewReader(r)
	c.Comma, c.Comment, c.LazyQuotes, c.FieldsPerRecord, c.ReuseRecord = rune(l.sep), '#', true, -1, true
	for i := 0; ; i++ {
		fields, err := c.Read()
		if err == io.EOF {
			return nil
		}
		var bad *csv.ParseError
		if errors.As(err, &bad) {
			return fmt.Errorf("read %s: line %d: %w", name, l.skip+bad.Line, bad.Err)
		}
		if err != nil {
			return fmt.Errorf("read %s: after row %d: %w", name, i, cause(err))
		}
		if err := row(fields); err != nil {
			at, _ := c.FieldPos(0)
			return fmt.Errorf("read %s: line %d: %w", name, l.skip+at, err)
		}
		if i%(1<<16) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// set turns label texts into classes: numbers as they are, names in sorted order.
// An empty text, nan, ? and negative numbers mean unlabelled.
func (t *labelTable) set(texts []string) error {
	t.labels = make([]int32, len(texts))
	numeric := true
	for i, s := range texts {
		if unlabelled(s) {
			t.labels[i] = -1
			continue
		}
		v, err := parseID(s, 0)
		if err != nil {
			numeric = false
			break
		}
		if v >= maxClasses {
			return fmt.Errorf("read %s: record %d: label %s is not a class number in [0,%d); is the right column read?", t.name, i, s, maxClasses)
		}
		t.labels[i] = int32(v)
	}
	if numeric {
		return nil
	}
	place := map[string]int32{}
	for _, s := range texts {
		if !unlabelled(s) {
			place[s] = 0
		}
	}
	if len(place) > maxClasses {
		return fmt.Errorf("read %s: %d different labels are more than the %d classes that are read; is the right column read?", t.name, len(place), maxClasses)
	}
	for s := range place {
		t.classes = append(t.classes, s)
	}
	slices.Sort(t.classes)
	for k, s := range t.classes {
		place[s] = int32(k)
	}
	for i, s := range texts {
		t.labels[i] = -1
		if !unlabelled(s) {
			t.labels[i] = place[s]
		}
	}
	return nil
}

func unlabelled(s string) bool {
	return s == "" || s == "?" || strings.EqualFold(s, "nan") || len(s) > 1 && s[0] == '-' && isNumber(s)
}

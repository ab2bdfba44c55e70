package dataset

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
)

// labelTable is labels as read: a class for each row, or sets of classes.
type labelTable struct {
	name    string
	ids     []string // of each row; nil: row i is vertex i
	labels  []int32
	classes []string
	sets    *classSets
}

func (t *labelTable) rows() int {
	if t.sets != nil {
		return len(t.sets.labelled)
	}
	return len(t.labels)
}

func (e *edgeList) readLabels(ctx context.Context) error {
	b, err := e.part(e.in.opt.Labels, e.tables.labels, labelNames, append([]string{".npy"}, textExts...))
	if b == nil && err == nil {
		e.labels = e.spare
	}
	if b == nil || err != nil {
		return err
	}
	defer b.Close()
	e.raw.Files = append(e.raw.Files, path.Base(b.name))
	t := &labelTable{name: b.name}
	if extOf(b.name) == ".npy" {
		err = t.readNPY(b)
	} else {
		err = t.readText(ctx, b, e)
	}
	if err != nil {
		return err
	}
	e.labels = t
	if t.ids == nil {
		return e.declare(t.rows(), b.name)
	}
	return nil
}

func (t *labelTable) readNPY(b *blob) error {
	a, err := openNPY(b)
	if err != nil {
		return err
	}
	if a.kind == 'U' || a.kind == 'S' {
		names, err := a.strings()
		if err != nil {
			return err
		}
		return t.set(names)
	}
	t.sets, t.labels, err = a.anyLabels(-1)
	return err
}

// readText reads a label per line, or an id and a label, or one column per class.
func (t *labelTable) readText(ctx context.Context, b *blob, e *edgeList) error {
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
	if l.cols > 1 && e.classColumns || l.cols > 2 && l.header == nil && e.in.opt.LabelColumn == "" && allZeroOne(first) {
		return t.readColumns(ctx, rest, l)
	}
	id, label, err := e.labelColumnsOf(l)
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

// allZeroOne says whether fields look like one column per class.
func allZeroOne(fields []string) bool {
	for _, f := range fields {
		if x, err := strconv.ParseFloat(strings.TrimSpace(f), 32); err != nil || x != 0 && x != 1 && x == x {
			return false
		}
	}
	return true
}

// readColumns reads one row per vertex with a 0 or 1 for each class.
func (t *labelTable) readColumns(ctx context.Context, r io.Reader, l layout) (err error) {
	if t.sets, err = newClassSets(t.name, l.cols); err != nil {
		return err
	}
	t.classes = l.header
	values := make([]float32, l.cols)
	return eachRow(ctx, t.name, r, l, func(fields []string) error {
		if len(fields) != l.cols {
			return fmt.Errorf("%d columns, but the first line has %d", len(fields), l.cols)
		}
		for k, f := range fields {
			x, err := strconv.ParseFloat(strings.TrimSpace(f), 32)
			if err != nil {
				if !unlabelled(strings.TrimSpace(f)) {
					return fmt.Errorf("column %d: %q is not 0 or 1", k+1, clip(f))
				}
				x = -1
			}
			values[k] = float32(x)
		}
		return t.sets.add(values)
	})
}

// labelColumnsOf is the places of id (-1: none) and label.
func (e *edgeList) labelColumnsOf(l layout) (id, label int, err error) {
	opt := e.in.opt
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
	} else if i := l.column(append(e.labelColumns, "label", "class", "target", "y")...); i >= 0 {
		label = i
	}
	switch {
	case opt.IDColumn != "":
		id, err = named(opt.IDColumn)
	case l.cols == 1:
		id = -1
	default:
		if id = l.column(append(e.idColumns, "id", "node_id", "nodeid", "node", "vertex")...); id < 0 {
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

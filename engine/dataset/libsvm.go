package dataset

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"dorylus/kernels"
)

// svmExts are the extensions of LIBSVM's text format.
var svmExts = []string{".svm", ".libsvm", ".svmlight"}

// svmBlock is the vertices of one block of text, columns as in the file.
type svmBlock struct {
	labels [][]int32
	known  []bool
	rows   kernels.CSR
	zero   bool // a column is numbered 0
}

// readSVM reads a line "label column:value column:value ..." per vertex, in vertex
// order. Columns are numbered from 1 unless one is 0. A label may be several, with
// commas between them, and is used where no other file has labels.
func (f *featureTable) readSVM(ctx context.Context, b *blob, raw *Raw) (*labelTable, error) {
	text, err := b.unpacked()
	if err != nil {
		return nil, err
	}
	defer text.Close()
	m := &kernels.CSR{RowPtr: []int64{0}}
	t := &labelTable{name: b.name}
	if t.sets, err = newClassSets(b.name, 0); err != nil {
		return nil, err
	}
	zero := false
	err = parseLines(ctx, b.name, text, 0, parseSVM, func(p *svmBlock) error {
		start := int64(len(m.Col))
		for i, set := range p.labels {
			m.RowPtr = append(m.RowPtr, start+p.rows.RowPtr[i+1])
			if err := t.sets.addSet(set, p.known[i]); err != nil {
				return err
			}
		}
		m.Col, m.Val = append(m.Col, p.rows.Col...), append(m.Val, p.rows.Val...)
		m.Cols = max(m.Cols, p.rows.Cols)
		zero = zero || p.zero
		return nil
	})
	if err != nil {
		return nil, err
	}
	if m.Rows() == 0 {
		return nil, fmt.Errorf("read %s: it has no row of features", b.name)
	}
	if !zero && m.Cols > 0 {
		m.Cols--
		for i := range m.Col {
			m.Col[i]--
		}
	}
	if err := checkColumns(b.name, int64(m.Cols), int64(len(m.Col))); err != nil {
		return nil, err
	}
	if allOnes(m.Val) {
		m.Val = nil
	}
	raw.noteMerged(b.name, sortColumns(m))
	f.sparse = m
	return t.plain(), nil
}

// plain turns sets of exactly one class into labels, without calling them one-hot.
func (t *labelTable) plain() *labelTable {
	if t.sets.several {
		return t
	}
	var r Raw
	t.sets.store(&r)
	t.sets, t.labels = nil, r.Labels
	return t
}

func parseSVM(b []byte) (*svmBlock, int, error) {
	p := &svmBlock{rows: kernels.CSR{RowPtr: []int64{0}}}
	line := 0
	for ; len(b) > 0; line++ {
		var text []byte
		text, b = nextLine(b)
		if isBlank(text) || isComment(text) {
			continue
		}
		s, _, _ := strings.Cut(string(text), "#")
		first := true
		for field := range strings.FieldsSeq(s) {
			if first {
				first = false
				set, known, err := svmLabels(field)
				if err != nil {
					return nil, line, &lineError{line, err}
				}
				p.labels, p.known = append(p.labels, set), append(p.known, known)
				continue
			}
			if strings.HasPrefix(field, "qid:") {
				continue
			}
			if err := p.entry(field); err != nil {
				return nil, line, &lineError{line, err}
			}
		}
		p.rows.RowPtr = append(p.rows.RowPtr, int64(len(p.rows.Col)))
	}
	return p, line, nil
}

// svmLabels reads "3", "1,4", or "-1" and "nan" for a vertex that has none.
func svmLabels(s string) (set []int32, known bool, err error) {
	if unlabelled(s) {
		return nil, false, nil
	}
	for _, part := range strings.Split(s, ",") {
		v, err := parseID(strings.TrimPrefix(part, "+"), 0)
		if err != nil || v >= maxClasses {
			return nil, false, fmt.Errorf("label %q is not a class number in [0,%d); a line is label column:value ...", clip(s), maxClasses)
		}
		set = append(set, int32(v))
	}
	return set, true, nil
}

func (p *svmBlock) entry(field string) error {
	at, value, ok := strings.Cut(field, ":")
	c, err := strconv.ParseInt(at, 10, 64)
	if !ok || err != nil || c < 0 || c > maxVertices-1 {
		return fmt.Errorf("%q is not column:value", clip(field))
	}
	x, err := strconv.ParseFloat(value, 32)
	if err != nil && !(math.IsInf(x, 0) && errors.Is(err, strconv.ErrRange)) {
		return fmt.Errorf("%q: the value is not a number", clip(field))
	}
	p.zero = p.zero || c == 0
	p.rows.Cols = max(p.rows.Cols, int(c)+1)
	p.rows.Col, p.rows.Val = append(p.rows.Col, int32(c)), append(p.rows.Val, float32(x))
	return nil
}

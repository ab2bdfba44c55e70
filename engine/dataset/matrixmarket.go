package dataset

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

func detectMatrixMarket(in *input) bool { return !in.dir && (in.ext() == ".mtx" || in.ext() == ".mm") }

// matrixMarket is a file's banner and size.
type matrixMarket struct {
	name     string
	array    bool   // all values, column by column, instead of entries
	field    string // real, integer, pattern
	symmetry string // general, symmetric, skew-symmetric
	n        int
	entries  int64 // as declared; of an array: as its shape implies
	line     int   // lines up to and including the size
}

// readMatrixMarket reads a square matrix as a graph: an entry in row i and column j
// is an edge i -> j of that weight. Matrices said to be symmetric are undirected;
// skew-symmetric ones get both directions, with opposite weights. Vertices keep
// their numbers from 1.
func readMatrixMarket(ctx context.Context, in *input) (*Raw, error) {
	b, err := in.openSelf()
	if err != nil {
		return nil, err
	}
	defer b.Close()
	text, err := b.unpacked()
	if err != nil {
		return nil, err
	}
	defer text.Close()
	r := bufio.NewReaderSize(text, 1<<16)
	m := &matrixMarket{name: b.name}
	if err := m.header(r, b.size); err != nil {
		return nil, err
	}
	raw := &Raw{Name: in.base(), Format: "matrixmarket", Files: []string{path.Base(in.path)}, N: m.n, Undirected: m.symmetry == "symmetric"}
	if m.array {
		err = m.readArray(ctx, r, raw)
	} else {
		err = m.readEntries(ctx, r, raw)
	}
	if err != nil {
		return nil, err
	}
	if m.symmetry == "skew-symmetric" {
		mirror(raw)
	}
	if allOnes(raw.Weight) {
		raw.Weight = nil
	}
	raw.IDs = numberedFrom(1, m.n)
	return raw, nil
}

// header reads the banner, the comments and the size.
func (m *matrixMarket) header(r *bufio.Reader, size int64) error {
	for sized := false; !sized; {
		line, err := r.ReadString('\n')
		if len(line) > maxHeader {
			return fmt.Errorf("read %s: line %d: %d bytes; this is no MatrixMarket file", m.name, m.line+1, len(line))
		}
		if err != nil && (err != io.EOF || line == "") {
			if err == io.EOF {
				err = fmt.Errorf("the file ends before the size of the matrix")
			}
			return fmt.Errorf("read %s: line %d: %w", m.name, m.line+1, cause(err))
		}
		m.line++
		line = strings.TrimSpace(line)
		switch {
		case m.line == 1:
			err = m.banner(strings.Fields(strings.ToLower(line)))
		case line == "" || line[0] == '%':
			continue
		default:
			sized, err = true, m.size(strings.Fields(line), size)
		}
		if err != nil {
			return fmt.Errorf("read %s: line %d: %w", m.name, m.line, err)
		}
	}
	return nil
}

func (m *matrixMarket) banner(f []string) error {
	if len(f) == 0 || f[0] != "%%matrixmarket" {
		return fmt.Errorf("no banner; put %q above, with what holds for this matrix", "%%MatrixMarket matrix coordinate real general")
	}
	if len(f) != 5 {
		return fmt.Errorf("the banner has %d words, not five: %%%%MatrixMarket matrix coordinate|array real|integer|pattern general|symmetric|skew-symmetric", len(f))
	}
	known := func(what, word string, words ...string) error {
		if slices.Contains(words, word) {
			return nil
		}
		return fmt.Errorf("%s %q is unknown%s; known are %s", what, clip(word), suggest(word, words), strings.Join(words, ", "))
	}
	if f[3] == "complex" {
		return fmt.Errorf("the values are complex; a graph needs real weights: save their absolute values")
	}
	for _, err := range []error{
		known("object", f[1], "matrix"), known("format", f[2], "coordinate", "array"),
		known("field", f[3], "real", "integer", "pattern"),
		known("symmetry", f[4], "general", "symmetric", "skew-symmetric", "hermitian"),
	} {
		if err != nil {
			return err
		}
	}
	m.array, m.field, m.symmetry = f[2] == "array", f[3], f[4]
	if m.symmetry == "hermitian" {
		m.symmetry = "symmetric" // the same where values are real
	}
	if m.field == "pattern" && (m.array || m.symmetry == "skew-symmetric") {
		return fmt.Errorf("a pattern has no values, so it cannot be %s %s; save it as coordinate general", f[2], f[4])
	}
	return nil
}

// size reads "rows columns [entries]". bytes is the length of the file.
func (m *matrixMarket) size(f []string, bytes int64) error {
	want := 3
	if m.array {
		want = 2
	}
	if len(f) != want {
		return fmt.Errorf("the size has %d numbers, not %d", len(f), want)
	}
	var v [3]int64
	for i, s := range f {
		var err error
		if v[i], err = strconv.ParseInt(s, 10, 64); err != nil || v[i] < 0 {
			return fmt.Errorf("size %q is not a number", clip(s))
		}
	}
	rows, cols := v[0], v[1]
	if rows != cols {
		return fmt.Errorf("the matrix is %d x %d; a graph needs as many rows as columns", rows, cols)
	}
	if rows > maxVertices {
		return fmt.Errorf("%d vertices are outside [0,%d]", rows, maxVertices)
	}
	m.n, m.entries = int(rows), v[2]
	if m.array {
		switch m.symmetry {
		case "general":
			m.entries = rows * rows
		case "symmetric":
			m.entries = rows * (rows + 1) / 2
		default:
			m.entries = rows * (rows - 1) / 2
		}
	}
	limit := maxExpanded(bytes)
	if m.entries > limit/2 {
		return fmt.Errorf("%d values announced, but the file has %d bytes; it is truncated, copy it again", m.entries, bytes)
	}
	if rows > 1<<20+64*m.entries {
		return fmt.Errorf("%d vertices for %d edges: nearly all are isolated; leave empty rows and columns out", rows, m.entries)
	}
	return nil
}

// readEntries reads lines "row column [value]".
func (m *matrixMarket) readEntries(ctx context.Context, r io.Reader, raw *Raw) error {
	weighted := m.field != "pattern"
	parse := func(b []byte) (*edgeBlock, int, error) { return m.parseEntries(b, weighted) }
	err := parseLines(ctx, m.name, r, m.line, parse, func(e *edgeBlock) error {
		for i := 0; i < len(e.small); i += 2 {
			raw.Src = append(raw.Src, e.small[i])
			raw.Dst = append(raw.Dst, e.small[i+1])
		}
		raw.Weight = append(raw.Weight, e.weight...)
		return nil
	})
	if err == nil && int64(len(raw.Src)) != m.entries {
		err = fmt.Errorf("read %s: the size on line %d says %d entries, the file has %d; it is truncated or its size is wrong", m.name, m.line, m.entries, len(raw.Src))
	}
	return err
}

func (m *matrixMarket) parseEntries(b []byte, weighted bool) (*edgeBlock, int, error) {
	e := &edgeBlock{}
	p := edgeParser{sep: ' ', cols: 2, src: 0, dst: 1, weight: -1}
	if weighted {
		p.cols, p.weight = 3, 2
	}
	line := 0
	for ; len(b) > 0; line++ {
		var text []byte
		text, b = nextLine(b)
		if isBlank(text) || isComment(text) {
			continue
		}
		f, n := p.fields(text)
		if n != p.cols {
			return nil, line, atLine(line, "%d numbers, but an entry of a %s matrix has %d", n, m.field, p.cols)
		}
		for i, what := range []string{"row", "column"} {
			v, err := strconv.ParseInt(f[i], 10, 64)
			if err != nil || v < 1 || v > int64(m.n) {
				return nil, line, atLine(line, "%s %q is outside [1,%d]", what, clip(f[i]), m.n)
			}
			e.small = append(e.small, int32(v-1))
		}
		if err := p.addWeight(e, f[2], line); err != nil {
			return nil, line, err
		}
	}
	return e, line, nil
}

// readArray reads one value per line, column by column; those that are not zero are edges.
func (m *matrixMarket) readArray(ctx context.Context, r io.Reader, raw *Raw) error {
	i, j := m.firstRow(0), 0
	seen := int64(0)
	err := parseLines(ctx, m.name, r, m.line, parseNumbers, func(values []float32) error {
		for _, x := range values {
			if seen++; seen > m.entries {
				return fmt.Errorf("read %s: more than the %d values that the size on line %d gives", m.name, m.entries, m.line)
			}
			if x != 0 {
				raw.Src, raw.Dst, raw.Weight = append(raw.Src, int32(i)), append(raw.Dst, int32(j)), append(raw.Weight, x)
			}
			if i++; i >= m.n {
				j++
				i = m.firstRow(j)
			}
		}
		return nil
	})
	if err == nil && seen != m.entries {
		err = fmt.Errorf("read %s: the size on line %d gives %d values, the file has %d; it is truncated or its size is wrong", m.name, m.line, m.entries, seen)
	}
	return err
}

// firstRow is the first row that an array gives of column j.
func (m *matrixMarket) firstRow(j int) int {
	switch m.symmetry {
	case "symmetric":
		return j
	case "skew-symmetric":
		return j + 1
	}
	return 0
}

// parseNumbers reads a block of one number per line.
func parseNumbers(b []byte) (values []float32, line int, err error) {
	for ; len(b) > 0; line++ {
		var text []byte
		text, b = nextLine(b)
		if isBlank(text) || isComment(text) {
			continue
		}
		x, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 32)
		if err != nil && !math.IsInf(x, 0) {
			return nil, line, atLine(line, "%q is not one number", clip(string(text)))
		}
		values = append(values, float32(x))
	}
	return values, line, nil
}

// mirror adds to every edge its reverse with the opposite weight.
func mirror(raw *Raw) {
	for i := range len(raw.Src) {
		if raw.Src[i] != raw.Dst[i] {
			raw.Src, raw.Dst, raw.Weight = append(raw.Src, raw.Dst[i]), append(raw.Dst, raw.Src[i]), append(raw.Weight, -raw.Weight[i])
		}
	}
}

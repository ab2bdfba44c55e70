package dataset

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"path"
	"strconv"
	"strings"

	"dorylus/kernels"
)

func detectMETIS(in *input) bool {
	switch in.ext() {
	case ".graph", ".mgraph", ".metis":
		return !in.dir
	}
	return false
}

// metisFile is the header of a METIS graph.
type metisFile struct {
	name     string
	n        int
	edges    int64
	skip     int  // numbers before a vertex's neighbours: its size and weights
	weighted bool // every neighbour is followed by the edge's weight
	line     int  // lines up to and including the header
}

// readMETIS reads the .graph format of METIS: a line per vertex with its neighbours,
// numbered from 1. Sizes and weights of vertices are passed over. Every edge must be
// listed by both its ends, with the same weight; it becomes one undirected record.
func readMETIS(ctx context.Context, in *input) (*Raw, error) {
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
	m := &metisFile{name: b.name}
	if err := m.header(r, b.size); err != nil {
		return nil, err
	}
	g, err := m.rows(ctx, r)
	if err != nil {
		return nil, err
	}
	raw := &Raw{Name: in.base(), Format: "metis", Files: []string{path.Base(in.path)}, N: m.n, Undirected: true, IDs: numberedFrom(1, m.n)}
	return raw, m.undirected(g, raw)
}

// header reads "vertices edges [fmt [ncon]]".
func (m *metisFile) header(r *bufio.Reader, size int64) error {
	for {
		line, err := r.ReadString('\n')
		if len(line) > maxHeader {
			return fmt.Errorf("read %s: line %d: %d bytes in a header of two to four numbers; this is no METIS graph", m.name, m.line+1, len(line))
		}
		if err != nil && line == "" {
			if err == io.EOF {
				err = fmt.Errorf("the file ends before its header")
			}
			return fmt.Errorf("read %s: line %d: %w", m.name, m.line+1, cause(err))
		}
		m.line++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '%' {
			continue
		}
		if err := m.parseHeader(strings.Fields(line), size); err != nil {
			return fmt.Errorf("read %s: line %d: %w", m.name, m.line, err)
		}
		return nil
	}
}

func (m *metisFile) parseHeader(f []string, size int64) error {
	if len(f) < 2 || len(f) > 4 {
		return fmt.Errorf("the header has %d numbers; it must be: vertices edges [format [weights per vertex]]", len(f))
	}
	var v [2]int64
	for i := range v {
		var err error
		if v[i], err = strconv.ParseInt(f[i], 10, 64); err != nil || v[i] < 0 || v[i] > math.MaxInt64/4 {
			return fmt.Errorf("%q is not a number of %s", clip(f[i]), [...]string{"vertices", "edges"}[i])
		}
	}
	limit := maxExpanded(size)
	if v[0] > maxVertices || v[0] > limit || v[1] > limit/2 {
		return fmt.Errorf("%d vertices and %d edges do not fit into %d bytes; the file is truncated, copy it again", v[0], v[1], size)
	}
	m.n, m.edges = int(v[0]), v[1]
	flags := "000"
	if len(f) > 2 {
		flags = fmt.Sprintf("%03s", f[2])
	}
	if len(flags) != 3 || strings.Trim(flags, "01") != "" {
		return fmt.Errorf("format %q is not up to three digits 0 or 1", clip(f[2]))
	}
	m.weighted = flags[2] == '1'
	if flags[0] == '1' {
		m.skip++
	}
	if flags[1] == '1' {
		weights := 1
		if len(f) > 3 {
			var err error
			if weights, err = strconv.Atoi(f[3]); err != nil || weights < 0 || weights > maxHeader {
				return fmt.Errorf("%q is not a number of weights per vertex", clip(f[3]))
			}
		}
		m.skip += weights
	}
	return nil
}

// metisBlock is some vertices' lines: the number of neighbours of each, and all of them.
type metisBlock struct {
	degree []int32
	col    []int32
	val    []float32
}

// rows reads the vertices' lines.
func (m *metisFile) rows(ctx context.Context, r io.Reader) (*kernels.CSR, error) {
	g := &kernels.CSR{Cols: m.n, RowPtr: make([]int64, 1, m.n+1)}
	err := parseLines(ctx, m.name, r, m.line, m.parse, func(b metisBlock) error {
		for _, d := range b.degree {
			if len(g.RowPtr) > m.n {
				if d == 0 {
					continue // blank lines at the end
				}
				return fmt.Errorf("read %s: more lines than the %d vertices of the header on line %d", m.name, m.n, m.line)
			}
			g.RowPtr = append(g.RowPtr, g.RowPtr[len(g.RowPtr)-1]+int64(d))
		}
		g.Col = append(g.Col, b.col...)
		g.Val = append(g.Val, b.val...)
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case g.Rows() != m.n:
		return nil, fmt.Errorf("read %s: %d lines of vertices, but the header on line %d says %d; the file is truncated, or a vertex without neighbours has no line of its own", m.name, g.Rows(), m.line, m.n)
	case int64(len(g.Col)) != 2*m.edges:
		return nil, fmt.Errorf("read %s: %d neighbours, but the header on line %d says %d edges, listed twice each; correct one of them", m.name, len(g.Col), m.line, m.edges)
	}
	return g, nil
}

// parse reads a block of lines.
func (m *metisFile) parse(b []byte) (out metisBlock, line int, err error) {
	for ; len(b) > 0; line++ {
		var text []byte
		text, b = nextLine(b)
		if len(text) > 0 && text[0] == '%' {
			continue
		}
		degree, column := int32(0), 0
		for s := text; ; column++ {
			var word []byte
			if word, s = nextWord(s); len(word) == 0 {
				break
			}
			if column < m.skip {
				continue
			}
			if m.weighted && (column-m.skip)%2 == 1 {
				w, err := strconv.ParseFloat(string(word), 32)
				if err != nil {
					return out, line, atLine(line, "edge weight %q is not a number", clip(string(word)))
				}
				out.val = append(out.val, float32(w))
				continue
			}
			v, err := strconv.Atoi(string(word))
			if err != nil || v < 1 || v > m.n {
				return out, line, atLine(line, "neighbour %q is outside [1,%d]", clip(string(word)), m.n)
			}
			out.col = append(out.col, int32(v-1))
			degree++
		}
		switch {
		case column > 0 && column < m.skip:
			return out, line, atLine(line, "%d numbers, but %d come before the neighbours by the header's format", column, m.skip)
		case m.weighted && len(out.val) != len(out.col):
			return out, line, atLine(line, "the last neighbour has no weight; the header's format gives every edge one")
		}
		out.degree = append(out.degree, degree)
	}
	return out, line, nil
}

// nextWord cuts the first run of characters other than blanks off s.
func nextWord(s []byte) (word, rest []byte) {
	i := 0
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	j := i
	for j < len(s) && s[j] != ' ' && s[j] != '\t' {
		j++
	}
	return s[i:j], s[j:]
}

// undirected checks that both ends list every edge and gives raw one record of each.
func (m *metisFile) undirected(g *kernels.CSR, raw *Raw) error {
	raw.noteMerged(m.name, sortColumns(g))
	cursor := append([]int64(nil), g.RowPtr...)
	for u := range g.Rows() {
		for j := g.RowPtr[u]; j < g.RowPtr[u+1]; j++ {
			v := int(g.Col[j])
			if v == u {
				return fmt.Errorf("read %s: vertex %d lists itself; METIS graphs have no self-loops: remove it", m.name, u+1)
			}
			k := cursor[v]
			for k < g.RowPtr[v+1] && int(g.Col[k]) < u {
				k++
			}
			cursor[v] = k
			if k == g.RowPtr[v+1] || int(g.Col[k]) != u {
				return fmt.Errorf("read %s: vertex %d lists %d, but %d does not list %d; both ends must list an edge", m.name, u+1, v+1, v+1, u+1)
			}
			if g.Val != nil && g.Val[k] != g.Val[j] {
				return fmt.Errorf("read %s: the edge of %d and %d weighs %v at one end and %v at the other; it must be the same", m.name, u+1, v+1, g.Val[j], g.Val[k])
			}
			if u < v {
				raw.Src, raw.Dst = append(raw.Src, int32(u)), append(raw.Dst, int32(v))
				if g.Val != nil {
					raw.Weight = append(raw.Weight, g.Val[j])
				}
			}
		}
	}
	return nil
}

package dataset

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/nlpodyssey/gopickle/types"

	"dorylus/kernels"
)

// planetoidNames is NAME of every ind.NAME.graph in the source: the file itself, or
// those in the folder.
func planetoidNames(in *input) (names []string) {
	files := in.list()
	if !in.dir {
		files = []string{path.Base(in.path)}
	}
	for _, f := range files {
		if strings.HasPrefix(f, "ind.") && strings.HasSuffix(f, ".graph") && len(f) > len("ind..graph") {
			names = append(names, f[len("ind."):len(f)-len(".graph")])
		}
	}
	return names
}

func detectPlanetoid(in *input) bool { return len(planetoidNames(in)) > 0 }

// planetoid is the content of the ind.* files.
type planetoid struct {
	prefix     string
	allx, tx   *kernels.CSR
	ally, ty   []int32 // class per row, -1 where the row names none
	train      int     // rows of y
	classes    int
	index      []int32 // test.index: row k of tx belongs to vertex index[k]
	n          int
	neighbours *types.Dict
}

// readPlanetoid reads Yang et al.'s ind.NAME.{x,y,tx,ty,allx,ally,graph,test.index}.
// Vertices 0..len(allx)-1 have the rows of allx; the rows of tx belong to the ids in
// test.index. CiteSeer's index leaves out 15 ids: these vertices exist, without
// feature or label. Train is the rows of y, validation the 500 after them, test the index.
func readPlanetoid(ctx context.Context, in *input) (*Raw, error) {
	names := planetoidNames(in)
	switch {
	case len(names) == 0:
		return nil, fmt.Errorf("open data set %s: no ind.NAME.graph in this folder", in.src)
	case len(names) > 1:
		return nil, fmt.Errorf("open data set %s: the folder has %s; name one by its file, such as %s/ind.%s.graph", in.src, strings.Join(names, " and "), in.src, names[0])
	}
	name := names[0]
	if !in.dir {
		folder := *in
		folder.path, folder.dir, folder.files = path.Dir(in.path), true, nil
		in = &folder
	}
	p := &planetoid{prefix: "ind." + name + "."}
	if err := p.load(ctx, in); err != nil {
		return nil, err
	}
	raw := &Raw{Name: name, Format: "planetoid", N: p.n, Undirected: true, Labels: p.labels()}
	for _, part := range []string{"allx", "ally", "graph", "test.index", "tx", "ty", "y"} {
		raw.Files = append(raw.Files, p.prefix+part)
	}
	var err error
	if raw.Src, raw.Dst, err = p.edges(); err != nil {
		return nil, err
	}
	raw.Sparse = p.features()
	if raw.Splits, err = p.split(); err != nil {
		return nil, err
	}
	if missing := p.missing(); len(missing) > 0 {
		raw.Findings = append(raw.Findings, Finding{
			Code: "rows-missing", Severity: Info, Count: int64(len(missing)),
			First:  fmt.Sprintf("vertex %d is not in %stest.index", missing[0], p.prefix),
			Effect: "these vertices have no features and no label, and are in no split",
			Remedy: "nothing to do: they are part of the published data set",
		})
	}
	return raw, nil
}

// load reads every file and checks them against each other.
func (p *planetoid) load(ctx context.Context, in *input) (err error) {
	if p.index, err = readIDLines(in, p.prefix+"test.index"); err != nil {
		return err
	}
	var y []int32
	for _, part := range []struct {
		name string
		to   func(name string, v any) error
	}{
		{"allx", func(name string, v any) (err error) { p.allx, err = pickledFeatures(name, v); return }},
		{"tx", func(name string, v any) (err error) { p.tx, err = pickledFeatures(name, v); return }},
		{"ally", func(name string, v any) (err error) { p.ally, err = p.pickledLabels(name, v); return }},
		{"ty", func(name string, v any) (err error) { p.ty, err = p.pickledLabels(name, v); return }},
		{"y", func(name string, v any) (err error) { y, err = p.pickledLabels(name, v); return }},
		{"graph", func(name string, v any) error { return p.graph(name, v) }},
	} {
		if err := ctx.Err(); err != nil {
			return err
		}
		name := p.prefix + part.name
		b, err := in.open(name)
		if err != nil {
			return err
		}
		data, err := b.bytes(maxFile)
		b.Close()
		if err != nil {
			return err
		}
		v, err := unpickle(name, data)
		if err != nil {
			return err
		}
		if err := part.to(name, v); err != nil {
			return err
		}
	}
	p.train = len(y)
	return p.agree(y)
}

// agree checks the row counts and sets n.
func (p *planetoid) agree(y []int32) error {
	rows := p.allx.Rows()
	switch {
	case len(p.ally) != rows:
		return fmt.Errorf("read %sally: %d rows, but %sallx has %d; both describe the same vertices", p.prefix, len(p.ally), p.prefix, rows)
	case len(p.ty) != p.tx.Rows():
		return fmt.Errorf("read %sty: %d rows, but %stx has %d; both describe the test vertices", p.prefix, len(p.ty), p.prefix, p.tx.Rows())
	case len(p.index) != p.tx.Rows():
		return fmt.Errorf("read %stest.index: %d ids, but %stx has %d rows; each row needs its id", p.prefix, len(p.index), p.prefix, p.tx.Rows())
	case p.allx.Cols != p.tx.Cols:
		return fmt.Errorf("read %stx: %d columns, but %sallx has %d", p.prefix, p.tx.Cols, p.prefix, p.allx.Cols)
	case len(y) > rows || !slices.Equal(y, p.ally[:len(y)]):
		return fmt.Errorf("read %sy: its %d labels are not the first of %sally; the files are of different data sets", p.prefix, len(y), p.prefix)
	}
	p.n = rows
	seen := make(map[int32]int, len(p.index))
	for k, v := range p.index {
		if int(v) < rows {
			return fmt.Errorf("read %stest.index: line %d: vertex %d has a row in %sallx already; test ids start at %d", p.prefix, k+1, v, p.prefix, rows)
		}
		if first, ok := seen[v]; ok {
			return fmt.Errorf("read %stest.index: line %d: vertex %d is in line %d already", p.prefix, k+1, v, first+1)
		}
		seen[v] = k
		p.n = max(p.n, int(v)+1)
	}
	if p.n > rows+16*len(p.index)+1024 {
		return fmt.Errorf("read %stest.index: the largest id is %d, but there are %d rows of features; the file is damaged", p.prefix, p.n-1, rows+len(p.index))
	}
	return nil
}

// pickledFeatures is a csr_matrix, columns sorted.
func pickledFeatures(name string, v any) (*kernels.CSR, error) {
	m, ok := v.(*pickledCSR)
	if !ok {
		return nil, fmt.Errorf("read %s: it holds %s, not a scipy csr_matrix", name, pickledName(v))
	}
	p := csrParts{name: name}
	var err error
	if p.rows, p.cols, err = m.shape(name); err != nil {
		return nil, err
	}
	if p.indptr, err = m.get(name, "indptr"); err != nil {
		return nil, err
	}
	if p.indices, err = m.get(name, "indices"); err != nil {
		return nil, err
	}
	if p.data, err = m.get(name, "data"); err != nil {
		return nil, err
	}
	f, _, err := p.features()
	return f, err
}

func pickledName(v any) string {
	switch v.(type) {
	case nil:
		return "None"
	case *pickledArray:
		return "a numpy array"
	case *pickledCSR:
		return "a csr_matrix"
	case *types.Dict:
		return "a dictionary"
	}
	return fmt.Sprintf("%T", v)
}

// pickledLabels is the class of each row of a one-hot matrix.
func (p *planetoid) pickledLabels(name string, v any) ([]int32, error) {
	m, ok := v.(*pickledArray)
	if !ok || len(m.shape) != 2 {
		return nil, fmt.Errorf("read %s: it holds %s, not a matrix of one row per vertex and one column per class", name, pickledName(v))
	}
	a, err := m.array(name)
	if err != nil {
		return nil, err
	}
	hot, err := a.bools()
	if err != nil {
		return nil, err
	}
	rows, cols := m.shape[0], m.shape[1]
	if p.classes != 0 && cols != p.classes {
		return nil, fmt.Errorf("read %s: %d classes, but the files before it have %d", name, cols, p.classes)
	}
	p.classes = cols
	if rows > 0 && cols == 0 {
		return nil, fmt.Errorf("read %s: %d rows without a class column", name, rows)
	}
	labels := make([]int32, rows)
	for i := range labels {
		labels[i] = -1
		for c, one := range hot[i*cols : (i+1)*cols] {
			if !one {
				continue
			}
			if labels[i] >= 0 {
				return nil, fmt.Errorf("read %s: row %d has classes %d and %d; only one class per vertex is read", name, i, labels[i], c)
			}
			labels[i] = int32(c)
		}
	}
	return labels, nil
}

func (p *planetoid) graph(name string, v any) error {
	d, ok := v.(*types.Dict)
	if !ok {
		return fmt.Errorf("read %s: it holds %s, not a dictionary of neighbour lists", name, pickledName(v))
	}
	p.neighbours = d
	return nil
}

// edges lists the dictionary's pairs in its own order.
func (p *planetoid) edges() (src, dst []int32, err error) {
	id := func(v any, what string) (int32, error) {
		u, ok := v.(int)
		if !ok || u < 0 || u >= p.n {
			return 0, fmt.Errorf("read %sgraph: %s %v is not a vertex; ids are in [0,%d)", p.prefix, what, v, p.n)
		}
		return int32(u), nil
	}
	for _, e := range *p.neighbours {
		v, err := id(e.Key, "key")
		if err != nil {
			return nil, nil, err
		}
		list, ok := e.Value.(*types.List)
		if !ok {
			return nil, nil, fmt.Errorf("read %sgraph: key %d has %s, not a list of neighbours", p.prefix, v, pickledName(e.Value))
		}
		for _, w := range *list {
			u, err := id(w, fmt.Sprintf("key %d: neighbour", v))
			if err != nil {
				return nil, nil, err
			}
			src, dst = append(src, v), append(dst, u)
		}
	}
	return src, dst, nil
}

// features puts the rows of allx and tx at their vertices.
func (p *planetoid) features() *kernels.CSR {
	rows := p.allx.Rows()
	row := make([]int, p.n) // of tx, or -1
	for v := rows; v < p.n; v++ {
		row[v] = -1
	}
	for k, v := range p.index {
		row[v] = k
	}
	m := &kernels.CSR{Cols: p.allx.Cols, RowPtr: make([]int64, 1, p.n+1)}
	nnz := len(p.allx.Col) + len(p.tx.Col)
	m.Col = append(make([]int32, 0, nnz), p.allx.Col...)
	if p.allx.Val != nil || p.tx.Val != nil {
		m.Val = append(make([]float32, 0, nnz), valuesOf(p.allx)...)
	}
	m.RowPtr = append(m.RowPtr, p.allx.RowPtr[1:]...)
	txVal := valuesOf(p.tx)
	for v := rows; v < p.n; v++ {
		if k := row[v]; k >= 0 {
			lo, hi := p.tx.RowPtr[k], p.tx.RowPtr[k+1]
			m.Col = append(m.Col, p.tx.Col[lo:hi]...)
			if m.Val != nil {
				m.Val = append(m.Val, txVal[lo:hi]...)
			}
		}
		m.RowPtr = append(m.RowPtr, int64(len(m.Col)))
	}
	return m
}

// valuesOf is m.Val, spelled out where it stands for ones.
func valuesOf(m *kernels.CSR) []float32 {
	if m.Val != nil {
		return m.Val
	}
	ones := make([]float32, len(m.Col))
	for i := range ones {
		ones[i] = 1
	}
	return ones
}

func (p *planetoid) labels() []int32 {
	labels := make([]int32, p.n)
	copy(labels, p.ally)
	for v := len(p.ally); v < p.n; v++ {
		labels[v] = -1
	}
	for k, v := range p.index {
		labels[v] = p.ty[k]
	}
	return labels
}

// missing is the vertices that have no row.
func (p *planetoid) missing() []int32 {
	has := make([]bool, p.n)
	for _, v := range p.index {
		has[v] = true
	}
	var out []int32
	for v := p.allx.Rows(); v < p.n; v++ {
		if !has[v] {
			out = append(out, int32(v))
		}
	}
	return out
}

// publicVal is the number of validation vertices of the public splits.
const publicVal = 500

func (p *planetoid) split() ([]Split, error) {
	rows := p.allx.Rows()
	s := Split{Name: "public", Test: slices.Sorted(slices.Values(p.index))}
	for v := range min(p.train+publicVal, rows) {
		if v < p.train {
			s.Train = append(s.Train, int32(v))
		} else {
			s.Val = append(s.Val, int32(v))
		}
	}
	return []Split{s}, nil
}

// readIDLines reads one vertex index per line.
func readIDLines(in *input, name string) ([]int32, error) {
	b, err := in.open(name)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	data, err := b.bytes(maxFile)
	if err != nil {
		return nil, err
	}
	var ids []int32
	line := 0
	for sc := bufio.NewScanner(bytes.NewReader(data)); sc.Scan(); {
		line++
		text := strings.TrimSpace(sc.Text())
		if text == "" {
			continue
		}
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil || v < 0 || v > math.MaxInt32 {
			return nil, fmt.Errorf("read %s: line %d: %q is not a vertex index", name, line, clip(text))
		}
		ids = append(ids, int32(v))
	}
	return ids, nil
}

// clip shortens text for a message.
func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

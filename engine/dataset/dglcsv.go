package dataset

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"dorylus/kernels"
)

// dglMeta is meta.yaml of a CSVDataset.
type dglMeta struct {
	Name      string     `yaml:"dataset_name"`
	Separator string     `yaml:"separator"`
	Nodes     []dglTable `yaml:"node_data"`
	Edges     []dglTable `yaml:"edge_data"`
	Graph     any        `yaml:"graph_data"`
}

// dglTable is one of its files.
type dglTable struct {
	File    string `yaml:"file_name"`
	NType   string `yaml:"ntype"`
	EType   any    `yaml:"etype"`
	NodeID  string `yaml:"node_id_field"`
	SrcID   string `yaml:"src_id_field"`
	DstID   string `yaml:"dst_id_field"`
	GraphID string `yaml:"graph_id_field"`
}

func detectDGLCSV(in *input) bool { return in.dir && in.exists("meta.yaml") }

// readDGLCSV reads DGL's CSVDataset: meta.yaml names a file of vertices and one of
// edges, of one graph with one kind of each. Of the columns of the vertices, label is
// the class (several with commas between zeros and ones), train_mask, val_mask and
// test_mask are the split, and every other one is features, one number or several
// with commas between them; of the edges, weight is the weight.
func readDGLCSV(ctx context.Context, in *input) (*Raw, error) {
	b, err := in.open("meta.yaml")
	if err != nil {
		return nil, err
	}
	data, err := b.bytes(1 << 20)
	b.Close()
	if err != nil {
		return nil, err
	}
	var m dglMeta
	if err := yaml.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("read meta.yaml: %w", err)
	}
	switch {
	case len(m.Nodes) != 1 || len(m.Edges) != 1:
		return nil, fmt.Errorf("read meta.yaml: it names %d files of vertices and %d of edges; one kind of vertex and one of edge are read", len(m.Nodes), len(m.Edges))
	case m.Graph != nil:
		return nil, fmt.Errorf("read meta.yaml: it has graph_data, so that it holds several graphs; one is read")
	case m.Separator != "" && len(m.Separator) != 1:
		return nil, fmt.Errorf("read meta.yaml: separator %q is not one character", m.Separator)
	}
	for _, f := range []string{m.Nodes[0].File, m.Edges[0].File} {
		if f == "" || path.IsAbs(f) || strings.HasPrefix(path.Clean(f), "..") {
			return nil, fmt.Errorf("read meta.yaml: file_name %q is not a file in the folder", f)
		}
	}
	raw := &Raw{Name: in.base(), Format: "dgl-csv", Files: []string{"meta.yaml", m.Nodes[0].File, m.Edges[0].File}}
	if m.Name != "" {
		raw.Name = m.Name
	}
	n := dglNodes{raw: raw, meta: m.Nodes[0], place: map[string]int32{}}
	if err := n.read(ctx, in, m.Separator); err != nil {
		return nil, err
	}
	return raw, n.readEdges(ctx, in, m.Edges[0], m.Separator)
}

// dglNodes is the table of vertices on its way into raw.
type dglNodes struct {
	raw   *Raw
	meta  dglTable
	place map[string]int32

	label  int
	labels []string
	masks  [3]int
	on     [3][]int64
	feats  []int // columns
	width  []int // values in each of them
	values []float32
}

// columns finds the columns by their names.
func (n *dglNodes) columns(name string, l layout) error {
	id := n.idField()
	at := l.column(id)
	if at < 0 {
		return fmt.Errorf("read %s: line %d: no column is called %q%s; there are %s", name, l.skip, id, suggest(id, l.header), strings.Join(l.header, ", "))
	}
	n.label = l.column("label")
	n.masks = [3]int{l.column("train_mask"), l.column("val_mask"), l.column("test_mask")}
	for c := range l.cols {
		if c != at && c != n.label && !slices.Contains(n.masks[:], c) {
			n.feats = append(n.feats, c)
		}
	}
	return nil
}

func (n *dglNodes) read(ctx context.Context, in *input, sep string) error {
	b, err := in.open(n.meta.File)
	if err != nil {
		return err
	}
	defer b.Close()
	text, err := b.unpacked()
	if err != nil {
		return err
	}
	defer text.Close()
	l, first, rest, err := sniffAs(b.name, text, sep, true)
	if err != nil {
		return err
	}
	if first == nil || l.header == nil {
		return fmt.Errorf("read %s: it needs a line of column names and a line per vertex", b.name)
	}
	if err := n.columns(b.name, l); err != nil {
		return err
	}
	id := l.column(n.idField())
	err = eachRow(ctx, b.name, rest, l, func(f []string) error {
		if len(f) != l.cols {
			return fmt.Errorf("%d columns, but there are %d names", len(f), l.cols)
		}
		return n.row(l, f, strings.TrimSpace(f[id]))
	})
	if err != nil {
		return err
	}
	return n.finish(b.name)
}

func (n *dglNodes) idField() string {
	if n.meta.NodeID != "" {
		return n.meta.NodeID
	}
	return "node_id"
}

func (n *dglNodes) row(l layout, f []string, id string) error {
	v := len(n.raw.IDs)
	if _, ok := n.place[id]; ok {
		return fmt.Errorf("vertex %q has a line already; several graphs in one file are not read", clip(id))
	}
	id = strings.Clone(id)
	n.place[id] = int32(v)
	n.raw.IDs = append(n.raw.IDs, id)
	if n.label >= 0 {
		n.labels = append(n.labels, strings.Clone(strings.TrimSpace(f[n.label])))
	}
	for r, c := range n.masks {
		if c < 0 {
			continue
		}
		on, err := strconv.ParseBool(strings.TrimSuffix(strings.TrimSpace(f[c]), ".0"))
		if err != nil {
			return fmt.Errorf("column %s: mask value %q is neither true nor false", l.header[c], clip(f[c]))
		}
		if on {
			n.on[r] = append(n.on[r], int64(v))
		}
	}
	for i, c := range n.feats {
		start := len(n.values)
		for s := range strings.SplitSeq(f[c], ",") {
			x, err := strconv.ParseFloat(strings.TrimSpace(s), 32)
			if err != nil {
				return fmt.Errorf("column %s: %q is not a number; leave columns out that are no features", l.header[c], clip(s))
			}
			n.values = append(n.values, float32(x))
		}
		got := len(n.values) - start
		if len(n.width) == i {
			n.width = append(n.width, got)
		}
		if got != n.width[i] {
			return fmt.Errorf("column %s: %d values, but the first line has %d", l.header[c], got, n.width[i])
		}
	}
	return nil
}

func (n *dglNodes) finish(name string) error {
	raw := n.raw
	var err error
	if raw.N, err = vertexCount(name, int64(len(raw.IDs))); err != nil {
		return err
	}
	raw.dropPlainIDs()
	cols := 0
	for _, w := range n.width {
		cols += w
	}
	if cols > 0 {
		raw.Dense = kernels.FromSlice(raw.N, cols, n.values)
	}
	split := Split{Name: "file"}
	found := false
	for r, c := range n.masks {
		found = found || c >= 0
		if err := takeIDs(split.role(r), n.on[r], raw.N); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
	}
	if found {
		raw.Splits = []Split{split}
	}
	if n.label < 0 {
		return nil
	}
	return raw.setLabelTexts(name, n.labels)
}

// setLabelTexts reads one label per vertex, or lists of zeros and ones.
func (r *Raw) setLabelTexts(name string, texts []string) error {
	if len(texts) == 0 || !strings.Contains(texts[0], ",") {
		t := labelTable{name: name}
		if err := t.set(texts); err != nil {
			return err
		}
		r.Labels, r.Classes = t.labels, t.classes
		return nil
	}
	width := strings.Count(texts[0], ",") + 1
	sets, err := newClassSets(name, width)
	if err != nil {
		return err
	}
	row := make([]float32, width)
	for v, text := range texts {
		if n := strings.Count(text, ",") + 1; n != width {
			return fmt.Errorf("read %s: row %d: %d classes, but the first row has %d", name, v, n, width)
		}
		for k, s := range strings.Split(text, ",") {
			x, err := strconv.ParseFloat(strings.TrimSpace(s), 32)
			if err != nil {
				return fmt.Errorf("read %s: row %d: class %d has %q, not 0 or 1", name, v, k, clip(s))
			}
			row[k] = float32(x)
		}
		if err := sets.add(row); err != nil {
			return err
		}
	}
	sets.store(r)
	return nil
}

// readEdges reads the table of edges.
func (n *dglNodes) readEdges(ctx context.Context, in *input, m dglTable, sep string) error {
	b, err := in.open(m.File)
	if err != nil {
		return err
	}
	defer b.Close()
	text, err := b.unpacked()
	if err != nil {
		return err
	}
	defer text.Close()
	l, first, rest, err := sniffAs(b.name, text, sep, true)
	if err != nil {
		return err
	}
	if l.header == nil {
		return fmt.Errorf("read %s: it needs a line of column names", b.name)
	}
	src, dst := m.SrcID, m.DstID
	if src == "" {
		src = "src_id"
	}
	if dst == "" {
		dst = "dst_id"
	}
	p := edgeParser{sep: l.sep, cols: l.cols, src: l.column(src), dst: l.column(dst), weight: l.column(weightColumns...), byName: true, noHash: true}
	if p.src < 0 || p.dst < 0 {
		return fmt.Errorf("read %s: line %d: no columns are called %q and %q; there are %s", b.name, l.skip, src, dst, strings.Join(l.header, ", "))
	}
	if first == nil {
		return nil
	}
	raw := n.raw
	return parseLines(ctx, b.name, rest, l.skip, p.parse, func(e *edgeBlock) error {
		for i := 0; i < len(e.names); i += 2 {
			u, okU := n.place[e.name(i)]
			v, okV := n.place[e.name(i+1)]
			if !okU || !okV {
				missing := e.name(i)
				if okU {
					missing = e.name(i + 1)
				}
				return fmt.Errorf("read %s: edge record %d: vertex %q has no line in %s", b.name, len(raw.Src), clip(missing), n.meta.File)
			}
			raw.Src, raw.Dst = append(raw.Src, u), append(raw.Dst, v)
		}
		raw.Weight = append(raw.Weight, e.weight...)
		return nil
	})
}

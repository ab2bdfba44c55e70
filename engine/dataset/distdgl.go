package dataset

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"dorylus/kernels"
)

// chunkMeta is metadata.json of DistDGL's chunked graph format.
type chunkMeta struct {
	Name       string                         `json:"graph_name"`
	NodeTypes  []string                       `json:"node_type"`
	NodeCounts [][]int64                      `json:"num_nodes_per_chunk"`
	EdgeTypes  []string                       `json:"edge_type"`
	EdgeCounts [][]int64                      `json:"num_edges_per_chunk"`
	Edges      map[string]chunkSet            `json:"edges"`
	NodeData   map[string]map[string]chunkSet `json:"node_data"`
	EdgeData   map[string]map[string]chunkSet `json:"edge_data"`
}

// chunkSet is one array in pieces.
type chunkSet struct {
	Format struct {
		Name      string `json:"name"`
		Delimiter string `json:"delimiter,omitempty"`
	} `json:"format"`
	Data []string `json:"data"`
}

func detectDistDGL(in *input) bool { return in.dir && in.exists("metadata.json") }

// readDistDGL reads DistDGL's chunked format: metadata.json names the pieces of the
// edges (csv, numpy or Parquet) and of the vertices' arrays, of which label, train_mask,
// val_mask and test_mask are what they say and feat, or the others side by side in the
// order of their names, the features; of the edges' arrays, weight is the weight. One
// kind of vertex is read; edges of several kinds are read as one. A file ids.txt beside it
// names the vertices.
func readDistDGL(ctx context.Context, in *input) (*Raw, error) {
	b, err := in.open("metadata.json")
	if err != nil {
		return nil, err
	}
	data, err := b.bytes(1 << 28)
	b.Close()
	if err != nil {
		return nil, err
	}
	c := &chunks{in: in}
	if err := json.Unmarshal(data, &c.meta); err != nil {
		return nil, fmt.Errorf("read metadata.json: %w", err)
	}
	c.raw = &Raw{Name: in.base(), Format: "distdgl", Files: []string{"metadata.json"}}
	if c.meta.Name != "" {
		c.raw.Name = c.meta.Name
	}
	for _, step := range []func(context.Context) error{c.count, c.edges, c.nodes, c.ids} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return c.raw, nil
}

// chunks is such a graph on its way into raw.
type chunks struct {
	in   *input
	raw  *Raw
	meta chunkMeta
}

func (c *chunks) count(context.Context) error {
	if len(c.meta.NodeTypes) != 1 || len(c.meta.NodeCounts) != 1 {
		return fmt.Errorf("read metadata.json: %d kinds of vertices (%s); one is read", len(c.meta.NodeTypes), clipTo(strings.Join(c.meta.NodeTypes, ", "), 100))
	}
	n := int64(0)
	for _, k := range c.meta.NodeCounts[0] {
		if k < 0 || k > maxVertices {
			return fmt.Errorf("read metadata.json: a chunk of %d vertices", k)
		}
		n += k
	}
	var err error
	c.raw.N, err = vertexCount("metadata.json", n)
	return err
}

// ids reads the names of the vertices, one a line, which WriteDistDGL leaves beside the
// graph.
func (c *chunks) ids(context.Context) error {
	if !c.in.exists(chunkIDs) {
		return nil
	}
	b, err := c.in.open(chunkIDs)
	if err != nil {
		return err
	}
	defer b.Close()
	text, err := b.bytes(maxFile)
	if err != nil {
		return err
	}
	names := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if c.raw.N > 0 && len(names) != c.raw.N {
		return fmt.Errorf("read %s: %d names, one a line, for %d vertices; give each vertex one, or remove the file", chunkIDs, len(names), c.raw.N)
	}
	c.raw.IDs = names[:c.raw.N]
	c.raw.Files = append(c.raw.Files, chunkIDs)
	return nil
}

// file checks the path of a piece: below the folder, as far as the format allows.
func (c *chunks) file(name string) (string, error) {
	clean := path.Clean(name)
	if path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") {
		return "", fmt.Errorf("read metadata.json: %q is not a file in the folder", clip(name))
	}
	return clean, nil
}

func (c *chunks) edges(ctx context.Context) error {
	for i, kind := range c.meta.EdgeTypes {
		set, ok := c.meta.Edges[kind]
		if !ok {
			return fmt.Errorf("read metadata.json: edges of kind %q are named and not given", clip(kind))
		}
		start := len(c.raw.Src)
		for _, f := range set.Data {
			if err := c.edgePiece(ctx, set, f); err != nil {
				return err
			}
		}
		if i < len(c.meta.EdgeCounts) {
			want := int64(0)
			for _, k := range c.meta.EdgeCounts[i] {
				want += k
			}
			if got := int64(len(c.raw.Src) - start); got != want {
				return fmt.Errorf("read metadata.json: %d edges of kind %q, but its pieces have %d; one of them is truncated", want, clip(kind), got)
			}
		}
		if err := c.weights(ctx, kind, start); err != nil {
			return err
		}
	}
	if len(c.meta.EdgeTypes) > 1 {
		c.raw.noteUnread("edge-kinds-merged", strings.Join(c.meta.EdgeTypes, ", "), "the kinds of edges are not told apart: all are read as one", "leave the kinds out that should not count")
	}
	n := c.raw.N
	for i := range c.raw.Src {
		for _, v := range []int32{c.raw.Src[i], c.raw.Dst[i]} {
			if int(v) >= n {
				return fmt.Errorf("read metadata.json: edge record %d: vertex %d is outside [0,%d), the number of vertices", i, v, n)
			}
		}
	}
	return nil
}

func (c *chunks) edgePiece(ctx context.Context, set chunkSet, name string) error {
	name, err := c.file(name)
	if err != nil {
		return err
	}
	b, err := c.in.open(name)
	if err != nil {
		return err
	}
	raw := c.raw
	switch set.Format.Name {
	case "csv":
		defer b.Close()
		text, err := b.unpacked()
		if err != nil {
			return err
		}
		defer text.Close()
		p := edgeParser{sep: ' ', cols: 2, src: 0, dst: 1, weight: -1}
		if d := set.Format.Delimiter; len(d) == 1 {
			p.sep = d[0]
		} else if d != "" {
			return fmt.Errorf("read metadata.json: delimiter %q is not one character", clip(d))
		}
		return parseLines(ctx, b.name, text, 0, p.parse, func(e *edgeBlock) error {
			if e.large != nil {
				return fmt.Errorf("read %s: vertex %d is outside [0,%d)", b.name, e.max, raw.N)
			}
			for i := 0; i < len(e.small); i += 2 {
				raw.Src, raw.Dst = append(raw.Src, e.small[i]), append(raw.Dst, e.small[i+1])
			}
			return nil
		})
	case "numpy":
		defer b.Close()
		a, err := openNPY(b)
		if err != nil {
			return err
		}
		if len(a.shape) != 2 || a.shape[1] != 2 {
			return fmt.Errorf("read %s: shape %v is not edges x 2", b.name, a.shape)
		}
		v, err := a.int32s("vertex", 0, int64(raw.N))
		if err != nil {
			return err
		}
		for i := 0; i < len(v); i += 2 {
			raw.Src, raw.Dst = append(raw.Src, v[i]), append(raw.Dst, v[i+1])
		}
		return nil
	case "parquet":
		p, err := openParquet(b)
		if err != nil {
			return err
		}
		defer p.Close()
		if len(p.cols) < 2 {
			return fmt.Errorf("read %s: columns are %s; an edge has two", b.name, p.names())
		}
		for k, to := range []*[]int32{&raw.Src, &raw.Dst} {
			err := p.each(&p.cols[k], func(_ int, x parquet.Value) error {
				v, err := pqInt(x)
				if err == nil && (v < 0 || v >= int64(raw.N)) {
					err = fmt.Errorf("vertex %d is outside [0,%d)", v, raw.N)
				}
				*to = append(*to, int32(v))
				return err
			})
			if err != nil {
				return err
			}
		}
		if len(raw.Src) != len(raw.Dst) {
			return fmt.Errorf("read %s: %d sources and %d targets", b.name, len(raw.Src), len(raw.Dst))
		}
		return nil
	}
	b.Close()
	return c.unknown(set)
}

func (c *chunks) unknown(set chunkSet) error {
	return fmt.Errorf("read metadata.json: format %q is not read; csv, numpy and parquet are", clip(set.Format.Name))
}

// weights reads the weights of the edges of a kind, which start at record start.
func (c *chunks) weights(ctx context.Context, kind string, start int) error {
	raw := c.raw
	for _, key := range []string{"weight", "weights", "w"} {
		set, ok := c.meta.EdgeData[kind][key]
		if !ok {
			continue
		}
		values, cols, err := c.matrix(ctx, set, len(raw.Src)-start)
		if err != nil {
			return err
		}
		if cols != 1 {
			return fmt.Errorf("read metadata.json: %s of %q has %d columns; a weight is one number", key, clip(kind), cols)
		}
		if raw.Weight == nil {
			raw.Weight = slices.Repeat([]float32{1}, start)
		}
		raw.Weight = append(raw.Weight, values...)
		return nil
	}
	if raw.Weight != nil {
		raw.Weight = append(raw.Weight, slices.Repeat([]float32{1}, len(raw.Src)-start)...)
	}
	return nil
}

// matrix reads the pieces of an array of n rows.
func (c *chunks) matrix(ctx context.Context, set chunkSet, n int) (values []float32, cols int, err error) {
	cols = -1
	for _, f := range set.Data {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		name, err := c.file(f)
		if err != nil {
			return nil, 0, err
		}
		b, err := c.in.open(name)
		if err != nil {
			return nil, 0, err
		}
		c.raw.Files = append(c.raw.Files, name)
		part, w, err := c.piece(set, b)
		if err != nil {
			return nil, 0, err
		}
		if cols >= 0 && w != cols {
			return nil, 0, fmt.Errorf("read %s: %d columns, but the piece before it has %d", name, w, cols)
		}
		cols = w
		if len(set.Data) == 1 {
			values = part
		} else {
			values = append(values, part...)
		}
	}
	cols = max(cols, 0)
	if int64(len(values)) != int64(n)*int64(cols) {
		return nil, 0, fmt.Errorf("read metadata.json: the pieces from %s hold %d values, not %d rows of %d", strings.Join(set.Data[:min(1, len(set.Data))], ""), len(values), n, cols)
	}
	return values, cols, nil
}

func (c *chunks) piece(set chunkSet, b *blob) ([]float32, int, error) {
	switch set.Format.Name {
	case "numpy":
		defer b.Close()
		a, err := openNPY(b)
		if err != nil {
			return nil, 0, err
		}
		_, cols, err := a.dims()
		if err != nil {
			return nil, 0, err
		}
		values, err := a.floats()
		return values, cols, err
	case "parquet":
		p, err := openParquet(b)
		if err != nil {
			return nil, 0, err
		}
		defer p.Close()
		n := pqNodes{e: &edgeList{raw: c.raw}}
		err = n.readFeatures(p, nil)
		return n.values, n.cols, err
	}
	b.Close()
	return nil, 0, c.unknown(set)
}

// chunkArrays are the vertices' arrays that are read beside feat.
var chunkArrays = []string{"feat", "label", "labels", "train_mask", "val_mask", "test_mask"}

func (c *chunks) nodes(ctx context.Context) error {
	raw := c.raw
	arrays := c.meta.NodeData[c.meta.NodeTypes[0]]
	var names []string
	for name := range arrays {
		names = append(names, name)
	}
	slices.Sort(names)
	split := Split{Name: "file"}
	masked := false
	var parts [][]float32
	var widths []int
	for _, name := range names {
		if arrays["feat"].Data != nil && !slices.Contains(chunkArrays, name) {
			raw.noteUnread("array-unread", name, "the features are those called feat: this array was passed over", "rename the array to feat to read it instead")
			continue
		}
		values, cols, err := c.matrix(ctx, arrays[name], raw.N)
		if err != nil {
			return err
		}
		role := slices.Index([]string{"train_mask", "val_mask", "test_mask"}, name)
		switch {
		case name == "label" || name == "labels":
			err = c.labels(name, values, cols)
		case role >= 0:
			masked = true
			if cols != 1 && raw.N > 0 {
				return fmt.Errorf("read metadata.json: %s has %d columns; a mask is one", name, cols)
			}
			err = c.mask(name, values, split.role(role))
		default:
			parts, widths = append(parts, values), append(widths, cols)
		}
		if err != nil {
			return err
		}
	}
	if masked {
		raw.Splits = []Split{split}
	}
	if len(parts) > 0 {
		raw.Dense = beside(raw.N, parts, widths)
	}
	return nil
}

// beside is matrices of n rows side by side.
func beside(n int, parts [][]float32, widths []int) *kernels.Mat {
	cols := 0
	for _, w := range widths {
		cols += w
	}
	if len(parts) == 1 {
		return kernels.FromSlice(n, cols, parts[0])
	}
	all := make([]float32, 0, n*cols)
	for v := range n {
		for k, p := range parts {
			all = append(all, p[v*widths[k]:(v+1)*widths[k]]...)
		}
	}
	return kernels.FromSlice(n, cols, all)
}

func (c *chunks) labels(name string, values []float32, cols int) error {
	if cols != 1 {
		sets, err := newClassSets(name, cols)
		if err != nil {
			return err
		}
		for v := range c.raw.N {
			if err := sets.add(values[v*cols : (v+1)*cols]); err != nil {
				return err
			}
		}
		sets.store(c.raw)
		return nil
	}
	c.raw.Labels = make([]int32, c.raw.N)
	for v, x := range values {
		switch {
		case x != x || x < 0:
			c.raw.Labels[v] = -1
		case x >= maxClasses || float64(x) != math.Trunc(float64(x)):
			return fmt.Errorf("read %s: record %d: label %v is not a class number in [0,%d)", name, v, x, maxClasses)
		default:
			c.raw.Labels[v] = int32(x)
		}
	}
	return nil
}

func (c *chunks) mask(name string, values []float32, to *[]int32) error {
	for v, x := range values {
		if x != 0 && x != 1 {
			return fmt.Errorf("read %s: record %d: mask value %v is neither 0 nor 1", name, v, x)
		}
		if x == 1 {
			*to = append(*to, int32(v))
		}
	}
	return nil
}

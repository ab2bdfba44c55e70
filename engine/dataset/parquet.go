package dataset

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"dorylus/kernels"
)

// parquetFiles are the files of one of the two tables: NAME.parquet, or those in the
// folder NAME, as programs that write in parts leave them.
func parquetFiles(in *input, names ...string) []string {
	if !in.dir {
		return nil
	}
	for _, n := range names {
		if f := in.sidecar([]string{n}, []string{".parquet", ".pq"}); f != "" {
			return []string{f}
		}
		for _, dir := range []string{n, n + ".parquet"} {
			entries, err := fs.ReadDir(in.fsys, path.Join(in.path, dir))
			if err != nil {
				continue
			}
			var parts []string
			for _, e := range entries {
				if ext := extOf(e.Name()); !e.IsDir() && (ext == ".parquet" || ext == ".pq") {
					parts = append(parts, path.Join(dir, e.Name()))
				}
			}
			if parts != nil {
				return parts
			}
		}
	}
	return nil
}

func detectParquet(in *input) bool {
	if !in.dir {
		return in.ext() == ".parquet" || in.ext() == ".pq"
	}
	return parquetFiles(in, edgeNames...) != nil
}

// readParquet reads a Parquet file of edges, or a folder with edges.parquet and perhaps
// nodes.parquet. Edges have a source, a target and perhaps a weight, by the usual names
// or as the first two columns. Vertices have an id (else they are numbered by row), a
// label (one class, or a list of zeros and ones), train_mask, val_mask and test_mask, or a
// split of train, val and test; all other columns of numbers, or lists of them, are features.
func readParquet(ctx context.Context, in *input) (*Raw, error) {
	e := &edgeList{in: in, vertices: -1, raw: &Raw{Name: in.base(), Format: "parquet"}}
	edges := parquetFiles(in, edgeNames...)
	if !in.dir {
		edges = []string{"."}
	}
	if len(edges) == 0 {
		return nil, fmt.Errorf("open data set %s: no edges.parquet in this folder", in.src)
	}
	for i, name := range edges {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := e.parquetEdges(name, i == 0); err != nil {
			return nil, err
		}
	}
	n := pqNodes{e: e}
	if files := parquetFiles(in, "nodes", "node", "vertices"); len(files) > 0 {
		for _, name := range files {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if err := n.read(name); err != nil {
				return nil, err
			}
		}
		if err := n.finish(files[0]); err != nil {
			return nil, err
		}
	}
	if e.vertices >= 0 && e.byName {
		return nil, fmt.Errorf("read %s: ids are names, but %s has no column of ids; give it one called id", e.file, e.declared)
	}
	if err := e.number(ctx); err != nil {
		return nil, err
	}
	return e.raw, n.splits()
}

// openPart opens a file of the source, or the source itself.
func (e *edgeList) openPart(name string) (*pqFile, error) {
	b, err := (*blob)(nil), error(nil)
	if name == "." {
		b, err = e.in.openSelf()
	} else {
		b, err = e.in.open(name)
	}
	if err != nil {
		return nil, err
	}
	e.raw.Files = append(e.raw.Files, path.Base(b.name))
	return openParquet(b)
}

func (e *edgeList) parquetEdges(name string, first bool) error {
	p, err := e.openPart(name)
	if err != nil {
		return err
	}
	defer p.Close()
	file := p.blob.name
	src, dst := p.column(srcColumns...), p.column(dstColumns...)
	if (src == nil || dst == nil) && len(p.cols) >= 2 {
		src, dst = &p.cols[0], &p.cols[1]
	}
	if src == nil || dst == nil || src.list || dst.list {
		return fmt.Errorf("read %s: columns are %s; an edge has a source and a target", file, p.names())
	}
	weight := p.column(weightColumns...)
	byName := !src.numeric() || !dst.numeric()
	if first {
		e.file, e.byName, e.weighted = file, byName, weight != nil
	}
	if byName != e.byName || e.weighted != (weight != nil) {
		return fmt.Errorf("read %s: ids or weights are of another kind than in %s", file, e.file)
	}
	block := &edgeBlock{max: -1, small: make([]int32, 0, min(2*p.rows, 1<<20))}
	if err := e.parquetEnds(p, src, dst, block); err != nil {
		return err
	}
	if weight != nil {
		err = p.each(weight, func(_ int, v parquet.Value) error {
			w, err := pqFloat(v)
			block.weight = append(block.weight, float32(w))
			return err
		})
		if err != nil {
			return err
		}
		if len(block.weight) != p.rows {
			return fmt.Errorf("read %s: column %s: %d weights for %d edges", file, weight.name, len(block.weight), p.rows)
		}
	}
	e.add(block)
	return nil
}

// parquetEnds reads both ends of every edge into block.
func (e *edgeList) parquetEnds(p *pqFile, src, dst *pqColumn, block *edgeBlock) error {
	var from []int64
	end := func(v parquet.Value) (int64, error) {
		if v.IsNull() {
			return 0, fmt.Errorf("a vertex is missing")
		}
		if e.byName {
			return int64(e.seen.number(pqText(v))), nil
		}
		u, err := pqInt(v)
		if err == nil && u < 0 {
			err = fmt.Errorf("vertex %d is negative; vertices are numbered from 0", u)
		}
		return u, err
	}
	err := p.each(src, func(_ int, v parquet.Value) error {
		u, err := end(v)
		from = append(from, u)
		return err
	})
	if err != nil {
		return err
	}
	i := 0
	return p.each(dst, func(_ int, v parquet.Value) error {
		u, err := end(v)
		if err != nil {
			return err
		}
		block.add(from[i], u)
		i++
		return nil
	})
}

// pqNodes is the table of vertices on its way to edgeList's tables.
type pqNodes struct {
	e      *edgeList
	rows   int
	ids    []string
	texts  []string // labels
	sets   *classSets
	values []float32 // features, row-major
	cols   int
	roles  [3][]int32
	masked bool
}

var (
	nodeIDColumns = []string{"id", "node_id", "nodeid", "vertex", "node", "vertex_id"}
	nodeLabels    = []string{"label", "labels", "class", "y", "target"}
	nodeSplits    = []string{"split", "fold", "set"}
)

func (n *pqNodes) read(name string) error {
	p, err := n.e.openPart(name)
	if err != nil {
		return err
	}
	defer p.Close()
	if p.rows > maxVertices-n.rows {
		return fmt.Errorf("read %s: more than %d vertices", p.blob.name, maxVertices)
	}
	if n.rows > 0 && n.ids == nil != (p.column(nodeIDColumns...) == nil) {
		return fmt.Errorf("read %s: this part has ids and another has none", p.blob.name)
	}
	used := map[*pqColumn]bool{}
	if c := p.column(nodeIDColumns...); c != nil {
		used[c] = true
		err := p.each(c, func(_ int, v parquet.Value) error {
			if v.IsNull() {
				return fmt.Errorf("an id is missing")
			}
			text := pqText(v)
			if !n.e.byName && c.numeric() {
				u, err := pqInt(v)
				if err != nil {
					return err
				}
				text = strconv.FormatInt(u, 10)
			}
			n.ids = append(n.ids, text)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if c := p.column(nodeLabels...); c != nil {
		used[c] = true
		if err := n.readLabels(p, c); err != nil {
			return err
		}
	}
	for r, key := range []string{"train_mask", "val_mask", "test_mask"} {
		c := p.column(key)
		if c == nil {
			continue
		}
		used[c], n.masked = true, true
		err := p.each(c, func(row int, v parquet.Value) error {
			on, err := pqFloat(v)
			switch {
			case err != nil:
				return err
			case on == 1:
				n.roles[r] = append(n.roles[r], int32(n.rows+row))
			case on != 0 && on == on:
				return fmt.Errorf("mask value %v is neither 0 nor 1", on)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if c := p.column(nodeSplits...); c != nil && !n.masked {
		used[c] = true
		if err := n.readSplit(p, c); err != nil {
			return err
		}
	}
	if err := n.readFeatures(p, used); err != nil {
		return err
	}
	n.rows += p.rows
	return nil
}

func (n *pqNodes) readLabels(p *pqFile, c *pqColumn) error {
	if !c.list {
		return p.each(c, func(_ int, v parquet.Value) error {
			n.texts = append(n.texts, pqText(v))
			return nil
		})
	}
	rows, cols, err := p.lists(c)
	if err != nil {
		return err
	}
	if n.sets == nil {
		if n.sets, err = newClassSets(p.blob.name, cols); err != nil {
			return err
		}
	}
	if cols != n.sets.sets.Cols {
		return fmt.Errorf("read %s: column %s: lists of %d, but another part has %d", p.blob.name, c.name, cols, n.sets.sets.Cols)
	}
	for i := range p.rows {
		if err := n.sets.add(rows[i*cols : (i+1)*cols]); err != nil {
			return err
		}
	}
	return nil
}

// lists reads a column of lists of the same length.
func (p *pqFile) lists(c *pqColumn) (values []float32, cols int, err error) {
	last, length := 0, 0
	cols = -1
	end := func(row int) error {
		if cols < 0 {
			cols = length
		}
		if length != cols {
			return fmt.Errorf("row %d has a list of %d, but the first has %d", row, length, cols)
		}
		length = 0
		return nil
	}
	err = p.each(c, func(row int, v parquet.Value) error {
		if row != last {
			if err := end(last); err != nil {
				return err
			}
			last = row
		}
		x, err := pqFloat(v)
		values = append(values, float32(x))
		length++
		return err
	})
	if err != nil || p.rows == 0 {
		return nil, 0, err
	}
	if err := end(last); err != nil {
		return nil, 0, fmt.Errorf("read %s: column %s: %w", p.blob.name, c.name, err)
	}
	return values, cols, nil
}

// readSplit reads a column of the words train, val and test.
func (n *pqNodes) readSplit(p *pqFile, c *pqColumn) error {
	n.masked = true
	return p.each(c, func(row int, v parquet.Value) error {
		switch word := strings.ToLower(pqText(v)); word {
		case "train", "training":
			n.roles[0] = append(n.roles[0], int32(n.rows+row))
		case "val", "valid", "validation", "dev":
			n.roles[1] = append(n.roles[1], int32(n.rows+row))
		case "test":
			n.roles[2] = append(n.roles[2], int32(n.rows+row))
		case "", "none":
		default:
			return fmt.Errorf("%q is neither train, val nor test", clip(word))
		}
		return nil
	})
}

// readFeatures reads every column of numbers that is not used otherwise.
func (n *pqNodes) readFeatures(p *pqFile, used map[*pqColumn]bool) error {
	var parts [][]float32
	var widths []int
	width := 0
	for i := range p.cols {
		c := &p.cols[i]
		if used[c] {
			continue
		}
		if !c.numeric() {
			n.e.raw.noteUnread("column-unread", fmt.Sprintf("column %s of %s", c.name, p.blob.name), "it holds texts, which are no features: it was passed over", "write it as numbers if it should be a feature")
			continue
		}
		values, cols := make([]float32, 0, min(p.rows, 1<<20)), 1
		var err error
		if c.list {
			values, cols, err = p.lists(c)
		} else {
			err = p.each(c, func(_ int, v parquet.Value) error {
				x, err := pqFloat(v)
				values = append(values, float32(x))
				return err
			})
		}
		if err != nil {
			return err
		}
		parts, widths, width = append(parts, values), append(widths, cols), width+cols
	}
	if n.rows > 0 && width != n.cols {
		return fmt.Errorf("read %s: %d columns of features, but another part has %d", p.blob.name, width, n.cols)
	}
	if len(parts) == 1 && n.rows == 0 {
		n.values, n.cols = parts[0], width
		return nil
	}
	n.cols = width
	for row := range p.rows {
		for k, part := range parts {
			n.values = append(n.values, part[row*widths[k]:(row+1)*widths[k]]...)
		}
	}
	return nil
}

// finish hands the table to the edge list.
func (n *pqNodes) finish(name string) error {
	e := n.e
	if n.cols > 0 {
		if int64(n.rows)*int64(n.cols) > math.MaxInt64/8 || len(n.values) != n.rows*n.cols {
			return fmt.Errorf("read %s: %d values are not %d rows of %d", name, len(n.values), n.rows, n.cols)
		}
		e.features = &featureTable{name: name, ids: n.ids, dense: kernels.FromSlice(n.rows, n.cols, n.values)}
	}
	t := &labelTable{name: name, ids: n.ids}
	switch {
	case n.sets != nil:
		if len(n.sets.labelled) != n.rows {
			return fmt.Errorf("read %s: %d rows of labels for %d vertices", name, len(n.sets.labelled), n.rows)
		}
		t.sets = n.sets
		e.labels = t
	case n.texts != nil:
		if len(n.texts) != n.rows {
			return fmt.Errorf("read %s: %d labels for %d vertices", name, len(n.texts), n.rows)
		}
		if err := t.set(n.texts); err != nil {
			return err
		}
		e.labels = t
	case n.ids != nil && n.cols == 0:
		seen := make(map[string]bool, len(n.ids))
		for i, id := range n.ids {
			if seen[id] {
				return fmt.Errorf("read %s: record %d: vertex %q has a row already; keep one", name, i, clip(id))
			}
			seen[id] = true
		}
		e.names = n.ids
	}
	if n.ids == nil {
		return e.declare(n.rows, name)
	}
	return nil
}

// splits gives the roles to the vertices that the rows belong to.
func (n *pqNodes) splits() error {
	if !n.masked {
		return nil
	}
	raw := n.e.raw
	find := raw.finder(n.e.in.opt.IDBase)
	s := Split{Name: "file"}
	for r, rows := range n.roles {
		ids := make([]int64, len(rows))
		for i, row := range rows {
			ids[i] = int64(row)
			if n.ids != nil {
				v, ok := find(n.ids[row])
				if !ok {
					return fmt.Errorf("read %s: vertex %q of a mask does not exist", raw.Name, clip(n.ids[row]))
				}
				ids[i] = int64(v)
			}
		}
		slices.Sort(ids)
		if err := takeIDs(s.role(r), ids, raw.N); err != nil {
			return err
		}
	}
	raw.Splits = []Split{s}
	return nil
}

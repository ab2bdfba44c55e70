package dataset

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"dorylus/kernels"
)

const (
	geomNodes = "out1_node_feature_label.txt"
	geomEdges = "out1_graph_edges.txt"
)

func detectGeomGCN(in *input) bool {
	files := in.list()
	return slices.Contains(files, geomNodes) && slices.Contains(files, geomEdges)
}

// readGeomGCN reads the text layout of geom-gcn: a line "id <tab> features <tab> class"
// per vertex, features separated by commas, a line "source <tab> target" per edge, both
// under a header, and NAME_split_*.npz with three masks each, which may lie in a folder
// splits. Features are one number per column, or, as in film, the numbers of those that
// are 1. By this benchmark's convention the graph is undirected.
func readGeomGCN(ctx context.Context, in *input) (*Raw, error) {
	raw := &Raw{Name: in.base(), Format: "geomgcn", Files: []string{geomNodes, geomEdges}, Undirected: true}
	ids, err := readGeomNodes(ctx, in, raw)
	if err != nil {
		return nil, err
	}
	edges, err := readTables(ctx, in, tables{format: "geomgcn", edges: geomEdges, edgesOnly: true}, -1, "")
	if err != nil {
		return nil, err
	}
	if err := renumber(raw, edges, ids); err != nil {
		return nil, err
	}
	return raw, readGeomSplits(in, raw)
}

// renumber gives raw the edges of another numbering, by the vertices' names.
func renumber(raw, edges *Raw, place map[string]int32) error {
	to := make([]int32, edges.N)
	for v := range to {
		id := strconv.Itoa(v)
		if edges.IDs != nil {
			id = edges.IDs[v]
		}
		u, ok := place[id]
		if !ok {
			u = -1
		}
		to[v] = u
	}
	for i := range edges.Src {
		for _, end := range []*int32{&edges.Src[i], &edges.Dst[i]} {
			v := to[*end]
			if v < 0 {
				return fmt.Errorf("read %s: edge record %d: vertex %s has no line in %s; give it one, or take its edges out", edges.Files[0], i, edges.name(int(*end)), raw.Files[0])
			}
			*end = v
		}
	}
	raw.Src, raw.Dst, raw.Weight = edges.Src, edges.Dst, edges.Weight
	return nil
}

func readGeomNodes(ctx context.Context, in *input, raw *Raw) (place map[string]int32, err error) {
	b, err := in.open(geomNodes)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	text, err := b.unpacked()
	if err != nil {
		return nil, err
	}
	defer text.Close()
	place = map[string]int32{}
	var features [][]string
	var labels []string
	header := true
	parse := func(b []byte) ([][3]string, int, error) { return parseGeomNodes(b) }
	err = parseLines(ctx, b.name, text, 0, parse, func(rows [][3]string) error {
		for _, f := range rows {
			if header {
				header = false
				if !isNumber(f[2]) && !isNumber(f[0]) {
					continue
				}
			}
			if _, ok := place[f[0]]; ok {
				return fmt.Errorf("read %s: record %d: vertex %q has a line already; keep one", b.name, raw.N, clip(f[0]))
			}
			place[f[0]] = int32(raw.N)
			raw.IDs = append(raw.IDs, f[0])
			features = append(features, strings.Split(f[1], ","))
			labels = append(labels, f[2])
			raw.N++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if raw.N == 0 {
		return nil, fmt.Errorf("read %s: it has no vertex", b.name)
	}
	t := labelTable{name: b.name}
	if err := t.set(labels); err != nil {
		return nil, err
	}
	raw.Labels, raw.Classes = t.labels, t.classes
	raw.dropPlainIDs()
	raw.Sparse, err = geomFeatures(b.name, features)
	return place, err
}

// dropPlainIDs forgets names that are the numbers 0..N-1 in order.
func (r *Raw) dropPlainIDs() {
	for v, id := range r.IDs {
		if id != strconv.Itoa(v) {
			return
		}
	}
	r.IDs = nil
}

func parseGeomNodes(b []byte) (rows [][3]string, line int, err error) {
	all := string(b)
	for ; len(all) > 0; line++ {
		text, rest, _ := strings.Cut(all, "\n")
		all = rest
		if strings.TrimSpace(text) == "" {
			continue
		}
		f := strings.Split(text, "\t")
		if len(f) != 3 {
			return nil, line, atLine(line, "%d columns; a line has an id, features and a class, with tabs between them", len(f))
		}
		rows = append(rows, [3]string{strings.TrimSpace(f[0]), f[1], strings.TrimSpace(f[2])})
	}
	return rows, line, nil
}

// geomFeatures reads the lists as columns if all are equally long and of zeros and
// ones, or hold fractions; else as the numbers of the features that are 1.
func geomFeatures(name string, lists [][]string) (*kernels.CSR, error) {
	columns := true
	for _, l := range lists {
		columns = columns && len(l) == len(lists[0])
	}
	values := make([][]float64, len(lists))
	fractions, above1 := false, false
	for v, l := range lists {
		values[v] = make([]float64, 0, len(l))
		for _, s := range l {
			if s = strings.TrimSpace(s); s == "" && len(l) == 1 {
				continue
			}
			x, err := strconv.ParseFloat(s, 64)
			if err != nil {
				return nil, fmt.Errorf("read %s: record %d: feature %q is not a number", name, v, clip(s))
			}
			fractions = fractions || x != float64(int64(x)) || x < 0
			above1 = above1 || x > 1
			values[v] = append(values[v], x)
		}
	}
	m := &kernels.CSR{RowPtr: make([]int64, 1, len(lists)+1)}
	if columns && (fractions || !above1) {
		m.Cols = len(lists[0])
		for _, row := range values {
			for c, x := range row {
				if x != 0 {
					m.Col, m.Val = append(m.Col, int32(c)), append(m.Val, float32(x))
				}
			}
			m.RowPtr = append(m.RowPtr, int64(len(m.Col)))
		}
		if allOnes(m.Val) {
			m.Val = nil
		}
		return m, nil
	}
	for v, row := range values {
		for _, x := range row {
			if x != float64(int32(x)) || x < 0 {
				return nil, fmt.Errorf("read %s: record %d: %v is not the number of a feature, but the lists differ in length, so that they must be numbers", name, v, x)
			}
			m.Col = append(m.Col, int32(x))
			m.Cols = max(m.Cols, int(x)+1)
		}
		slices.Sort(m.Col[m.RowPtr[v]:])
		m.Col = m.Col[:int(m.RowPtr[v])+len(slices.Compact(m.Col[m.RowPtr[v]:]))]
		m.RowPtr = append(m.RowPtr, int64(len(m.Col)))
	}
	return m, checkColumns(name, int64(m.Cols), int64(len(m.Col)))
}

// readGeomSplits reads every *_split_*.npz beside the data or in splits.
func readGeomSplits(in *input, raw *Raw) error {
	for _, dir := range []string{".", "splits"} {
		files, err := fs.Glob(in.fsys, path.Join(in.path, dir, "*_split_*.npz"))
		if err != nil {
			return fmt.Errorf("open data set %s: list the splits: %w", in.src, cause(err))
		}
		for _, f := range files {
			s, err := readGeomSplit(in, f, raw.N)
			if err != nil {
				return err
			}
			raw.Files = append(raw.Files, path.Base(f))
			raw.Splits = append(raw.Splits, s)
		}
	}
	return nil
}

func readGeomSplit(in *input, name string, n int) (Split, error) {
	s := Split{Name: strings.TrimSuffix(path.Base(name), ".npz")}
	if i := strings.LastIndexByte(s.Name, '_'); i >= 0 {
		s.Name = s.Name[i+1:]
	}
	b, err := openBlob(in.fsys, name, path.Base(name))
	if err != nil {
		return s, err
	}
	z, err := openNPZ(b)
	if err != nil {
		return s, err
	}
	defer z.Close()
	for role, key := range []string{"train_mask", "val_mask", "test_mask"} {
		a, err := z.array(key)
		if err != nil {
			return s, err
		}
		if a.n != n {
			return s, rowsMismatch(a.name, "mask values", a.n, n)
		}
		on, err := a.bools()
		if err != nil {
			return s, err
		}
		*s.role(role) = maskIDs(on)
	}
	return s, nil
}

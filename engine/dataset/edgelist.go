package dataset

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
)

// textExts are the extensions of text tables.
var textExts = []string{".csv", ".tsv", ".txt", ".edges", ".edgelist", ".el"}

func detectEdgeList(in *input) bool {
	if !in.dir {
		return slices.Contains(textExts, in.ext())
	}
	return in.opt.Edges != "" || in.sidecar(edgeNames, textExts) != ""
}

// Usual names of an edge list's files, without extension; also as NAME_edges and so on.
var (
	edgeNames    = []string{"edges", "edge", "edge_list", "edgelist", "links"}
	featureNames = []string{"features", "node_features", "feat", "feats", "node-feat", "x"}
	labelNames   = []string{"labels", "label", "node_labels", "target", "targets", "classes", "node-label", "y"}
)

// sidecar is the file of the source's folder that has one of names and exts, or "".
func (in *input) sidecar(names, exts []string) string {
	files := in.list()
	for _, want := range names {
		for _, f := range files {
			base := strings.ToLower(f)
			if !slices.Contains(exts, extOf(base)) {
				continue
			}
			base = strings.TrimSuffix(strings.TrimSuffix(base, ".gz"), ".zst")
			base = strings.TrimSuffix(base, path.Ext(base))
			if base == want || len(want) > 1 && (strings.HasSuffix(base, "_"+want) || strings.HasSuffix(base, "-"+want)) {
				return f
			}
		}
	}
	return ""
}

// part opens one of the edge list's files: the one the user named, else the one that
// the layout names, else the one found in the folder. nil: there is none.
func (e *edgeList) part(named, preset string, names, exts []string) (*blob, error) {
	if named != "" {
		return e.in.openRef(named)
	}
	if preset != "" {
		return e.in.open(preset)
	}
	if e.exact {
		return nil, nil
	}
	if f := e.in.sidecar(names, exts); f != "" {
		return e.in.open(f)
	}
	return nil, nil
}

// tables says how the files of a layout are called and read where that is not found
// out from the files themselves. The zero value is a plain edge list.
type tables struct {
	format     string // "": edgelist
	undirected bool
	edges      string // file in the source's folder
	features   string
	labels     string
	// idColumns and labelColumns are names of columns of the file of labels, the
	// best first.
	idColumns, labelColumns []string
	// classColumns says that every column of the file of labels is a class.
	classColumns bool
	// manyWeights says that there is a column of weights for each kind of edge, so that
	// none is read unless the user names it.
	manyWeights bool
	// exact says that the layout names all its files: none is looked for by name.
	exact bool
	// edgesOnly reads no file beside the edges.
	edgesOnly bool
	// every10th takes every tenth training vertex, from the first, to validate where
	// no file names validation vertices.
	every10th bool
}

// edgeList is an edge list on its way to a Raw.
type edgeList struct {
	in  *input
	raw *Raw
	tables

	blocks   []*edgeBlock
	file     string // of edges, for messages
	byName   bool
	weighted bool
	seen     interner   // names of the edges
	ids      idInterner // ids of the edges where some are large

	vertices int    // declared number of vertices, -1: none
	declared string // by what
	labels   *labelTable
	spare    *labelTable // of the file of features; used where there is none of labels
	features *featureTable
	names    []string // of vertices of which nothing else is known
}

// readEdgeList reads an edge list and the files beside it.
//
// Vertices are numbered as the ids are, where the number of vertices is known from
// Options.Vertices or from a file of one row per vertex. Otherwise the ids that occur
// (in a file of features or labels with an id column, and in the edges) are the
// vertices: numbers in ascending order, names in order of appearance.
func readEdgeList(ctx context.Context, in *input) (*Raw, error) {
	return readTables(ctx, in, tables{}, -1, "")
}

// readTables reads a layout that consists of an edge list and files beside it.
// vertices is their number if declared says by what it is known.
func readTables(ctx context.Context, in *input, t tables, vertices int, declared string) (*Raw, error) {
	if t.format == "" {
		t.format = "edgelist"
	}
	e := &edgeList{in: in, tables: t, vertices: vertices, declared: declared, raw: &Raw{Name: in.base(), Format: t.format, Undirected: t.undirected}}
	if in.opt.Vertices > 0 {
		if err := e.declare(in.opt.Vertices, "the declared number"); err != nil {
			return nil, err
		}
	}
	steps := []func(context.Context) error{e.readEdges, e.readFeatures, e.readLabels, e.number, e.readMasks}
	if t.edgesOnly {
		steps = []func(context.Context) error{e.readEdges, e.number}
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return e.raw, nil
}

// readEdges parses the edges into blocks.
func (e *edgeList) readEdges(ctx context.Context) error {
	var b *blob
	var err error
	switch {
	case e.in.opt.Edges == "" && !e.in.dir:
		b, err = e.in.openSelf()
	default:
		if b, err = e.part(e.in.opt.Edges, e.tables.edges, edgeNames, textExts); b == nil && err == nil {
			err = fmt.Errorf("open data set %s: no edges.csv or the like in this folder; name the file of edges", e.in.src)
		}
	}
	if err != nil {
		return err
	}
	defer b.Close()
	e.file = b.name
	e.raw.Files = append(e.raw.Files, path.Base(b.name))
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
		return fmt.Errorf("read %s: it has no line of edges", b.name)
	}
	p, err := e.parser(l)
	if err != nil {
		return fmt.Errorf("read %s: line %d: %w", b.name, l.skip+1, err)
	}
	e.weighted = p.weight >= 0
	e.byName = e.in.opt.Names || !looksNumeric(at(first, p.src)) || len(first) > 1 && !looksNumeric(at(first, p.dst))
	p.byName = e.byName
	return parseLines(ctx, b.name, rest, l.skip, p.parse, func(block *edgeBlock) error {
		if e.byName {
			block.intern(&e.seen)
		}
		e.add(block)
		return nil
	})
}

// add keeps a block of edges, in 4 bytes an id.
func (e *edgeList) add(block *edgeBlock) {
	if block.large != nil {
		block.internIDs(&e.ids)
	}
	e.blocks = append(e.blocks, block)
}

// at is field i, "" where a line is too short.
func at(fields []string, i int) string {
	if i < len(fields) {
		return fields[i]
	}
	return ""
}

// Names of the columns of an edge list, the usual ones first.
var (
	srcColumns    = []string{"src_id", "source", "src", "from", "id_1", "id1"}
	dstColumns    = []string{"dst_id", "target", "dst", "to", "id_2", "id2"}
	weightColumns = []string{"weight", "w", "edge_weight", "value"}
)

// parser decides which columns are source, target and weight: those with the usual
// names, else the first, the second and, of three, the third.
func (e *edgeList) parser(l layout) (edgeParser, error) {
	p := edgeParser{sep: l.sep, cols: l.cols, src: 0, dst: 1, weight: -1}
	if s, d := l.column(srcColumns...), l.column(dstColumns...); s >= 0 && d >= 0 {
		p.src, p.dst = s, d
	}
	switch name := e.in.opt.WeightColumn; {
	case l.cols < 2:
		return p, fmt.Errorf("%d column; an edge has a source, a target and perhaps a weight", l.cols)
	case name == "none":
	case name != "":
		if p.weight = l.column(name); p.weight < 0 {
			return p, fmt.Errorf("no column is called %q%s; there are %s", name, suggest(name, l.header), strings.Join(l.header, ", "))
		}
	case e.manyWeights && l.cols > 2:
		e.raw.Findings = append(e.raw.Findings, Finding{Code: "weights-not-read", Severity: Info, Count: int64(l.cols - 2),
			First:  fmt.Sprintf("column %q", clip(at(l.header, 2))),
			Effect: "an edge has a weight for each kind of link, most of them 0: all edges are read, and each weighs 1",
			Remedy: "name one column of weights (--weight-column) to train on that kind of link alone"})
	case l.column(weightColumns...) >= 0:
		p.weight = l.column(weightColumns...)
	case l.cols == 3:
		p.weight = 3 - p.src - p.dst
	case l.cols > 3:
		return p, fmt.Errorf("%d columns; an edge has a source, a target and perhaps a weight: keep these, or name the column of weights (none to read none)", l.cols)
	}
	if p.weight == p.src || p.weight == p.dst {
		return p, fmt.Errorf("column %d is an end of the edge and its weight; name another column of weights", p.weight+1)
	}
	return p, nil
}

// looksNumeric says whether an id in the first line is taken for a number. "-1" is,
// so that it is refused rather than made a name.
func looksNumeric(s string) bool {
	_, err := parseID(s, 0)
	return err == nil || strings.HasPrefix(s, "-") && isNumber(s)
}

// declare records how many vertices a file of one row per vertex says there are.
func (e *edgeList) declare(n int, by string) error {
	if e.vertices >= 0 && e.vertices != n {
		return fmt.Errorf("read %s: %d rows, but there are %d vertices by %s; there must be one row per vertex", by, n, e.vertices, e.declared)
	}
	if e.vertices < 0 {
		e.vertices, e.declared = n, by
	}
	return nil
}

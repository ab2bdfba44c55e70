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

// part opens one of the edge list's files: the one the user named, else the one
// found in the folder. nil: there is none.
func (in *input) part(named string, names, exts []string) (*blob, error) {
	if named != "" {
		return in.openRef(named)
	}
	if f := in.sidecar(names, exts); f != "" {
		return in.open(f)
	}
	return nil, nil
}

// edgeList is an edge list on its way to a Raw.
type edgeList struct {
	in  *input
	raw *Raw

	blocks   []*edgeBlock
	file     string // of edges, for messages
	byName   bool
	weighted bool
	seen     interner // names of the edges

	vertices int    // declared number of vertices, -1: none
	declared string // by what
	labels   *labelTable
	features *featureTable
}

// readEdgeList reads an edge list and the files beside it.
//
// Vertices are numbered as the ids are, where the number of vertices is known from
// Options.Vertices or from a file of one row per vertex. Otherwise the ids that occur
// (in a file of features or labels with an id column, and in the edges) are the
// vertices: numbers in ascending order, names in order of appearance.
func readEdgeList(ctx context.Context, in *input) (*Raw, error) {
	e := &edgeList{in: in, vertices: -1, raw: &Raw{Name: in.base(), Format: "edgelist"}}
	if in.opt.Vertices > 0 {
		e.vertices, e.declared = in.opt.Vertices, "the declared number"
	}
	for _, step := range []func(context.Context) error{e.readEdges, e.readFeatures, e.readLabels, e.number, e.readMasks} {
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
	case e.in.opt.Edges != "":
		b, err = e.in.openRef(e.in.opt.Edges)
	case !e.in.dir:
		b, err = e.in.openSelf()
	default:
		if b, err = e.in.part("", edgeNames, textExts); b == nil && err == nil {
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
	if l.cols != 2 && l.cols != 3 {
		return fmt.Errorf("read %s: line %d: %d columns; an edge has a source, a target and perhaps a weight: keep these", b.name, l.skip+1, len(first))
	}
	e.weighted = l.cols == 3
	e.byName = e.in.opt.Names || !looksNumeric(first[0]) || len(first) > 1 && !looksNumeric(first[1])
	p := edgeParser{sep: l.sep, weighted: e.weighted, byName: e.byName}
	e.seen.place = map[string]int32{}
	return parseLines(ctx, b.name, rest, l.skip, p.parse, func(block *edgeBlock) error {
		if e.byName {
			block.intern(&e.seen)
		}
		e.blocks = append(e.blocks, block)
		return nil
	})
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
	e.vertices, e.declared = n, by
	return nil
}

package dataset

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// ogbUndirected are the sets of the Open Graph Benchmark whose files hold one
// direction of undirected edges; ogbDirected are the others with one kind of vertex.
var (
	ogbUndirected = []string{"products", "proteins"}
	ogbDirected   = []string{"arxiv", "papers100m"}
)

// detectOGB looks for raw/ with one of the two layouts.
func detectOGB(in *input) bool {
	if !in.dir {
		return false
	}
	return in.ogbText() != "" || in.exists("raw/data.npz")
}

// ogbText is the file of edges of the text layout, "" where there is none.
func (in *input) ogbText() string { return in.firstOf("raw/edge.csv.gz", "raw/edge.csv") }

// exists says whether the source's folder has a file of this name.
func (in *input) exists(name string) bool {
	st, err := fs.Stat(in.fsys, path.Join(in.path, name))
	return err == nil && !st.IsDir()
}

// firstOf is the first of names that exists, or "".
func (in *input) firstOf(names ...string) string {
	for _, n := range names {
		if in.exists(n) {
			return n
		}
	}
	return ""
}

// readOGB reads a node property prediction set of the Open Graph Benchmark, as
// text (raw/edge.csv.gz, num-node-list, num-edge-list, node-feat, edge-feat,
// node-label) or binary (raw/data.npz, node-label.npz), with split/NAME/{train,valid,test}.
// The files of products and proteins hold each undirected edge once.
func readOGB(ctx context.Context, in *input) (*Raw, error) {
	read := readOGBBinary
	if in.ogbText() != "" {
		read = readOGBText
	}
	raw, err := read(ctx, in)
	if err != nil {
		return nil, err
	}
	if raw.N > 1<<20+64*len(raw.Src) && raw.Dense == nil && !raw.hasLabels() {
		return nil, fmt.Errorf("open data set %s: %d vertices for %d edges: nearly all are isolated; is the number of vertices right?", in.src, raw.N, len(raw.Src))
	}
	raw.ogbDirection()
	return raw, readOGBSplits(ctx, in, raw)
}

// ogbDirection sets Undirected by the set's name.
func (r *Raw) ogbDirection() {
	name := strings.ToLower(strings.TrimPrefix(strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(r.Name)), "ogbn"))
	r.Undirected = slices.Contains(ogbUndirected, name)
	if !r.Undirected && !slices.Contains(ogbDirected, name) {
		r.Findings = append(r.Findings, Finding{Code: "direction-unknown", Severity: Warning, Count: 1, First: "folder " + r.Name,
			Effect: "this layout does not say whether edges are stored in one direction of two, and the name is none that is known: they are read as directed",
			Remedy: "prepare with --direction=undirected if each edge is stored once and counts for both ends, with --direction=directed if not"})
	}
}

func readOGBText(ctx context.Context, in *input) (*Raw, error) {
	t := tables{format: "ogb", edges: in.ogbText(), classColumns: true,
		features: in.firstOf("raw/node-feat.csv.gz", "raw/node-feat.csv"),
		labels:   in.firstOf("raw/node-label.csv.gz", "raw/node-label.csv"), exact: true}
	counts := in.firstOf("raw/num-node-list.csv.gz", "raw/num-node-list.csv")
	if counts == "" {
		return nil, fmt.Errorf("open data set %s: raw/num-node-list.csv.gz is missing; the data set is incomplete without it", in.src)
	}
	n, err := in.count(ctx, counts)
	if err != nil {
		return nil, err
	}
	raw, err := readTables(ctx, in, t, n, path.Base(counts))
	if err != nil {
		return nil, err
	}
	if f := in.firstOf("raw/num-edge-list.csv.gz", "raw/num-edge-list.csv"); f != "" {
		m, err := in.count(ctx, f)
		if err != nil {
			return nil, err
		}
		if m != len(raw.Src) {
			return nil, fmt.Errorf("read %s: %d edges, but %s says %d; it is truncated, copy it again", t.edges, len(raw.Src), f, m)
		}
	}
	if f := in.firstOf("raw/edge-feat.csv.gz", "raw/edge-feat.csv"); f != "" {
		raw.noteUnread("edge-features-unread", f, "edges have features, which no model here reads: every edge weighs 1", "write one weight per edge as an edge list with three columns, if one of the features is a weight")
	}
	return raw, nil
}

// noteUnread records a file or array of the source that was passed over.
func (r *Raw) noteUnread(code, what, effect, remedy string) {
	r.Findings = append(r.Findings, Finding{Code: code, Severity: Info, Count: 1, First: what, Effect: effect, Remedy: remedy})
}

func readOGBBinary(ctx context.Context, in *input) (*Raw, error) {
	b, err := in.open("raw/data.npz")
	if err != nil {
		return nil, err
	}
	z, err := openNPZ(b)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	raw := &Raw{Name: in.base(), Format: "ogb", Files: []string{"data.npz"}}
	if raw.N, err = z.one("num_nodes_list"); err != nil {
		return nil, err
	}
	a, err := z.array("edge_index")
	if err != nil {
		return nil, err
	}
	if err := raw.setEdgeIndex(a); err != nil {
		return nil, err
	}
	if z.has("num_edges_list") {
		if m, err := z.one("num_edges_list"); err != nil {
			return nil, err
		} else if m != len(raw.Src) {
			return nil, fmt.Errorf("read %s: %d edges, but num_edges_list says %d", a.name, len(raw.Src), m)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if z.has("node_feat") {
		if a, err = z.array("node_feat"); err != nil {
			return nil, err
		}
		if raw.Dense, err = a.matrix(raw.N); err != nil {
			return nil, err
		}
	}
	if z.has("edge_feat") {
		raw.noteUnread("edge-features-unread", "data.npz: edge_feat", "edges have features, which no model here reads: every edge weighs 1", "write one weight per edge as an edge list with three columns, if one of the features is a weight")
	}
	if !in.exists("raw/node-label.npz") {
		return raw, nil
	}
	if b, err = in.open("raw/node-label.npz"); err != nil {
		return nil, err
	}
	l, err := openNPZ(b)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	raw.Files = append(raw.Files, "node-label.npz")
	return raw, l.labels("node_label", raw)
}

// one reads an array of a single count.
func (n *npz) one(key string) (int, error) {
	a, err := n.array(key)
	if err != nil {
		return 0, err
	}
	if a.n != 1 {
		return 0, fmt.Errorf("read %s: %d numbers, not 1: it holds several graphs, and one is read", a.name, a.n)
	}
	v, err := a.int64s()
	if err != nil {
		return 0, err
	}
	return vertexCount(a.name, v[0])
}

// setEdgeIndex reads edges from an array of 2 x edges: sources, then destinations.
func (r *Raw) setEdgeIndex(a *numArray) error {
	if len(a.shape) != 2 || a.shape[0] != 2 {
		return fmt.Errorf("read %s: shape %v is not 2 x edges: sources, then destinations", a.name, a.shape)
	}
	v, err := a.int32s("vertex", 0, int64(r.N))
	if err != nil {
		return err
	}
	r.Src, r.Dst = v[:a.shape[1]:a.shape[1]], v[a.shape[1]:]
	return nil
}

// readOGBSplits reads every split/NAME/{train,valid,test}.csv.gz or .npy.
func readOGBSplits(ctx context.Context, in *input, raw *Raw) error {
	dirs, err := fs.ReadDir(in.fsys, path.Join(in.path, "split"))
	if err != nil {
		return nil // the set has none; Check says so
	}
	for _, d := range dirs {
		if !d.IsDir() {
			continue
		}
		s := Split{Name: d.Name()}
		found := false
		for role, base := range []string{"train", "valid", "test"} {
			dir := path.Join("split", d.Name(), base)
			name := in.firstOf(dir+".csv.gz", dir+".csv", dir+".npy")
			if name == "" {
				continue
			}
			found = true
			raw.Files = append(raw.Files, path.Base(name))
			ids, err := in.indices(ctx, name)
			if err != nil {
				return err
			}
			if err := takeIDs(s.role(role), ids, raw.N); err != nil {
				return fmt.Errorf("read %s: %w", name, err)
			}
		}
		if found {
			raw.Splits = append(raw.Splits, s)
		}
	}
	return nil
}

// indices reads one vertex number per line, or from a .npy file.
func (in *input) indices(ctx context.Context, name string) ([]int64, error) {
	b, err := in.open(name)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if extOf(name) == ".npy" {
		a, err := openNPY(b)
		if err != nil {
			return nil, err
		}
		return a.int64s()
	}
	text, err := b.unpacked()
	if err != nil {
		return nil, err
	}
	defer text.Close()
	var ids []int64
	parse := func(b []byte) (out []int64, line int, err error) {
		for ; len(b) > 0; line++ {
			var text []byte
			if text, b = nextLine(b); isBlank(text) || isComment(text) {
				continue
			}
			v, err := parseID(strings.TrimSpace(string(text)), line)
			if err != nil {
				return nil, line, err
			}
			out = append(out, v)
		}
		return out, line, nil
	}
	err = parseLines(ctx, b.name, text, 0, parse, func(block []int64) error {
		ids = append(ids, block...)
		return nil
	})
	return ids, err
}

// count reads the one number of a file such as num-node-list.csv.
func (in *input) count(ctx context.Context, name string) (int, error) {
	b, err := in.open(name)
	if err != nil {
		return 0, err
	}
	defer b.Close()
	text, err := b.unpacked()
	if err != nil {
		return 0, err
	}
	defer text.Close()
	data, err := io.ReadAll(io.LimitReader(text, 1<<10))
	if err != nil {
		return 0, fmt.Errorf("read %s: byte 0: %w", b.name, cause(err))
	}
	f := strings.Fields(string(data))
	if len(f) != 1 {
		return 0, fmt.Errorf("read %s: %d numbers, not 1: it holds several graphs, and one is read", b.name, len(f))
	}
	v, err := parseID(f[0], 0)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", b.name, err)
	}
	return vertexCount(b.name, v)
}

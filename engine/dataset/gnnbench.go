package dataset

import (
	"context"
	"fmt"
	"path"

	"dorylus/kernels"
)

// npzKeys is the set of member names of a .npz source; empty where it is none.
func (in *input) npzKeys() map[string]bool {
	if in.keys != nil {
		return in.keys
	}
	in.keys = map[string]bool{}
	if in.dir || in.ext() != ".npz" {
		return in.keys
	}
	b, err := openBlob(in.fsys, in.path, path.Base(in.path))
	if err != nil {
		return in.keys
	}
	z, err := openNPZ(b)
	if err != nil {
		in.keys[damaged] = true
		return in.keys
	}
	defer z.Close()
	for k := range z.members {
		in.keys[k] = true
	}
	return in.keys
}

// damaged stands in the key set of a .npz that cannot be opened: the first npz
// reader takes it, to report why.
const damaged = "\x00damaged"

// detectGNNBench takes every .npz that is not of the heterophilous kind, so that a
// damaged or foreign one is reported by what it holds.
func detectGNNBench(in *input) bool {
	return !in.dir && in.ext() == ".npz" && !detectHeterophilous(in)
}

// readGNNBench reads the layout of gnn-benchmark: CSR parts of the adjacency under
// adj_ or adj_matrix., of the attributes under attr_ or attr_matrix. (or one dense
// array), labels, node_names and class_names; also scipy's save_npz of an adjacency
// alone. By that benchmark's convention the graph is symmetrised.
func readGNNBench(ctx context.Context, in *input) (*Raw, error) {
	b, err := in.openSelf()
	if err != nil {
		return nil, err
	}
	z, err := openNPZ(b)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	raw := &Raw{Name: in.base(), Format: "gnnbench-npz", Files: []string{path.Base(in.path)}, Undirected: true}
	if err := z.adjacency(raw); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := z.attributes(raw); err != nil {
		return nil, err
	}
	if z.has("labels") {
		if err := z.labels("labels", raw); err != nil {
			return nil, err
		}
	}
	z.names(raw)
	return raw, nil
}

func (n *npz) adjacency(raw *Raw) error {
	at := n.first("adj_indptr", "adj_matrix.indptr", "indptr")
	if at == "" {
		return fmt.Errorf("read %s: neither adj_indptr nor adj_matrix.indptr nor edges is in it; it has %s", n.blob.name, n.keys())
	}
	p, err := n.csr(at[:len(at)-len("indptr")])
	if err != nil {
		return err
	}
	if p.rows != p.cols {
		return fmt.Errorf("read %s: the adjacency is %d x %d; a graph needs a square one", p.name, p.rows, p.cols)
	}
	raw.N = p.rows
	raw.Src, raw.Dst, raw.Weight, err = p.edges()
	return err
}

func (n *npz) attributes(raw *Raw) error {
	if at := n.first("attr_indptr", "attr_matrix.indptr"); at != "" {
		p, err := n.csr(at[:len(at)-len("indptr")])
		if err != nil {
			return err
		}
		if p.rows != raw.N {
			return rowsMismatch(p.name, "rows of attributes", p.rows, raw.N)
		}
		f, merged, err := p.features()
		if err != nil {
			return err
		}
		raw.Sparse = f
		raw.noteMerged(p.name, merged)
		return nil
	}
	at := n.first("attr_matrix", "attr", "features")
	if at == "" {
		return nil
	}
	a, err := n.array(at)
	if err != nil {
		return err
	}
	raw.Dense, err = a.matrix(raw.N)
	return err
}

// noteMerged records features that named a column of a row more than once.
func (r *Raw) noteMerged(name string, merged int64) {
	if merged == 0 {
		return
	}
	r.Findings = append(r.Findings, Finding{
		Code: "repeated-features", Severity: Warning, Count: merged, First: name,
		Effect: "a row names the same column more than once; the values were added",
		Remedy: "call sum_duplicates() before saving the matrix, if adding is not what you mean",
	})
}

// rowsMismatch is the error for something that is not one per vertex.
func rowsMismatch(name, what string, got, n int) error {
	return fmt.Errorf("read %s: %d %s for %d vertices; there must be one per vertex, in vertex order", name, got, what, n)
}

// matrix is a dense array of n rows.
func (a *numArray) matrix(n int) (*kernels.Mat, error) {
	rows, cols, err := a.dims()
	if err != nil {
		return nil, err
	}
	if rows != n {
		return nil, rowsMismatch(a.name, "rows of features", rows, n)
	}
	data, err := a.floats()
	if err != nil {
		return nil, err
	}
	return kernels.FromSlice(rows, cols, data), nil
}

// labels reads one class per vertex, or one column per class. Negative numbers and
// NaN mean unlabelled.
func (n *npz) labels(key string, raw *Raw) error {
	a, err := n.array(key)
	if err != nil {
		return err
	}
	return raw.setLabels(a)
}

// maxClasses bounds a label; more are taken for a mistake such as ids in the label column.
const maxClasses = 1 << 20

// labels reads one class per vertex from an array of n, or n x 1.
func (a *numArray) labels(n int) ([]int32, error) {
	rows, cols, err := a.dims()
	if err != nil {
		return nil, err
	}
	if cols != 1 {
		return nil, fmt.Errorf("read %s: shape %v has %d labels per vertex; only one is read", a.name, a.shape, cols)
	}
	if rows != n {
		return nil, rowsMismatch(a.name, "labels", rows, n)
	}
	if err := a.numeric(); err != nil {
		return nil, err
	}
	out := make([]int32, rows)
	err = a.decode(func(i int, f float64, v int64) error {
		switch {
		case f != f || v < 0 && v != notInteger:
			out[i] = -1
		case v == notInteger || v >= maxClasses:
			return fmt.Errorf("read %s: record %d: label %v is not a class number in [0,%d)", a.name, i, f, maxClasses)
		default:
			out[i] = int32(v)
		}
		return nil
	})
	return out, err
}

// names sets IDs and Classes from the string arrays, where they can serve as such;
// arrays of pickled objects are skipped.
func (n *npz) names(raw *Raw) {
	if ids := n.strings("node_names", raw.N); ids != nil && unique(ids) {
		raw.IDs = ids
	}
	classes := raw.classes()
	if names := n.strings("class_names", -1); len(names) >= classes && len(names) > 0 && len(names) <= maxClasses {
		raw.Classes = names
	}
}

// strings is a string array of the wanted length (-1: any), or nil.
func (n *npz) strings(key string, want int) []string {
	if !n.has(key) {
		return nil
	}
	a, err := n.array(key)
	if err != nil || a.kind != 'U' && a.kind != 'S' || len(a.shape) != 1 || want >= 0 && a.n != want {
		return nil
	}
	s, err := a.strings()
	if err != nil {
		return nil
	}
	return s
}

func unique(names []string) bool {
	seen := make(map[string]bool, len(names))
	for _, s := range names {
		if s == "" || seen[s] {
			return false
		}
		seen[s] = true
	}
	return true
}

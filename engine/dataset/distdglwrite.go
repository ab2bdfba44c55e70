package dataset

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Names of the only kinds of vertex and edge that WriteDistDGL writes.
const (
	chunkNodeType = "_N"
	chunkEdgeType = "_N:_E:_N"
	chunkIDs      = "ids.txt" // a name a line; DGL does not read it
)

// WriteDistDGL writes r to the new folder dir in DistDGL's chunked format, in the given
// number of chunks, for dgl's dispatch pipeline: edges as csv, features, labels and the
// first split's masks as numpy, and weights where there are any. Vertices keep their
// order; DGL numbers them from 0, so that the users' ids are written beside it, to ids.txt,
// where they have any. DGL's graphs are directed: the reverse of each edge of an undirected
// source is written too, except of loops. Nothing is left behind where it fails.
func WriteDistDGL(ctx context.Context, dir string, r *Raw, chunks int) (err error) {
	if chunks < 1 || chunks > max(1, r.N) {
		return fmt.Errorf("write %s: %d chunks for %d vertices; give a number from 1 to that", dir, chunks, r.N)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("write %s: it exists already; name a new folder", dir)
	}
	part, err := os.MkdirTemp(filepath.Dir(filepath.Clean(dir)), ".distdgl-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", dir, cause(err))
	}
	defer os.RemoveAll(part)
	w := &chunkWriter{dir: part, raw: r, chunks: chunks}
	if err := w.write(ctx); err != nil {
		return fmt.Errorf("write %s: %w", dir, err)
	}
	if err := os.Chmod(part, 0o755); err != nil {
		return fmt.Errorf("write %s: %w", dir, cause(err))
	}
	if err := os.Rename(part, dir); err != nil {
		return fmt.Errorf("write %s: %w", dir, err)
	}
	return nil
}

// lineOf refuses names that ids.txt cannot hold, one a line.
func lineOf(id string) error {
	if strings.ContainsAny(id, "\n") {
		return fmt.Errorf("the name %q has a line end: rename the vertex", clip(id))
	}
	return nil
}

// chunkWriter writes one graph.
type chunkWriter struct {
	dir    string
	raw    *Raw
	chunks int
	meta   chunkMeta
}

// cut is where chunk k of n things begins.
func (w *chunkWriter) cut(n, k int) int { return int(int64(n) * int64(k) / int64(w.chunks)) }

func (w *chunkWriter) write(ctx context.Context) error {
	r := w.raw
	w.meta = chunkMeta{Name: r.Name, NodeTypes: []string{chunkNodeType}, EdgeTypes: []string{chunkEdgeType},
		NodeCounts: [][]int64{nil}, EdgeCounts: [][]int64{nil}, Edges: map[string]chunkSet{},
		NodeData: map[string]map[string]chunkSet{chunkNodeType: {}}, EdgeData: map[string]map[string]chunkSet{chunkEdgeType: {}}}
	for k := range w.chunks {
		w.meta.NodeCounts[0] = append(w.meta.NodeCounts[0], int64(w.cut(r.N, k+1)-w.cut(r.N, k)))
	}
	if err := w.edges(ctx); err != nil {
		return err
	}
	if err := w.nodes(ctx); err != nil {
		return err
	}
	if r.IDs != nil {
		err := w.file(chunkIDs, func(b *bufio.Writer) error {
			for _, id := range r.IDs {
				if err := lineOf(id); err != nil {
					return err
				}
				b.WriteString(id)
				b.WriteByte('\n')
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	data, err := json.MarshalIndent(w.meta, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(w.dir, "metadata.json"), append(data, '\n'), 0o644)
}

// file writes a file below the folder.
func (w *chunkWriter) file(name string, fill func(b *bufio.Writer) error) (err error) {
	full := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		return err
	}
	f, err := os.Create(full)
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(f, 1<<20)
	err = errors.Join(fill(b), b.Flush())
	return errors.Join(err, f.Close())
}

// reversed says whether record i is written in both directions.
func (w *chunkWriter) reversed(i int) bool { return w.raw.Undirected && w.raw.Src[i] != w.raw.Dst[i] }

func (w *chunkWriter) edges(ctx context.Context) error {
	r := w.raw
	set := chunkSet{}
	set.Format.Name, set.Format.Delimiter = "csv", " "
	weights := numpySet()
	for k := range w.chunks {
		if err := ctx.Err(); err != nil {
			return err
		}
		lo, hi := w.cut(len(r.Src), k), w.cut(len(r.Src), k+1)
		name := fmt.Sprintf("edges/part-%d.csv", k)
		set.Data = append(set.Data, name)
		written := int64(0)
		var values []float32
		err := w.file(name, func(b *bufio.Writer) error {
			var line []byte
			put := func(u, v int32) {
				line = strconv.AppendInt(line[:0], int64(u), 10)
				line = append(line, ' ')
				line = strconv.AppendInt(line, int64(v), 10)
				line = append(line, '\n')
				b.Write(line)
				written++
			}
			for i := lo; i < hi; i++ {
				put(r.Src[i], r.Dst[i])
				if w.reversed(i) {
					put(r.Dst[i], r.Src[i])
				}
				if r.Weight != nil {
					values = append(values, r.Weight[i])
					if w.reversed(i) {
						values = append(values, r.Weight[i])
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		w.meta.EdgeCounts[0] = append(w.meta.EdgeCounts[0], written)
		if r.Weight != nil {
			name := fmt.Sprintf("edge_data/weight-%d.npy", k)
			weights.Data = append(weights.Data, name)
			if err := w.npy(name, "<f4", []int{len(values)}, func(b io.Writer) error { return binary.Write(b, binary.LittleEndian, values) }); err != nil {
				return err
			}
		}
	}
	w.meta.Edges[chunkEdgeType] = set
	if r.Weight != nil {
		w.meta.EdgeData[chunkEdgeType]["weight"] = weights
	}
	return nil
}

func numpySet() chunkSet {
	var s chunkSet
	s.Format.Name = "numpy"
	return s
}

// npy writes a .npy file.
func (w *chunkWriter) npy(name, descr string, shape []int, fill func(b io.Writer) error) error {
	return w.file(name, func(b *bufio.Writer) error {
		dims := ""
		for _, n := range shape {
			dims += fmt.Sprintf("%d,", n)
		}
		head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, dims)
		pad := 63 - (10+len(head))%64
		fmt.Fprintf(b, "\x93NUMPY\x01\x00%c%c%s%*s\n", byte(len(head)+pad+1), byte((len(head)+pad+1)>>8), head, pad, "")
		return fill(b)
	})
}

// array writes an array of the vertices in chunks; fill writes rows [lo,hi).
func (w *chunkWriter) array(ctx context.Context, name, descr string, cols int, fill func(b io.Writer, lo, hi int) error) error {
	set := numpySet()
	for k := range w.chunks {
		if err := ctx.Err(); err != nil {
			return err
		}
		lo, hi := w.cut(w.raw.N, k), w.cut(w.raw.N, k+1)
		shape := []int{hi - lo}
		if cols > 0 {
			shape = append(shape, cols)
		}
		file := fmt.Sprintf("node_data/%s-%d.npy", name, k)
		set.Data = append(set.Data, file)
		if err := w.npy(file, descr, shape, func(b io.Writer) error { return fill(b, lo, hi) }); err != nil {
			return err
		}
	}
	w.meta.NodeData[chunkNodeType][name] = set
	return nil
}

func (w *chunkWriter) nodes(ctx context.Context) error {
	r := w.raw
	le := binary.LittleEndian
	if cols := r.featureCols(); cols > 0 {
		row := make([]float32, cols)
		bytes := make([]byte, 4*cols)
		err := w.array(ctx, "feat", "<f4", cols, func(b io.Writer, lo, hi int) error {
			for v := lo; v < hi; v++ {
				r.featureRow(v, row)
				for i, x := range row {
					le.PutUint32(bytes[4*i:], math.Float32bits(x))
				}
				if _, err := b.Write(bytes); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if r.Labels != nil {
		if err := w.array(ctx, "label", "<i4", 0, func(b io.Writer, lo, hi int) error { return binary.Write(b, le, r.Labels[lo:hi]) }); err != nil {
			return err
		}
	}
	if r.Multi != nil {
		row := make([]int8, r.classes())
		err := w.array(ctx, "label", "|i1", len(row), func(b io.Writer, lo, hi int) error {
			for v := lo; v < hi; v++ {
				for k := range row {
					row[k] = 0
					if !r.labelled(v) {
						row[k] = -1
					}
				}
				for _, k := range r.classesOf(v) {
					row[k] = 1
				}
				if err := binary.Write(b, le, row); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if len(r.Splits) == 0 {
		return nil
	}
	on := make([]bool, r.N)
	for k, name := range []string{"train_mask", "val_mask", "test_mask"} {
		clear(on)
		for _, v := range *r.Splits[0].role(k) {
			on[v] = true
		}
		if err := w.array(ctx, name, "|b1", 0, func(b io.Writer, lo, hi int) error { return binary.Write(b, le, on[lo:hi]) }); err != nil {
			return err
		}
	}
	return nil
}

// featureCols is the number of feature columns.
func (r *Raw) featureCols() int {
	switch {
	case r.Dense != nil:
		return r.Dense.Cols
	case r.Sparse != nil:
		return r.Sparse.Cols
	}
	return 0
}

// featureRow writes v's features to row, which has featureCols values.
func (r *Raw) featureRow(v int, row []float32) {
	if r.Dense != nil {
		copy(row, r.Dense.Row(v))
		return
	}
	clear(row)
	if r.Sparse == nil {
		return
	}
	for j := r.Sparse.RowPtr[v]; j < r.Sparse.RowPtr[v+1]; j++ {
		x := float32(1)
		if r.Sparse.Val != nil {
			x = r.Sparse.Val[j]
		}
		row[r.Sparse.Col[j]] += x
	}
}

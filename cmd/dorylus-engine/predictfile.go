package main

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"dorylus/engine/export"
	"dorylus/engine/metric"
	"dorylus/engine/pipeline"
	"dorylus/engine/store"
	"dorylus/kernels"
)

// resultFile is a file of predictions or embeddings that is made from rows as they come.
// Only the class of each vertex is held in memory. Rows of values are put where they
// belong: in a .npy file that is the file itself, else one beside it, from which the lines
// of the file are written once all are there.
type resultFile struct {
	path, tag string
	st        *store.Store
	scores    bool
	out       *wholeFile
	beside    []*wholeFile
	columns   []*store.RowFile
	direct    bool // out has the rows already

	class                []int32
	sets, probs, vectors *store.RowFile
	cols                 int
}

// newResultFile makes the file, or says before anything is computed that it cannot.
func newResultFile(path, tag string, st *store.Store, scores bool) (*resultFile, error) {
	out, err := newWholeFile(path, tag)
	return &resultFile{path: path, tag: tag, st: st, scores: scores, out: out}, err
}

// column makes room for a row of cols values for each vertex.
func (r *resultFile) column(dtype string, cols, size int) (*store.RowFile, error) {
	at := r.out
	if r.direct = strings.EqualFold(filepath.Ext(r.path), ".npy"); !r.direct {
		var err error
		if at, err = newWholeFile(r.path, r.tag); err != nil {
			return nil, err
		}
		r.beside = append(r.beside, at)
	}
	n := r.st.Meta.Vertices
	c, err := store.NewRowFile(at.File, export.HeaderNPY(dtype, n, cols), n, cols*size)
	if err == nil {
		r.columns = append(r.columns, c)
	}
	return c, err
}

// logits takes rows of them, and writes what is predicted.
func (r *resultFile) logits(rows pipeline.Rows) error {
	return r.wrong(r.addLogits(rows))
}

func (r *resultFile) addLogits(rows pipeline.Rows) (err error) {
	multi, m := r.st.Multi != nil, rows.Values
	npy := strings.EqualFold(filepath.Ext(r.path), ".npy") // has one thing only
	if r.cols == 0 {
		r.cols = m.Cols
		switch {
		case npy && r.scores:
		case !multi:
			r.class = make([]int32, r.st.Meta.Vertices)
		default:
			if r.sets, err = r.column("|i1", m.Cols, 1); err != nil {
				return err
			}
		}
		if r.scores {
			if r.probs, err = r.column("<f4", m.Cols, 4); err != nil {
				return err
			}
		}
	}
	if r.class != nil {
		for i, v := range rows.Vertices {
			r.class[v] = metric.Argmax(m.Row(i))
		}
	}
	if r.sets != nil {
		bits := make([]byte, m.Rows*m.Cols)
		for i := range m.Rows {
			for c, z := range m.Row(i) {
				if z > 0 {
					bits[i*m.Cols+c] = 1
				}
			}
		}
		if err := r.sets.PutBytes(rows.Vertices, bits); err != nil {
			return err
		}
	}
	if r.probs == nil {
		return nil
	}
	return r.probs.PutFloats(rows.Vertices, kernels.FromSlice(m.Rows, m.Cols, probabilities(m, r.st.Meta.MultiLabel)))
}

// embedding takes rows of it.
func (r *resultFile) embedding(rows pipeline.Rows) (err error) {
	if r.vectors == nil {
		r.cols = rows.Values.Cols
		if r.vectors, err = r.column("<f4", r.cols, 4); err != nil {
			return r.wrong(err)
		}
	}
	return r.wrong(r.vectors.PutFloats(rows.Vertices, rows.Values))
}

// wrong is err with the name of the file.
func (r *resultFile) wrong(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write %s: %w", r.path, bare(err))
}

// keep writes what remains to be, and puts the file in its place.
func (r *resultFile) keep() error {
	if !r.direct {
		t, err := r.table()
		if err != nil {
			return r.wrong(err)
		}
		if err := export.Write(r.out, r.path, t); err != nil {
			return err
		}
	}
	out := r.out
	r.out = nil
	return out.keep()
}

// table is all that came. Sets of classes are in memory.
func (r *resultFile) table() (t *export.Table, err error) {
	t = &export.Table{Rows: r.st.Meta.Vertices, IDs: r.st.IDs, ClassNames: r.st.Meta.ClassNames, Class: r.class}
	if r.sets != nil {
		bits, err := r.sets.Bytes()
		if err != nil {
			return nil, err
		}
		t.Sets = &kernels.CSR{Cols: r.cols, RowPtr: make([]int64, 1, t.Rows+1)}
		for v := range t.Rows {
			for c, bit := range bits[v*r.cols : (v+1)*r.cols] {
				if bit != 0 {
					t.Sets.Col = append(t.Sets.Col, int32(c))
				}
			}
			t.Sets.RowPtr = append(t.Sets.RowPtr, int64(len(t.Sets.Col)))
		}
	}
	if r.probs != nil {
		if t.Scores, err = r.probs.Floats(); err != nil {
			return nil, err
		}
	}
	if r.vectors != nil {
		t.Embedding, err = r.vectors.Floats()
	}
	return t, err
}

// close gives back what it holds; a file that was not kept is gone.
func (r *resultFile) close() error {
	var errs []error
	for _, c := range r.columns {
		errs = append(errs, c.Close())
	}
	for _, f := range r.beside {
		f.discard()
	}
	if r.out != nil {
		r.out.discard()
	}
	return errors.Join(errs...)
}

// probabilities is the softmax of each row, or each value's sigmoid where a vertex
// may have several classes, one row after the other.
func probabilities(logits *kernels.Mat, multi bool) []float32 {
	out := make([]float32, 0, logits.Rows*logits.Cols)
	for v := range logits.Rows {
		row := logits.Row(v)
		top, sum := math.Inf(-1), 0.0
		for _, x := range row {
			top = math.Max(top, float64(x))
		}
		for _, x := range row {
			sum += math.Exp(float64(x) - top)
		}
		for _, x := range row {
			if multi {
				out = append(out, float32(1/(1+math.Exp(-float64(x)))))
			} else {
				out = append(out, float32(math.Exp(float64(x)-top)/sum))
			}
		}
	}
	return out
}

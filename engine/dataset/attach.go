package dataset

import (
	"fmt"
	"slices"

	"dorylus/kernels"
)

// attach puts features and labels at their vertices; place finds an id's vertex.
func (e *edgeList) attach(place func(id string) (int32, bool)) error {
	raw := e.raw
	if f := e.features; f != nil && f.ids == nil {
		raw.Dense, raw.Sparse = f.dense, f.sparse
	} else if f != nil {
		order, err := placeRows(f.name, f.ids, raw.N, place)
		if err != nil {
			return err
		}
		if err := f.place(raw, order); err != nil {
			return err
		}
	}
	if t := e.labels; t != nil {
		raw.Classes = t.classes
		if t.ids == nil {
			if t.sets != nil {
				t.sets.store(raw)
			} else {
				raw.Labels = t.labels
			}
			return nil
		}
		order, err := placeRows(t.name, t.ids, raw.N, place)
		if err != nil {
			return err
		}
		if t.sets != nil {
			t.sets.place(order, raw.N)
			t.sets.store(raw)
			return nil
		}
		raw.Labels = slices.Repeat([]int32{-1}, raw.N)
		for i, v := range order {
			raw.Labels[v] = t.labels[i]
		}
	}
	return nil
}

// place puts row i at vertex order[i]. Dense rows must be there for every vertex; a
// vertex without a sparse row has no feature.
func (f *featureTable) place(raw *Raw, order []int32) error {
	row := slices.Repeat([]int32{-1}, raw.N)
	for i, v := range order {
		row[v] = int32(i)
	}
	if f.dense != nil {
		raw.Dense = kernels.FromSlice(raw.N, f.dense.Cols, make([]float32, raw.N*f.dense.Cols))
		for v, i := range row {
			if i < 0 {
				return fmt.Errorf("read %s: vertex %s has edges, but no row of features; give it one, or take its edges out", f.name, raw.name(v))
			}
			copy(raw.Dense.Row(v), f.dense.Row(int(i)))
		}
		return nil
	}
	m := f.sparse
	raw.Sparse = &kernels.CSR{Cols: m.Cols, RowPtr: make([]int64, 1, raw.N+1), Col: make([]int32, 0, len(m.Col))}
	for _, i := range row {
		if i >= 0 {
			lo, hi := m.RowPtr[i], m.RowPtr[i+1]
			raw.Sparse.Col = append(raw.Sparse.Col, m.Col[lo:hi]...)
			if m.Val != nil {
				raw.Sparse.Val = append(raw.Sparse.Val, m.Val[lo:hi]...)
			}
		}
		raw.Sparse.RowPtr = append(raw.Sparse.RowPtr, int64(len(raw.Sparse.Col)))
	}
	return nil
}

// placeRows is the vertex of each id, no vertex twice.
func placeRows(name string, ids []string, n int, place func(id string) (int32, bool)) ([]int32, error) {
	order := make([]int32, len(ids))
	seen := make([]bool, n)
	for i, id := range ids {
		v, ok := place(id)
		if !ok {
			return nil, fmt.Errorf("read %s: record %d: vertex %q does not exist; ids must be those of the edges", name, i, clip(id))
		}
		if seen[v] {
			return nil, fmt.Errorf("read %s: record %d: vertex %q has a row already; keep one", name, i, clip(id))
		}
		seen[v] = true
		order[i] = v
	}
	return order, nil
}

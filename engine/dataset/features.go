package dataset

import (
	"fmt"

	"dorylus/kernels"
)

// Densities at which CompactFeatures changes the layout. Between them either is
// fine, and the source's own is kept.
const (
	sparseBelow = 0.10
	denseAbove  = 0.30
)

// CompactFeatures stores features the cheaper way: dense ones with fewer than 10 %
// non-zeros become CSR, CSR ones with more than 30 % become dense. Values are
// unchanged; it says in words what it did, "" for nothing.
func CompactFeatures(r *Raw) string {
	if d := r.Dense; d != nil && d.Rows > 0 && d.Cols > 0 {
		nnz := int64(0)
		for i := range d.Rows {
			for _, x := range d.Row(i) {
				if x != 0 {
					nnz++
				}
			}
		}
		density := float64(nnz) / float64(d.Rows) / float64(d.Cols)
		if density >= sparseBelow {
			return ""
		}
		r.Sparse, r.Dense = toSparse(d, nnz), nil
		return fmt.Sprintf("stored the features as CSR: %.2g %% of their values are not zero", 100*density)
	}
	if m := r.Sparse; m != nil && m.Rows() > 0 && m.Cols > 0 {
		density := float64(m.Edges()) / float64(m.Rows()) / float64(m.Cols)
		if density <= denseAbove {
			return ""
		}
		r.Dense, r.Sparse = toDense(m), nil
		return fmt.Sprintf("stored the features as a dense matrix: %.2g %% of their values are given", 100*density)
	}
	return ""
}

// toSparse is d with its nnz non-zeros.
func toSparse(d *kernels.Mat, nnz int64) *kernels.CSR {
	m := &kernels.CSR{Cols: d.Cols, RowPtr: make([]int64, 1, d.Rows+1), Col: make([]int32, 0, nnz), Val: make([]float32, 0, nnz)}
	for i := range d.Rows {
		for c, x := range d.Row(i) {
			if x != 0 {
				m.Col, m.Val = append(m.Col, int32(c)), append(m.Val, x)
			}
		}
		m.RowPtr = append(m.RowPtr, int64(len(m.Col)))
	}
	if allOnes(m.Val) {
		m.Val = nil
	}
	return m
}

// toDense spells m out.
func toDense(m *kernels.CSR) *kernels.Mat {
	d := kernels.FromSlice(m.Rows(), m.Cols, make([]float32, m.Rows()*m.Cols))
	for i := range m.Rows() {
		row := d.Row(i)
		for j := m.RowPtr[i]; j < m.RowPtr[i+1]; j++ {
			x := float32(1)
			if m.Val != nil {
				x = m.Val[j]
			}
			row[m.Col[j]] += x
		}
	}
	return d
}

package dataset

import (
	"fmt"
	"math"

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

// RowNormalize divides each feature row by its sum, taken in float64. Rows that sum
// to zero stay as they are; it returns how many there are.
func RowNormalize(r *Raw) (zero int) {
	var row func(i int) []float32
	switch {
	case r.Dense != nil:
		row = r.Dense.Row
	case r.Sparse != nil:
		r.Sparse.Val = valuesOf(r.Sparse)
		row = func(i int) []float32 { return r.Sparse.Val[r.Sparse.RowPtr[i]:r.Sparse.RowPtr[i+1]] }
	default:
		return 0
	}
	for i := range r.N {
		x := row(i)
		sum := 0.0
		for _, v := range x {
			sum += float64(v)
		}
		if sum == 0 {
			zero++
			continue
		}
		for j, v := range x {
			x[j] = float32(float64(v) / sum)
		}
	}
	return zero
}

// Standardize shifts and scales each column of dense features to mean 0 and
// population standard deviation 1. Constant columns become 0; it returns how many
// there are. Sparse features are an error, since they would become dense.
func Standardize(r *Raw) (constant int, err error) {
	d := r.Dense
	if d == nil {
		return 0, fmt.Errorf("standardize %s: the features are not dense; use row normalisation, which keeps zeros", r.Name)
	}
	mean, dev := make([]float64, d.Cols), make([]float64, d.Cols)
	for i := range d.Rows {
		for c, x := range d.Row(i) {
			mean[c] += float64(x) / float64(d.Rows)
		}
	}
	for i := range d.Rows {
		for c, x := range d.Row(i) {
			dev[c] += (float64(x) - mean[c]) * (float64(x) - mean[c])
		}
	}
	scale := make([]float64, d.Cols)
	for c := range dev {
		if s := math.Sqrt(dev[c] / float64(d.Rows)); s > 1e-12*math.Abs(mean[c]) {
			scale[c] = 1 / s
		} else {
			constant++
		}
	}
	for i := range d.Rows {
		row := d.Row(i)
		for c, x := range row {
			row[c] = float32((float64(x) - mean[c]) * scale[c])
		}
	}
	return constant, nil
}

// Identity gives every vertex a feature column of its own: what a graph without
// features is trained on. It replaces the features that r has.
func Identity(r *Raw) {
	m := &kernels.CSR{Cols: r.N, RowPtr: make([]int64, r.N+1), Col: make([]int32, r.N)}
	for v := range r.N {
		m.Col[v] = int32(v)
		m.RowPtr[v+1] = int64(v) + 1
	}
	r.Dense, r.Sparse = nil, m
}

package dataset

import (
	"fmt"
	"math"
	"slices"

	"dorylus/kernels"
)

// csrParts are the arrays of a compressed sparse row matrix in a file, unread.
type csrParts struct {
	name                  string // for messages
	rows, cols            int
	indptr, indices, data *numArray // data may be nil: all ones
}

// read checks the parts against each other and returns them with the entries in
// file order. val is nil where every value is 1.
func (p csrParts) read() (ptr []int64, col []int32, val []float32, err error) {
	if p.indptr.n != p.rows+1 {
		return nil, nil, nil, fmt.Errorf("read %s: %d row offsets for %d rows; there must be one more than rows", p.indptr.name, p.indptr.n, p.rows)
	}
	if ptr, err = p.indptr.int64s(); err != nil {
		return nil, nil, nil, err
	}
	if ptr[0] != 0 {
		return nil, nil, nil, fmt.Errorf("read %s: row 0 starts at %d, not at 0", p.indptr.name, ptr[0])
	}
	for i := range p.rows {
		if ptr[i+1] < ptr[i] {
			return nil, nil, nil, fmt.Errorf("read %s: row %d starts at %d, before row %d at %d", p.indptr.name, i+1, ptr[i+1], i, ptr[i])
		}
	}
	if end := ptr[p.rows]; end != int64(p.indices.n) {
		return nil, nil, nil, fmt.Errorf("read %s: the rows end at %d, but there are %d indices", p.indptr.name, end, p.indices.n)
	}
	if col, err = p.indices.int32s("column", 0, int64(p.cols)); err != nil {
		return nil, nil, nil, err
	}
	if p.data == nil {
		return ptr, col, nil, nil
	}
	if p.data.n != len(col) {
		return nil, nil, nil, fmt.Errorf("read %s: %d values for %d indices", p.data.name, p.data.n, len(col))
	}
	if val, err = p.data.floats(); err != nil {
		return nil, nil, nil, err
	}
	if allOnes(val) {
		val = nil
	}
	return ptr, col, val, nil
}

func allOnes(val []float32) bool {
	for _, v := range val {
		if v != 1 {
			return false
		}
	}
	return true
}

// features is the matrix with sorted columns; entries that name the same column of
// a row twice are added, and counted in repeats.
func (p csrParts) features() (m *kernels.CSR, repeats int64, err error) {
	if err := checkColumns(p.name, int64(p.cols), int64(p.indices.n)); err != nil {
		return nil, 0, err
	}
	ptr, col, val, err := p.read()
	if err != nil {
		return nil, 0, err
	}
	m = &kernels.CSR{Cols: p.cols, RowPtr: ptr, Col: col, Val: val}
	repeats = sortColumns(m)
	return m, repeats, nil
}

// sortColumns sorts each row's entries by column, adds those with the same
// column in file order, and returns how many it merged.
func sortColumns(m *kernels.CSR) (merged int64) {
	var keys []uint64
	var vals []float32
	for i := range m.Rows() {
		lo, hi := m.RowPtr[i], m.RowPtr[i+1]
		cols := m.Col[lo:hi]
		if !slices.IsSorted(cols) {
			keys = keys[:0]
			for j, c := range cols {
				keys = append(keys, uint64(c)<<32|uint64(j))
			}
			slices.Sort(keys)
			if m.Val != nil {
				vals = append(vals[:0], m.Val[lo:hi]...)
			}
			for j, k := range keys {
				cols[j] = int32(k >> 32)
				if m.Val != nil {
					m.Val[lo+int64(j)] = vals[uint32(k)]
				}
			}
		}
		for j := 1; j < len(cols); j++ {
			if cols[j] == cols[j-1] {
				merged++
			}
		}
	}
	if merged > 0 {
		mergeColumns(m)
	}
	return merged
}

// mergeColumns adds neighbours with the same column of a sorted matrix.
func mergeColumns(m *kernels.CSR) {
	if m.Val == nil {
		m.Val = make([]float32, len(m.Col))
		for i := range m.Val {
			m.Val[i] = 1
		}
	}
	w, next := int64(0), int64(0)
	for i := range m.Rows() {
		lo, hi := next, m.RowPtr[i+1]
		next = hi
		m.RowPtr[i] = w
		for j := lo; j < hi; j++ {
			if j > lo && w > m.RowPtr[i] && m.Col[w-1] == m.Col[j] {
				m.Val[w-1] += m.Val[j]
				continue
			}
			m.Col[w], m.Val[w] = m.Col[j], m.Val[j]
			w++
		}
	}
	m.RowPtr[m.Rows()] = w
	m.Col, m.Val = m.Col[:w], m.Val[:w]
}

// edges is the square matrix as edges row -> column, in file order.
func (p csrParts) edges() (src, dst []int32, weight []float32, err error) {
	ptr, col, val, err := p.read()
	if err != nil {
		return nil, nil, nil, err
	}
	src = make([]int32, len(col))
	for i := range p.rows {
		for j := ptr[i]; j < ptr[i+1]; j++ {
			src[j] = int32(i)
		}
	}
	return src, col, val, nil
}

// checkColumns refuses a matrix of cols columns that nnz values cannot justify: a
// weight matrix has a row for each.
func checkColumns(name string, cols, nnz int64) error {
	if cols > maxVertices || cols > 1<<20+64*nnz {
		return fmt.Errorf("read %s: %d columns of features for %d values: nearly all are empty; number the columns without gaps", name, cols, nnz)
	}
	return nil
}

// vertexCount checks that n vertices can be numbered.
func vertexCount(name string, n int64) (int, error) {
	if n < 0 || n > maxVertices {
		return 0, fmt.Errorf("read %s: %d vertices are outside [0,%d]", name, n, int64(math.MaxInt32))
	}
	return int(n), nil
}

package dataset

import (
	"fmt"
	"math"
	"slices"
)

// features looks for numbers that spoil training, and for rows and columns that say nothing.
func (c *checker) features() {
	r := c.r
	if r.Dense == nil && r.Sparse == nil {
		c.add(Finding{Code: "no-features", Severity: Warning, Count: int64(r.N),
			First:  r.where(0),
			Effect: "there is nothing to classify by", Remedy: "give a file of features, or one column per vertex with --features=identity"})
		return
	}
	var bad, large, zeroRows tally
	value := func(v, col int, x float32) bool {
		at := func() string { return fmt.Sprintf("row %d (vertex %s), column %d: %v", v, r.name(v), col, x) }
		if f := math.Abs(float64(x)); !(f <= math.MaxFloat32) {
			bad.hit(at)
		} else if f > largeFeature {
			large.hit(at)
		}
		return x != 0
	}
	var constant tally
	if d := r.Dense; d != nil {
		same := slices.Repeat([]bool{true}, d.Cols)
		for v := range d.Rows {
			any := false
			for col, x := range d.Row(v) {
				any = value(v, col, x) || any
				if x != d.Host[col] {
					same[col] = false
				}
			}
			if !any {
				zeroRows.hit(func() string { return "vertex " + r.name(v) })
			}
		}
		for col, s := range same {
			if s {
				constant.hit(func() string { return fmt.Sprintf("column %d", col) })
			}
		}
	} else {
		c.sparseFeatures(value, &zeroRows, &constant)
	}
	c.add(bad.finding("non-finite-features", Error, "one such value makes every weight NaN in the first epoch", "replace it by a number, for example the column's mean"))
	c.add(large.finding("large-features", Warning, fmt.Sprintf("values beyond %d drown the other columns and can make the first steps diverge", largeFeature), "prepare with --features=standardize or --features=row-normalize"))
	c.add(zeroRows.finding("zero-features", Info, "they are classified by their neighbours alone", "nothing to do, unless their features are missing from the source"))
	c.add(constant.finding("constant-columns", Info, "a feature that is the same for every vertex tells nothing and costs time", "leave these columns out of the source to save time; accuracy will not change"))
}

// largeFeature is the absolute value from which a feature is worth a warning: raw
// counts of bytes, clicks or seconds, which nobody means to be weights of a network.
const largeFeature = 10_000

// sparseFeatures does the same for CSR.
func (c *checker) sparseFeatures(value func(v, col int, x float32) bool, zeroRows, constant *tally) {
	r := c.r
	m := r.Sparse
	given := make([]int32, m.Cols)
	first := make([]float32, m.Cols)
	differs := make([]bool, m.Cols)
	for v := range m.Rows() {
		any := false
		for j := m.RowPtr[v]; j < m.RowPtr[v+1]; j++ {
			col, x := m.Col[j], float32(1)
			if m.Val != nil {
				x = m.Val[j]
			}
			any = value(v, int(col), x) || any
			if x == 0 {
				continue
			}
			if given[col] == 0 {
				first[col] = x
			}
			differs[col] = differs[col] || x != first[col]
			given[col]++
		}
		if !any {
			zeroRows.hit(func() string { return "vertex " + r.name(v) })
		}
	}
	for col, n := range given {
		if n == 0 || int(n) == r.N && !differs[col] {
			constant.hit(func() string { return fmt.Sprintf("column %d", col) })
		}
	}
}

package dataset

import (
	"math"
	"slices"
	"testing"

	"dorylus/kernels"
)

func TestRowNormalizeBothLayouts(t *testing.T) {
	dense := &Raw{N: 3, Dense: kernels.FromSlice(3, 2, []float32{1, 3, 0, 0, 2, 0})}
	sparse := &Raw{N: 3, Sparse: &kernels.CSR{Cols: 2, RowPtr: []int64{0, 2, 2, 4}, Col: []int32{0, 1, 0, 1}}}
	if zero := RowNormalize(dense); zero != 1 || !slices.Equal(dense.Dense.Host, []float32{0.25, 0.75, 0, 0, 1, 0}) {
		t.Errorf("dense: %d zero rows, %v", zero, dense.Dense.Host)
	}
	if zero := RowNormalize(sparse); zero != 1 || !slices.Equal(sparse.Sparse.Val, []float32{0.5, 0.5, 0.5, 0.5}) {
		t.Errorf("sparse: %d zero rows, %v", zero, sparse.Sparse.Val)
	}
}

func TestStandardizeGivesMeanZeroAndDeviationOne(t *testing.T) {
	r := &Raw{N: 4, Dense: kernels.FromSlice(4, 2, []float32{1, 5, 2, 5, 3, 5, 6, 5})}
	constant, err := Standardize(r)
	if err != nil || constant != 1 {
		t.Fatalf("%d constant columns, %v", constant, err)
	}
	sum, squares := 0.0, 0.0
	for i := range 4 {
		x := float64(r.Dense.Row(i)[0])
		sum += x
		squares += x * x
		if r.Dense.Row(i)[1] != 0 {
			t.Errorf("row %d of the constant column is %v", i, r.Dense.Row(i)[1])
		}
	}
	if math.Abs(sum) > 1e-6 || math.Abs(squares/4-1) > 1e-6 {
		t.Errorf("mean %v, variance %v", sum/4, squares/4)
	}
	if _, err := Standardize(&Raw{N: 1}); err == nil {
		t.Error("no dense features, and no error")
	}
}

func TestCompactFeaturesKeepsValues(t *testing.T) {
	host := make([]float32, 40)
	host[3], host[39] = 2, 3
	r := &Raw{N: 2, Dense: kernels.FromSlice(2, 20, slices.Clone(host))}
	if CompactFeatures(r) == "" || r.Sparse == nil || r.Dense != nil {
		t.Fatal("5 % non-zeros stayed dense")
	}
	if got := toDense(r.Sparse).Host; !slices.Equal(got, host) {
		t.Errorf("values changed: %v", got)
	}
	if CompactFeatures(r) != "" {
		t.Error("5 % non-zeros became dense again")
	}
	full := &Raw{N: 2, Sparse: &kernels.CSR{Cols: 2, RowPtr: []int64{0, 1, 2}, Col: []int32{0, 1}}}
	if CompactFeatures(full) == "" || !slices.Equal(full.Dense.Host, []float32{1, 0, 0, 1}) {
		t.Errorf("50 %% non-zeros stayed sparse: %+v", full.Dense)
	}
	Identity(full)
	if full.Dense != nil || full.Sparse.Cols != 2 || full.Sparse.Edges() != 2 {
		t.Errorf("identity: %+v", full.Sparse)
	}
}

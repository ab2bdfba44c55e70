package dataset

import (
	"slices"
	"testing"

	"dorylus/kernels"
)

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
}

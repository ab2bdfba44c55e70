//go:build !asan && !race

package ref_test

import (
	"testing"

	"dorylus/kernels"
	"dorylus/kernels/ref"
)

// TestNoAllocation: once a stream has its scratch, ops allocate nothing. (The
// detectors' builds move values to the heap.)
func TestNoAllocation(t *testing.T) {
	d, err := ref.Open()
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	mat := func(rows, cols int) *kernels.Mat {
		m, err := d.Alloc(rows, cols)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	g, err := d.Load(&kernels.CSR{Cols: 4, RowPtr: []int64{0, 2, 3, 3, 5}, Col: []int32{0, 3, 1, 0, 2}})
	if err != nil {
		t.Fatal(err)
	}
	x, y, w, dw, bias := mat(4, 5), mat(4, 5), mat(5, 5), mat(5, 5), mat(1, 5)
	m, v := mat(5, 5), mat(5, 5)
	ep := &kernels.Epilogue{Bias: bias, Act: kernels.ELU, Drop: kernels.Dropout{P: 0.5, Key: 1}}
	all, labels, loss := kernels.Span{Hi: 4}, []int32{0, 1, -1, 4}, make([]float64, 1)
	step := func() {
		s.GEMM(y, x, w, kernels.NN, ep)
		s.GEMM(dw, x, y, kernels.TN, nil)
		s.SpMM(y, g, x, kernels.Gather{Self: kernels.Self{On: true}, Ep: ep}, all)
		s.SpMMT(y, g, nil, x, all)
		s.Backward(y, y, x, ep, all)
		s.ColSum(bias, x, all)
		s.SoftmaxXent(y, loss, x, labels, nil, 1, all)
		s.Adam(w, dw, m, v, kernels.Adam{Beta1: 0.9, Beta2: 0.99, Step: 1})
	}
	if n := testing.AllocsPerRun(10, step); n > 0 {
		t.Errorf("a step of ops allocates %v times, want 0", n)
	}
}

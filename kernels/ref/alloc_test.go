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
	as, ad, lse, dot, das, dad := mat(4, 1), mat(4, 1), mat(4, 1), mat(4, 1), mat(4, 1), mat(4, 1)
	arg, stat, gamma, beta, two, number, dx, dgamma := mat(4, 5), mat(4, 2), mat(1, 5), mat(1, 5), mat(2, 5), mat(1, 1), mat(4, 5), mat(1, 5)
	at := kernels.Attention{Heads: 1, Slope: 0.2, Self: kernels.Self{On: true}, Drop: kernels.Dropout{P: 0.5, Key: 1}}
	targets := &kernels.CSR{Cols: 5, RowPtr: []int64{0, 2, 2, 3, 3}, Col: []int32{0, 3, 1}}
	all, labels, loss := kernels.Span{Hi: 4}, []int32{0, 1, -1, 4}, make([]float64, 1)
	step := func() {
		s.GEMM(y, x, w, kernels.NN, ep)
		s.GEMM(dw, x, y, kernels.TN, nil)
		s.SpMM(y, g, x, kernels.Gather{Self: kernels.Self{On: true}, Ep: ep}, all)
		s.SpMMT(y, g, nil, x, all)
		s.Backward(y, y, x, ep, all)
		s.ColSum(bias, x, all)
		s.SoftmaxXent(y, loss, x, labels, nil, 1, all)
		s.AddGEMM(y, x, w, kernels.NN, ep)
		s.AddRows(w, x, labels)
		s.AddScaled(y, x, y, 1, number)
		s.Dot(number, x, y)
		s.ColDot(bias, x, y)
		s.SpMMMax(y, arg, g, x, all)
		s.SpMMMaxBack(dx, g, y, arg, all)
		s.GAT(y, lse, g, x, as, ad, at, ep, all)
		s.GATBackDst(dad, dot, g, x, as, ad, lse, y, at, all)
		s.GATBackSrc(dx, das, g, x, as, ad, lse, dot, y, at, all)
		s.HeadDot(as, x, gamma)
		s.HeadOuterAdd(dx, das, gamma)
		s.HeadDotGrad(beta, das, x)
		s.HeadMean(y, x, 1, ep)
		s.HeadSpread(dx, y, 1)
		s.LayerNorm(y, stat, x, gamma, beta, 1e-5)
		s.LayerNormBack(dx, dgamma, beta, y, x, stat, gamma)
		s.ColMoments(two, x)
		s.ColAffine(y, x, nil, gamma, nil, beta)
		s.SigmoidBCE(dx, loss, x, targets, labels, nil, 1)
		s.Adam(w, dw, m, v, kernels.Adam{Beta1: 0.9, Beta2: 0.99, Step: 1})
	}
	if n := testing.AllocsPerRun(10, step); n > 0 {
		t.Errorf("a step of ops allocates %v times, want 0", n)
	}
}

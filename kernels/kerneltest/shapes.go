package kerneltest

import (
	"fmt"
	"math"

	"dorylus/kernels"
)

func shapeCases() []Case { return []Case{{"Shapes/refused", shapes}} }

// shapes: an op whose operands do not fit panics with a *kernels.ShapeError that
// names it, writes nothing, and leaves the stream fit for work.
func shapes(l *lab) {
	t := l.trial(layouts[0], "operands that do not fit")
	g := l.load(toy(l.rng, 6, 5, false))
	x := t.in("x", 5, 8, random(l.rng, false)).view
	dst := t.result("dst", 6, 8)
	col := t.resultCol("column", g.Edges())
	d, all := dst.view, kernels.Span{Hi: 6}
	past := kernels.Span{Lo: 2, Hi: 7}
	short := make([]float32, 6*8-1)
	bad := []struct {
		op   string
		call func(s kernels.Stream)
	}{
		{"Put", func(s kernels.Stream) { s.Put(d, short) }},
		{"Get", func(s kernels.Stream) { s.Get(short, d) }},
		{"Copy", func(s kernels.Stream) { s.Copy(d, x) }},
		{"Zero", func(s kernels.Stream) { s.Zero(nil) }},
		{"GEMM", func(s kernels.Stream) { s.GEMM(d, d, x, kernels.NN, nil) }},
		{"SpMM", func(s kernels.Stream) { s.SpMM(d, g, x, kernels.Gather{}, past) }},
		{"SpMM", func(s kernels.Stream) { s.SpMM(d, g, x, kernels.Gather{Self: kernels.Self{On: true}}, all) }},
		{"SpMM", func(s kernels.Stream) {
			s.SpMM(d, g, x, kernels.Gather{Self: kernels.Self{On: true, Col: []int32{0, 1, 2, 3, 4, 5}}}, all)
		}},
		{"SpMM", func(s kernels.Stream) { s.SpMM(d, g, x, kernels.Gather{Ep: &kernels.Epilogue{Bias: x}}, all) }},
		{"SpMM", func(s kernels.Stream) {
			s.SpMM(d, g, x, kernels.Gather{Ep: &kernels.Epilogue{Drop: kernels.Dropout{P: 1}}}, all)
		}},
		{"SpMMT", func(s kernels.Stream) { s.SpMMT(d, g, nil, x, all) }},
		{"SDDMM", func(s kernels.Stream) { s.SDDMM(col.view, g, d, x, all) }},
		{"EdgeDropout", func(s kernels.Stream) { s.EdgeDropout(d, g, kernels.Dropout{}, all) }},
		{"Forward", func(s kernels.Stream) { s.Forward(d, x, nil, all) }},
		{"Forward", func(s kernels.Stream) {
			s.Forward(d, d, &kernels.Epilogue{Drop: kernels.Dropout{P: 0.5, IDs: make([]int32, 5)}}, all)
		}},
		{"Backward", func(s kernels.Stream) { s.Backward(d, d, x, nil, all) }},
		{"ColSum", func(s kernels.Stream) { s.ColSum(d, x, kernels.Span{}) }},
		{"SoftmaxXent", func(s kernels.Stream) {
			s.SoftmaxXent(nil, make([]float64, 1), d, []int32{0, 0, 0, 0, 0, 8}, nil, 1, all)
		}},
		{"Add", func(s kernels.Stream) { s.Add(d, d, x) }},
		{"Adam", func(s kernels.Stream) { s.Adam(d, x, d, d, kernels.Adam{Step: 1}) }},
		{"SGD", func(s kernels.Stream) { s.SGD(d, x, nil, kernels.SGD{Step: 1}) }},
		{"GatherRows", func(s kernels.Stream) { s.GatherRows(d, x, []int32{0, 1, 2, 3, 4, 5}) }},
		{"ScatterRows", func(s kernels.Stream) { s.ScatterRows(d, x, []int32{0, 1, 2, 3, -1}) }},
		{"AddGEMM", func(s kernels.Stream) { s.AddGEMM(d, d, x, kernels.NN, nil) }},
		{"AddRows", func(s kernels.Stream) { s.AddRows(d, x, []int32{0, 1, -1, 3, 6}) }},
		{"AddScaled", func(s kernels.Stream) { s.AddScaled(d, d, x, 1, nil) }},
		{"AddScaled", func(s kernels.Stream) { s.AddScaled(d, d, d, 1, x) }},
		{"Dot", func(s kernels.Stream) { s.Dot(d, x, x) }},
		{"ColDot", func(s kernels.Stream) { s.ColDot(d, x, x) }},
		{"SpMMMax", func(s kernels.Stream) { s.SpMMMax(d, nil, g, x, past) }},
		{"SpMMMax", func(s kernels.Stream) { s.SpMMMax(d, x, g, x, all) }},
		{"SpMMMaxBack", func(s kernels.Stream) { s.SpMMMaxBack(d, g, d, d, all) }},
		{"GAT", func(s kernels.Stream) { s.GAT(d, d, g, x, x, d, kernels.Attention{Heads: 3}, nil, all) }},
		{"GAT", func(s kernels.Stream) { s.GAT(d, d, g, x, x, d, kernels.Attention{}, nil, all) }},
		{"GATBackDst", func(s kernels.Stream) { s.GATBackDst(d, d, g, x, x, d, d, d, kernels.Attention{Heads: 8}, all) }},
		{"GATBackSrc", func(s kernels.Stream) { s.GATBackSrc(d, d, g, x, x, d, d, d, d, kernels.Attention{Heads: 8}, all) }},
		{"HeadDot", func(s kernels.Stream) { s.HeadDot(d, x, x) }},
		{"HeadOuterAdd", func(s kernels.Stream) { s.HeadOuterAdd(d, x, x) }},
		{"HeadDotGrad", func(s kernels.Stream) { s.HeadDotGrad(d, x, x) }},
		{"HeadMean", func(s kernels.Stream) { s.HeadMean(d, x, 2, nil) }},
		{"HeadSpread", func(s kernels.Stream) { s.HeadSpread(d, x, 0) }},
		{"LayerNorm", func(s kernels.Stream) { s.LayerNorm(d, d, x, x, x, 0) }},
		{"LayerNormBack", func(s kernels.Stream) { s.LayerNormBack(d, d, d, d, x, x, x) }},
		{"ColMoments", func(s kernels.Stream) { s.ColMoments(d, x) }},
		{"ColAffine", func(s kernels.Stream) { s.ColAffine(d, x, nil, x, nil, x) }},
		{"SigmoidBCE", func(s kernels.Stream) {
			s.SigmoidBCE(d, make([]float64, 1), x, nil, make([]int32, 5), nil, 1)
		}},
		{"ToBF16", func(s kernels.Stream) { s.ToBF16(make([]uint16, 3), x) }},
		{"FromBF16", func(s kernels.Stream) { s.FromBF16(d, make([]uint16, 3)) }},
		{"Zero", func(s kernels.Stream) {
			s.Zero(&kernels.Mat{Rows: math.MaxInt, Cols: 8, Stride: 8, Host: d.Host, Addr: d.Addr})
		}},
	}
	t.run(func(s kernels.Stream) {
		for i, b := range bad {
			if err := refused(b.op, func() { b.call(s) }); err != nil {
				l.failf("bad call %d: %v", i, err)
			}
		}
	})
	t.untouched(dst, func(int, int) bool { return false })
	t.untouched(col, func(int, int) bool { return false })
}

// refused runs call and says how it differed from a panic with op's ShapeError.
func refused(op string, call func()) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
			err = fmt.Errorf("%s did not panic", op)
		case *kernels.ShapeError:
			if p.Op != op {
				err = fmt.Errorf("%s panicked with the shapes of %s: %v", op, p.Op, p)
			}
		default:
			err = fmt.Errorf("%s panicked with %T, want *kernels.ShapeError: %v", op, p, p)
		}
	}()
	call()
	return nil
}

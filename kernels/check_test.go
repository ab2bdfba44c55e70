package kernels

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

// sizes is a graph that has sizes and nothing else.
type sizes struct{ rows, cols, edges int }

func (s sizes) Rows() int  { return s.rows }
func (s sizes) Cols() int  { return s.cols }
func (s sizes) Edges() int { return s.edges }

// mat is a host matrix without padding.
func mat(rows, cols int) *Mat {
	return &Mat{Rows: rows, Cols: cols, Stride: cols, Host: make([]float32, rows*cols)}
}

// shapeOf runs check and returns what it panicked with; nil if it did not.
func shapeOf(t *testing.T, check func()) (err *ShapeError) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			e, ok := p.(error)
			if !ok || !errors.As(e, &err) {
				t.Errorf("panicked with %T %v, want *ShapeError", p, p)
			}
		}
	}()
	check()
	return nil
}

// TestChecks holds, per op, a call that fits and calls that do not, with what the
// message must say: the operand and the numbers.
func TestChecks(t *testing.T) {
	g := sizes{rows: 4, cols: 6, edges: 9}
	all := Span{Hi: 4}
	ep := func(change func(*Epilogue)) *Epilogue {
		e := &Epilogue{Bias: mat(1, 3), Act: ReLU, Drop: Dropout{P: 0.5, IDs: make([]int32, 4)}}
		change(e)
		return e
	}
	ga := func(change func(*Gather)) Gather {
		x := Gather{
			Scale: Scale{Row: mat(4, 1), Col: mat(6, 1)},
			Self:  Self{On: true, Col: []int32{-1, 0, 5, 2}, W: mat(4, 1)},
			W:     mat(9, 1),
		}
		change(&x)
		return x
	}
	dst, x := mat(4, 3), mat(6, 3)
	spmm := func(change func(*Gather)) func() { return func() { CheckSpMM(dst, g, x, ga(change), all) } }
	adam := Adam{Beta1: 0.9, Beta2: 0.999, Step: 1}
	one := make([]float64, 1)
	labels := []int32{0, 2, -1, -7}
	gat := func(change func(*Attention)) func() {
		return func() {
			p := Attention{Heads: 2, Slope: 0.2, Self: Self{On: true, Col: []int32{-1, 0, 5, 2}}, Drop: Dropout{P: 0.5}}
			change(&p)
			CheckGAT(mat(4, 6), mat(4, p.Heads), g, mat(6, 6), mat(6, p.Heads), mat(4, p.Heads), p, nil, all)
		}
	}
	bce := func(change func(*CSR, []int32)) func() {
		return func() {
			c, mask := &CSR{Cols: 3, RowPtr: []int64{0, 1, 3, 3, 4}, Col: []int32{0, 0, 2, 1}}, []int32{0, 1, -1, 9}
			change(c, mask)
			CheckSigmoidBCE(mat(4, 3), one, dst, c, mask, mat(1, 3), 1)
		}
	}
	short := &Mat{Rows: 4, Cols: 3, Stride: 5, Host: make([]float32, 17)}
	short.Host = short.Host[:17]
	tests := []struct {
		op, says string // says is empty where the call fits
		check    func()
	}{
		{"Put", "", func() { CheckPut(dst, make([]float32, 12)) }},
		{"Put", "src holds 11 values, want 12 (4 x 3)", func() { CheckPut(dst, make([]float32, 11)) }},
		{"Put", "dst is nil", func() { CheckPut(nil, nil) }},
		{"Put", "dst is -1 x 3", func() { CheckPut(&Mat{Rows: -1, Cols: 3, Stride: 3}, nil) }},
		{"Put", "rows of 3 values only 2 apart", func() { CheckPut(&Mat{Rows: 2, Cols: 3, Stride: 2}, nil) }},
		{"Put", "without memory", func() { CheckPut(&Mat{Rows: 2, Cols: 3, Stride: 3}, make([]float32, 6)) }},
		{"Put", "", func() { CheckPut(&Mat{Rows: 2, Cols: 3, Stride: 3, Addr: 64}, make([]float32, 6)) }},
		{"Put", "", func() { CheckPut(&Mat{Rows: 2, Stride: 16}, nil) }},
		{"Put", "more values than an int64 counts", func() {
			CheckPut(&Mat{Rows: math.MaxInt, Cols: 3, Stride: 8, Host: make([]float32, 3)}, nil)
		}},
		{"Get", "dst holds 13 values, want 12", func() { CheckGet(make([]float32, 13), dst) }},
		{"Get", "stride 5 and needs 18 values, its memory holds 17", func() { CheckGet(make([]float32, 12), short) }},
		{"Copy", "", func() { CheckCopy(dst, mat(4, 3)) }},
		{"Copy", "src is 6 x 3, want 4 x 3", func() { CheckCopy(dst, x) }},
		{"Zero", "dst is nil", func() { CheckZero(nil) }},

		{"GEMM", "", func() { CheckGEMM(dst, mat(4, 5), mat(5, 3), NN, ep(func(*Epilogue) {})) }},
		{"GEMM", "", func() { CheckGEMM(dst, mat(4, 5), mat(3, 5), NT, nil) }},
		{"GEMM", "", func() { CheckGEMM(dst, mat(5, 4), mat(5, 3), TN, nil) }},
		{"GEMM", "inner sizes 5 and 6 differ", func() { CheckGEMM(dst, mat(4, 5), mat(6, 3), NN, nil) }},
		{"GEMM", "dst is 4 x 3, want 5 x 3", func() { CheckGEMM(dst, mat(5, 5), mat(5, 3), NN, nil) }},
		{"GEMM", "transposition 9", func() { CheckGEMM(dst, mat(4, 5), mat(5, 3), 9, nil) }},
		{"GEMM", "is the memory of a", func() { m := mat(3, 3); CheckGEMM(m, m, mat(3, 3), NN, nil) }},
		{"GEMM", "bias is 1 x 4, want 1 x 3", func() { CheckGEMM(dst, mat(4, 5), mat(5, 3), NN, ep(func(e *Epilogue) { e.Bias = mat(1, 4) })) }},
		{"GEMM", "activation 5", func() { CheckGEMM(dst, mat(4, 5), mat(5, 3), NN, ep(func(e *Epilogue) { e.Act = 5 })) }},
		{"GEMM", "probability 1", func() { CheckGEMM(dst, mat(4, 5), mat(5, 3), NN, ep(func(e *Epilogue) { e.Drop.P = 1 })) }},
		{"GEMM", "probability -0.1", func() { CheckGEMM(dst, mat(4, 5), mat(5, 3), NN, ep(func(e *Epilogue) { e.Drop.P = -0.1 })) }},
		{"GEMM", "probability NaN", func() {
			CheckGEMM(dst, mat(4, 5), mat(5, 3), NN, ep(func(e *Epilogue) { e.Drop.P = float32(math.NaN()) }))
		}},
		{"GEMM", "3 row ids, want 4", func() {
			CheckGEMM(dst, mat(4, 5), mat(5, 3), NN, ep(func(e *Epilogue) { e.Drop.IDs = e.Drop.IDs[1:] }))
		}},
		{"GEMM", "below 2³¹", func() {
			CheckGEMM(&Mat{Rows: 1 << 31, Cols: 1, Stride: 1, Addr: 64}, &Mat{Rows: 1 << 31, Cols: 1, Stride: 1, Addr: 128}, mat(1, 1), NN, nil)
		}},

		{"SpMM", "", spmm(func(*Gather) {})},
		{"SpMM", "", spmm(func(x *Gather) { x.Self.On = false; x.Self.Col = []int32{99} })},
		{"SpMM", "the graph is nil", func() { CheckSpMM(dst, nil, x, Gather{}, all) }},
		{"SpMM", "x is 4 x 3, want 6 x 3", func() { CheckSpMM(dst, g, mat(4, 3), Gather{}, all) }},
		{"SpMM", "dst is 4 x 2, want 4 x 3", func() { CheckSpMM(mat(4, 2), g, x, Gather{}, all) }},
		{"SpMM", "rows [0,5) of 4 rows", func() { CheckSpMM(dst, g, x, Gather{}, Span{Hi: 5}) }},
		{"SpMM", "rows [-1,2) of 4 rows", func() { CheckSpMM(dst, g, x, Gather{}, Span{Lo: -1, Hi: 2}) }},
		{"SpMM", "rows [3,2) of 4 rows", func() { CheckSpMM(dst, g, x, Gather{}, Span{Lo: 3, Hi: 2}) }},
		{"SpMM", "row scale is 6 x 1, want 4 x 1", spmm(func(x *Gather) { x.Scale.Row = mat(6, 1) })},
		{"SpMM", "column scale is 4 x 1, want 6 x 1", spmm(func(x *Gather) { x.Scale.Col = mat(4, 1) })},
		{"SpMM", "column with stride 2", spmm(func(x *Gather) { x.Scale.Row = &Mat{Rows: 4, Cols: 1, Stride: 2, Host: make([]float32, 8)} })},
		{"SpMM", "w is 8 x 1, want 9 x 1", spmm(func(x *Gather) { x.W = mat(8, 1) })},
		{"SpMM", "self weight is 6 x 1, want 4 x 1", spmm(func(x *Gather) { x.Self.W = mat(6, 1) })},
		{"SpMM", "Self.Col has 3 entries, want 4", spmm(func(x *Gather) { x.Self.Col = x.Self.Col[:3] })},
		{"SpMM", "Self.Col[2] is 6", spmm(func(x *Gather) { x.Self.Col[2] = 6 })},
		{"SpMM", "Self.Col[3] is -2", spmm(func(x *Gather) { x.Self.Col[3] = -2 })},
		{"SpMM", "needs Self.Col", func() { CheckSpMM(mat(6, 3), sizes{6, 4, 9}, mat(4, 3), Gather{Self: Self{On: true}}, Span{Hi: 5}) }},
		{"SpMM", "", func() { CheckSpMM(mat(6, 3), sizes{6, 4, 9}, mat(4, 3), Gather{Self: Self{On: true}}, Span{Hi: 4}) }},
		{"SpMM", "is the memory of x", func() { m := mat(5, 3); CheckSpMM(m, sizes{5, 5, 1}, m, Gather{}, Span{}) }},
		{"SpMM", "bias is 1 x 2", spmm(func(x *Gather) { x.Ep = ep(func(e *Epilogue) { e.Bias = mat(1, 2) }) })},

		{"SpMMT", "", func() { CheckSpMMT(mat(6, 3), g, mat(9, 1), mat(4, 3), all) }},
		{"SpMMT", "dst is 4 x 3, want 6 x 3", func() { CheckSpMMT(mat(4, 3), g, nil, mat(4, 3), all) }},
		{"SpMMT", "x is 6 x 3, want 4 x 3", func() { CheckSpMMT(mat(6, 3), g, nil, mat(6, 3), all) }},
		{"SDDMM", "", func() { CheckSDDMM(mat(9, 1), g, x, dst, all) }},
		{"SDDMM", "dst is 4 x 1, want 9 x 1", func() { CheckSDDMM(mat(4, 1), g, x, dst, all) }},
		{"SDDMM", "y is 4 x 2, want 4 x 3", func() { CheckSDDMM(mat(9, 1), g, x, mat(4, 2), all) }},
		{"EdgeDropout", "", func() { CheckEdgeDropout(mat(9, 1), g, Dropout{P: 0.5}, all) }},
		{"EdgeDropout", "2 row ids, want 4", func() { CheckEdgeDropout(mat(9, 1), g, Dropout{P: 0.5, IDs: make([]int32, 2)}, all) }},
		{"Forward", "", func() { CheckForward(dst, dst, nil, all) }},
		{"Forward", "x is 6 x 3, want 4 x 3", func() { CheckForward(dst, x, nil, all) }},
		{"Backward", "", func() { CheckBackward(dst, dst, mat(4, 3), ep(func(*Epilogue) {}), all) }},
		{"Backward", "y is 6 x 3, want 4 x 3", func() { CheckBackward(dst, dst, x, nil, all) }},
		{"Backward", "is the memory of y", func() { CheckBackward(dst, mat(4, 3), dst, nil, all) }},
		{"ColSum", "", func() { CheckColSum(mat(1, 3), x, Span{Lo: 2, Hi: 6}) }},
		{"ColSum", "dst is 3 x 1, want 1 x 3", func() { CheckColSum(mat(3, 1), x, Span{}) }},
		{"SoftmaxXent", "", func() { CheckSoftmaxXent(dst, one, dst, labels, mat(1, 3), 1, all) }},
		{"SoftmaxXent", "", func() { CheckSoftmaxXent(nil, one, dst, []int32{9, 0, 0, 9}, nil, 1, Span{Lo: 1, Hi: 3}) }},
		{"SoftmaxXent", "labels[1] is 3, want a class below 3", func() { CheckSoftmaxXent(nil, one, dst, []int32{0, 3, 0, 0}, nil, 1, all) }},
		{"SoftmaxXent", "3 labels, want 4", func() { CheckSoftmaxXent(nil, one, dst, labels[1:], nil, 1, all) }},
		{"SoftmaxXent", "loss has no element", func() { CheckSoftmaxXent(nil, nil, dst, labels, nil, 1, all) }},
		{"SoftmaxXent", "classW is 1 x 4, want 1 x 3", func() { CheckSoftmaxXent(nil, one, dst, labels, mat(1, 4), 1, all) }},
		{"Add", "b is 6 x 3, want 4 x 3", func() { CheckAdd(dst, dst, x) }},
		{"Adam", "", func() { CheckAdam(dst, mat(4, 3), mat(4, 3), mat(4, 3), adam) }},
		{"Adam", "m is 4 x 2", func() { CheckAdam(dst, mat(4, 3), mat(4, 2), mat(4, 3), adam) }},
		{"Adam", "is the memory of v", func() { m := mat(4, 3); CheckAdam(dst, mat(4, 3), m, m, adam) }},
		{"Adam", "step 0", func() { CheckAdam(dst, mat(4, 3), mat(4, 3), mat(4, 3), Adam{}) }},
		{"Adam", "betas 1 and 0", func() { CheckAdam(dst, mat(4, 3), mat(4, 3), mat(4, 3), Adam{Beta1: 1, Step: 1}) }},
		{"SGD", "", func() { CheckSGD(dst, mat(4, 3), nil, SGD{Step: 1}) }},
		{"SGD", "momentum 0.9 without a momentum buffer", func() { CheckSGD(dst, mat(4, 3), nil, SGD{Step: 1, Momentum: 0.9}) }},
		{"GatherRows", "", func() { CheckGatherRows(mat(2, 3), x, []int32{5, 5}) }},
		{"GatherRows", "ids[1] is 6, want a row in [0,6)", func() { CheckGatherRows(mat(2, 3), x, []int32{5, 6}) }},
		{"ScatterRows", "ids[0] is -1", func() { CheckScatterRows(x, mat(2, 3), []int32{-1, 5}) }},
		{"ScatterRows", "src is 2 x 3, want 1 x 3", func() { CheckScatterRows(x, mat(2, 3), []int32{1}) }},
		{"AddGEMM", "", func() { CheckAddGEMM(dst, mat(4, 5), mat(5, 3), NN, ep(func(*Epilogue) {})) }},
		{"AddGEMM", "inner sizes 5 and 6 differ", func() { CheckAddGEMM(dst, mat(4, 5), mat(6, 3), NN, nil) }},
		{"AddRows", "", func() { CheckAddRows(x, mat(3, 3), []int32{5, -7, 5}) }},
		{"AddRows", "ids[1] is 6, want a row below 6", func() { CheckAddRows(x, mat(2, 3), []int32{5, 6}) }},
		{"AddRows", "src is 2 x 3, want 1 x 3", func() { CheckAddRows(x, mat(2, 3), []int32{1}) }},
		{"AddScaled", "", func() { CheckAddScaled(dst, dst, dst, 1, mat(1, 1)) }},
		{"AddScaled", "s is 1 x 2, want 1 x 1", func() { CheckAddScaled(dst, dst, dst, 1, mat(1, 2)) }},
		{"Dot", "", func() { CheckDot(mat(1, 1), x, x) }},
		{"Dot", "b is 4 x 3, want 6 x 3", func() { CheckDot(mat(1, 1), x, dst) }},
		{"ColDot", "dst is 1 x 1, want 1 x 3", func() { CheckColDot(mat(1, 1), x, x) }},
		{"SpMMMax", "", func() { CheckSpMMMax(dst, mat(4, 3), g, x, all) }},
		{"SpMMMax", "", func() { CheckSpMMMax(dst, nil, g, x, all) }},
		{"SpMMMax", "arg is 4 x 2, want 4 x 3", func() { CheckSpMMMax(dst, mat(4, 2), g, x, all) }},
		{"SpMMMax", "is the memory of arg", func() { CheckSpMMMax(dst, dst, g, x, all) }},
		{"SpMMMaxBack", "", func() { CheckSpMMMaxBack(dst, g, x, mat(6, 3), all) }},
		{"SpMMMaxBack", "arg is 4 x 3, want 6 x 3", func() { CheckSpMMMaxBack(dst, g, x, mat(4, 3), all) }},
		{"GAT", "", gat(func(*Attention) {})},
		{"GAT", "0 heads, want at least 1", gat(func(p *Attention) { p.Heads = 0 })},
		{"GAT", "x has 6 columns for 4 heads", gat(func(p *Attention) { p.Heads = 4 })},
		{"GAT", "slope 1.5, want 0 <= slope <= 1", gat(func(p *Attention) { p.Slope = 1.5 })},
		{"GAT", "slope NaN", gat(func(p *Attention) { p.Slope = float32(math.NaN()) })},
		{"GAT", "probability 1, want", gat(func(p *Attention) { p.Drop.P = 1 })},
		{"GAT", "4 SrcIDs, want 6", gat(func(p *Attention) { p.SrcIDs = make([]int32, 4) })},
		{"GAT", "6 DstIDs, want 4", gat(func(p *Attention) { p.DstIDs = make([]int32, 6) })},
		{"GAT", "Self.Col[1] is 6", gat(func(p *Attention) { p.Self.Col[1] = 6 })},
		{"GAT", "self weight is 6 x 1, want 4 x 1", gat(func(p *Attention) { p.Self.W = mat(6, 1) })},
		{"GAT", "x has 0 columns", func() {
			CheckGAT(mat(4, 0), mat(4, 2), g, mat(6, 0), mat(6, 2), mat(4, 2), Attention{Heads: 2}, nil, all)
		}},
		{"GAT", "lse is 4 x 3, want 4 x 2", func() {
			CheckGAT(mat(4, 6), mat(4, 3), g, mat(6, 6), mat(6, 2), mat(4, 2), Attention{Heads: 2}, nil, all)
		}},
		{"GAT", "is the memory of ad", func() {
			m := mat(4, 2)
			CheckGAT(mat(4, 6), m, g, mat(6, 6), mat(6, 2), m, Attention{Heads: 2}, nil, all)
		}},
		{"GATBackDst", "", func() {
			CheckGATBackDst(mat(4, 2), mat(4, 2), g, mat(6, 6), mat(6, 2), mat(4, 2), mat(4, 2), mat(4, 6), Attention{Heads: 2}, all)
		}},
		{"GATBackDst", "dy is 6 x 6, want 4 x 6", func() {
			CheckGATBackDst(mat(4, 2), mat(4, 2), g, mat(6, 6), mat(6, 2), mat(4, 2), mat(4, 2), mat(6, 6), Attention{Heads: 2}, all)
		}},
		{"GATBackSrc", "", func() {
			CheckGATBackSrc(mat(4, 6), mat(4, 2), g, mat(4, 6), mat(4, 2), mat(6, 2), mat(6, 2), mat(6, 2), mat(6, 6), Attention{Heads: 2, SrcIDs: make([]int32, 4), DstIDs: make([]int32, 6)}, all)
		}},
		{"GATBackSrc", "dot is 4 x 2, want 6 x 2", func() {
			CheckGATBackSrc(mat(4, 6), mat(4, 2), g, mat(4, 6), mat(4, 2), mat(6, 2), mat(6, 2), mat(4, 2), mat(6, 6), Attention{Heads: 2}, all)
		}},
		{"HeadDot", "", func() { CheckHeadDot(mat(5, 2), mat(5, 6), mat(2, 3)) }},
		{"HeadDot", "x is 5 x 7, want 5 x 6", func() { CheckHeadDot(mat(5, 2), mat(5, 7), mat(2, 3)) }},
		{"HeadOuterAdd", "d is 5 x 3, want 5 x 2", func() { CheckHeadOuterAdd(mat(5, 6), mat(5, 3), mat(2, 3)) }},
		{"HeadDotGrad", "", func() { CheckHeadDotGrad(mat(2, 3), mat(5, 2), mat(5, 6)) }},
		{"HeadMean", "", func() { CheckHeadMean(mat(5, 3), mat(5, 6), 2, nil) }},
		{"HeadMean", "0 heads", func() { CheckHeadMean(mat(5, 3), mat(5, 6), 0, nil) }},
		{"HeadSpread", "dx is 5 x 6, want 5 x 9", func() { CheckHeadSpread(mat(5, 6), mat(5, 3), 3) }},
		{"LayerNorm", "", func() { CheckLayerNorm(dst, mat(4, 2), mat(4, 3), mat(1, 3), mat(1, 3), 0) }},
		{"LayerNorm", "eps -1", func() { CheckLayerNorm(dst, mat(4, 2), mat(4, 3), mat(1, 3), mat(1, 3), -1) }},
		{"LayerNorm", "stat is 4 x 3, want 4 x 2", func() { CheckLayerNorm(dst, mat(4, 3), mat(4, 3), mat(1, 3), mat(1, 3), 0) }},
		{"LayerNormBack", "", func() {
			CheckLayerNormBack(dst, mat(1, 3), mat(1, 3), dst, mat(4, 3), mat(4, 2), mat(1, 3))
		}},
		{"LayerNormBack", "is the memory of x", func() {
			CheckLayerNormBack(dst, mat(1, 3), mat(1, 3), mat(4, 3), dst, mat(4, 2), mat(1, 3))
		}},
		{"ColMoments", "dst is 1 x 3, want 2 x 3", func() { CheckColMoments(mat(1, 3), x) }},
		{"ColAffine", "", func() { CheckColAffine(dst, dst, dst, mat(1, 3), mat(1, 3), mat(1, 3)) }},
		{"ColAffine", "y and b go together", func() { CheckColAffine(dst, dst, nil, mat(1, 3), mat(1, 3), mat(1, 3)) }},
		{"SigmoidBCE", "", bce(func(*CSR, []int32) {})},
		{"SigmoidBCE", "row 1 lists class 3 after 0", bce(func(c *CSR, _ []int32) { c.Col[1] = 3 })},
		{"SigmoidBCE", "row 1 lists class 0 after 1", bce(func(c *CSR, _ []int32) { c.Col[1], c.Col[2] = 1, 0 })},
		{"SigmoidBCE", "", bce(func(c *CSR, mask []int32) { c.Col[1], mask[1] = 3, -1 })},
		{"SigmoidBCE", "the targets of row 3 are entries 3 to 9 of 4", bce(func(c *CSR, _ []int32) { c.RowPtr[4] = 9 })},
		{"SigmoidBCE", "4 row offsets and 3 columns, want 5 and 3", bce(func(c *CSR, _ []int32) { c.RowPtr = c.RowPtr[:4] })},
		{"SigmoidBCE", "targets is nil", func() { CheckSigmoidBCE(nil, one, dst, nil, make([]int32, 4), nil, 1) }},
		{"SigmoidBCE", "3 mask values, want 4", func() { CheckSigmoidBCE(nil, one, dst, &CSR{}, make([]int32, 3), nil, 1) }},
		{"ToBF16", "dst holds 11 values, want 12", func() { CheckToBF16(make([]uint16, 11), dst) }},
		{"FromBF16", "src holds 13 values, want 12", func() { CheckFromBF16(dst, make([]uint16, 13)) }},
		{"Op", "memory of another device", func() { CheckHost("Op", nil, dst, &Mat{Rows: 1, Cols: 1, Stride: 1, Addr: 64}) }},
		{"Op", "", func() { CheckHost("Op", nil, dst, mat(0, 3)) }},
		{"FromSlice", "11 values do not hold 4 x 3", func() { FromSlice(4, 3, make([]float32, 11)) }},
		{"FromSlice", "do not hold", func() { FromSlice(math.MaxInt, math.MaxInt, make([]float32, 11)) }},
		{"Sub", "rows [2,5) of a matrix of 4 rows", func() { dst.Sub(Span{Lo: 2, Hi: 5}) }},
	}
	for i, test := range tests {
		t.Run(fmt.Sprintf("%s/%d", test.op, i), func(t *testing.T) {
			err := shapeOf(t, test.check)
			switch {
			case test.says == "" && err != nil:
				t.Errorf("a call that fits panicked: %v", err)
			case test.says != "" && err == nil:
				t.Errorf("did not panic, want one that says %q", test.says)
			case err != nil && (err.Op != test.op || !strings.Contains(err.Error(), test.says)):
				t.Errorf("says %q, want op %s and %q", err, test.op, test.says)
			}
		})
	}
}

// TestSub: views share memory and pass the checks up to the last row.
func TestSub(t *testing.T) {
	m := &Mat{Rows: 3, Cols: 2, Stride: 4, Host: make([]float32, 10)}
	s := m.Sub(Span{Lo: 1, Hi: 3})
	CheckZero(s)
	s.Row(1)[1] = 5
	if m.Host[9] != 5 || s.Rows != 2 || s.Stride != 4 {
		t.Errorf("Sub is %+v of %+v", s, m)
	}
	CheckZero(m.Sub(Span{Lo: 3, Hi: 3}))
	d := &Mat{Rows: 3, Cols: 2, Stride: 4, Addr: 1000}
	if got := d.Sub(Span{Lo: 2, Hi: 3}).Addr; got != 1032 {
		t.Errorf("row 2 of a device matrix at 1000 with stride 4 is at %d, want 1032", got)
	}
}

func TestPadCols(t *testing.T) {
	for cols, want := range map[int]int{0: 0, 1: 1, 2: 16, 16: 16, 17: 32, 41: 48, 602: 608} {
		if got := PadCols(cols); got != want {
			t.Errorf("PadCols(%d) = %d, want %d", cols, got, want)
		}
	}
}

func TestValidate(t *testing.T) {
	for says, g := range map[string]*CSR{
		"no row offsets":                       {},
		"row 0 starts at entry 1":              {Cols: 3, RowPtr: []int64{1, 1}, Col: []int32{0}},
		"-1 columns":                           {Cols: -1, RowPtr: []int64{0}},
		"end at entry 2, but there are 1":      {Cols: 3, RowPtr: []int64{0, 2}, Col: []int32{0}},
		"1 values for 2 entries":               {Cols: 3, RowPtr: []int64{0, 2}, Col: []int32{0, 1}, Val: []float32{1}},
		"row 1 ends at entry 1, before":        {Cols: 3, RowPtr: []int64{0, 2, 1, 2}, Col: []int32{0, 1}},
		"row 0 ends at entry 5 of 2":           {Cols: 3, RowPtr: []int64{0, 5, 2}, Col: []int32{0, 1}},
		"entry 0 of row 1 is column 3, want":   {Cols: 3, RowPtr: []int64{0, 0, 1}, Col: []int32{3}},
		"entry 1 of row 0 is column 0, after":  {Cols: 3, RowPtr: []int64{0, 2}, Col: []int32{2, 0}},
		"entry 0 of row 0 is column -1, want ": {Cols: 3, RowPtr: []int64{0, 1}, Col: []int32{-1}},
	} {
		if err := g.Validate(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want an error that says %q", g, err, says)
		}
	}
	for _, g := range []*CSR{
		{RowPtr: []int64{0}},
		{Cols: 3, RowPtr: []int64{0, 0, 0}},
		{Cols: 3, RowPtr: []int64{0, 2, 3}, Col: []int32{1, 1, 0}, Val: []float32{1, 2, 3}},
	} {
		if err := g.Validate(); err != nil {
			t.Errorf("%+v: %v, want none", g, err)
		}
	}
}

// TestDropKey: every seed, epoch and layer has a key of its own.
func TestDropKey(t *testing.T) {
	seen := make(map[uint64]string)
	for seed := range uint64(8) {
		for epoch := range 300 {
			for layer := range 6 {
				k, at := DropKey(seed, epoch, layer), fmt.Sprint(seed, epoch, layer)
				if other, ok := seen[k]; ok {
					t.Fatalf("(seed, epoch, layer) %s and %s share the key %#x", other, at, k)
				}
				seen[k] = at
			}
		}
	}
}

func TestThreshold(t *testing.T) {
	for p, want := range map[float32]uint32{0: 0, 0.5: 1 << 31, 0.25: 1 << 30, math.Nextafter32(1, 0): 0xffffff00} {
		if got := (Dropout{P: p}).Threshold(); got != want {
			t.Errorf("the threshold of P %v is %#x, want %#x", p, got, want)
		}
	}
}

package kerneltest

import (
	"math"

	"dorylus/kernels"
)

func (f *faulty) GAT(dst, lse *kernels.Mat, g kernels.Graph, x, as, ad *kernels.Mat, p kernels.Attention, ep *kernels.Epilogue, rows kernels.Span) {
	if f.gat == nil {
		f.Stream.GAT(dst, lse, g, x, as, ad, p, ep, rows)
		return
	}
	f.gat(f.Stream, dst, lse, g, x, as, ad, p, ep, rows)
}

func (f *faulty) GATBackDst(dad, dot *kernels.Mat, g kernels.Graph, x, as, ad, lse, dy *kernels.Mat, p kernels.Attention, rows kernels.Span) {
	if f.backDst == nil {
		f.Stream.GATBackDst(dad, dot, g, x, as, ad, lse, dy, p, rows)
		return
	}
	f.backDst(f.Stream, dad, dot, g, x, as, ad, lse, dy, p, rows)
}

func (f *faulty) GATBackSrc(dx, das *kernels.Mat, g kernels.Graph, x, as, ad, lse, dot, dy *kernels.Mat, p kernels.Attention, rows kernels.Span) {
	if f.backSrc == nil {
		f.Stream.GATBackSrc(dx, das, g, x, as, ad, lse, dot, dy, p, rows)
		return
	}
	f.backSrc(f.Stream, dx, das, g, x, as, ad, lse, dot, dy, p, rows)
}

func (f *faulty) SpMMMax(dst, arg *mat, g graph, x *mat, rows span) {
	f.Stream.SpMMMax(dst, arg, g, x, rows)
	f.touch("SpMMMax", dst, arg)
}

func (f *faulty) SpMMMaxBack(dx *mat, g graph, dy, arg *mat, rows span) {
	f.Stream.SpMMMaxBack(dx, g, dy, arg, rows)
	f.touch("SpMMMaxBack", dx)
}

func (f *faulty) HeadDot(dst, x, a *mat) {
	f.Stream.HeadDot(dst, x, a)
	f.touch("HeadDot", dst)
}

func (f *faulty) HeadOuterAdd(dx, d, a *mat) {
	f.Stream.HeadOuterAdd(dx, d, a)
	f.touch("HeadOuterAdd", dx)
}

func (f *faulty) HeadDotGrad(da, d, x *mat) {
	f.Stream.HeadDotGrad(da, d, x)
	f.touch("HeadDotGrad", da)
}

func (f *faulty) HeadMean(dst, x *mat, heads int, ep *kernels.Epilogue) {
	f.Stream.HeadMean(dst, x, heads, ep)
	f.touch("HeadMean", dst)
}

func (f *faulty) HeadSpread(dx, d *mat, heads int) {
	f.Stream.HeadSpread(dx, d, heads)
	f.touch("HeadSpread", dx)
}

func (f *faulty) LayerNorm(dst, stat, x, gamma, beta *mat, eps float32) {
	f.Stream.LayerNorm(dst, stat, x, gamma, beta, eps)
	f.touch("LayerNorm", stat, dst)
}

func (f *faulty) LayerNormBack(dx, dgamma, dbeta, dy, x, stat, gamma *mat) {
	f.Stream.LayerNormBack(dx, dgamma, dbeta, dy, x, stat, gamma)
	f.touch("LayerNormBack", dx, dgamma, dbeta)
}

func (f *faulty) ColMoments(dst, x *mat) {
	f.Stream.ColMoments(dst, x)
	f.touch("ColMoments", dst)
}

func (f *faulty) ColAffine(dst, x, y, a, b, d *mat) {
	f.Stream.ColAffine(dst, x, y, a, b, d)
	f.touch("ColAffine", dst)
}

func (f *faulty) AddGEMM(dst, a, b *mat, t kernels.Trans, ep *kernels.Epilogue) {
	if f.op == "AddGEMM" {
		f.Stream.GEMM(dst, a, b, t, ep) // sets
		return
	}
	f.Stream.AddGEMM(dst, a, b, t, ep)
}

func (f *faulty) AddRows(dst, src *mat, ids []int32) {
	f.Stream.AddRows(dst, src, ids)
	f.touch("AddRows", dst)
}

func (f *faulty) AddScaled(dst, a, b *mat, c float32, by *mat) {
	if f.op == "AddScaled" {
		by = nil
	}
	f.Stream.AddScaled(dst, a, b, c, by)
}

func (f *faulty) Dot(dst, a, b *mat) {
	f.Stream.Dot(dst, a, b)
	f.touch("Dot", dst)
}

func (f *faulty) ColDot(dst, a, b *mat) {
	f.Stream.ColDot(dst, a, b)
	f.touch("ColDot", dst)
}

func (f *faulty) SigmoidBCE(grad *mat, loss []float64, z *mat, targets *kernels.CSR, mask []int32, w *mat, scale float32) {
	if f.op == "SigmoidBCE without weights" {
		w = nil
	}
	f.Stream.SigmoidBCE(grad, loss, z, targets, mask, w, scale)
	f.touch("SigmoidBCE", grad)
	if f.op == "SigmoidBCE loss" {
		loss[0] *= 1 + 1e-4
	}
}

// touch makes the last value of the n-th output of op slightly wrong.
func (f *faulty) touch(op string, outs ...*mat) {
	if f.op != op || f.nth >= len(outs) {
		return
	}
	if m := outs[f.nth]; m != nil && m.Rows > 0 && m.Cols > 0 {
		last := &m.Row(m.Rows - 1)[m.Cols-1]
		*last = math.Float32frombits(math.Float32bits(*last) + 1<<10)
		if *last == 0 || *last != *last {
			*last = 1
		}
	}
}

// opFaults are bugs of the ops beyond the plain gather and product.
var opFaults = []fault{
	{name: "ignores the self term", finds: "GAT/8x8", stream: faulty{gat: func(s kernels.Stream, dst, lse *mat, g graph, x, as, ad *mat, p kernels.Attention, ep *kernels.Epilogue, rows span) {
		p.Self.On = false
		s.GAT(dst, lse, g, x, as, ad, p, ep, rows)
	}}},
	{name: "ignores the map of self terms", finds: "GAT/1x41", stream: faulty{gat: func(s kernels.Stream, dst, lse *mat, g graph, x, as, ad *mat, p kernels.Attention, ep *kernels.Epilogue, rows span) {
		if p.Self.Col != nil {
			p.Self.On = false
		}
		s.GAT(dst, lse, g, x, as, ad, p, ep, rows)
	}}},
	{name: "ignores the weight of self terms", finds: "GAT/4x8", stream: faulty{gat: func(s kernels.Stream, dst, lse *mat, g graph, x, as, ad *mat, p kernels.Attention, ep *kernels.Epilogue, rows span) {
		p.Self.W = nil
		s.GAT(dst, lse, g, x, as, ad, p, ep, rows)
	}}},
	{name: "has a slope of its own", finds: "GAT/4x4", stream: faulty{gat: func(s kernels.Stream, dst, lse *mat, g graph, x, as, ad *mat, p kernels.Attention, ep *kernels.Epilogue, rows span) {
		p.Slope = 0.01
		s.GAT(dst, lse, g, x, as, ad, p, ep, rows)
	}}},
	{name: "drops by row instead of by id", finds: "GAT/dropout", stream: faulty{gat: func(s kernels.Stream, dst, lse *mat, g graph, x, as, ad *mat, p kernels.Attention, ep *kernels.Epilogue, rows span) {
		p.SrcIDs = nil
		s.GAT(dst, lse, g, x, as, ad, p, ep, rows)
	}}},
	{name: "drops other alphas backward", finds: "GAT/dropout", stream: faulty{backSrc: func(s kernels.Stream, dx, das *mat, g graph, x, as, ad, lse, dot, dy *mat, p kernels.Attention, rows span) {
		p.Drop.Key++
		s.GATBackSrc(dx, das, g, x, as, ad, lse, dot, dy, p, rows)
	}}},
	{name: "drops before the softmax", finds: "GAT/2x8", stream: faulty{gat: func(s kernels.Stream, dst, lse *mat, g graph, x, as, ad *mat, p kernels.Attention, ep *kernels.Epilogue, rows span) {
		s.GAT(dst, lse, g, x, as, ad, p, ep, rows)
		if p.Drop.P > 0 {
			each(lse, rows, func(v *float32) { *v -= 0.1 })
		}
	}}},
	{name: "overflows for large scores", finds: "GAT/scores", stream: faulty{gat: func(s kernels.Stream, dst, lse *mat, g graph, x, as, ad *mat, p kernels.Attention, ep *kernels.Epilogue, rows span) {
		s.GAT(dst, lse, g, x, as, ad, p, ep, rows)
		each(lse, rows, func(v *float32) { *v = float32(math.Log(math.Exp(float64(*v)))) })
	}}},
	{name: "hides NaN of attention", finds: "GAT/special", stream: faulty{gat: func(s kernels.Stream, dst, lse *mat, g graph, x, as, ad *mat, p kernels.Attention, ep *kernels.Epilogue, rows span) {
		s.GAT(dst, lse, g, x, as, ad, p, ep, rows)
		each(dst, rows, func(v *float32) { *v = finite(*v) })
	}}},
	{name: "gives rows without terms a sum of 1", finds: "GAT/empty", stream: faulty{gat: func(s kernels.Stream, dst, lse *mat, g graph, x, as, ad *mat, p kernels.Attention, ep *kernels.Epilogue, rows span) {
		s.GAT(dst, lse, g, x, as, ad, p, ep, rows)
		each(lse, rows, func(v *float32) { *v = max(*v, 0) })
	}}},
	{name: "skips attention's epilogue", finds: "GAT/epilogue", stream: faulty{gat: func(s kernels.Stream, dst, lse *mat, g graph, x, as, ad *mat, p kernels.Attention, ep *kernels.Epilogue, rows span) {
		s.GAT(dst, lse, g, x, as, ad, p, nil, rows)
	}}},
	{name: "writes beyond its columns", finds: "GAT/columns", stream: faulty{gat: func(s kernels.Stream, dst, lse *mat, g graph, x, as, ad *mat, p kernels.Attention, ep *kernels.Epilogue, rows span) {
		s.GAT(dst, lse, g, x, as, ad, p, ep, rows)
		clear(beyond(lse))
	}}},
	{name: "rounds attention by the place in the span", finds: "GAT/spans/8x8", stream: faulty{gat: func(s kernels.Stream, dst, lse *mat, g graph, x, as, ad *mat, p kernels.Attention, ep *kernels.Epilogue, rows span) {
		s.GAT(dst, lse, g, x, as, ad, p, ep, rows)
		if rows.Lo%2 == 1 {
			each(lse, rows, func(v *float32) { *v = math.Nextafter32(*v, 9) })
		}
	}}},
	{name: "forgets dot in the gradient of ad", finds: "GAT/8x4", stream: faulty{backDst: func(s kernels.Stream, dad, dot *mat, g graph, x, as, ad, lse, dy *mat, p kernels.Attention, rows span) {
		s.GATBackDst(dad, dot, g, x, as, ad, lse, dy, p, rows)
		for r := rows.Lo; r < rows.Hi; r++ {
			for h := range dad.Row(r) {
				dad.Row(r)[h] += dot.Row(r)[h]
			}
		}
	}}},
	{name: "forgets dot in the gradient of as", finds: "GAT/2x41", stream: faulty{backSrc: func(s kernels.Stream, dx, das *mat, g graph, x, as, ad, lse, dot, dy *mat, p kernels.Attention, rows span) {
		zero := &mat{Rows: dot.Rows, Cols: dot.Cols, Stride: dot.Cols, Host: make([]float32, dot.Rows*dot.Cols+1)}
		s.GATBackSrc(dx, das, g, x, as, ad, lse, zero, dy, p, rows)
	}}},
	{name: "is off in the last maximum", finds: "SpMMMax/width=9", stream: faulty{op: "SpMMMax"}},
	{name: "is off in the last argument", finds: "SpMMMax/width=16", stream: faulty{op: "SpMMMax", nth: 1}},
	{name: "is off in the last gradient of a maximum", finds: "SpMMMaxBack/width=41", stream: faulty{op: "SpMMMaxBack"}},
	{name: "is off in the last score", finds: "Heads/8x8", stream: faulty{op: "HeadDot"}},
	{name: "is off in the last outer product", finds: "Heads/3x7", stream: faulty{op: "HeadOuterAdd"}},
	{name: "is off in the last gradient of a score", finds: "Heads/1x41", stream: faulty{op: "HeadDotGrad"}},
	{name: "is off in the last mean of heads", finds: "Heads/mean", stream: faulty{op: "HeadMean"}},
	{name: "is off in the last share of a head", finds: "Heads/special", stream: faulty{op: "HeadSpread"}},
	{name: "is off in the last deviation", finds: "LayerNorm/width=41", stream: faulty{op: "LayerNorm"}},
	{name: "is off in the last normal value", finds: "LayerNorm/width=8", stream: faulty{op: "LayerNorm", nth: 1}},
	{name: "is off in the last gradient of a norm", finds: "LayerNorm/width=9", stream: faulty{op: "LayerNormBack"}},
	{name: "is off in the last dgamma", finds: "LayerNorm/width=16", stream: faulty{op: "LayerNormBack", nth: 1}},
	{name: "is off in the last dbeta", finds: "LayerNorm/special", stream: faulty{op: "LayerNormBack", nth: 2}},
	{name: "is off in the last moment", finds: "ColMoments/width=7", stream: faulty{op: "ColMoments"}},
	{name: "is off in the last affine value", finds: "ColAffine/width=602", stream: faulty{op: "ColAffine"}},
	{name: "sets instead of adding a product", finds: "AddGEMM/a·b/width=8", stream: faulty{op: "AddGEMM"}},
	{name: "is off in the last added row", finds: "AddRows/width=8", stream: faulty{op: "AddRows"}},
	{name: "ignores the second factor", finds: "AddScaled/width=8", stream: faulty{op: "AddScaled"}},
	{name: "is off in a product of all", finds: "Dot/width=1", stream: faulty{op: "Dot"}},
	{name: "is off in a product of columns", finds: "Dot/width=41", stream: faulty{op: "ColDot"}},
	{name: "ignores the weights of positives", finds: "SigmoidBCE/width=16", stream: faulty{op: "SigmoidBCE without weights"}},
	{name: "is off in the last gradient of a sigmoid", finds: "SigmoidBCE/width=9", stream: faulty{op: "SigmoidBCE"}},
	{name: "is off in the loss of sigmoids", finds: "SigmoidBCE/special", stream: faulty{op: "SigmoidBCE loss"}},
}

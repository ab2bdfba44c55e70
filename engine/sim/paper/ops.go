package paper

import "dorylus/kernels"

func (s *stream) Put(dst *kernels.Mat, _ []float32) { s.sets(dst) }
func (s *stream) Get(_ []float32, src *kernels.Mat) { s.reads(src) }
func (s *stream) Zero(dst *kernels.Mat)             { s.sets(dst) }

func (s *stream) Copy(dst, src *kernels.Mat) {
	s.reads(src)
	s.sets(dst)
}

func (s *stream) GEMM(dst, a, b *kernels.Mat, t kernels.Trans, _ *kernels.Epilogue) {
	s.product(dst, a, t)
	s.reads(a, b)
	s.sets(dst)
}

func (s *stream) AddGEMM(dst, a, b *kernels.Mat, t kernels.Trans, ep *kernels.Epilogue) {
	s.reads(dst)
	s.GEMM(dst, a, b, t, ep)
}

func (s *stream) SpMM(dst *kernels.Mat, g kernels.Graph, x *kernels.Mat, ga kernels.Gather, rows kernels.Span) {
	s.along(g, x.Cols, false)
	s.gathers(x)
	s.readsEdges(ga.W, g, rows)
	s.setsRows(rows, dst)
}

func (s *stream) SpMMT(dst *kernels.Mat, g kernels.Graph, w, x *kernels.Mat, rows kernels.Span) {
	s.back(g)
	s.along(g, x.Cols, false)
	s.readsEdges(w, g, rows)
	s.readsRows(rows, x)
	s.sets(dst)
}

func (s *stream) SDDMM(dst *kernels.Mat, g kernels.Graph, x, y *kernels.Mat, rows kernels.Span) {
	s.gathers(x)
	s.readsRows(rows, y)
	s.setsEdges(dst, g, rows)
}

func (s *stream) EdgeDropout(dst *kernels.Mat, g kernels.Graph, _ kernels.Dropout, rows kernels.Span) {
	s.setsEdges(dst, g, rows)
}

func (s *stream) Forward(dst, x *kernels.Mat, _ *kernels.Epilogue, rows kernels.Span) {
	s.readsRows(rows, x)
	s.setsRows(rows, dst)
}

func (s *stream) Backward(dx, dy, y *kernels.Mat, _ *kernels.Epilogue, rows kernels.Span) {
	s.readsRows(rows, dy, y)
	s.setsRows(rows, dx)
}

func (s *stream) ColSum(dst, x *kernels.Mat, rows kernels.Span) {
	s.readsRows(rows, x)
	s.sets(dst)
}

func (s *stream) SoftmaxXent(grad *kernels.Mat, loss []float64, logits *kernels.Mat, _ []int32, _ *kernels.Mat, _ float32, rows kernels.Span) {
	loss[0] = 0
	s.sums(s.c.costs.Losses(rows.Len()), nil)
	s.readsRows(rows, logits)
	s.setsRows(rows, grad)
}

func (s *stream) SigmoidBCE(grad *kernels.Mat, loss []float64, logits *kernels.Mat, targets *kernels.CSR, _ []int32, _ *kernels.Mat, _ float32) {
	loss[0] = 0
	s.sums(s.c.costs.Losses(logits.Rows)+s.c.costs.Offsets(len(targets.RowPtr)), nil)
	s.reads(logits)
	s.sets(grad)
}

func (s *stream) Add(dst, a, b *kernels.Mat) {
	s.reads(a, b)
	s.sets(dst)
}

func (s *stream) AddScaled(dst, a, b *kernels.Mat, _ float32, by *kernels.Mat) {
	s.reads(a, b, by)
	s.sets(dst)
}

func (s *stream) Dot(dst, a, b *kernels.Mat)    { s.Add(dst, a, b) }
func (s *stream) ColDot(dst, a, b *kernels.Mat) { s.Add(dst, a, b) }

func (s *stream) Adam(p, g, m, v *kernels.Mat, _ kernels.Adam) {
	s.reads(p, g, m, v)
	s.sets(p, m, v)
}

func (s *stream) SGD(p, g, m *kernels.Mat, _ kernels.SGD) {
	s.reads(p, g, m)
	s.sets(p, m)
}

func (s *stream) GatherRows(dst, src *kernels.Mat, _ []int32) {
	s.readsRows(kernels.Span{Hi: dst.Rows}, src)
	s.sets(dst)
}

func (s *stream) ScatterRows(dst, src *kernels.Mat, _ []int32) {
	s.reads(src)
	s.setsRows(kernels.Span{Hi: src.Rows}, dst)
}

func (s *stream) AddRows(dst, src *kernels.Mat, ids []int32) {
	s.readsRows(kernels.Span{Hi: src.Rows}, dst)
	s.ScatterRows(dst, src, ids)
}

func (s *stream) ToBF16(_ []uint16, src *kernels.Mat)   { s.reads(src) }
func (s *stream) FromBF16(dst *kernels.Mat, _ []uint16) { s.sets(dst) }

func (s *stream) SpMMMax(dst, arg *kernels.Mat, g kernels.Graph, x *kernels.Mat, rows kernels.Span) {
	s.along(g, 2*kernels.PadCols(x.Cols), true)
	s.gathers(x)
	s.setsRows(rows, dst, arg)
}

func (s *stream) SpMMMaxBack(dx *kernels.Mat, g kernels.Graph, dy, arg *kernels.Mat, rows kernels.Span) {
	s.along(g, dx.Cols, true)
	s.gathers(dy, arg)
	s.setsRows(rows, dx)
}

func (s *stream) GAT(dst, lse *kernels.Mat, g kernels.Graph, x, as, ad *kernels.Mat, a kernels.Attention, _ *kernels.Epilogue, rows kernels.Span) {
	s.heads(a.Heads, x, dst)
	s.along(g, x.Cols+3*a.Heads, true)
	s.gathers(x, as)
	s.readsRows(rows, ad)
	s.setsRows(rows, dst, lse)
}

func (s *stream) GATBackDst(dad, dot *kernels.Mat, g kernels.Graph, x, as, ad, lse, dy *kernels.Mat, a kernels.Attention, rows kernels.Span) {
	s.heads(a.Heads, x, dy)
	s.along(g, x.Cols+3*a.Heads, true)
	s.gathers(x, as)
	s.readsRows(rows, ad, lse, dy)
	s.setsRows(rows, dad, dot)
}

func (s *stream) GATBackSrc(dx, das *kernels.Mat, g kernels.Graph, x, as, ad, lse, dot, dy *kernels.Mat, a kernels.Attention, rows kernels.Span) {
	s.heads(a.Heads, x, dy, dx)
	s.along(g, x.Cols+3*a.Heads, true)
	s.gathers(ad, lse, dot, dy)
	s.readsRows(rows, x, as)
	s.setsRows(rows, dx, das)
}

func (s *stream) HeadDot(dst, x, a *kernels.Mat)     { s.Add(dst, x, a) }
func (s *stream) HeadDotGrad(da, d, x *kernels.Mat)  { s.Add(da, d, x) }
func (s *stream) HeadOuterAdd(dx, d, a *kernels.Mat) { s.AddScaled(dx, dx, d, 1, a) }

func (s *stream) HeadMean(dst, x *kernels.Mat, _ int, _ *kernels.Epilogue) { s.Copy(dst, x) }
func (s *stream) HeadSpread(dx, d *kernels.Mat, _ int)                     { s.Copy(dx, d) }

func (s *stream) LayerNorm(dst, stat, x, gamma, beta *kernels.Mat, _ float32) {
	s.reads(x, gamma, beta)
	s.sets(dst, stat)
}

func (s *stream) LayerNormBack(dx, dgamma, dbeta, dy, x, stat, gamma *kernels.Mat) {
	s.reads(dy, x, stat, gamma)
	s.sets(dx, dgamma, dbeta)
}

func (s *stream) ColMoments(dst, x *kernels.Mat) { s.Copy(dst, x) }

func (s *stream) ColAffine(dst, x, y, a, b, d *kernels.Mat) {
	s.reads(x, y, a, b, d)
	s.sets(dst)
}

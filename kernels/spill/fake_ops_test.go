package spill

import "dorylus/kernels"

// The ops of fakeStream check their operands when they are queued, and run later.

func (s *fakeStream) Zero(dst *kernels.Mat) {
	kernels.CheckZero(dst)
	s.own("Zero", dst)
	o := s.d
	s.op(func(k kernels.Stream) { k.Zero(o.host(dst)) })
}

func (s *fakeStream) Copy(dst, src *kernels.Mat) {
	kernels.CheckCopy(dst, src)
	o := s.d
	s.op(func(k kernels.Stream) { k.Copy(o.host(dst), o.host(src)) })
}

func (s *fakeStream) GEMM(dst, a, b *kernels.Mat, t kernels.Trans, ep *kernels.Epilogue) {
	kernels.CheckGEMM(dst, a, b, t, ep)
	s.own("GEMM", dst, a, b, biasOf(ep))
	o := s.d
	s.op(func(k kernels.Stream) { k.GEMM(o.host(dst), o.host(a), o.host(b), t, o.epilogue(ep)) })
}

func (s *fakeStream) AddGEMM(dst, a, b *kernels.Mat, t kernels.Trans, ep *kernels.Epilogue) {
	kernels.CheckAddGEMM(dst, a, b, t, ep)
	s.own("AddGEMM", dst, a, b, biasOf(ep))
	o := s.d
	s.op(func(k kernels.Stream) { k.AddGEMM(o.host(dst), o.host(a), o.host(b), t, o.epilogue(ep)) })
}

func (s *fakeStream) SpMM(dst *kernels.Mat, g kernels.Graph, x *kernels.Mat, ga kernels.Gather, rows kernels.Span) {
	kernels.CheckSpMM(dst, g, x, ga, rows)
	s.own("SpMM", dst, x)
	o := s.d
	s.op(func(k kernels.Stream) { k.SpMM(o.host(dst), g, o.host(x), o.gather(ga), rows) })
}

func (s *fakeStream) SpMMT(dst *kernels.Mat, g kernels.Graph, w, x *kernels.Mat, rows kernels.Span) {
	kernels.CheckSpMMT(dst, g, w, x, rows)
	s.own("SpMMT", dst, w, x)
	o := s.d
	s.op(func(k kernels.Stream) { k.SpMMT(o.host(dst), g, o.host(w), o.host(x), rows) })
}

func (s *fakeStream) SDDMM(dst *kernels.Mat, g kernels.Graph, x, y *kernels.Mat, rows kernels.Span) {
	kernels.CheckSDDMM(dst, g, x, y, rows)
	s.own("SDDMM", dst, x, y)
	o := s.d
	s.op(func(k kernels.Stream) { k.SDDMM(o.host(dst), g, o.host(x), o.host(y), rows) })
}

func (s *fakeStream) EdgeDropout(dst *kernels.Mat, g kernels.Graph, d kernels.Dropout, rows kernels.Span) {
	kernels.CheckEdgeDropout(dst, g, d, rows)
	s.own("EdgeDropout", dst)
	o := s.d
	s.op(func(k kernels.Stream) { k.EdgeDropout(o.host(dst), g, d, rows) })
}

func (s *fakeStream) Forward(dst, x *kernels.Mat, ep *kernels.Epilogue, rows kernels.Span) {
	kernels.CheckForward(dst, x, ep, rows)
	s.own("Forward", dst, x, biasOf(ep))
	o := s.d
	s.op(func(k kernels.Stream) { k.Forward(o.host(dst), o.host(x), o.epilogue(ep), rows) })
}

func (s *fakeStream) Backward(dx, dy, y *kernels.Mat, ep *kernels.Epilogue, rows kernels.Span) {
	kernels.CheckBackward(dx, dy, y, ep, rows)
	s.own("Backward", dx, dy, y, biasOf(ep))
	o := s.d
	s.op(func(k kernels.Stream) { k.Backward(o.host(dx), o.host(dy), o.host(y), o.epilogue(ep), rows) })
}

func (s *fakeStream) ColSum(dst, x *kernels.Mat, rows kernels.Span) {
	kernels.CheckColSum(dst, x, rows)
	s.own("ColSum", dst, x)
	o := s.d
	s.op(func(k kernels.Stream) { k.ColSum(o.host(dst), o.host(x), rows) })
}

func (s *fakeStream) SoftmaxXent(grad *kernels.Mat, loss []float64, logits *kernels.Mat, labels []int32, classW *kernels.Mat, scale float32, rows kernels.Span) {
	kernels.CheckSoftmaxXent(grad, loss, logits, labels, classW, scale, rows)
	s.own("SoftmaxXent", grad, logits, classW)
	o := s.d
	s.op(func(h kernels.Stream) {
		h.SoftmaxXent(o.host(grad), loss, o.host(logits), labels, o.host(classW), scale, rows)
	})
}

func (s *fakeStream) SigmoidBCE(grad *kernels.Mat, loss []float64, logits *kernels.Mat, targets *kernels.CSR, mask []int32, posW *kernels.Mat, scale float32) {
	kernels.CheckSigmoidBCE(grad, loss, logits, targets, mask, posW, scale)
	s.own("SigmoidBCE", grad, logits, posW)
	o := s.d
	s.op(func(h kernels.Stream) {
		h.SigmoidBCE(o.host(grad), loss, o.host(logits), targets, mask, o.host(posW), scale)
	})
}

func (s *fakeStream) Add(dst, a, b *kernels.Mat) {
	kernels.CheckAdd(dst, a, b)
	s.own("Add", dst, a, b)
	o := s.d
	s.op(func(k kernels.Stream) { k.Add(o.host(dst), o.host(a), o.host(b)) })
}

func (s *fakeStream) Adam(p, g, m, v *kernels.Mat, h kernels.Adam) {
	kernels.CheckAdam(p, g, m, v, h)
	s.own("Adam", p, g, m, v)
	o := s.d
	s.op(func(k kernels.Stream) { k.Adam(o.host(p), o.host(g), o.host(m), o.host(v), h) })
}

func (s *fakeStream) SGD(p, g, m *kernels.Mat, h kernels.SGD) {
	kernels.CheckSGD(p, g, m, h)
	s.own("SGD", p, g, m)
	o := s.d
	s.op(func(k kernels.Stream) { k.SGD(o.host(p), o.host(g), o.host(m), h) })
}

func (s *fakeStream) GatherRows(dst, src *kernels.Mat, ids []int32) {
	kernels.CheckGatherRows(dst, src, ids)
	s.own("GatherRows", dst)
	o := s.d
	s.op(func(k kernels.Stream) { k.GatherRows(o.host(dst), o.host(src), ids) })
}

func (s *fakeStream) ScatterRows(dst, src *kernels.Mat, ids []int32) {
	kernels.CheckScatterRows(dst, src, ids)
	s.own("ScatterRows", dst, src)
	o := s.d
	s.op(func(k kernels.Stream) { k.ScatterRows(o.host(dst), o.host(src), ids) })
}

func (s *fakeStream) ToBF16(dst []uint16, src *kernels.Mat) {
	kernels.CheckToBF16(dst, src)
	s.own("ToBF16", src)
	o := s.d
	s.op(func(k kernels.Stream) { k.ToBF16(dst, o.host(src)) })
}

func (s *fakeStream) FromBF16(dst *kernels.Mat, src []uint16) {
	kernels.CheckFromBF16(dst, src)
	s.own("FromBF16", dst)
	o := s.d
	s.op(func(k kernels.Stream) { k.FromBF16(o.host(dst), src) })
}

func (s *fakeStream) Put(dst *kernels.Mat, src []float32) {
	kernels.CheckPut(dst, src)
	s.own("Put", dst)
	o := s.d
	s.op(func(k kernels.Stream) { k.Put(o.host(dst), src) })
}

func (s *fakeStream) Get(dst []float32, src *kernels.Mat) {
	kernels.CheckGet(dst, src)
	s.own("Get", src)
	o := s.d
	s.op(func(k kernels.Stream) { k.Get(dst, o.host(src)) })
}

func (s *fakeStream) AddRows(dst, src *kernels.Mat, ids []int32) {
	kernels.CheckAddRows(dst, src, ids)
	s.own("AddRows", dst, src)
	o := s.d
	s.op(func(k kernels.Stream) { k.AddRows(o.host(dst), o.host(src), ids) })
}

func (s *fakeStream) AddScaled(dst, a, b *kernels.Mat, c float32, s1 *kernels.Mat) {
	kernels.CheckAddScaled(dst, a, b, c, s1)
	s.own("AddScaled", dst, a, b, s1)
	o := s.d
	s.op(func(k kernels.Stream) { k.AddScaled(o.host(dst), o.host(a), o.host(b), c, o.host(s1)) })
}

func (s *fakeStream) Dot(dst, a, b *kernels.Mat) {
	kernels.CheckDot(dst, a, b)
	s.own("Dot", dst, a, b)
	o := s.d
	s.op(func(k kernels.Stream) { k.Dot(o.host(dst), o.host(a), o.host(b)) })
}

func (s *fakeStream) ColDot(dst, a, b *kernels.Mat) {
	kernels.CheckColDot(dst, a, b)
	s.own("ColDot", dst, a, b)
	o := s.d
	s.op(func(k kernels.Stream) { k.ColDot(o.host(dst), o.host(a), o.host(b)) })
}

func (s *fakeStream) SpMMMax(dst, arg *kernels.Mat, g kernels.Graph, x *kernels.Mat, rows kernels.Span) {
	kernels.CheckSpMMMax(dst, arg, g, x, rows)
	s.own("SpMMMax", dst, arg, x)
	o := s.d
	s.op(func(k kernels.Stream) { k.SpMMMax(o.host(dst), o.host(arg), g, o.host(x), rows) })
}

func (s *fakeStream) SpMMMaxBack(dx *kernels.Mat, back kernels.Graph, dy, arg *kernels.Mat, rows kernels.Span) {
	kernels.CheckSpMMMaxBack(dx, back, dy, arg, rows)
	s.own("SpMMMaxBack", dx, dy, arg)
	o := s.d
	s.op(func(k kernels.Stream) { k.SpMMMaxBack(o.host(dx), back, o.host(dy), o.host(arg), rows) })
}

func (s *fakeStream) GAT(dst, lse *kernels.Mat, g kernels.Graph, x, as, ad *kernels.Mat, p kernels.Attention, ep *kernels.Epilogue, rows kernels.Span) {
	kernels.CheckGAT(dst, lse, g, x, as, ad, p, ep, rows)
	s.own("GAT", dst, lse, x, as, ad, biasOf(ep))
	o := s.d
	s.op(func(h kernels.Stream) {
		h.GAT(o.host(dst), o.host(lse), g, o.host(x), o.host(as), o.host(ad), o.attention(p), o.epilogue(ep), rows)
	})
}

func (s *fakeStream) GATBackDst(dad, dot *kernels.Mat, g kernels.Graph, x, as, ad, lse, dy *kernels.Mat, p kernels.Attention, rows kernels.Span) {
	kernels.CheckGATBackDst(dad, dot, g, x, as, ad, lse, dy, p, rows)
	s.own("GATBackDst", dad, dot, x, as, ad, lse, dy)
	o := s.d
	s.op(func(h kernels.Stream) {
		h.GATBackDst(o.host(dad), o.host(dot), g, o.host(x), o.host(as), o.host(ad), o.host(lse), o.host(dy), o.attention(p), rows)
	})
}

func (s *fakeStream) GATBackSrc(dx, das *kernels.Mat, back kernels.Graph, x, as, ad, lse, dot, dy *kernels.Mat, p kernels.Attention, rows kernels.Span) {
	kernels.CheckGATBackSrc(dx, das, back, x, as, ad, lse, dot, dy, p, rows)
	s.own("GATBackSrc", dx, das, x, as, ad, lse, dot, dy)
	o := s.d
	s.op(func(h kernels.Stream) {
		h.GATBackSrc(o.host(dx), o.host(das), back, o.host(x), o.host(as), o.host(ad), o.host(lse), o.host(dot), o.host(dy), o.attention(p), rows)
	})
}

func (s *fakeStream) HeadDot(dst, x, a *kernels.Mat) {
	kernels.CheckHeadDot(dst, x, a)
	s.own("HeadDot", dst, x, a)
	o := s.d
	s.op(func(k kernels.Stream) { k.HeadDot(o.host(dst), o.host(x), o.host(a)) })
}

func (s *fakeStream) HeadOuterAdd(dx, d, a *kernels.Mat) {
	kernels.CheckHeadOuterAdd(dx, d, a)
	s.own("HeadOuterAdd", dx, d, a)
	o := s.d
	s.op(func(k kernels.Stream) { k.HeadOuterAdd(o.host(dx), o.host(d), o.host(a)) })
}

func (s *fakeStream) HeadDotGrad(da, d, x *kernels.Mat) {
	kernels.CheckHeadDotGrad(da, d, x)
	s.own("HeadDotGrad", da, d, x)
	o := s.d
	s.op(func(k kernels.Stream) { k.HeadDotGrad(o.host(da), o.host(d), o.host(x)) })
}

func (s *fakeStream) HeadMean(dst, x *kernels.Mat, heads int, ep *kernels.Epilogue) {
	kernels.CheckHeadMean(dst, x, heads, ep)
	s.own("HeadMean", dst, x, biasOf(ep))
	o := s.d
	s.op(func(k kernels.Stream) { k.HeadMean(o.host(dst), o.host(x), heads, o.epilogue(ep)) })
}

func (s *fakeStream) HeadSpread(dx, d *kernels.Mat, heads int) {
	kernels.CheckHeadSpread(dx, d, heads)
	s.own("HeadSpread", dx, d)
	o := s.d
	s.op(func(k kernels.Stream) { k.HeadSpread(o.host(dx), o.host(d), heads) })
}

func (s *fakeStream) LayerNorm(dst, stat, x, gamma, beta *kernels.Mat, eps float32) {
	kernels.CheckLayerNorm(dst, stat, x, gamma, beta, eps)
	s.own("LayerNorm", dst, stat, x, gamma, beta)
	o := s.d
	s.op(func(h kernels.Stream) {
		h.LayerNorm(o.host(dst), o.host(stat), o.host(x), o.host(gamma), o.host(beta), eps)
	})
}

func (s *fakeStream) LayerNormBack(dx, dgamma, dbeta, dy, x, stat, gamma *kernels.Mat) {
	kernels.CheckLayerNormBack(dx, dgamma, dbeta, dy, x, stat, gamma)
	s.own("LayerNormBack", dx, dgamma, dbeta, dy, x, stat, gamma)
	o := s.d
	s.op(func(h kernels.Stream) {
		h.LayerNormBack(o.host(dx), o.host(dgamma), o.host(dbeta), o.host(dy), o.host(x), o.host(stat), o.host(gamma))
	})
}

func (s *fakeStream) ColMoments(dst, x *kernels.Mat) {
	kernels.CheckColMoments(dst, x)
	s.own("ColMoments", dst, x)
	o := s.d
	s.op(func(k kernels.Stream) { k.ColMoments(o.host(dst), o.host(x)) })
}

func (s *fakeStream) ColAffine(dst, x, y, a, b, d *kernels.Mat) {
	kernels.CheckColAffine(dst, x, y, a, b, d)
	s.own("ColAffine", dst, x, y, a, b, d)
	o := s.d
	s.op(func(h kernels.Stream) {
		h.ColAffine(o.host(dst), o.host(x), o.host(y), o.host(a), o.host(b), o.host(d))
	})
}

func (d *fakeDevice) epilogue(ep *kernels.Epilogue) *kernels.Epilogue {
	if ep == nil {
		return nil
	}
	e := *ep
	e.Bias = d.host(ep.Bias)
	return &e
}

func (d *fakeDevice) gather(ga kernels.Gather) kernels.Gather {
	ga.Scale.Row, ga.Scale.Col, ga.Self.W, ga.W = d.host(ga.Scale.Row), d.host(ga.Scale.Col), d.host(ga.Self.W), d.host(ga.W)
	ga.Ep = d.epilogue(ga.Ep)
	return ga
}

func (d *fakeDevice) attention(p kernels.Attention) kernels.Attention {
	p.Self.W = d.host(p.Self.W)
	return p
}

package opaque

import "dorylus/kernels"

// SpMM implements kernels.Stream.
func (s *stream) SpMM(dst *kernels.Mat, g kernels.Graph, x *kernels.Mat, ga kernels.Gather, rows kernels.Span) {
	kernels.CheckSpMM(dst, g, x, ga, rows)
	c := s.call("SpMM")
	d, m, args := c.mat(dst), c.mat(x), c.gather(ga)
	s.add(c, func(h kernels.Stream) { h.SpMM(d, g, m, args, rows) })
}

// SpMMT implements kernels.Stream.
func (s *stream) SpMMT(dst *kernels.Mat, g kernels.Graph, w, x *kernels.Mat, rows kernels.Span) {
	kernels.CheckSpMMT(dst, g, w, x, rows)
	c := s.call("SpMMT")
	d, v, m := c.mat(dst), c.mat(w), c.mat(x)
	s.add(c, func(h kernels.Stream) { h.SpMMT(d, g, v, m, rows) })
}

// SDDMM implements kernels.Stream.
func (s *stream) SDDMM(dst *kernels.Mat, g kernels.Graph, x, y *kernels.Mat, rows kernels.Span) {
	kernels.CheckSDDMM(dst, g, x, y, rows)
	c := s.call("SDDMM")
	d, a, b := c.mat(dst), c.mat(x), c.mat(y)
	s.add(c, func(h kernels.Stream) { h.SDDMM(d, g, a, b, rows) })
}

// EdgeDropout implements kernels.Stream.
func (s *stream) EdgeDropout(dst *kernels.Mat, g kernels.Graph, d kernels.Dropout, rows kernels.Span) {
	kernels.CheckEdgeDropout(dst, g, d, rows)
	c := s.call("EdgeDropout")
	o, p := c.mat(dst), c.drop(d)
	s.add(c, func(h kernels.Stream) { h.EdgeDropout(o, g, p, rows) })
}

// SpMMMax implements kernels.Stream.
func (s *stream) SpMMMax(dst, arg *kernels.Mat, g kernels.Graph, x *kernels.Mat, rows kernels.Span) {
	kernels.CheckSpMMMax(dst, arg, g, x, rows)
	c := s.call("SpMMMax")
	d, a, m := c.mat(dst), c.mat(arg), c.mat(x)
	s.add(c, func(h kernels.Stream) { h.SpMMMax(d, a, g, m, rows) })
}

// SpMMMaxBack implements kernels.Stream.
func (s *stream) SpMMMaxBack(dx *kernels.Mat, back kernels.Graph, dy, arg *kernels.Mat, rows kernels.Span) {
	kernels.CheckSpMMMaxBack(dx, back, dy, arg, rows)
	c := s.call("SpMMMaxBack")
	d, g, a := c.mat(dx), c.mat(dy), c.mat(arg)
	s.add(c, func(h kernels.Stream) { h.SpMMMaxBack(d, back, g, a, rows) })
}

// GAT implements kernels.Stream.
func (s *stream) GAT(dst, lse *kernels.Mat, g kernels.Graph, x, as, ad *kernels.Mat, p kernels.Attention, ep *kernels.Epilogue, rows kernels.Span) {
	kernels.CheckGAT(dst, lse, g, x, as, ad, p, ep, rows)
	c := s.call("GAT")
	d, l, m, s1, d1, q, e := c.mat(dst), c.mat(lse), c.mat(x), c.mat(as), c.mat(ad), c.attention(p), c.epilogue(ep)
	s.add(c, func(h kernels.Stream) { h.GAT(d, l, g, m, s1, d1, q, e, rows) })
}

// GATBackDst implements kernels.Stream.
func (s *stream) GATBackDst(dad, dot *kernels.Mat, g kernels.Graph, x, as, ad, lse, dy *kernels.Mat, p kernels.Attention, rows kernels.Span) {
	kernels.CheckGATBackDst(dad, dot, g, x, as, ad, lse, dy, p, rows)
	c := s.call("GATBackDst")
	o, t, m, s1, d1, l, y, q := c.mat(dad), c.mat(dot), c.mat(x), c.mat(as), c.mat(ad), c.mat(lse), c.mat(dy), c.attention(p)
	s.add(c, func(h kernels.Stream) { h.GATBackDst(o, t, g, m, s1, d1, l, y, q, rows) })
}

// GATBackSrc implements kernels.Stream.
func (s *stream) GATBackSrc(dx, das *kernels.Mat, back kernels.Graph, x, as, ad, lse, dot, dy *kernels.Mat, p kernels.Attention, rows kernels.Span) {
	kernels.CheckGATBackSrc(dx, das, back, x, as, ad, lse, dot, dy, p, rows)
	c := s.call("GATBackSrc")
	o, a, m, s1, d1 := c.mat(dx), c.mat(das), c.mat(x), c.mat(as), c.mat(ad)
	l, t, y, q := c.mat(lse), c.mat(dot), c.mat(dy), c.attention(p)
	s.add(c, func(h kernels.Stream) { h.GATBackSrc(o, a, back, m, s1, d1, l, t, y, q, rows) })
}

// HeadDot implements kernels.Stream.
func (s *stream) HeadDot(dst, x, a *kernels.Mat) {
	kernels.CheckHeadDot(dst, x, a)
	c := s.call("HeadDot")
	d, m, v := c.mat(dst), c.mat(x), c.mat(a)
	s.add(c, func(h kernels.Stream) { h.HeadDot(d, m, v) })
}

// HeadOuterAdd implements kernels.Stream.
func (s *stream) HeadOuterAdd(dx, d, a *kernels.Mat) {
	kernels.CheckHeadOuterAdd(dx, d, a)
	c := s.call("HeadOuterAdd")
	o, m, v := c.mat(dx), c.mat(d), c.mat(a)
	s.add(c, func(h kernels.Stream) { h.HeadOuterAdd(o, m, v) })
}

// HeadDotGrad implements kernels.Stream.
func (s *stream) HeadDotGrad(da, d, x *kernels.Mat) {
	kernels.CheckHeadDotGrad(da, d, x)
	c := s.call("HeadDotGrad")
	o, m, v := c.mat(da), c.mat(d), c.mat(x)
	s.add(c, func(h kernels.Stream) { h.HeadDotGrad(o, m, v) })
}

// HeadMean implements kernels.Stream.
func (s *stream) HeadMean(dst, x *kernels.Mat, heads int, ep *kernels.Epilogue) {
	kernels.CheckHeadMean(dst, x, heads, ep)
	c := s.call("HeadMean")
	d, m, e := c.mat(dst), c.mat(x), c.epilogue(ep)
	s.add(c, func(h kernels.Stream) { h.HeadMean(d, m, heads, e) })
}

// HeadSpread implements kernels.Stream.
func (s *stream) HeadSpread(dx, d *kernels.Mat, heads int) {
	kernels.CheckHeadSpread(dx, d, heads)
	c := s.call("HeadSpread")
	o, m := c.mat(dx), c.mat(d)
	s.add(c, func(h kernels.Stream) { h.HeadSpread(o, m, heads) })
}

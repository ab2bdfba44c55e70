package opaque

import "dorylus/kernels"

// GEMM implements kernels.Stream.
func (s *stream) GEMM(dst, a, b *kernels.Mat, t kernels.Trans, ep *kernels.Epilogue) {
	kernels.CheckGEMM(dst, a, b, t, ep)
	c := s.call("GEMM")
	d, x, y, e := c.mat(dst), c.mat(a), c.mat(b), c.epilogue(ep)
	s.add(c, func(h kernels.Stream) { h.GEMM(d, x, y, t, e) })
}

// AddGEMM implements kernels.Stream.
func (s *stream) AddGEMM(dst, a, b *kernels.Mat, t kernels.Trans, ep *kernels.Epilogue) {
	kernels.CheckAddGEMM(dst, a, b, t, ep)
	c := s.call("AddGEMM")
	d, x, y, e := c.mat(dst), c.mat(a), c.mat(b), c.epilogue(ep)
	s.add(c, func(h kernels.Stream) { h.AddGEMM(d, x, y, t, e) })
}

// Forward implements kernels.Stream.
func (s *stream) Forward(dst, x *kernels.Mat, ep *kernels.Epilogue, rows kernels.Span) {
	kernels.CheckForward(dst, x, ep, rows)
	c := s.call("Forward")
	d, m, e := c.mat(dst), c.mat(x), c.epilogue(ep)
	s.add(c, func(h kernels.Stream) { h.Forward(d, m, e, rows) })
}

// Backward implements kernels.Stream.
func (s *stream) Backward(dx, dy, y *kernels.Mat, ep *kernels.Epilogue, rows kernels.Span) {
	kernels.CheckBackward(dx, dy, y, ep, rows)
	c := s.call("Backward")
	d, g, m, e := c.mat(dx), c.mat(dy), c.mat(y), ep
	if ep != nil {
		e = &kernels.Epilogue{Act: ep.Act, Drop: c.drop(ep.Drop)} // the bias is not read
	}
	s.add(c, func(h kernels.Stream) { h.Backward(d, g, m, e, rows) })
}

// ColSum implements kernels.Stream.
func (s *stream) ColSum(dst, x *kernels.Mat, rows kernels.Span) {
	kernels.CheckColSum(dst, x, rows)
	c := s.call("ColSum")
	d, m := c.mat(dst), c.mat(x)
	s.add(c, func(h kernels.Stream) { h.ColSum(d, m, rows) })
}

// SoftmaxXent implements kernels.Stream.
func (s *stream) SoftmaxXent(grad *kernels.Mat, loss []float64, logits *kernels.Mat, labels []int32, classW *kernels.Mat, scale float32, rows kernels.Span) {
	kernels.CheckSoftmaxXent(grad, loss, logits, labels, classW, scale, rows)
	c := s.call("SoftmaxXent")
	g, m, l, w := c.mat(grad), c.mat(logits), c.ids(labels), c.mat(classW)
	s.dev.count("loss", 8)
	s.add(c, func(h kernels.Stream) { h.SoftmaxXent(g, loss, m, l, w, scale, rows) })
}

// SigmoidBCE implements kernels.Stream.
func (s *stream) SigmoidBCE(grad *kernels.Mat, loss []float64, logits *kernels.Mat, targets *kernels.CSR, mask []int32, posW *kernels.Mat, scale float32) {
	kernels.CheckSigmoidBCE(grad, loss, logits, targets, mask, posW, scale)
	c := s.call("SigmoidBCE")
	g, m, l, w := c.mat(grad), c.mat(logits), c.ids(mask), c.mat(posW)
	s.dev.count("targets", 8*len(targets.RowPtr))
	t := &kernels.CSR{Cols: targets.Cols, RowPtr: targets.RowPtr, Col: c.ids(targets.Col), Val: targets.Val}
	s.dev.count("loss", 8)
	s.add(c, func(h kernels.Stream) { h.SigmoidBCE(g, loss, m, t, l, w, scale) })
}

// Add implements kernels.Stream.
func (s *stream) Add(dst, a, b *kernels.Mat) {
	kernels.CheckAdd(dst, a, b)
	c := s.call("Add")
	d, x, y := c.mat(dst), c.mat(a), c.mat(b)
	s.add(c, func(h kernels.Stream) { h.Add(d, x, y) })
}

// AddRows implements kernels.Stream.
func (s *stream) AddRows(dst, src *kernels.Mat, ids []int32) {
	kernels.CheckAddRows(dst, src, ids)
	c := s.call("AddRows")
	d, m, at := c.mat(dst), c.mat(src), c.ids(ids)
	s.add(c, func(h kernels.Stream) { h.AddRows(d, m, at) })
}

// AddScaled implements kernels.Stream.
func (s *stream) AddScaled(dst, a, b *kernels.Mat, f float32, by *kernels.Mat) {
	kernels.CheckAddScaled(dst, a, b, f, by)
	c := s.call("AddScaled")
	d, x, y, m := c.mat(dst), c.mat(a), c.mat(b), c.mat(by)
	s.add(c, func(h kernels.Stream) { h.AddScaled(d, x, y, f, m) })
}

// Dot implements kernels.Stream.
func (s *stream) Dot(dst, a, b *kernels.Mat) {
	kernels.CheckDot(dst, a, b)
	c := s.call("Dot")
	d, x, y := c.mat(dst), c.mat(a), c.mat(b)
	s.add(c, func(h kernels.Stream) { h.Dot(d, x, y) })
}

// ColDot implements kernels.Stream.
func (s *stream) ColDot(dst, a, b *kernels.Mat) {
	kernels.CheckColDot(dst, a, b)
	c := s.call("ColDot")
	d, x, y := c.mat(dst), c.mat(a), c.mat(b)
	s.add(c, func(h kernels.Stream) { h.ColDot(d, x, y) })
}

// Adam implements kernels.Stream.
func (s *stream) Adam(p, g, m, v *kernels.Mat, a kernels.Adam) {
	kernels.CheckAdam(p, g, m, v, a)
	c := s.call("Adam")
	w, d, m1, m2 := c.mat(p), c.mat(g), c.mat(m), c.mat(v)
	s.add(c, func(h kernels.Stream) { h.Adam(w, d, m1, m2, a) })
}

// SGD implements kernels.Stream.
func (s *stream) SGD(p, g, m *kernels.Mat, a kernels.SGD) {
	kernels.CheckSGD(p, g, m, a)
	c := s.call("SGD")
	w, d, m1 := c.mat(p), c.mat(g), c.mat(m)
	s.add(c, func(h kernels.Stream) { h.SGD(w, d, m1, a) })
}

// LayerNorm implements kernels.Stream.
func (s *stream) LayerNorm(dst, stat, x, gamma, beta *kernels.Mat, eps float32) {
	kernels.CheckLayerNorm(dst, stat, x, gamma, beta, eps)
	c := s.call("LayerNorm")
	d, st, m, ga, be := c.mat(dst), c.mat(stat), c.mat(x), c.mat(gamma), c.mat(beta)
	s.add(c, func(h kernels.Stream) { h.LayerNorm(d, st, m, ga, be, eps) })
}

// LayerNormBack implements kernels.Stream.
func (s *stream) LayerNormBack(dx, dgamma, dbeta, dy, x, stat, gamma *kernels.Mat) {
	kernels.CheckLayerNormBack(dx, dgamma, dbeta, dy, x, stat, gamma)
	c := s.call("LayerNormBack")
	d, dg, db, g, m, st, ga := c.mat(dx), c.mat(dgamma), c.mat(dbeta), c.mat(dy), c.mat(x), c.mat(stat), c.mat(gamma)
	s.add(c, func(h kernels.Stream) { h.LayerNormBack(d, dg, db, g, m, st, ga) })
}

// ColMoments implements kernels.Stream.
func (s *stream) ColMoments(dst, x *kernels.Mat) {
	kernels.CheckColMoments(dst, x)
	c := s.call("ColMoments")
	d, m := c.mat(dst), c.mat(x)
	s.add(c, func(h kernels.Stream) { h.ColMoments(d, m) })
}

// ColAffine implements kernels.Stream.
func (s *stream) ColAffine(dst, x, y, a, b, d *kernels.Mat) {
	kernels.CheckColAffine(dst, x, y, a, b, d)
	c := s.call("ColAffine")
	o, mx, my, ma, mb, md := c.mat(dst), c.mat(x), c.mat(y), c.mat(a), c.mat(b), c.mat(d)
	s.add(c, func(h kernels.Stream) { h.ColAffine(o, mx, my, ma, mb, md) })
}

package spill

import "dorylus/kernels"

// GEMM implements kernels.Stream.
func (s *Stream) GEMM(dst, a, b *kernels.Mat, t kernels.Trans, ep *kernels.Epilogue) {
	if !anySpilled(dst, a, b, biasOf(ep)) {
		s.Lower.GEMM(dst, a, b, t, ep)
		return
	}
	kernels.CheckGEMM(dst, a, b, t, ep)
	s.product("GEMM", dst, a, b, t, ep, false)
}

// AddGEMM implements kernels.Stream.
func (s *Stream) AddGEMM(dst, a, b *kernels.Mat, t kernels.Trans, ep *kernels.Epilogue) {
	if !anySpilled(dst, a, b, biasOf(ep)) {
		s.Lower.AddGEMM(dst, a, b, t, ep)
		return
	}
	kernels.CheckAddGEMM(dst, a, b, t, ep)
	s.product("AddGEMM", dst, a, b, t, ep, true)
}

// product runs over pieces of the rows of a. In NN and NT they are rows of dst; in TN
// the products of the pieces are added.
func (s *Stream) product(op string, dst, a, b *kernels.Mat, t kernels.Trans, ep *kernels.Epilogue, add bool) {
	mo := writes
	if add {
		mo |= reads
	}
	bias := all(biasOf(ep), reads)
	if t != kernels.TN {
		s.rows(op, dst.Rows, []part{all(b, reads), bias}, []part{all(dst, mo), all(a, reads)}, func(rows kernels.Span, w, m []*kernels.Mat) {
			e := s.epilogue(ep, w[1], rows)
			if add {
				s.Lower.AddGEMM(m[0], m[1], w[0], t, e)
			} else {
				s.Lower.GEMM(m[0], m[1], w[0], t, e)
			}
		})
		return
	}
	s.rows(op, a.Rows, []part{all(dst, mo), bias}, []part{all(a, reads), all(b, reads)}, func(rows kernels.Span, w, m []*kernels.Mat) {
		var e *kernels.Epilogue
		if ep != nil && rows.Hi == a.Rows {
			last := *ep
			last.Bias, e = w[1], &last
		}
		if add || rows.Lo > 0 {
			s.Lower.AddGEMM(w[0], m[0], m[1], t, e)
		} else {
			s.Lower.GEMM(w[0], m[0], m[1], t, e)
		}
	})
}

// Forward implements kernels.Stream.
func (s *Stream) Forward(dst, x *kernels.Mat, ep *kernels.Epilogue, rows kernels.Span) {
	if !anySpilled(dst, x, biasOf(ep)) {
		s.Lower.Forward(dst, x, ep, rows)
		return
	}
	kernels.CheckForward(dst, x, ep, rows)
	s.span("Forward", rows, []part{all(biasOf(ep), reads)}, []part{all(dst, writes), all(x, reads)}, func(p kernels.Span, w, m []*kernels.Mat) {
		s.Lower.Forward(m[0], m[1], s.epilogue(ep, w[0], p), to(p.Len()))
	})
}

// Backward implements kernels.Stream.
func (s *Stream) Backward(dx, dy, y *kernels.Mat, ep *kernels.Epilogue, rows kernels.Span) {
	if !anySpilled(dx, dy, y) {
		s.Lower.Backward(dx, dy, y, ep, rows)
		return
	}
	kernels.CheckBackward(dx, dy, y, ep, rows)
	s.span("Backward", rows, nil, []part{all(dx, writes), all(dy, reads), all(y, reads)}, func(p kernels.Span, _, m []*kernels.Mat) {
		s.Lower.Backward(m[0], m[1], m[2], s.epilogue(ep, nil, p), to(p.Len()))
	})
}

// Add implements kernels.Stream.
func (s *Stream) Add(dst, a, b *kernels.Mat) {
	if !anySpilled(dst, a, b) {
		s.Lower.Add(dst, a, b)
		return
	}
	kernels.CheckAdd(dst, a, b)
	s.rows("Add", dst.Rows, nil, []part{all(dst, writes), all(a, reads), all(b, reads)}, func(_ kernels.Span, _, m []*kernels.Mat) {
		s.Lower.Add(m[0], m[1], m[2])
	})
}

// AddScaled implements kernels.Stream.
func (s *Stream) AddScaled(dst, a, b *kernels.Mat, c float32, by *kernels.Mat) {
	if !anySpilled(dst, a, b, by) {
		s.Lower.AddScaled(dst, a, b, c, by)
		return
	}
	kernels.CheckAddScaled(dst, a, b, c, by)
	s.rows("AddScaled", dst.Rows, []part{all(by, reads)}, []part{all(dst, writes), all(a, reads), all(b, reads)}, func(_ kernels.Span, w, m []*kernels.Mat) {
		s.Lower.AddScaled(m[0], m[1], m[2], c, w[0])
	})
}

// Adam implements kernels.Stream.
func (s *Stream) Adam(p, g, m, v *kernels.Mat, h kernels.Adam) {
	if !anySpilled(p, g, m, v) {
		s.Lower.Adam(p, g, m, v, h)
		return
	}
	kernels.CheckAdam(p, g, m, v, h)
	s.rows("Adam", p.Rows, nil, []part{all(p, reads|writes), all(g, reads), all(m, reads|writes), all(v, reads|writes)}, func(_ kernels.Span, _, m []*kernels.Mat) {
		s.Lower.Adam(m[0], m[1], m[2], m[3], h)
	})
}

// SGD implements kernels.Stream.
func (s *Stream) SGD(p, g, m *kernels.Mat, h kernels.SGD) {
	if !anySpilled(p, g, m) {
		s.Lower.SGD(p, g, m, h)
		return
	}
	kernels.CheckSGD(p, g, m, h)
	s.rows("SGD", p.Rows, nil, []part{all(p, reads|writes), all(g, reads), all(m, reads|writes)}, func(_ kernels.Span, _, m []*kernels.Mat) {
		s.Lower.SGD(m[0], m[1], m[2], h)
	})
}

// HeadDot implements kernels.Stream.
func (s *Stream) HeadDot(dst, x, a *kernels.Mat) {
	if !anySpilled(dst, x, a) {
		s.Lower.HeadDot(dst, x, a)
		return
	}
	kernels.CheckHeadDot(dst, x, a)
	s.rows("HeadDot", dst.Rows, []part{all(a, reads)}, []part{all(dst, writes), all(x, reads)}, func(_ kernels.Span, w, m []*kernels.Mat) {
		s.Lower.HeadDot(m[0], m[1], w[0])
	})
}

// HeadOuterAdd implements kernels.Stream.
func (s *Stream) HeadOuterAdd(dx, d, a *kernels.Mat) {
	if !anySpilled(dx, d, a) {
		s.Lower.HeadOuterAdd(dx, d, a)
		return
	}
	kernels.CheckHeadOuterAdd(dx, d, a)
	s.rows("HeadOuterAdd", dx.Rows, []part{all(a, reads)}, []part{all(dx, reads|writes), all(d, reads)}, func(_ kernels.Span, w, m []*kernels.Mat) {
		s.Lower.HeadOuterAdd(m[0], m[1], w[0])
	})
}

// HeadMean implements kernels.Stream.
func (s *Stream) HeadMean(dst, x *kernels.Mat, heads int, ep *kernels.Epilogue) {
	if !anySpilled(dst, x, biasOf(ep)) {
		s.Lower.HeadMean(dst, x, heads, ep)
		return
	}
	kernels.CheckHeadMean(dst, x, heads, ep)
	s.rows("HeadMean", dst.Rows, []part{all(biasOf(ep), reads)}, []part{all(dst, writes), all(x, reads)}, func(p kernels.Span, w, m []*kernels.Mat) {
		s.Lower.HeadMean(m[0], m[1], heads, s.epilogue(ep, w[0], p))
	})
}

// HeadSpread implements kernels.Stream.
func (s *Stream) HeadSpread(dx, d *kernels.Mat, heads int) {
	if !anySpilled(dx, d) {
		s.Lower.HeadSpread(dx, d, heads)
		return
	}
	kernels.CheckHeadSpread(dx, d, heads)
	s.rows("HeadSpread", dx.Rows, nil, []part{all(dx, writes), all(d, reads)}, func(_ kernels.Span, _, m []*kernels.Mat) {
		s.Lower.HeadSpread(m[0], m[1], heads)
	})
}

// LayerNorm implements kernels.Stream.
func (s *Stream) LayerNorm(dst, stat, x, gamma, beta *kernels.Mat, eps float32) {
	if !anySpilled(dst, stat, x, gamma, beta) {
		s.Lower.LayerNorm(dst, stat, x, gamma, beta, eps)
		return
	}
	kernels.CheckLayerNorm(dst, stat, x, gamma, beta, eps)
	s.rows("LayerNorm", x.Rows, []part{all(gamma, reads), all(beta, reads)}, []part{all(dst, writes), all(stat, writes), all(x, reads)}, func(_ kernels.Span, w, m []*kernels.Mat) {
		s.Lower.LayerNorm(m[0], m[1], m[2], w[0], w[1], eps)
	})
}

// ColAffine implements kernels.Stream.
func (s *Stream) ColAffine(dst, x, y, a, b, d *kernels.Mat) {
	if !anySpilled(dst, x, y, a, b, d) {
		s.Lower.ColAffine(dst, x, y, a, b, d)
		return
	}
	kernels.CheckColAffine(dst, x, y, a, b, d)
	s.rows("ColAffine", x.Rows, []part{all(a, reads), all(b, reads), all(d, reads)}, []part{all(dst, writes), all(x, reads), all(y, reads)}, func(_ kernels.Span, w, m []*kernels.Mat) {
		s.Lower.ColAffine(m[0], m[1], m[2], w[0], w[1], w[2])
	})
}

// ToBF16 implements kernels.Stream.
func (s *Stream) ToBF16(dst []uint16, src *kernels.Mat) {
	if !Spilled(src) {
		s.Lower.ToBF16(dst, src)
		return
	}
	kernels.CheckToBF16(dst, src)
	s.rows("ToBF16", src.Rows, nil, []part{all(src, reads)}, func(p kernels.Span, _, m []*kernels.Mat) {
		s.Lower.ToBF16(dst[p.Lo*src.Cols:p.Hi*src.Cols], m[0])
	})
}

// FromBF16 implements kernels.Stream.
func (s *Stream) FromBF16(dst *kernels.Mat, src []uint16) {
	if !Spilled(dst) {
		s.Lower.FromBF16(dst, src)
		return
	}
	kernels.CheckFromBF16(dst, src)
	s.rows("FromBF16", dst.Rows, nil, []part{all(dst, writes)}, func(p kernels.Span, _, m []*kernels.Mat) {
		s.Lower.FromBF16(m[0], src[p.Lo*dst.Cols:p.Hi*dst.Cols])
	})
}

package spill

import "dorylus/kernels"

// temp is memory of the arena for rows x cols values.
func temp(rows, cols int) part {
	return all(&kernels.Mat{Rows: rows, Cols: cols, Stride: kernels.PadCols(cols)}, scratch)
}

// sum runs a reduction over rows: f sets an output of dst's shape from a piece, and the
// outputs of all pieces are added.
func (s *Stream) sum(op string, dst *kernels.Mat, rows kernels.Span, parts []part, f func(dst *kernels.Mat, m []*kernels.Mat)) {
	s.span(op, rows, []part{all(dst, writes), temp(dst.Rows, dst.Cols)}, parts, func(p kernels.Span, w, m []*kernels.Mat) {
		if p.Lo == rows.Lo {
			f(w[0], m)
			return
		}
		f(w[1], m)
		s.Lower.Add(w[0], w[0], w[1])
	})
}

// ColSum implements kernels.Stream.
func (s *Stream) ColSum(dst, x *kernels.Mat, rows kernels.Span) {
	if !anySpilled(dst, x) {
		s.Lower.ColSum(dst, x, rows)
		return
	}
	kernels.CheckColSum(dst, x, rows)
	s.sum("ColSum", dst, rows, []part{all(x, reads)}, func(dst *kernels.Mat, m []*kernels.Mat) {
		s.Lower.ColSum(dst, m[0], to(m[0].Rows))
	})
}

// Dot implements kernels.Stream.
func (s *Stream) Dot(dst, a, b *kernels.Mat) {
	if !anySpilled(dst, a, b) {
		s.Lower.Dot(dst, a, b)
		return
	}
	kernels.CheckDot(dst, a, b)
	s.sum("Dot", dst, to(a.Rows), []part{all(a, reads), all(b, reads)}, func(dst *kernels.Mat, m []*kernels.Mat) {
		s.Lower.Dot(dst, m[0], m[1])
	})
}

// ColDot implements kernels.Stream.
func (s *Stream) ColDot(dst, a, b *kernels.Mat) {
	if !anySpilled(dst, a, b) {
		s.Lower.ColDot(dst, a, b)
		return
	}
	kernels.CheckColDot(dst, a, b)
	s.sum("ColDot", dst, to(a.Rows), []part{all(a, reads), all(b, reads)}, func(dst *kernels.Mat, m []*kernels.Mat) {
		s.Lower.ColDot(dst, m[0], m[1])
	})
}

// HeadDotGrad implements kernels.Stream.
func (s *Stream) HeadDotGrad(da, d, x *kernels.Mat) {
	if !anySpilled(da, d, x) {
		s.Lower.HeadDotGrad(da, d, x)
		return
	}
	kernels.CheckHeadDotGrad(da, d, x)
	s.sum("HeadDotGrad", da, to(x.Rows), []part{all(d, reads), all(x, reads)}, func(da *kernels.Mat, m []*kernels.Mat) {
		s.Lower.HeadDotGrad(da, m[0], m[1])
	})
}

// LayerNormBack implements kernels.Stream.
func (s *Stream) LayerNormBack(dx, dgamma, dbeta, dy, x, stat, gamma *kernels.Mat) {
	if !anySpilled(dx, dgamma, dbeta, dy, x, stat, gamma) {
		s.Lower.LayerNormBack(dx, dgamma, dbeta, dy, x, stat, gamma)
		return
	}
	kernels.CheckLayerNormBack(dx, dgamma, dbeta, dy, x, stat, gamma)
	whole := []part{all(gamma, reads), all(dgamma, writes), all(dbeta, writes), temp(1, x.Cols), temp(1, x.Cols)}
	parts := []part{all(dx, writes), all(dy, reads), all(x, reads), all(stat, reads)}
	s.rows("LayerNormBack", x.Rows, whole, parts, func(p kernels.Span, w, m []*kernels.Mat) {
		if p.Lo == 0 {
			s.Lower.LayerNormBack(m[0], w[1], w[2], m[1], m[2], m[3], w[0])
			return
		}
		s.Lower.LayerNormBack(m[0], w[3], w[4], m[1], m[2], m[3], w[0])
		s.Lower.Add(w[1], w[1], w[3])
		s.Lower.Add(w[2], w[2], w[4])
	})
}

// ColMoments implements kernels.Stream. It reads x twice: once for the means, once for
// the squares of the distances from them.
func (s *Stream) ColMoments(dst, x *kernels.Mat) {
	if !anySpilled(dst, x) {
		s.Lower.ColMoments(dst, x)
		return
	}
	kernels.CheckColMoments(dst, x)
	all1, in := to(x.Rows), []part{all(x, reads)}
	once := s.pieces(all1, []part{all(dst, writes)}, func(p kernels.Span) []part { return []part{within(x, p, reads, false)} })
	if len(once) == 1 {
		s.run(job{"ColMoments", []part{all(dst, writes)}, 1, func(int) []part { return in }, func(_ int, w, m []*kernels.Mat) { s.Lower.ColMoments(w[0], m[0]) }})
		return
	}
	mean, squares := dst.Sub(kernels.Span{Hi: 1}), dst.Sub(kernels.Span{Lo: 1, Hi: 2})
	s.sum("ColMoments", mean, all1, in, func(sum *kernels.Mat, m []*kernels.Mat) {
		s.Lower.ColSum(sum, m[0], to(m[0].Rows))
	})
	one := make([]float32, x.Cols)
	for i := range one {
		one[i] = 1
	}
	// mean = sum/n; then the squares of 1·x - mean.
	whole := []part{all(mean, reads|writes), all(squares, writes), temp(1, x.Cols), temp(1, x.Cols), temp(1, x.Cols), temp(1, x.Cols)}
	rows := func(p kernels.Span) []part {
		return []part{within(x, p, reads, false), temp(p.Len(), x.Cols)}
	}
	cut := s.pieces(all1, whole, rows)
	s.run(job{"ColMoments", whole, len(cut), func(i int) []part { return rows(cut[i]) }, func(i int, w, m []*kernels.Mat) {
		mean, squares, ones, zero, minus, part := w[0], w[1], w[2], w[3], w[4], w[5]
		if i == 0 {
			s.Lower.Put(ones, one)
			s.Lower.Zero(zero)
			s.Lower.AddScaled(mean, zero, mean, float32(1/float64(x.Rows)), nil)
			s.Lower.AddScaled(minus, zero, mean, -1, nil)
			part = squares
		}
		s.Lower.ColAffine(m[1], m[0], nil, ones, nil, minus)
		s.Lower.ColDot(part, m[1], m[1])
		if i > 0 {
			s.Lower.Add(squares, squares, part)
		}
	}})
}

// SoftmaxXent implements kernels.Stream.
func (s *Stream) SoftmaxXent(grad *kernels.Mat, loss []float64, logits *kernels.Mat, labels []int32, classW *kernels.Mat, scale float32, rows kernels.Span) {
	if !anySpilled(grad, logits, classW) {
		s.Lower.SoftmaxXent(grad, loss, logits, labels, classW, scale, rows)
		return
	}
	kernels.CheckSoftmaxXent(grad, loss, logits, labels, classW, scale, rows)
	sums := s.losses(loss)
	s.span("SoftmaxXent", rows, []part{all(classW, reads)}, []part{all(grad, writes), all(logits, reads)}, func(p kernels.Span, w, m []*kernels.Mat) {
		s.Lower.SoftmaxXent(m[0], sums(), m[1], labels[p.Lo:p.Hi], w[0], scale, to(p.Len()))
	})
}

// SigmoidBCE implements kernels.Stream.
func (s *Stream) SigmoidBCE(grad *kernels.Mat, loss []float64, logits *kernels.Mat, targets *kernels.CSR, mask []int32, posW *kernels.Mat, scale float32) {
	if !anySpilled(grad, logits, posW) {
		s.Lower.SigmoidBCE(grad, loss, logits, targets, mask, posW, scale)
		return
	}
	kernels.CheckSigmoidBCE(grad, loss, logits, targets, mask, posW, scale)
	sums := s.losses(loss)
	s.rows("SigmoidBCE", logits.Rows, []part{all(posW, reads)}, []part{all(grad, writes), all(logits, reads)}, func(p kernels.Span, w, m []*kernels.Mat) {
		t := &kernels.CSR{Cols: targets.Cols, RowPtr: targets.RowPtr[p.Lo : p.Hi+1], Col: targets.Col}
		s.Lower.SigmoidBCE(m[0], sums(), m[1], t, mask[p.Lo:p.Hi], w[0], scale)
	})
}

// losses gives each piece a place for its loss; Wait adds them up in order.
func (s *Stream) losses(loss []float64) func() []float64 {
	var pieces [][]float64
	s.after = append(s.after, func() {
		loss[0] = 0
		for _, p := range pieces {
			loss[0] += p[0]
		}
	})
	return func() []float64 {
		p := make([]float64, 1)
		pieces = append(pieces, p)
		return p
	}
}

package ref

import "dorylus/kernels"

// GEMM sets dst = op(a)·op(b), then the epilogue. Every element is one float64
// sum in the order of the inner index.
func (s *stream) GEMM(dst, a, b *kernels.Mat, t kernels.Trans, ep *kernels.Epilogue) {
	kernels.CheckGEMM(dst, a, b, t, ep)
	kernels.CheckHost("GEMM", dst, a, b, bias(ep))
	if s.runs("GEMM") {
		s.product(dst, a, b, t, ep, false)
	}
}

// product is GEMM, or AddGEMM if add.
func (s *stream) product(dst, a, b *kernels.Mat, t kernels.Trans, ep *kernels.Epilogue, add bool) {
	switch {
	case dst.Cols == 0 || dst.Rows == 0:
	case t == kernels.NN && a.Cols > 0:
		s.gemmNN(dst, a, b, ep, add)
	case t == kernels.NT && a.Cols > 0:
		s.gemmNT(dst, a, b, ep, add)
	case t == kernels.TN && a.Rows > 0:
		s.gemmTN(dst, a, b, ep, add)
	default: // no terms: no row of a or b has memory
		for i := range dst.Rows {
			finish(dst.Row(i), s.start(dst, i, add), i, ep)
		}
	}
}

// start is the sums of row i before the product: zero, or what dst holds.
func (s *stream) start(dst *kernels.Mat, i int, add bool) []float64 {
	acc := s.zeros(dst.Cols)
	if add {
		axpy(acc, 1, dst.Row(i))
	}
	return acc
}

// gemmNN adds a[i,k] times row k of b, for each row i of dst, four rows of b at a
// time.
func (s *stream) gemmNN(dst, a, b *kernels.Mat, ep *kernels.Epilogue, add bool) {
	for i := range dst.Rows {
		acc := s.start(dst, i, add)
		f := a.Host[i*a.Stride:]
		k := 0
		for ; k+4 <= a.Cols; k += 4 {
			axpy4(acc, float64(f[k]), float64(f[k+1]), float64(f[k+2]), float64(f[k+3]), b.Row(k), b.Row(k+1), b.Row(k+2), b.Row(k+3))
		}
		for ; k < a.Cols; k++ {
			axpy(acc, float64(f[k]), b.Row(k))
		}
		finish(dst.Row(i), acc, i, ep)
	}
}

// gemmNT takes the product of row i of a and row j of b, four rows of b at a
// time, so that each value of a is read and widened once for four sums.
func (s *stream) gemmNT(dst, a, b *kernels.Mat, ep *kernels.Epilogue, add bool) {
	for i := range dst.Rows {
		acc := s.start(dst, i, add)
		x := a.Row(i)
		j := 0
		for ; j+4 <= len(acc); j += 4 {
			s0, s1, s2, s3 := dot4(x, b.Row(j), b.Row(j+1), b.Row(j+2), b.Row(j+3))
			acc[j] += s0
			acc[j+1] += s1
			acc[j+2] += s2
			acc[j+3] += s3
		}
		for ; j < len(acc); j++ {
			acc[j] += dot(x, b.Row(j))
		}
		finish(dst.Row(i), acc, i, ep)
	}
}

// gemmTN adds, for four inner rows k at a time, a[k,i] times row k of b to row i
// of a float64 copy of dst.
func (s *stream) gemmTN(dst, a, b *kernels.Mat, ep *kernels.Epilogue, add bool) {
	n := dst.Cols
	acc := s.zeros(dst.Rows * n)
	if add {
		for i := range dst.Rows {
			axpy(acc[i*n:(i+1)*n], 1, dst.Row(i))
		}
	}
	k := 0
	for ; k+4 <= a.Rows; k += 4 {
		x0, x1, x2, x3 := a.Row(k), a.Row(k+1), a.Row(k+2), a.Row(k+3)
		y0, y1, y2, y3 := b.Row(k), b.Row(k+1), b.Row(k+2), b.Row(k+3)
		for i := range x0 {
			axpy4(acc[i*n:(i+1)*n], float64(x0[i]), float64(x1[i]), float64(x2[i]), float64(x3[i]), y0, y1, y2, y3)
		}
	}
	for ; k < a.Rows; k++ {
		for i, f := range a.Row(k) {
			axpy(acc[i*n:(i+1)*n], float64(f), b.Row(k))
		}
	}
	for i := range dst.Rows {
		finish(dst.Row(i), acc[i*n:(i+1)*n], i, ep)
	}
}

// axpy adds f*x to acc; both have the same length.
func axpy(acc []float64, f float64, x []float32) {
	acc = acc[:len(x)]
	for c, v := range x {
		acc[c] += f * float64(v)
	}
}

// axpy4 is four calls of axpy in one pass over acc: the same additions in the
// same order.
func axpy4(acc []float64, f0, f1, f2, f3 float64, x0, x1, x2, x3 []float32) {
	n := len(acc)
	x0, x1, x2, x3 = x0[:n], x1[:n], x2[:n], x3[:n]
	for c, v := range acc {
		v += f0 * float64(x0[c])
		v += f1 * float64(x1[c])
		v += f2 * float64(x2[c])
		acc[c] = v + f3*float64(x3[c])
	}
}

func dot(x, y []float32) float64 {
	y = y[:len(x)]
	var sum float64
	for k, v := range x {
		sum += float64(v) * float64(y[k])
	}
	return sum
}

func dot4(x, y0, y1, y2, y3 []float32) (s0, s1, s2, s3 float64) {
	n := len(x)
	y0, y1, y2, y3 = y0[:n], y1[:n], y2[:n], y3[:n]
	for k, v := range x {
		f := float64(v)
		s0 += f * float64(y0[k])
		s1 += f * float64(y1[k])
		s2 += f * float64(y2[k])
		s3 += f * float64(y3[k])
	}
	return s0, s1, s2, s3
}

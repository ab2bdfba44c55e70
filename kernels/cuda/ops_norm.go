package cuda

import "dorylus/kernels"

// LayerNorm implements kernels.Stream.
func (q *queue) LayerNorm(dst, stat, x, gamma, beta *kernels.Mat, eps float32) {
	kernels.CheckLayerNorm(dst, stat, x, gamma, beta, eps)
	o := q.op("LayerNorm")
	d, s, m, ga, be := o.mat(dst), o.mat(stat), o.mat(x), o.mat(gamma), o.mat(beta)
	o.run(func(x *runner) error {
		if m.cols == 0 {
			return nil
		}
		return x.launch("dk_layer_norm", over(int64(m.rows), warpRows), d, s, m, ga.p, be.p, eps, int64(m.rows), int32(m.cols))
	})
}

// LayerNormBack implements kernels.Stream. The sums come first: dx may be dy.
func (q *queue) LayerNormBack(dx, dgamma, dbeta, dy, x, stat, gamma *kernels.Mat) {
	kernels.CheckLayerNormBack(dx, dgamma, dbeta, dy, x, stat, gamma)
	o := q.op("LayerNormBack")
	d, dga, dbe, g, m, s, ga := o.mat(dx), o.mat(dgamma), o.mat(dbeta), o.mat(dy), o.mat(x), o.mat(stat), o.mat(gamma)
	o.run(func(x *runner) error {
		if m.cols == 0 {
			return nil
		}
		rows, cols := int64(m.rows), int32(m.cols)
		if err := x.sumRows(dga, m.cols, 1, "dk_norm_gamma", m.rows, m.cols, g, m, s, rows, cols); err != nil {
			return err
		}
		if err := x.colSum(dbe, g); err != nil {
			return err
		}
		return x.launch("dk_layer_norm_back", over(rows, warpRows), d, g, m, s, ga.p, rows, cols)
	})
}

// ColAffine implements kernels.Stream.
func (q *queue) ColAffine(dst, x, y, a, b, d *kernels.Mat) {
	kernels.CheckColAffine(dst, x, y, a, b, d)
	o := q.op("ColAffine")
	out, l, r, fa, fb, fd := o.mat(dst), o.mat(x), o.mat(y), o.mat(a), o.mat(b), o.mat(d)
	o.run(func(x *runner) error {
		return x.each("dk_col_affine", out.rows, out.cols, out, l, r, fa.p, fb.p, fd.p, int64(out.rows), int32(out.cols), shiftOf(out.cols))
	})
}

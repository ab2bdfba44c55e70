package kernels

// CheckLayerNorm panics with a *ShapeError unless LayerNorm can run.
func CheckLayerNorm(dst, stat, x, gamma, beta *Mat, eps float32) {
	op := check("LayerNorm")
	op.mat("x", x)
	op.shape("dst", dst, x.Rows, x.Cols, "as x")
	op.shape("stat", stat, x.Rows, 2, "rows of x x 2")
	op.shape("gamma", gamma, 1, x.Cols, "1 x columns of x")
	op.shape("beta", beta, 1, x.Cols, "1 x columns of x")
	if !(eps >= 0) {
		op.failf("eps %v, want 0 or more", eps)
	}
	for _, o := range []*Mat{dst, stat} {
		op.apart(o, "x", x)
		op.apart(o, "gamma", gamma)
		op.apart(o, "beta", beta)
	}
	op.apart(dst, "stat", stat)
}

// CheckLayerNormBack panics with a *ShapeError unless LayerNormBack can run.
func CheckLayerNormBack(dx, dgamma, dbeta, dy, x, stat, gamma *Mat) {
	op := check("LayerNormBack")
	op.mat("x", x)
	op.shape("dx", dx, x.Rows, x.Cols, "as x")
	op.shape("dy", dy, x.Rows, x.Cols, "as x")
	op.shape("stat", stat, x.Rows, 2, "rows of x x 2")
	for _, m := range []operand{{"dgamma", dgamma}, {"dbeta", dbeta}, {"gamma", gamma}} {
		op.shape(m.name, m.Mat, 1, x.Cols, "1 x columns of x")
	}
	for _, o := range []*Mat{dx, dgamma, dbeta} {
		op.apart(o, "x", x)
		op.apart(o, "stat", stat)
		op.apart(o, "gamma", gamma)
	}
	op.apart(dgamma, "dy", dy)
	op.apart(dbeta, "dy", dy)
	op.apart(dgamma, "dbeta", dbeta)
}

// CheckColMoments panics with a *ShapeError unless ColMoments can run.
func CheckColMoments(dst, x *Mat) {
	op := check("ColMoments")
	op.mat("x", x)
	op.shape("dst", dst, 2, x.Cols, "2 x columns of x")
	op.apart(dst, "x", x)
}

// CheckColAffine panics with a *ShapeError unless ColAffine can run.
func CheckColAffine(dst, x, y, a, b, d *Mat) {
	op := check("ColAffine")
	op.mat("x", x)
	op.shape("dst", dst, x.Rows, x.Cols, "as x")
	for _, m := range []operand{{"a", a}, {"d", d}} {
		op.shape(m.name, m.Mat, 1, x.Cols, "1 x columns of x")
	}
	if (y == nil) != (b == nil) {
		op.failf("y and b go together: y is nil is %v, b is nil is %v", y == nil, b == nil)
	}
	if y != nil {
		op.shape("y", y, x.Rows, x.Cols, "as x")
		op.shape("b", b, 1, x.Cols, "1 x columns of x")
		op.apart(dst, "b", b)
	}
	op.apart(dst, "a", a)
	op.apart(dst, "d", d)
}

package cuda

import "dorylus/kernels"

// HeadDot implements kernels.Stream: up to a warp for a row and head.
func (q *queue) HeadDot(dst, x, a *kernels.Mat) {
	kernels.CheckHeadDot(dst, x, a)
	o := q.op("HeadDot")
	d, m, w := o.mat(dst), o.mat(x), o.mat(a)
	o.run(func(x *runner) error {
		shift := shiftOf(w.cols)
		blocks := over(int64(d.rows)*int64(w.rows), blockThreads>>shift)
		return x.launch("dk_head_dot", blocks, d, m, w, int64(d.rows), int32(w.rows), int32(w.cols), shift)
	})
}

// HeadOuterAdd implements kernels.Stream.
func (q *queue) HeadOuterAdd(dx, d, a *kernels.Mat) {
	kernels.CheckHeadOuterAdd(dx, d, a)
	o := q.op("HeadOuterAdd")
	out, g, w := o.mat(dx), o.mat(d), o.mat(a)
	o.run(func(x *runner) error {
		return x.each("dk_head_outer_add", out.rows, out.cols, out, g, w, int64(out.rows), int32(w.rows), int32(w.cols), shiftOf(out.cols))
	})
}

// HeadMean implements kernels.Stream.
func (q *queue) HeadMean(dst, x *kernels.Mat, heads int, ep *kernels.Epilogue) {
	kernels.CheckHeadMean(dst, x, heads, ep)
	o := q.op("HeadMean")
	d, m, e := o.mat(dst), o.mat(x), o.epilogue(ep, kernels.Span{Hi: dst.Rows})
	o.run(func(x *runner) error {
		return x.each("dk_head_mean", d.rows, d.cols, d, m, int64(d.rows), int32(heads), int32(d.cols), shiftOf(d.cols), e)
	})
}

// HeadSpread implements kernels.Stream.
func (q *queue) HeadSpread(dx, d *kernels.Mat, heads int) {
	kernels.CheckHeadSpread(dx, d, heads)
	o := q.op("HeadSpread")
	out, g := o.mat(dx), o.mat(d)
	o.run(func(x *runner) error {
		return x.each("dk_head_spread", g.rows, g.cols, out, g, int64(g.rows), int32(heads), int32(g.cols), shiftOf(g.cols))
	})
}

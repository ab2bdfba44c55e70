package kernels

// CheckSpMMMax panics with a *ShapeError unless SpMMMax can run.
func CheckSpMMMax(dst, arg *Mat, g Graph, x *Mat, rows Span) {
	op := check("SpMMMax")
	op.graph(g)
	op.mat("x", x)
	op.shape("x", x, g.Cols(), x.Cols, "columns of the graph")
	op.shape("dst", dst, g.Rows(), x.Cols, "rows of the graph x columns of x")
	op.span(rows, g.Rows())
	op.apart(dst, "x", x)
	if arg != nil {
		op.shape("arg", arg, dst.Rows, dst.Cols, "as dst")
		op.apart(dst, "arg", arg)
		op.apart(arg, "x", x)
	}
}

// CheckSpMMMaxBack panics with a *ShapeError unless SpMMMaxBack can run. It does
// not read arg: values that name no row are passed over.
func CheckSpMMMaxBack(dx *Mat, back Graph, dy, arg *Mat, rows Span) {
	op := check("SpMMMaxBack")
	op.graph(back)
	op.mat("dy", dy)
	op.shape("dy", dy, back.Cols(), dy.Cols, "columns of the transpose")
	op.shape("arg", arg, dy.Rows, dy.Cols, "as dy")
	op.shape("dx", dx, back.Rows(), dy.Cols, "rows of the transpose x columns of dy")
	op.span(rows, back.Rows())
	op.apart(dx, "dy", dy)
	op.apart(dx, "arg", arg)
}

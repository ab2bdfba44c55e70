package kernels

import "math"

// CheckGAT panics with a *ShapeError unless GAT can run. It reads Self.Col within
// rows.
func CheckGAT(dst, lse *Mat, g Graph, x, as, ad *Mat, p Attention, ep *Epilogue, rows Span) {
	op := check("GAT")
	op.graph(g)
	op.mat("x", x)
	op.shape("x", x, g.Cols(), x.Cols, "columns of the graph")
	op.attention(p, x, g.Cols(), g.Rows())
	op.shape("dst", dst, g.Rows(), x.Cols, "rows of the graph x columns of x")
	op.shape("lse", lse, g.Rows(), p.Heads, "rows of the graph x heads")
	op.shape("as", as, g.Cols(), p.Heads, "columns of the graph x heads")
	op.shape("ad", ad, g.Rows(), p.Heads, "rows of the graph x heads")
	op.outputs(g, p, rows, [2]*Mat{dst, lse}, []operand{{"x", x}, {"as", as}, {"ad", ad}})
	op.epilogue(ep, dst.Rows, dst.Cols)
}

// CheckGATBackDst panics with a *ShapeError unless GATBackDst can run. It reads
// Self.Col within rows.
func CheckGATBackDst(dad, dot *Mat, g Graph, x, as, ad, lse, dy *Mat, p Attention, rows Span) {
	op := check("GATBackDst")
	op.graph(g)
	op.mat("x", x)
	op.shape("x", x, g.Cols(), x.Cols, "columns of the graph")
	op.attention(p, x, g.Cols(), g.Rows())
	for _, m := range []operand{{"dad", dad}, {"dot", dot}, {"ad", ad}, {"lse", lse}} {
		op.shape(m.name, m.Mat, g.Rows(), p.Heads, "rows of the graph x heads")
	}
	op.shape("as", as, g.Cols(), p.Heads, "columns of the graph x heads")
	op.shape("dy", dy, g.Rows(), x.Cols, "rows of the graph x columns of x")
	op.outputs(g, p, rows, [2]*Mat{dad, dot}, []operand{{"x", x}, {"as", as}, {"ad", ad}, {"lse", lse}, {"dy", dy}})
}

// CheckGATBackSrc panics with a *ShapeError unless GATBackSrc can run. It reads
// Self.Col within rows.
func CheckGATBackSrc(dx, das *Mat, back Graph, x, as, ad, lse, dot, dy *Mat, p Attention, rows Span) {
	op := check("GATBackSrc")
	op.graph(back)
	op.mat("x", x)
	op.shape("x", x, back.Rows(), x.Cols, "rows of the transpose")
	op.attention(p, x, back.Rows(), back.Cols())
	op.shape("dx", dx, x.Rows, x.Cols, "as x")
	for _, m := range []operand{{"das", das}, {"as", as}} {
		op.shape(m.name, m.Mat, back.Rows(), p.Heads, "rows of the transpose x heads")
	}
	for _, m := range []operand{{"ad", ad}, {"lse", lse}, {"dot", dot}} {
		op.shape(m.name, m.Mat, back.Cols(), p.Heads, "columns of the transpose x heads")
	}
	op.shape("dy", dy, back.Cols(), x.Cols, "columns of the transpose x columns of x")
	op.outputs(back, p, rows, [2]*Mat{dx, das}, []operand{{"x", x}, {"as", as}, {"ad", ad}, {"lse", lse}, {"dot", dot}, {"dy", dy}})
}

// An operand is a matrix with the name that messages give it.
type operand struct {
	name string
	*Mat
}

// attention checks p for rows of x between nsrc sources and ndst destinations.
func (op check) attention(p Attention, x *Mat, nsrc, ndst int) {
	switch {
	case p.Heads < 1:
		op.failf("%d heads, want at least 1", p.Heads)
	case x.Cols == 0 || x.Cols%p.Heads != 0:
		op.failf("x has %d columns for %d heads, want the same number for each head and at least 1", x.Cols, p.Heads)
	case !(p.Slope >= 0 && p.Slope <= 1):
		op.failf("slope %v, want 0 <= slope <= 1", p.Slope)
	case !(p.Drop.P >= 0 && p.Drop.P < 1):
		op.failf("dropout probability %v, want 0 <= P < 1", p.Drop.P)
	case p.SrcIDs != nil && len(p.SrcIDs) != nsrc:
		op.failf("%d SrcIDs, want %d (sources)", len(p.SrcIDs), nsrc)
	case p.DstIDs != nil && len(p.DstIDs) != ndst:
		op.failf("%d DstIDs, want %d (destinations)", len(p.DstIDs), ndst)
	case nsrc > math.MaxInt32 || ndst > math.MaxInt32:
		op.failf("%d sources and %d destinations: row ids are 32-bit", nsrc, ndst)
	}
}

// outputs checks the span, the self term, and that the outputs lie apart from the
// inputs and from each other.
func (op check) outputs(g Graph, p Attention, rows Span, out [2]*Mat, in []operand) {
	op.span(rows, g.Rows())
	if p.Self.On {
		op.self(p.Self, g, rows)
	}
	for _, o := range out {
		for _, m := range in {
			op.apart(o, m.name, m.Mat)
		}
	}
	op.apart(out[0], "the other output", out[1])
}

// CheckHeadDot panics with a *ShapeError unless HeadDot can run.
func CheckHeadDot(dst, x, a *Mat) {
	op := check("HeadDot")
	op.heads("x", x, "dst", dst, a)
	op.apart(dst, "x", x)
	op.apart(dst, "a", a)
}

// CheckHeadOuterAdd panics with a *ShapeError unless HeadOuterAdd can run.
func CheckHeadOuterAdd(dx, d, a *Mat) {
	op := check("HeadOuterAdd")
	op.heads("dx", dx, "d", d, a)
	op.apart(dx, "d", d)
	op.apart(dx, "a", a)
}

// CheckHeadDotGrad panics with a *ShapeError unless HeadDotGrad can run.
func CheckHeadDotGrad(da, d, x *Mat) {
	op := check("HeadDotGrad")
	op.heads("x", x, "d", d, da)
	op.apart(da, "d", d)
	op.apart(da, "x", x)
}

// heads checks a wide matrix of a column per value of a (heads x D), and one of a
// column per head.
func (op check) heads(wideName string, wide *Mat, name string, perHead, a *Mat) {
	op.mat("a", a)
	op.mat(wideName, wide)
	op.shape(wideName, wide, wide.Rows, a.Rows*a.Cols, "one column per value of a")
	op.shape(name, perHead, wide.Rows, a.Rows, "one per row and row of a")
}

// CheckHeadMean panics with a *ShapeError unless HeadMean can run.
func CheckHeadMean(dst, x *Mat, heads int, ep *Epilogue) {
	op := check("HeadMean")
	op.mat("dst", dst)
	op.perHead("x", x, dst, heads)
	op.apart(dst, "x", x)
	op.epilogue(ep, dst.Rows, dst.Cols)
}

// CheckHeadSpread panics with a *ShapeError unless HeadSpread can run.
func CheckHeadSpread(dx, d *Mat, heads int) {
	op := check("HeadSpread")
	op.mat("d", d)
	op.perHead("dx", dx, d, heads)
	op.apart(dx, "d", d)
}

func (op check) perHead(name string, wide, one *Mat, heads int) {
	if heads < 1 || heads > math.MaxInt32 {
		op.failf("%d heads, want at least 1", heads)
	}
	op.shape(name, wide, one.Rows, heads*one.Cols, "heads x columns")
}

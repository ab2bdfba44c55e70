package kernels

import "math"

// CheckPut panics with a *ShapeError unless Put can run.
func CheckPut(dst *Mat, src []float32) {
	op := check("Put")
	op.mat("dst", dst)
	op.packed("src", len(src), dst)
}

// CheckGet panics with a *ShapeError unless Get can run.
func CheckGet(dst []float32, src *Mat) {
	op := check("Get")
	op.mat("src", src)
	op.packed("dst", len(dst), src)
}

// CheckCopy panics with a *ShapeError unless Copy can run.
func CheckCopy(dst, src *Mat) {
	op := check("Copy")
	op.mat("dst", dst)
	op.shape("src", src, dst.Rows, dst.Cols, "as dst")
}

// CheckZero panics with a *ShapeError unless Zero can run.
func CheckZero(dst *Mat) { check("Zero").mat("dst", dst) }

// CheckGEMM panics with a *ShapeError unless GEMM can run. Sizes and strides must
// fit 32 bits, as BLAS wants.
func CheckGEMM(dst, a, b *Mat, t Trans, ep *Epilogue) { check("GEMM").product(dst, a, b, t, ep) }

// CheckAddGEMM panics with a *ShapeError unless AddGEMM can run.
func CheckAddGEMM(dst, a, b *Mat, t Trans, ep *Epilogue) { check("AddGEMM").product(dst, a, b, t, ep) }

func (op check) product(dst, a, b *Mat, t Trans, ep *Epilogue) {
	op.mat("a", a)
	op.mat("b", b)
	switch t {
	case NN:
		op.gemm(dst, a, b, a.Rows, a.Cols, b.Rows, b.Cols, "a·b")
	case NT:
		op.gemm(dst, a, b, a.Rows, a.Cols, b.Cols, b.Rows, "a·bᵀ")
	case TN:
		op.gemm(dst, a, b, a.Cols, a.Rows, b.Rows, b.Cols, "aᵀ·b")
	default:
		op.failf("transposition %d, want NN, NT or TN", t)
	}
	op.epilogue(ep, dst.Rows, dst.Cols)
}

func (op check) gemm(dst, a, b *Mat, m, ka, kb, n int, product string) {
	if ka != kb {
		op.failf("%s of a %d x %d and b %d x %d: inner sizes %d and %d differ", product, a.Rows, a.Cols, b.Rows, b.Cols, ka, kb)
	}
	op.shape("dst", dst, m, n, product)
	op.apart(dst, "a", a)
	op.apart(dst, "b", b)
	for _, x := range []*Mat{dst, a, b} {
		if x.Rows > math.MaxInt32 || x.Cols > math.MaxInt32 || x.Stride > math.MaxInt32 {
			op.failf("%s with a matrix of %d x %d, stride %d: sizes must be below 2³¹", product, x.Rows, x.Cols, x.Stride)
		}
	}
}

// CheckSpMM panics with a *ShapeError unless SpMM can run. It reads Self.Col
// within rows.
func CheckSpMM(dst *Mat, g Graph, x *Mat, ga Gather, rows Span) {
	op := check("SpMM")
	op.graph(g)
	op.mat("x", x)
	op.shape("x", x, g.Cols(), x.Cols, "columns of the graph")
	op.shape("dst", dst, g.Rows(), x.Cols, "rows of the graph x columns of x")
	op.span(rows, g.Rows())
	op.apart(dst, "x", x)
	op.weights(ga.W, g)
	if ga.Scale.Row != nil {
		op.column("the row scale", ga.Scale.Row, g.Rows(), "rows of the graph")
	}
	if ga.Scale.Col != nil {
		op.column("the column scale", ga.Scale.Col, g.Cols(), "columns of the graph")
	}
	if ga.Self.On {
		op.self(ga.Self, g, rows)
	}
	op.epilogue(ga.Ep, dst.Rows, dst.Cols)
}

func (op check) self(s Self, g Graph, rows Span) {
	if s.W != nil {
		op.column("the self weight", s.W, g.Rows(), "rows of the graph")
	}
	if s.Col == nil {
		if rows.Hi > g.Cols() {
			op.failf("rows [%d,%d) are not all among the %d columns of the graph: the self term needs Self.Col", rows.Lo, rows.Hi, g.Cols())
		}
		return
	}
	if len(s.Col) != g.Rows() {
		op.failf("Self.Col has %d entries, want %d (rows of the graph)", len(s.Col), g.Rows())
	}
	for v := rows.Lo; v < rows.Hi; v++ {
		if c := s.Col[v]; c < -1 || int(c) >= g.Cols() {
			op.failf("Self.Col[%d] is %d, want -1 or a column in [0,%d)", v, c, g.Cols())
		}
	}
}

// CheckSpMMT panics with a *ShapeError unless SpMMT can run.
func CheckSpMMT(dst *Mat, g Graph, w, x *Mat, rows Span) {
	op := check("SpMMT")
	op.graph(g)
	op.mat("x", x)
	op.shape("x", x, g.Rows(), x.Cols, "rows of the graph")
	op.shape("dst", dst, g.Cols(), x.Cols, "columns of the graph x columns of x")
	op.span(rows, g.Rows())
	op.apart(dst, "x", x)
	op.weights(w, g)
}

// CheckSDDMM panics with a *ShapeError unless SDDMM can run.
func CheckSDDMM(dst *Mat, g Graph, x, y *Mat, rows Span) {
	op := check("SDDMM")
	op.graph(g)
	op.mat("x", x)
	op.shape("x", x, g.Cols(), x.Cols, "columns of the graph")
	op.shape("y", y, g.Rows(), x.Cols, "rows of the graph x columns of x")
	op.column("dst", dst, g.Edges(), "one value per edge")
	op.span(rows, g.Rows())
	op.apart(dst, "x", x)
	op.apart(dst, "y", y)
}

// CheckEdgeDropout panics with a *ShapeError unless EdgeDropout can run.
func CheckEdgeDropout(dst *Mat, g Graph, d Dropout, rows Span) {
	op := check("EdgeDropout")
	op.graph(g)
	op.column("dst", dst, g.Edges(), "one value per edge")
	op.span(rows, g.Rows())
	op.dropout(d, g.Rows(), g.Cols())
}

// CheckForward panics with a *ShapeError unless Forward can run.
func CheckForward(dst, x *Mat, ep *Epilogue, rows Span) {
	op := check("Forward")
	op.mat("dst", dst)
	op.shape("x", x, dst.Rows, dst.Cols, "as dst")
	op.span(rows, dst.Rows)
	op.epilogue(ep, dst.Rows, dst.Cols)
}

// CheckBackward panics with a *ShapeError unless Backward can run.
func CheckBackward(dx, dy, y *Mat, ep *Epilogue, rows Span) {
	op := check("Backward")
	op.mat("dx", dx)
	op.shape("dy", dy, dx.Rows, dx.Cols, "as dx")
	op.shape("y", y, dx.Rows, dx.Cols, "as dx")
	op.span(rows, dx.Rows)
	op.epilogue(ep, dx.Rows, dx.Cols)
	op.apart(dx, "y", y)
}

// CheckColSum panics with a *ShapeError unless ColSum can run.
func CheckColSum(dst, x *Mat, rows Span) {
	op := check("ColSum")
	op.mat("x", x)
	op.shape("dst", dst, 1, x.Cols, "1 x columns of x")
	op.span(rows, x.Rows)
	op.apart(dst, "x", x)
}

// CheckSoftmaxXent panics with a *ShapeError unless SoftmaxXent can run. It reads
// the labels within rows.
func CheckSoftmaxXent(grad *Mat, loss []float64, logits *Mat, labels []int32, classW *Mat, scale float32, rows Span) {
	op := check("SoftmaxXent")
	op.mat("logits", logits)
	if grad != nil {
		op.shape("grad", grad, logits.Rows, logits.Cols, "as logits")
	}
	if len(loss) < 1 {
		op.failf("loss has no element to set")
	}
	if len(labels) != logits.Rows {
		op.failf("%d labels, want %d (rows of logits)", len(labels), logits.Rows)
	}
	if classW != nil {
		op.shape("classW", classW, 1, logits.Cols, "1 x classes")
	}
	op.span(rows, logits.Rows)
	for r := rows.Lo; r < rows.Hi; r++ {
		if int(labels[r]) >= logits.Cols {
			op.failf("labels[%d] is %d, want a class below %d", r, labels[r], logits.Cols)
		}
	}
}

// CheckAdd panics with a *ShapeError unless Add can run.
func CheckAdd(dst, a, b *Mat) {
	op := check("Add")
	op.mat("dst", dst)
	op.shape("a", a, dst.Rows, dst.Cols, "as dst")
	op.shape("b", b, dst.Rows, dst.Cols, "as dst")
}

// CheckAdam panics with a *ShapeError unless Adam can run.
func CheckAdam(p, g, m, v *Mat, h Adam) {
	op := check("Adam")
	op.mat("p", p)
	op.shape("g", g, p.Rows, p.Cols, "as p")
	op.shape("m", m, p.Rows, p.Cols, "as p")
	op.shape("v", v, p.Rows, p.Cols, "as p")
	op.apart(p, "g", g)
	op.apart(p, "m", m)
	op.apart(p, "v", v)
	op.apart(m, "g", g)
	op.apart(m, "v", v)
	op.apart(v, "g", g)
	if h.Step < 1 {
		op.failf("step %d, want 1 for the first", h.Step)
	}
	if !(h.Beta1 >= 0 && h.Beta1 < 1) || !(h.Beta2 >= 0 && h.Beta2 < 1) {
		op.failf("betas %v and %v, want 0 <= beta < 1", h.Beta1, h.Beta2)
	}
}

// CheckSGD panics with a *ShapeError unless SGD can run.
func CheckSGD(p, g, m *Mat, h SGD) {
	op := check("SGD")
	op.mat("p", p)
	op.shape("g", g, p.Rows, p.Cols, "as p")
	op.apart(p, "g", g)
	if m != nil {
		op.shape("m", m, p.Rows, p.Cols, "as p")
		op.apart(p, "m", m)
		op.apart(m, "g", g)
	} else if h.Momentum != 0 {
		op.failf("momentum %v without a momentum buffer", h.Momentum)
	}
	if h.Step < 1 {
		op.failf("step %d, want 1 for the first", h.Step)
	}
}

// CheckGatherRows panics with a *ShapeError unless GatherRows can run. It reads
// ids.
func CheckGatherRows(dst, src *Mat, ids []int32) {
	op := check("GatherRows")
	op.mat("src", src)
	op.shape("dst", dst, len(ids), src.Cols, "ids x columns of src")
	op.apart(dst, "src", src)
	op.ids(ids, src.Rows)
}

// CheckScatterRows panics with a *ShapeError unless ScatterRows can run. It reads
// ids, but does not look for repeats.
func CheckScatterRows(dst, src *Mat, ids []int32) {
	op := check("ScatterRows")
	op.mat("dst", dst)
	op.shape("src", src, len(ids), dst.Cols, "ids x columns of dst")
	op.apart(dst, "src", src)
	op.ids(ids, dst.Rows)
}

// CheckToBF16 panics with a *ShapeError unless ToBF16 can run.
func CheckToBF16(dst []uint16, src *Mat) {
	op := check("ToBF16")
	op.mat("src", src)
	op.packed("dst", len(dst), src)
}

// CheckFromBF16 panics with a *ShapeError unless FromBF16 can run.
func CheckFromBF16(dst *Mat, src []uint16) {
	op := check("FromBF16")
	op.mat("dst", dst)
	op.packed("src", len(src), dst)
}

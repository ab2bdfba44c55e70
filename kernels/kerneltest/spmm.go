package kerneltest

import (
	"math"

	"dorylus/kernels"
)

func spmmCases() []Case {
	var cases []Case
	cases = append(cases, byWidth("SpMM", spmm)...)
	cases = append(cases, byWidth("SpMM/crowd", spmmCrowd)...)
	cases = append(cases, byWidth("SpMM/spans", spmmSpans)...)
	return append(cases,
		Case{"SpMM/epilogue", spmmEpilogue},
		Case{"SpMM/special", spmmSpecial},
		Case{"SpMM/empty", spmmEmpty},
		Case{"SpMM/large source", spmmLarge},
	)
}

// gather is one SpMM to compare. The flags say which parts it has.
type gather struct {
	rows, cols, width      int
	degree                 int   // of a row; 0: that of toy
	degrees                []int // of each row; nil: degree
	span                   kernels.Span
	val, w, rs, cs         bool
	self, selfCol, selfW   bool
	exact                  bool
	ep                     *kernels.Epilogue
	bias                   bool
	fill                   func(r, c int) float32 // of x; nil: random
	scaleFill, weightsFill func(r, c int) float32
}

// operands makes the operands of p in t, and the dumb sum over them.
func (p gather) operands(t *trial) (g kernels.Graph, x *array, ga kernels.Gather, want *gathered) {
	csr := toy(t.rng, p.rows, p.cols, p.val)
	if p.degree > 0 {
		csr = crowd(t.rng, p.rows, p.cols, p.degree, p.val)
	}
	if p.degrees != nil {
		csr = uneven(t.rng, p.cols, p.val, p.degrees)
	}
	hold(t, "RowPtr", csr.RowPtr)
	hold(t, "Col", csr.Col)
	hold(t, "Val", csr.Val)
	g = t.load(csr)
	fill, scale, weights := p.fill, p.scaleFill, p.weightsFill
	if fill == nil {
		fill = random(t.rng, p.exact)
	}
	if scale == nil {
		scale = positive(t.rng, p.exact)
	}
	if weights == nil {
		weights = random(t.rng, p.exact)
	}
	x = t.in("x", p.cols, p.width, fill)
	want = &gathered{g: csr, x: x, exact: p.exact}
	if p.rs {
		want.rs = t.col("row scale", p.rows, scale)
		ga.Scale.Row = want.rs.view
	}
	if p.cs {
		want.cs = t.col("column scale", p.cols, scale)
		ga.Scale.Col = want.cs.view
	}
	if p.w {
		want.w = t.col("w", len(csr.Col), weights)
		ga.W = want.w.view
	}
	ga.Self.On = p.self
	if p.selfCol {
		ga.Self.Col = hold(t, "Self.Col", selfCols(t.rng, p.rows, p.cols))
	}
	if p.selfW {
		want.selfW = t.col("self weight", p.rows, weights)
		ga.Self.W = want.selfW.view
	}
	want.self = ga.Self
	return g, x, ga, want
}

// try runs p and compares it element by element.
func (p gather) try(l *lab, lay layout) {
	defer l.release()
	t := l.trial(lay, "SpMM of rows [%d,%d) of %d x %d, width %d, val %v w %v rs %v cs %v, self %v (map %v, weight %v), exact %v, %s, bias %v",
		p.span.Lo, p.span.Hi, p.rows, p.cols, p.width, p.val, p.w, p.rs, p.cs, p.self, p.selfCol, p.selfW, p.exact, describe(p.ep), p.bias)
	g, x, ga, want := p.operands(t)
	ep, bias := t.bias(p.ep, p.bias, p.width, p.exact)
	ga.Ep = ep
	dst := t.result("dst", p.rows, p.width)
	t.run(func(s kernels.Stream) { s.SpMM(dst.view, g, x.view, ga, p.span) })
	// besides the sum: one product for the weight, one for the column scale, one
	// for the row scale, one for their scalar
	t.check(dst, p.span, func(v, c int) value { return epilogue(want.want(v, c), 4, ep, bias, v, c) })
}

// spmm: every combination of values, weights, scales and self terms, on exact
// operands, where a single wrong edge in a hub shows, and on random ones.
func spmm(l *lab, width int) {
	const rows, cols = 30, 23
	n := 0
	for flags := range 1 << 6 {
		on := func(i int) bool { return flags>>i&1 == 1 }
		p := gather{rows: rows, cols: cols, width: width, span: kernels.Span{Lo: 2, Hi: 28},
			val: on(0), w: on(1), rs: on(2), cs: on(3), self: on(4), selfCol: on(4), selfW: on(4) && on(5), exact: n%4 != 3}
		if on(5) && !on(4) {
			continue // a self weight without a self term is no other case
		}
		if width > 100 && n%5 != 0 {
			n++
			continue
		}
		p.try(l, layouts[n%len(layouts)])
		n++
	}
	// A square graph, whose rows are their own sources.
	for _, exact := range []bool{true, false} {
		p := gather{rows: rows, cols: rows, width: width, span: kernels.Span{Hi: rows}, rs: true, cs: true, self: true, exact: exact}
		p.try(l, layouts[2])
	}
}

// spmmEpilogue: bias, activation and dropout fused into the gather.
func spmmEpilogue(l *lab) {
	const rows = 25
	for i, ep := range epilogues(l, rows) {
		p := gather{rows: rows, cols: 31, width: []int{7, 16, 41}[i%3], span: kernels.Span{Lo: 1, Hi: rows}, rs: i%2 == 0, cs: true, self: i%4 < 2, selfCol: i%4 < 2, ep: ep, bias: i%2 == 1}
		p.try(l, layouts[i%len(layouts)])
	}
}

// spmmSpecial: one NaN or Inf in a source reaches exactly the rows that gather
// it, in its column; a weight or scale of 0 does not hide it; rows without terms
// are 0 even if their scale is Inf.
func spmmSpecial(l *lab) {
	for i, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
		row, col := l.rng.IntN(23), l.rng.IntN(17)
		zero := func(r, _ int) float32 { return float32(r % 2) }
		p := gather{rows: 30, cols: 23, width: 17, span: kernels.Span{Hi: 30}, w: i == 0, cs: true, scaleFill: zero, weightsFill: zero,
			fill: func(r, c int) float32 {
				if r == row && c == col {
					return bad
				}
				return float32(l.rng.IntN(5) + 1)
			}}
		p.try(l, layouts[i])
		inf := func(r, _ int) float32 {
			if r%5 == 0 {
				return float32(math.Inf(1))
			}
			return 1
		}
		q := gather{rows: 30, cols: 23, width: 17, span: kernels.Span{Hi: 30}, rs: true, scaleFill: inf, self: i == 1, selfCol: i == 1}
		q.try(l, layouts[i])
	}
}

// spmmEmpty: no edges, no columns, no rows, an empty span.
func spmmEmpty(l *lab) {
	for _, p := range []gather{
		{rows: 6, cols: 0, width: 9, span: kernels.Span{Hi: 6}, rs: true},
		{rows: 1, cols: 5, width: 9, span: kernels.Span{Hi: 1}, rs: true, w: true},
		{rows: 0, cols: 0, width: 9},
		{rows: 0, cols: 4, width: 9, cs: true},
		{rows: 9, cols: 7, width: 0, span: kernels.Span{Hi: 9}, rs: true},
		{rows: 9, cols: 7, width: 5, span: kernels.Span{Lo: 4, Hi: 4}, rs: true},
		{rows: 9, cols: 7, width: 5, span: kernels.Span{Lo: 9, Hi: 9}},
		{rows: 6, cols: 0, width: 9, span: kernels.Span{Hi: 6}, ep: &kernels.Epilogue{Act: kernels.ReLU, Drop: kernels.Dropout{P: 0.5, Key: 3}}, bias: true},
	} {
		for _, lay := range layouts {
			p.try(l, lay)
		}
	}
}

// spmmLarge: sources that caches do not hold, gathered several times each, so that
// kernels which go through them in tiles do so.
func spmmLarge(l *lab) {
	const cols = 1<<17 + 7
	p := gather{rows: 1500, cols: cols, width: 9, degree: 450, span: kernels.Span{Hi: 1500}, rs: true, self: true, selfCol: true}
	k := l.rng.Uint32()
	p.fill = func(r, c int) float32 { // cheaper than a generator for a million values
		k = k*1664525 + 1013904223
		return float32(int32(k)) / (1 << 31)
	}
	p.try(l, layouts[0])
}

// spmmCrowd: many edges in a row and many per source, on exact and random
// operands. In pieces, where a kernel may go another way through the edges than
// in one call, the bits are the same.
func spmmCrowd(l *lab, width int) {
	const rows, cols = 40, 120
	ep := &kernels.Epilogue{Act: kernels.ReLU, Drop: kernels.Dropout{P: 0.5, Key: 11}}
	for i, lay := range layouts {
		if width > 100 && i != 2 {
			continue // the formulas take their time
		}
		p := gather{rows: rows, cols: cols, width: width, degree: 70, span: kernels.Span{Lo: 1, Hi: rows}, val: i == 1, w: i == 2, rs: i != 1, cs: i != 2, self: i > 0, selfCol: i > 0, exact: true, ep: ep, bias: i == 0}
		p.try(l, lay)
		p.exact = false
		p.try(l, lay)
		l.inPieces(lay, p)
	}
}

// spmmSpans: a row's bits do not depend on the span that it is computed in.
func spmmSpans(l *lab, width int) {
	ep := &kernels.Epilogue{Act: kernels.ELU, Drop: kernels.Dropout{P: 0.4, Key: 9}}
	for i, lay := range layouts {
		l.inPieces(lay, gather{rows: 60, cols: 41, width: width, val: i == 1, w: i == 2, rs: true, cs: i > 0, self: true, selfCol: true, selfW: i == 0, ep: ep})
	}
}

// inPieces compares p over all rows with p span by span.
func (l *lab) inPieces(lay layout, p gather) {
	defer l.release()
	t := l.trial(lay, "SpMM in pieces, width %d", p.width)
	g, x, ga, _ := p.operands(t)
	ga.Ep = p.ep
	whole, parts := t.result("whole", p.rows, p.width), t.result("parts", p.rows, p.width)
	t.onePass(whole, parts, p.rows, func(s kernels.Stream, dst *kernels.Mat, r kernels.Span) {
		s.SpMM(dst, g, x.view, ga, r)
	})
}

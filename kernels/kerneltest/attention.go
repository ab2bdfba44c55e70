package kerneltest

import (
	"fmt"
	"math"

	"dorylus/kernels"
)

// headSizes are heads x columns per head: each count with each width of a head,
// and sizes that no vector divides or one call's registers hold.
var headSizes = [][2]int{
	{1, 1}, {1, 4}, {1, 8}, {1, 41}, {2, 1}, {2, 4}, {2, 8}, {2, 41}, {4, 1}, {4, 4}, {4, 8}, {4, 41}, {8, 1}, {8, 4}, {8, 8}, {8, 41},
	{3, 7}, {5, 16}, {20, 2}, {2, 100}, {1, 602}, {37, 1},
}

func attentionCases() []Case {
	var cases []Case
	for _, s := range headSizes {
		cases = append(cases, Case{fmt.Sprintf("GAT/%dx%d", s[0], s[1]), func(l *lab) { gat(l, s[0], s[1]) }})
	}
	for _, s := range [][2]int{{8, 8}, {1, 41}, {3, 7}, {2, 100}} {
		cases = append(cases, Case{fmt.Sprintf("GAT/spans/%dx%d", s[0], s[1]), func(l *lab) { gatSpans(l, s[0], s[1]) }})
	}
	return append(cases,
		Case{"GAT/epilogue", gatEpilogue}, Case{"GAT/scores", gatScores}, Case{"GAT/special", gatSpecial},
		Case{"GAT/empty", gatEmpty}, Case{"GAT/dropout", gatDropout}, Case{"GAT/columns", gatColumns})
}

// attend is one attention layer to compare. The flags say which parts it has.
type attend struct {
	rows, cols, heads, d int
	degree               int   // of a row; 0: that of toy
	degrees              []int // of each row; nil: degree
	span                 kernels.Span
	val                  bool
	self, selfCol, selfW bool
	p                    float32 // of dropout
	ids                  bool
	slope                float32
	ep                   *kernels.Epilogue
	bias                 bool
	scores               func(r, c int) float32 // of as and ad; nil: in (-2,2)
	fill                 func(r, c int) float32 // of x; nil: random
	mute                 func(other int) bool   // edges to it weigh 0, and its rows are NaN; needs val
}

func (p attend) String() string {
	return fmt.Sprintf("rows [%d,%d) of %d x %d, %d heads of %d, val %v, self %v (map %v, weight %v), dropout %v (ids %v), slope %v, %s",
		p.span.Lo, p.span.Hi, p.rows, p.cols, p.heads, p.d, p.val, p.self, p.selfCol, p.selfW, p.p, p.ids, p.slope, describe(p.ep))
}

// layer is the operands of p and the dumb formulas over them. Rows are those of
// csr; turned is a gather along the transpose, whose rows are sources.
type layer struct {
	attend
	csr       *kernels.CSR
	g         kernels.Graph
	at        kernels.Attention
	selfW     *array
	x, as, ad *array
	turned    bool
	last      struct { // what edges gave last: columns of a head share it
		r, h       int
		list       []edge
		top, total float64 // the largest score, and the sum of edge.p
	}
}

func (p attend) muted(other int) bool { return p.mute != nil && p.mute(other) }

// spoil is fill, but v in the rows that are mute.
func (p attend) spoil(fill func(r, c int) float32, v float64) func(r, c int) float32 {
	return func(r, c int) float32 {
		if p.muted(r) {
			return float32(v)
		}
		return fill(r, c)
	}
}

// operands makes what forward and backward read.
func (p attend) operands(t *trial, turned bool) *layer {
	csr := toy(t.rng, p.rows, p.cols, p.val)
	if p.degree > 0 {
		csr = crowd(t.rng, p.rows, p.cols, p.degree, p.val)
	}
	if p.degrees != nil {
		csr = uneven(t.rng, p.cols, p.val, p.degrees)
	}
	for e, w := range csr.Val { // of -3 to 3: 0, 0.5, 1 and 1.5
		csr.Val[e] = float32(math.Abs(float64(w))) / 2
		if p.muted(int(csr.Col[e])) {
			csr.Val[e] = 0
		}
	}
	hold(t, "RowPtr", csr.RowPtr)
	hold(t, "Col", csr.Col)
	hold(t, "Val", csr.Val)
	l := &layer{attend: p, csr: csr, g: t.load(csr), turned: turned}
	if l.fill == nil {
		l.fill = random(t.rng, false)
	}
	if p.mute != nil && !turned {
		l.fill = p.spoil(l.fill, math.NaN())
	}
	if l.scores == nil {
		l.scores = func(int, int) float32 { return 4*t.rng.Float32() - 2 }
	}
	nsrc, ndst := p.cols, p.rows
	if turned {
		nsrc, ndst = ndst, nsrc
	}
	l.x = t.in("x", nsrc, p.heads*p.d, l.fill)
	l.as, l.ad = t.in("as", nsrc, p.heads, l.scores), t.in("ad", ndst, p.heads, l.scores)
	l.at = kernels.Attention{Heads: p.heads, Slope: p.slope, Drop: kernels.Dropout{P: p.p, Key: kernels.DropKey(t.seed, p.heads, p.d)}}
	if p.ids {
		l.at.SrcIDs, l.at.DstIDs = hold(t, "SrcIDs", scattered(t.rng, nsrc)), hold(t, "DstIDs", scattered(t.rng, ndst))
	}
	l.at.Self.On = p.self
	if p.selfCol {
		l.at.Self.Col = hold(t, "Self.Col", selfCols(t.rng, p.rows, p.cols))
	}
	if p.selfW {
		l.selfW = t.col("self weight", p.rows, func(r, _ int) float32 { return float32(r%4) / 2 })
		l.at.Self.W = l.selfW.view
	}
	return l
}

// An edge is one term of a row for one head.
type edge struct {
	u, v    int
	w, s    float64
	slope   float64 // of s
	keep    float64 // 0, or 1/(1-P)
	rounded float64 // relative error of exp(s - shift), without that of the shift
	p       float64 // w·exp(s - the largest s of the list)
}

// edges lists the terms of row r for head h, until it is called for others.
func (l *layer) edges(r, h int) []edge {
	if l.last.list != nil && l.last.r == r && l.last.h == h {
		return l.last.list
	}
	list := l.last.list[:0]
	add := func(other int, w float64) {
		if w == 0 {
			return
		}
		e := edge{u: other, v: r, w: w, slope: 1, keep: 1}
		if l.turned {
			e.u, e.v = r, other
		}
		z := l.as.val(e.u, h) + l.ad.val(e.v, h)
		if !(z > 0) {
			e.slope = float64(l.slope)
		}
		e.s = z * e.slope
		e.rounded = u * (10 + 3*math.Abs(z))
		if l.p > 0 {
			e.keep = 0
			row := kernels.DropRow(l.at.Drop.Key, id(l.at.DstIDs, e.v))
			if kernels.DropKeep(row, uint32(id(l.at.SrcIDs, e.u))*uint32(l.heads)+uint32(h), l.at.Drop.Threshold()) {
				e.keep = float64(l.at.Drop.KeepScale())
			}
		}
		list = append(list, e)
	}
	if l.self {
		at := r
		if l.selfCol {
			at = int(l.at.Self.Col[r])
		}
		if at >= 0 {
			add(at, one(l.selfW, r))
		}
	}
	for e := l.csr.RowPtr[r]; e < l.csr.RowPtr[r+1]; e++ {
		w := 1.0
		if l.csr.Val != nil {
			w = float64(l.csr.Val[e])
		}
		add(int(l.csr.Col[e]), w)
	}
	l.last.r, l.last.h, l.last.list = r, h, list
	l.last.top, l.last.total = top(list), 0
	for i := range list {
		e := &list[i]
		e.p = e.w * math.Exp(e.s-l.last.top)
		l.last.total += e.p
	}
	return list
}

func id(ids []int32, i int) int32 {
	if ids == nil {
		return int32(i)
	}
	return ids[i]
}

// top is the largest score: what a computation may subtract.
func top(list []edge) float64 {
	t := math.Inf(-1)
	for _, e := range list {
		t = max(t, e.s) // NaN if there is one
	}
	return t
}

// lse is the logarithm of the sum of exponentials.
func lse(list []edge) value {
	if len(list) == 0 {
		return exactly(math.Inf(-1))
	}
	t := top(list)
	if math.IsInf(t, 1) {
		return exactly(math.NaN())
	}
	var sum, err float64
	for _, e := range list {
		p := e.w * math.Exp(e.s-max(t, -math.MaxFloat32))
		sum += p
		if p > 0 {
			err += p * (e.rounded + u*math.Abs(e.s-t))
		}
	}
	w := value{v: t + math.Log(sum)}
	w.tol = err/sum + u*(float64(len(list))+8+4*math.Abs(math.Log(sum))+math.Abs(w.v))
	return w
}

// forward is dst[v, h·d+c] before the epilogue, and the roundings that its
// tolerance is made of.
func (l *layer) forward(v, c int) (s sum, roundings int) {
	list := l.edges(v, c/l.d)
	t := l.last.top
	var err, lost float64
	for _, e := range list {
		a := e.p / l.last.total
		s.add(a*e.keep, l.x.val(e.u, c))
		rel := e.rounded + u*math.Abs(e.s-t)
		if a > 0 {
			err += a * rel
			lost += a * e.keep * rel * math.Abs(l.x.val(e.u, c))
		}
		lost += 0x1p-120 * e.w * math.Abs(l.x.val(e.u, c)) // exponentials below the normal numbers
	}
	lost += s.abs * (err + u*float64(2*len(list)+12))
	s.n = 0
	if r := lost / (u * s.abs); r < 1e9 {
		return s, int(r) + 1
	}
	// Nothing to compare, or scores that are either equal or apart by more than
	// any rounding.
	return s, 100
}

// gradients are those of one row and head.
type gradients struct{ dot, dad, das value }

// narrow is the per-head results of row r; dots is dot of the destinations.
func (l *layer) narrow(r, h int, lse, dots, dy *array) (b gradients) {
	list := l.edges(r, h)
	n := float64(len(list))
	var aq, aqs, as, aqAbs, aqsAbs, asAbs, das, dasAbs float64
	for _, e := range list {
		shift := lse.val(e.v, h)
		alpha := e.w * math.Exp(e.s-shift)
		var q, qAbs float64
		for c := h * l.d; c < (h+1)*l.d; c++ {
			q += dy.val(e.v, c) * l.x.val(e.u, c)
			qAbs += math.Abs(dy.val(e.v, c) * l.x.val(e.u, c))
		}
		q, qAbs = q*e.keep, qAbs*e.keep
		rel := e.rounded + u*(math.Abs(e.s-shift)+float64(l.d)+2*n+16)
		aq += alpha * q
		aqAbs += alpha * qAbs * rel
		aqs += alpha * q * e.slope
		aqsAbs += alpha * qAbs * e.slope * rel
		as += alpha * e.slope
		asAbs += alpha * e.slope * rel
		if dots != nil {
			d := dots.val(e.v, h)
			das += alpha * (q - d) * e.slope
			dasAbs += alpha * (qAbs + math.Abs(d)) * e.slope * rel
		}
	}
	b.dot = value{v: aq, tol: aqAbs + 0x1p-120}
	b.dad = value{v: aqs - aq*as, tol: aqsAbs + aqAbs*as + math.Abs(aq)*asAbs + 4*u*math.Abs(aq*as) + 0x1p-120}
	b.das = value{v: das, tol: dasAbs + 0x1p-120}
	return b
}

// wide is dx[u, h·d+c].
func (l *layer) wide(r, c int, lse, dy *array) value {
	var w value
	list := l.edges(r, c/l.d)
	for _, e := range list {
		shift := lse.val(e.v, c/l.d)
		alpha := e.w * math.Exp(e.s-shift) * e.keep
		w.v += alpha * dy.val(e.v, c)
		w.tol += alpha * math.Abs(dy.val(e.v, c)) * (e.rounded + u*(math.Abs(e.s-shift)+2*float64(len(list))+10))
	}
	w.tol += 0x1p-120
	return w
}

// forwardTry runs GAT and compares.
func (p attend) forwardTry(l *lab, lay layout) {
	defer l.release()
	t := l.trial(lay, "GAT of %v, bias %v", p, p.bias)
	f := p.operands(t, false)
	ep, bias := t.bias(p.ep, p.bias, p.heads*p.d, false)
	dst, sums := t.result("dst", p.rows, p.heads*p.d), t.result("lse", p.rows, p.heads)
	t.run(func(s kernels.Stream) {
		s.GAT(dst.view, sums.view, f.g, f.x.view, f.as.view, f.ad.view, f.at, ep, p.span)
	})
	t.check(sums, p.span, func(v, h int) value { return lse(f.edges(v, h)) })
	t.check(dst, p.span, func(v, c int) value {
		s, n := f.forward(v, c)
		return epilogue(s, n, ep, bias, v, c)
	})
}

// backwardTry runs both parts of the gradient and compares.
func (p attend) backwardTry(l *lab, lay layout) {
	defer l.release()
	t := l.trial(lay, "GATBackDst of %v", p)
	f := p.operands(t, false)
	sums := t.in("lse", p.rows, p.heads, func(v, h int) float32 { return float32(lse(f.edges(v, h)).v) })
	dy := t.in("dy", p.rows, p.heads*p.d, random(l.rng, false))
	dad, dot := t.result("dad", p.rows, p.heads), t.result("dot", p.rows, p.heads)
	t.run(func(s kernels.Stream) {
		s.GATBackDst(dad.view, dot.view, f.g, f.x.view, f.as.view, f.ad.view, sums.view, dy.view, f.at, p.span)
	})
	t.check(dot, p.span, func(v, h int) value { return f.narrow(v, h, sums, nil, dy).dot })
	t.check(dad, p.span, func(v, h int) value { return f.narrow(v, h, sums, nil, dy).dad })

	t = l.trial(lay, "GATBackSrc of %v", p)
	f = p.operands(t, true)
	sums = t.in("lse", p.cols, p.heads, p.spoil(func(v, h int) float32 {
		// what a destination of every source would have, about
		z := math.Inf(-1)
		for r := range p.rows {
			z = max(z, f.as.val(r, h)+f.ad.val(v, h))
		}
		return float32(max(z, float64(p.slope)*z)) + l.rng.Float32()
	}, math.Inf(-1)))
	dots := t.in("dot", p.cols, p.heads, p.spoil(random(l.rng, false), math.NaN()))
	dy = t.in("dy", p.cols, p.heads*p.d, p.spoil(random(l.rng, false), math.NaN()))
	dx, das := t.result("dx", p.rows, p.heads*p.d), t.result("das", p.rows, p.heads)
	t.run(func(s kernels.Stream) {
		s.GATBackSrc(dx.view, das.view, f.g, f.x.view, f.as.view, f.ad.view, sums.view, dots.view, dy.view, f.at, p.span)
	})
	t.check(das, p.span, func(r, h int) value { return f.narrow(r, h, sums, dots, dy).das })
	t.check(dx, p.span, func(r, c int) value { return f.wide(r, c, sums, dy) })
}

// gat: weights (zeros among them), self terms and dropout in all combinations.
func gat(l *lab, heads, d int) {
	const rows, cols = 24, 17
	n := heads + d
	for flags := range 1 << 3 {
		on := func(i int) bool { return flags>>i&1 == 1 }
		p := attend{rows: rows, cols: cols, heads: heads, d: d, span: kernels.Span{Lo: 2, Hi: 23}, slope: 0.2,
			val: on(0), self: on(1), selfCol: on(1), selfW: on(1) && n%2 == 0, ids: n%3 == 0}
		if on(2) {
			p.p = []float32{0.5, 0.3}[n%2]
		}
		if heads*d > 100 && n%2 == 1 {
			n++
			continue // the formulas take their time
		}
		p.forwardTry(l, layouts[n%len(layouts)])
		p.backwardTry(l, layouts[(n+1)%len(layouts)])
		n++
	}
	// A square graph, whose rows are their own sources; rows of many edges.
	p := attend{rows: rows, cols: rows, heads: heads, d: d, span: kernels.Span{Hi: rows}, slope: 0.5, self: true, p: 0.6, degree: 40}
	p.forwardTry(l, layouts[2])
	p.backwardTry(l, layouts[2])
}

// gatEpilogue: bias, activation and dropout at the end.
func gatEpilogue(l *lab) {
	for i, ep := range epilogues(l, 15) {
		p := attend{rows: 15, cols: 11, heads: 1 + i%3, d: 5 + i, span: kernels.Span{Lo: 1, Hi: 15}, slope: 0.2, self: i%2 == 0, selfCol: i%2 == 0, p: []float32{0, 0.5}[i%2], ep: ep, bias: i%2 == 1}
		p.forwardTry(l, layouts[i%len(layouts)])
	}
}

// gatScores: scores of 1e4 and more neither overflow nor hide other rows; slopes
// from 0 to 1; all scores equal.
func gatScores(l *lab) {
	wild := func(int, int) float32 { return []float32{1e4, -1e4, 3, -50, 40, 0, 9e3}[l.rng.IntN(7)] }
	flat := func(int, int) float32 { return 0.25 }
	rising := func(r, _ int) float32 { return float32(20 * r) } // each edge's score tops those before
	huge := func(r, _ int) float32 { return float32(1e38 * float64(r%3-1)) }
	for i, scores := range []func(r, c int) float32{wild, flat, rising, wild, huge} {
		p := attend{rows: 24, cols: 24, heads: []int{8, 1, 3, 2, 4}[i], d: []int{8, 41, 7, 100, 4}[i], span: kernels.Span{Hi: 24}, slope: []float32{0.2, 0, 1, 0.2, 0.2}[i],
			val: i%2 == 0, self: i > 1, selfCol: i > 2, scores: scores, degree: 30}
		p.forwardTry(l, layouts[i%len(layouts)])
		if i < 3 {
			p.backwardTry(l, layouts[i%len(layouts)])
		}
	}
}

// gatSpecial: NaN and Inf reach the heads that hold them, through dropped alphas
// too, but not through terms of weight 0. A score of -Inf is a term of 0.
func gatSpecial(l *lab) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for i, bad := range []float32{nan, inf, -inf} {
		row, col := l.rng.IntN(17), l.rng.IntN(24)
		p := attend{rows: 24, cols: 17, heads: 3, d: 8, span: kernels.Span{Hi: 24}, slope: 0.2, val: true, p: 0.5, self: i == 1, selfCol: i == 1,
			fill: func(r, c int) float32 {
				if r == row && c == col {
					return bad
				}
				return l.rng.Float32()
			}}
		p.forwardTry(l, layouts[i])
		p.fill = nil
		p.scores = func(r, c int) float32 {
			if r == row && c == 1 {
				return bad
			}
			return l.rng.Float32()
		}
		p.forwardTry(l, layouts[i])
	}
}

// gatEmpty: no edges, no rows, nothing but weights of 0, an empty span.
func gatEmpty(l *lab) {
	for i, p := range []attend{
		{rows: 6, cols: 0, heads: 2, d: 5, span: kernels.Span{Hi: 6}, ep: &kernels.Epilogue{Act: kernels.ReLU, Drop: kernels.Dropout{P: 0.5, Key: 3}}, bias: true},
		{rows: 0, cols: 0, heads: 8, d: 8},
		{rows: 0, cols: 4, heads: 1, d: 41},
		{rows: 1, cols: 5, heads: 8, d: 8, span: kernels.Span{Hi: 1}, val: true, p: 0.5},
		{rows: 9, cols: 7, heads: 4, d: 4, span: kernels.Span{Lo: 4, Hi: 4}},
		{rows: 9, cols: 7, heads: 4, d: 4, span: kernels.Span{Lo: 9, Hi: 9}},
		{rows: 4, cols: 4, heads: 8, d: 3, span: kernels.Span{Hi: 1}, self: true, selfW: true}, // row 0: a self term of weight 0
	} {
		p.slope = 0.2
		p.forwardTry(l, layouts[i%len(layouts)])
		p.backwardTry(l, layouts[i%len(layouts)])
	}
}

// gatSpans: bits do not depend on the span.
func gatSpans(l *lab, heads, d int) {
	const rows, cols = 50, 41
	for i, lay := range layouts {
		p := attend{rows: rows, cols: cols, heads: heads, d: d, degree: 30, val: i == 1, self: true, selfCol: true, p: 0.4, slope: 0.2, ids: i == 2, ep: &kernels.Epilogue{Act: kernels.ELU, Drop: kernels.Dropout{P: 0.4, Key: 9}}}
		gatPieces(l, lay, p)
	}
}

// gatPieces compares p over all rows with p span by span.
func gatPieces(l *lab, lay layout, p attend) {
	rows, cols, heads, d := p.rows, p.cols, p.heads, p.d
	t := l.trial(lay, "GAT in pieces of %v", p)
	f := p.operands(t, false)
	sums, parts := t.result("lse", rows, heads), t.result("lse in parts", rows, heads)
	whole, pieces := t.result("whole", rows, heads*d), t.result("parts", rows, heads*d)
	t.onePass(whole, pieces, rows, func(s kernels.Stream, dst *kernels.Mat, r kernels.Span) {
		to := sums.view
		if dst == pieces.view {
			to = parts.view
		}
		s.GAT(dst, to, f.g, f.x.view, f.as.view, f.ad.view, f.at, p.ep, r)
	})
	t.sameArrays(sums, parts)

	t = l.trial(lay, "GATBackDst in pieces of %v", p)
	f = p.operands(t, false)
	shift := t.in("lse", rows, heads, random(l.rng, false))
	dy := t.in("dy", rows, heads*d, random(l.rng, false))
	dots, dotParts := t.result("dot", rows, heads), t.result("dot in parts", rows, heads)
	dad, dadParts := t.result("dad", rows, heads), t.result("dad in parts", rows, heads)
	t.onePass(dad, dadParts, rows, func(s kernels.Stream, dst *kernels.Mat, r kernels.Span) {
		to := dots.view
		if dst == dadParts.view {
			to = dotParts.view
		}
		s.GATBackDst(dst, to, f.g, f.x.view, f.as.view, f.ad.view, shift.view, dy.view, f.at, r)
	})
	t.sameArrays(dots, dotParts)

	t = l.trial(lay, "GATBackSrc in pieces of %v", p)
	f = p.operands(t, true)
	shift, dot := t.in("lse", cols, heads, random(l.rng, false)), t.in("dot", cols, heads, random(l.rng, false))
	dy = t.in("dy", cols, heads*d, random(l.rng, false))
	das, dasParts := t.result("das", rows, heads), t.result("das in parts", rows, heads)
	dx, dxParts := t.result("dx", rows, heads*d), t.result("dx in parts", rows, heads*d)
	t.onePass(dx, dxParts, rows, func(s kernels.Stream, dst *kernels.Mat, r kernels.Span) {
		to := das.view
		if dst == dxParts.view {
			to = dasParts.view
		}
		s.GATBackSrc(dst, to, f.g, f.x.view, f.as.view, f.ad.view, shift.view, dot.view, dy.view, f.at, r)
	})
	t.sameArrays(das, dasParts)
	l.release()
}

// sameArrays compares two outputs bit by bit.
func (t *trial) sameArrays(a, b *array) {
	all := kernels.Span{Hi: a.view.Rows}
	x, y := a.bits(all), b.bits(all)
	for i := range x {
		if x[i] != y[i] {
			t.failf("%s: %s and %s differ at [%d,%d]: %v and %v", t.what, a.name, b.name, i/a.view.Cols, i%a.view.Cols, math.Float32frombits(x[i]), math.Float32frombits(y[i]))
			return
		}
	}
}

// gatDropout: with one source per row, an alpha is 1 and its mask shows: the bits
// of the edge, head by head, the same along the graph and its transpose.
func gatDropout(l *lab) {
	const rows, cols = 40, 57
	for i, heads := range []int{1, 3, 8, 20} {
		for _, ids := range []bool{false, true} {
			t := l.trial(layouts[1], "the mask of alphas, %d heads, ids %v", heads, ids)
			csr := &kernels.CSR{Cols: cols, RowPtr: make([]int64, rows+1)}
			turned := &kernels.CSR{Cols: rows, RowPtr: make([]int64, cols+1)}
			for v := range rows {
				csr.Col = append(csr.Col, int32((v*7+3)%cols))
				csr.RowPtr[v+1] = int64(v + 1)
			}
			for u := range cols {
				for v := range rows {
					if int(csr.Col[v]) == u {
						turned.Col = append(turned.Col, int32(v))
					}
				}
				turned.RowPtr[u+1] = int64(len(turned.Col))
			}
			g, back := l.load(csr), l.load(turned)
			p := kernels.Attention{Heads: heads, Slope: 0.2, Drop: kernels.Dropout{P: []float32{0.5, 0.9}[i%2], Key: kernels.DropKey(l.seed, i, 1)}}
			if ids {
				p.SrcIDs, p.DstIDs = scattered(l.rng, cols), scattered(l.rng, rows)
				p.SrcIDs[4], p.DstIDs[9] = -1, math.MinInt32
			}
			ones, none := func(int, int) float32 { return 1 }, func(int, int) float32 { return 0 }
			x, as, ad := t.in("x", cols, 2*heads, ones), t.in("as", cols, heads, none), t.in("ad", rows, heads, none)
			sums, dots := t.in("lse 0", rows, heads, none), t.in("dot 0", rows, heads, none)
			dst, out := t.result("dst", rows, 2*heads), t.result("lse", rows, heads)
			dx, das := t.result("dx", cols, 2*heads), t.result("das", cols, heads)
			dy := t.in("dy", rows, 2*heads, ones)
			t.run(func(s kernels.Stream) {
				s.GAT(dst.view, out.view, g, x.view, as.view, ad.view, p, nil, kernels.Span{Hi: rows})
				s.GATBackSrc(dx.view, das.view, back, x.view, as.view, ad.view, sums.view, dots.view, dy.view, p, kernels.Span{Hi: cols})
			})
			keep := float64(p.Drop.KeepScale())
			mask := func(u, v, h int) float64 {
				if kernels.DropKeep(kernels.DropRow(p.Drop.Key, id(p.DstIDs, v)), uint32(id(p.SrcIDs, u))*uint32(heads)+uint32(h), p.Drop.Threshold()) {
					return keep
				}
				return 0
			}
			t.check(dst, kernels.Span{Hi: rows}, func(v, c int) value {
				w := mask(int(csr.Col[v]), v, c/2)
				return value{v: w, tol: 4 * u * w}
			})
			t.check(dx, kernels.Span{Hi: cols}, func(r, c int) value {
				var w float64
				for _, v := range turned.Col[turned.RowPtr[r]:turned.RowPtr[r+1]] {
					w += mask(r, int(v), c/2)
				}
				return value{v: w, tol: 8 * u * w}
			})
			l.release()
		}
	}
}

// gatColumns: as, ad, lse, dot and their gradients as columns of one matrix give
// the bits of matrices of their own, and touch nothing else of it.
func gatColumns(l *lab) {
	const n, heads, d = 30, 8, 8
	all := kernels.Span{Hi: n}
	p := attend{rows: n, cols: n, heads: heads, d: d, self: true, slope: 0.2, p: 0.3, degree: 20}
	t := l.trial(layouts[0], "GAT with views of one matrix")
	f := p.operands(t, false)
	dy := t.in("dy", n, heads*d, random(l.rng, false))
	var apart, views [6]*array
	for i, name := range []string{"lse", "dot", "dad", "das", "as", "ad"} {
		if i < 4 {
			apart[i] = t.result(name, n, heads)
		}
	}
	apart[4], apart[5] = f.as, f.ad
	one := t.result("one matrix", n, 7*heads)
	for i := range views {
		views[i] = &array{view: one.view.Columns(i*heads, (i+1)*heads)}
	}
	y, dx, y2, dx2 := t.result("y", n, heads*d), t.result("dx", n, heads*d), t.result("y of views", n, heads*d), t.result("dx of views", n, heads*d)
	run := func(s kernels.Stream, m [6]*array, y, dx *array) {
		lse, dot, dad, das, as, ad := m[0].view, m[1].view, m[2].view, m[3].view, m[4].view, m[5].view
		s.GAT(y.view, lse, f.g, f.x.view, as, ad, f.at, nil, all)
		s.GATBackDst(dad, dot, f.g, f.x.view, as, ad, lse, dy.view, f.at, all)
		s.GATBackSrc(dx.view, das, f.g, f.x.view, as, ad, lse, dot, dy.view, f.at, all)
	}
	t.run(func(s kernels.Stream) {
		s.Copy(views[4].view, f.as.view)
		s.Copy(views[5].view, f.ad.view)
		run(s, apart, y, dx)
		run(s, views, y2, dx2)
	})
	t.sameArrays(y, y2)
	t.sameArrays(dx, dx2)
	for i := range 4 {
		t.untouched(apart[i], func(int, int) bool { return true })
		for r := range n {
			for h := range heads {
				a, b := apart[i].got[apart[i].at(r, h)], one.got[one.at(r, i*heads+h)]
				if math.Float32bits(a) != math.Float32bits(b) {
					t.failf("%s: %s[%d,%d] is %v in a matrix of its own and %v as a view", t.what, apart[i].name, r, h, a, b)
					return
				}
			}
		}
	}
	t.untouched(one, func(_, c int) bool { return c < 6*heads })
}

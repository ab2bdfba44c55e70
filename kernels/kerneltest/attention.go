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

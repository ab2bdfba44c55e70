package kerneltest

import (
	"math"

	"dorylus/kernels"
)

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

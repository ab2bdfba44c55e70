package kerneltest

import (
	"math"

	"dorylus/kernels"
)

func bceCases() []Case {
	return append(byWidth("SigmoidBCE", sigmoidBCE), Case{"SigmoidBCE/special", sigmoidSpecial})
}

// binary is one SigmoidBCE to compare.
type binary struct {
	rows, classes int
	weights       bool
	grad          int // 0: none, 1: another matrix, 2: the logits
	scale         float32
	fill          func(r, c int) float32
}

func (p binary) try(l *lab, lay layout) {
	defer l.release()
	t := l.trial(lay, "SigmoidBCE of %d x %d, weights %v, gradient %d, scale %v", p.rows, p.classes, p.weights, p.grad, p.scale)
	z := t.in("logits", p.rows, p.classes, p.fill)
	targets := toy(l.rng, p.rows, p.classes, false)
	hold(t, "Col", targets.Col)
	mask := make([]int32, p.rows)
	for r := range mask {
		mask[r] = []int32{0, 7, 1, -1, math.MinInt32}[r%5]
	}
	hold(t, "mask", mask)
	w, wm := t.lossWeights(l, "posW", p.weights, p.classes)
	g, gm := t.lossGrad(z, p.grad)
	loss := []float64{math.NaN(), 7}
	t.run(func(s kernels.Stream) { s.SigmoidBCE(gm, loss, z.view, targets, mask, wm, p.scale) })

	// plus is softplus(s) of the class's signed logit, its slope, and its factor.
	term := func(r, c int) (plus, slope, f float64) {
		sign, f := 1.0, float64(p.scale)
		for _, k := range targets.Col[targets.RowPtr[r]:targets.RowPtr[r+1]] {
			if int(k) == c && sign > 0 {
				sign = -1
				f *= one2(w, c)
			}
		}
		s := sign * z.val(r, c)
		return math.Max(s, 0) + math.Log1p(math.Exp(-math.Abs(s))), sign / (1 + math.Exp(-s)), f
	}
	var want value
	for r := range p.rows {
		if mask[r] < 0 {
			continue
		}
		for c := range p.classes {
			plus, _, f := term(r, c)
			want.v += f * plus
			want.tol += math.Abs(f) * plus * u * float64(p.classes+12)
		}
	}
	want.tol += 0x1p-120
	if miss := want.miss(loss[0]); miss > 1 {
		t.failf("%s: loss is %v, want %v ± %.3g", t.what, loss[0], want.v, want.tol)
	}
	if loss[1] != 7 {
		t.failf("%s: wrote %v to loss[1]", t.what, loss[1])
	}
	if p.grad == 0 {
		return
	}
	t.check(g, kernels.Span{Hi: p.rows}, func(r, c int) value {
		if mask[r] < 0 {
			return exactly(0)
		}
		_, slope, f := term(r, c)
		return value{v: f * slope, tol: 12*u*math.Abs(f*slope) + 0x1p-126*math.Abs(f)}
	})
}

// one2 is the value of column c of a row, or 1.
func one2(a *array, c int) float64 {
	if a == nil {
		return 1
	}
	return a.val(0, c)
}

// sigmoidBCE: with and without weights and gradient, logits near 0 and far from it,
// rows that list no class, all, or one twice.
func sigmoidBCE(l *lab, classes int) {
	n := 0
	for _, weights := range []bool{false, true} {
		for grad := range 3 {
			for _, width := range []float32{1, 60} {
				fill := func(int, int) float32 { return width * (2*l.rng.Float32() - 1) }
				binary{rows: 24, classes: classes, weights: weights, grad: grad, scale: 1.0 / 140, fill: fill}.try(l, layouts[n%len(layouts)])
				n++
			}
		}
	}
	binary{classes: classes, grad: 1, scale: 1, fill: random(l.rng, false)}.try(l, layouts[1])
}

// sigmoidSpecial: logits of 1e30 do not overflow; NaN and Inf stay in their place,
// and rows outside the mask are not read.
func sigmoidSpecial(l *lab) {
	for i, bad := range []float64{1e30, -1e30, 100, -100, math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, row := range []int{2, 3} { // in the mask, and not
			binary{rows: 8, classes: 19, grad: 1 + i%2, scale: 0.5, weights: i%2 == 0, fill: func(r, c int) float32 {
				if r == row && c%5 == 2 {
					return float32(bad)
				}
				return l.rng.Float32()
			}}.try(l, layouts[i%len(layouts)])
		}
	}
}

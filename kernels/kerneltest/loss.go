package kerneltest

import (
	"math"

	"dorylus/kernels"
)

func lossCases() []Case {
	return append(byWidth("SoftmaxXent", softmaxXent),
		Case{"SoftmaxXent/special", softmaxSpecial}, Case{"SoftmaxXent/spans", softmaxSpans})
}

// entropy is one SoftmaxXent to compare.
type entropy struct {
	rows, classes int
	span          kernels.Span
	weights       bool
	grad          int // 0: none, 1: another matrix, 2: the logits
	scale         float32
	fill          func(r, c int) float32
}

func (p entropy) try(l *lab, lay layout) {
	defer l.release()
	t := l.trial(lay, "SoftmaxXent of rows [%d,%d) of %d x %d, weights %v, gradient %d, scale %v", p.span.Lo, p.span.Hi, p.rows, p.classes, p.weights, p.grad, p.scale)
	z := t.in("logits", p.rows, p.classes, p.fill)
	labels := make([]int32, p.rows)
	for r := range labels {
		labels[r] = int32(l.rng.IntN(p.classes+1)) - 1
		if r%11 == 3 {
			labels[r] = math.MinInt32
		}
	}
	hold(t, "labels", labels)
	w, wm := t.lossWeights(l, "classW", p.weights, p.classes)
	g, gm := t.lossGrad(z, p.grad)
	loss := []float64{math.NaN(), 7}
	t.run(func(s kernels.Stream) { s.SoftmaxXent(gm, loss, z.view, labels, wm, p.scale, p.span) })

	// softmax is the row's softmax of c, its weight and the relative error of an
	// exponential and of their sum: the argument z - max carries up to one
	// rounding, which exp turns into |z - max| u.
	type rowSum struct{ top, total, spread float64 }
	sums := make([]rowSum, p.rows)
	for r := range sums {
		w := rowSum{top: math.Inf(-1)}
		for k := range p.classes {
			w.top = math.Max(w.top, z.val(r, k))
		}
		for k := range p.classes {
			d := z.val(r, k) - w.top
			w.total += math.Exp(d)
			w.spread += math.Exp(d) * math.Abs(d)
		}
		sums[r] = w
	}
	softmax := func(r, c int) (sm, f, minusLog, rel float64) {
		f = float64(p.scale)
		if w != nil {
			f *= w.val(0, int(labels[r]))
		}
		d := z.val(r, c) - sums[r].top
		rel = u * (float64(p.classes) + 16 + math.Abs(d) + sums[r].spread/sums[r].total)
		return math.Exp(d) / sums[r].total, f, math.Log(sums[r].total) - d, rel
	}
	var want value
	for r := p.span.Lo; r < p.span.Hi; r++ {
		if labels[r] < 0 {
			continue
		}
		_, f, minusLog, rel := softmax(r, int(labels[r]))
		want.v += f * minusLog
		want.tol += math.Abs(f) * (rel + 4*u*math.Abs(minusLog))
	}
	if miss := want.miss(loss[0]); miss > 1 {
		t.failf("%s: loss is %v, want %v ± %.3g", t.what, loss[0], want.v, want.tol)
	}
	if loss[1] != 7 {
		t.failf("%s: wrote %v to loss[1]", t.what, loss[1])
	}
	if p.grad == 0 {
		return
	}
	t.check(g, p.span, func(r, c int) value {
		if labels[r] < 0 {
			return exactly(0)
		}
		sm, f, _, rel := softmax(r, c)
		v := value{v: sm, tol: sm * rel}
		if c == int(labels[r]) {
			v.v--
			v.tol += u * math.Abs(v.v)
		}
		v.v *= f
		v.tol = v.tol*math.Abs(f) + 3*u*math.Abs(v.v)
		if c == int(labels[r]) {
			v.tol += u * math.Abs(f) // softmax - 1 is a difference of numbers near 1
		}
		// exp of less than -87 leaves the normal numbers, and may become 0
		v.tol += math.Abs(f) * 0x1p-126
		return v
	})
}

// softmaxXent: with and without class weights and gradient, part of the rows,
// logits near and far from each other.
func softmaxXent(l *lab, classes int) {
	n := 0
	for _, weights := range []bool{false, true} {
		for grad := range 3 {
			for _, width := range []float32{1, 60} {
				fill := func(int, int) float32 { return width * (2*l.rng.Float32() - 1) }
				p := entropy{rows: 23, classes: classes, span: kernels.Span{Lo: 2, Hi: 22}, weights: weights, grad: grad, scale: 1.0 / 140, fill: fill}
				p.try(l, layouts[n%len(layouts)])
				n++
			}
		}
	}
	p := entropy{rows: 5, classes: classes, span: kernels.Span{Lo: 3, Hi: 3}, grad: 1, scale: 1, fill: random(l.rng, false)}
	p.try(l, layouts[1])
}

// softmaxSpecial: logits of 1e30 do not overflow; NaN and Inf make the loss and
// their row's gradient NaN, but not rows without a label.
func softmaxSpecial(l *lab) {
	for i, bad := range []float32{1e30, -1e30, float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
		p := entropy{rows: 12, classes: 9, span: kernels.Span{Hi: 12}, grad: 1 + i%2, scale: 0.5, fill: func(r, c int) float32 {
			if r%4 == 1 && c == 5 {
				return bad
			}
			return l.rng.Float32()
		}}
		p.try(l, layouts[i%len(layouts)])
	}
	p := entropy{rows: 0, classes: 9, grad: 1, scale: 1, fill: random(l.rng, false)}
	p.try(l, layouts[0])
}

// softmaxSpans: a row's gradient does not depend on the span.
func softmaxSpans(l *lab) {
	const rows, classes = 50, 41
	t := l.trial(layouts[2], "SoftmaxXent in pieces")
	z := t.in("logits", rows, classes, random(l.rng, false))
	labels := make([]int32, rows)
	for r := range labels {
		labels[r] = int32(r%(classes+1)) - 1
	}
	loss := make([]float64, 1)
	whole, parts := t.result("whole", rows, classes), t.result("parts", rows, classes)
	t.onePass(whole, parts, rows, func(s kernels.Stream, dst *kernels.Mat, r kernels.Span) {
		s.SoftmaxXent(dst, loss, z.view, labels, nil, 0.01, r)
	})
}

// lossWeights are weights of classes, both nil if not wanted.
func (t *trial) lossWeights(l *lab, name string, wanted bool, classes int) (*array, *kernels.Mat) {
	if !wanted {
		return nil, nil
	}
	w := t.in(name, 1, classes, positive(l.rng, false))
	return w, w.view
}

// lossGrad is where the gradient of logits z goes and what the op is given for it: 0 nowhere,
// 1 into a matrix of its own, 2 into z.
func (t *trial) lossGrad(z *array, grad int) (*array, *kernels.Mat) {
	switch grad {
	case 1:
		g := t.result("grad", z.view.Rows, z.view.Cols)
		return g, g.view
	case 2:
		z.out = true
		return z, z.view
	}
	return z, nil
}

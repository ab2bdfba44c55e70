package kerneltest

import (
	"fmt"
	"math"
	"slices"

	"dorylus/kernels"
)

func blockCases() []Case {
	cases := byWidth("Blocks/sums", blockSums)
	cases = append(cases, byWidth("Blocks/losses", blockLosses)...)
	return append(cases, Case{"Blocks/many", manyBlocks}, Case{"Blocks/rows", rowBits})
}

// someBlocks are n blocks of at most so many rows, some of none, with gaps between their
// leaves.
func (l *lab) someBlocks(n, rows int) *kernels.Blocks {
	b, leaf := &kernels.Blocks{Cuts: []int32{0}}, int32(l.rng.IntN(2))
	for i := range n {
		k := int32(rows)
		if i%4 == 1 {
			k = int32(l.rng.IntN(rows + 1))
		}
		b.Cuts, b.Leaves = append(b.Cuts, b.Cuts[i]+k), append(b.Leaves, leaf)
		leaf += 1 + int32(max(l.rng.IntN(7)-3, 0))
	}
	return b
}

// summer is the device's stream, if it sums over blocks; the case is of no others.
func (l *lab) summer() (kernels.BlockSummer, bool) {
	s, ok := l.s.(kernels.BlockSummer)
	return s, ok
}

// sumsOver compares an op over blocks, and its bits with those of an op per block and Add.
func (t *trial) sumsOver(b *kernels.Blocks, rows, cols int, all, one func(s kernels.Stream, dst *kernels.Mat, rows kernels.Span)) {
	got := t.result("the sum over blocks", rows, cols)
	want := []*array{t.result("the sum of blocks", rows, cols)}
	for i := range 22 {
		want = append(want, t.result(fmt.Sprintf("slot %d", i+1), rows, cols))
	}
	t.run(func(s kernels.Stream) {
		all(s, got.view, kernels.Span{})
		b.Fold(func(i, slot int) { one(s, want[slot].view, b.Span(i)) },
			func(into, from int) { s.Add(want[into].view, want[into].view, want[from].view) })
	})
	span := kernels.Span{Hi: rows}
	if rows*cols > 0 && !slices.Equal(got.bits(span), want[0].bits(span)) {
		t.failf("%s: the bits are not those of %d blocks, cut at %v, leaves %v", t.what, b.Len(), b.Cuts, b.Leaves)
	}
}

// blockSums: every sum, over one block and over several.
func blockSums(l *lab, width int) {
	s, ok := l.summer()
	if !ok {
		return
	}
	for i, lay := range layouts {
		for _, n := range []int{1, 5} {
			size := 29
			if i == 0 && width < 100 {
				size = 700 // slices and slabs
			}
			b := l.someBlocks(n, size)
			rows, fill := int(b.Cuts[n]), random(l.rng, false)
			for _, m := range []int{3, 70} {
				if size > 100 && m > 3 {
					continue
				}
				t := l.trial(lay, "BlockGEMM of %d x %d over %d rows", m, width, rows)
				x, y := t.in("a", rows, m, fill), t.in("b", rows, width, fill)
				t.sumsOver(b, m, width, func(_ kernels.Stream, dst *kernels.Mat, _ kernels.Span) { s.BlockGEMM(dst, x.view, y.view, b) },
					func(s kernels.Stream, dst *kernels.Mat, rows kernels.Span) {
						s.GEMM(dst, x.view.Sub(rows), y.view.Sub(rows), kernels.TN, nil)
					})
				l.release()
			}
			t := l.trial(lay, "BlockColSum of %d x %d", rows, width)
			x := t.in("x", rows, width, fill)
			t.sumsOver(b, 1, width, func(_ kernels.Stream, dst *kernels.Mat, _ kernels.Span) { s.BlockColSum(dst, x.view, b) },
				func(s kernels.Stream, dst *kernels.Mat, rows kernels.Span) { s.ColSum(dst, x.view, rows) })
			l.release()
			t = l.trial(lay, "BlockHeadDotGrad of %d x 2 heads of %d", rows, width)
			x, d := t.in("x", rows, 2*width, fill), t.in("d", rows, 2, fill)
			t.sumsOver(b, 2, width, func(_ kernels.Stream, dst *kernels.Mat, _ kernels.Span) { s.BlockHeadDotGrad(dst, d.view, x.view, b) },
				func(s kernels.Stream, dst *kernels.Mat, rows kernels.Span) {
					s.HeadDotGrad(dst, d.view.Sub(rows), x.view.Sub(rows))
				})
			l.release()
		}
	}
}

// manyBlocks: as many as a large graph has, and leaves as high as they go.
func manyBlocks(l *lab) {
	s, ok := l.summer()
	if !ok {
		return
	}
	for _, far := range []bool{false, true} {
		b := l.someBlocks(300, 3)
		if far {
			b.Leaves[299] = kernels.MaxLeaf - 1
		}
		rows, fill := int(b.Cuts[300]), random(l.rng, false)
		t := l.trial(layouts[0], "BlockGEMM of 300 blocks")
		x, y := t.in("a", rows, 2, fill), t.in("b", rows, 5, fill)
		t.sumsOver(b, 2, 5, func(_ kernels.Stream, dst *kernels.Mat, _ kernels.Span) { s.BlockGEMM(dst, x.view, y.view, b) },
			func(s kernels.Stream, dst *kernels.Mat, rows kernels.Span) {
				s.GEMM(dst, x.view.Sub(rows), y.view.Sub(rows), kernels.TN, nil)
			})
		l.release()
	}
}

// blockLosses: a loss per block, of both kinds, and the gradient.
func blockLosses(l *lab, classes int) {
	s, ok := l.summer()
	if !ok {
		return
	}
	for i, lay := range layouts {
		b := l.someBlocks(5, 23)
		rows := int(b.Cuts[5])
		t := l.trial(lay, "losses of %d x %d", rows, classes)
		z, w := t.in("logits", rows, classes, random(l.rng, false)), t.in("weights", 1, classes, positive(l.rng, false))
		labels, mask := make([]int32, rows), make([]int32, rows)
		for r := range rows {
			labels[r], mask[r] = int32(l.rng.IntN(classes+1))-1, int32(r%3)-1
		}
		targets := toy(l.rng, rows, classes, false)
		hold(t, "labels", labels)
		hold(t, "mask", mask)
		grads := [4]*array{}
		var gm [4]*kernels.Mat
		for k := range grads {
			grads[k] = t.result(fmt.Sprintf("grad %d", k), rows, classes)
			gm[k] = grads[k].view
		}
		if i == 2 {
			gm = [4]*kernels.Mat{}
			for _, g := range grads {
				g.out = false
			}
		}
		var loss [4][]float64
		for k := range loss {
			loss[k] = slices.Repeat([]float64{math.NaN()}, b.Len())
		}
		t.run(func(one kernels.Stream) {
			s.BlockSoftmaxXent(gm[0], loss[0], z.view, labels, w.view, 0.25, b)
			s.BlockSigmoidBCE(gm[1], loss[1], z.view, targets, mask, w.view, 0.5, b)
			for i := range b.Len() {
				at := b.Span(i)
				one.SoftmaxXent(gm[2], loss[2][i:i+1], z.view, labels, w.view, 0.25, at)
				part := gm[3]
				if part != nil {
					part = part.Sub(at)
				}
				of := &kernels.CSR{Cols: classes, RowPtr: targets.RowPtr[at.Lo : at.Hi+1], Col: targets.Col}
				one.SigmoidBCE(part, loss[3][i:i+1], z.view.Sub(at), of, mask[at.Lo:at.Hi], w.view, 0.5)
			}
		})
		for k := range 2 {
			if all := (kernels.Span{Hi: rows}); !slices.Equal(loss[k], loss[k+2]) || gm[0] != nil && !slices.Equal(grads[k].bits(all), grads[k+2].bits(all)) {
				t.failf("%s, kind %d: losses %v, one after the other %v; or the gradients differ", t.what, k, loss[k], loss[k+2])
			}
		}
		l.release()
	}
}

// rowBits: a row of a product has the same bits alone and among others.
func rowBits(l *lab) {
	if _, ok := l.summer(); !ok {
		return
	}
	const m, k = 130, 1030
	for _, tr := range []kernels.Trans{kernels.NN, kernels.NT} {
		n := []int{577, 5}[tr]
		t := l.trial(layouts[0], "GEMM %s of %d rows and of one", transposition[tr], m)
		br, bc := k, n
		if tr == kernels.NT {
			br, bc = bc, br
		}
		a, b := t.in("a", m, k, random(l.rng, false)), t.in("b", br, bc, random(l.rng, false))
		together, alone := t.result("together", m, n), t.result("alone", m, n)
		t.run(func(s kernels.Stream) {
			s.GEMM(together.view, a.view, b.view, tr, nil)
			for _, r := range []kernels.Span{{Lo: 0, Hi: 1}, {Lo: 1, Hi: 129}, {Lo: 129, Hi: 130}} {
				s.GEMM(alone.view.Sub(r), a.view.Sub(r), b.view, tr, nil)
			}
		})
		if all := (kernels.Span{Hi: m}); !slices.Equal(together.bits(all), alone.bits(all)) {
			t.failf("%s: the bits differ", t.what)
		}
		l.release()
	}
}

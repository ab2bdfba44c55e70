package model

import "fmt"

// GIN is the graph isomorphism network (Xu et al., ICLR 2019):
//
//	H_l = drop(act(act((1+eps_l)·H_{l-1} + sum of in-neighbours)·W0 + b0)·W1 + b1))
//
// with a trainable eps, starting at 0, and edge weights as factors. The first
// product comes before the sum where that is narrower.
func GIN(cfg Config) *Program {
	b := newBuilder(cfg)
	b.loss(b.stack(b.widths(), b.gin))
	return b.finish()
}

func (b *builder) gin(h, width, out, l int, e epilogue) int {
	return b.ginWith(h, width, out, l, width > b.cfg.Hidden, e)
}

// ginWith is one convolution, whose first product comes before the sum or after.
func (b *builder) ginWith(h, width, out, l int, productFirst bool, e epilogue) int {
	hidden := b.cfg.Hidden
	part := func(i int, what string) string { return fmt.Sprintf("conv%d.nn.%d.%s", l, i, what) }
	eps := b.param(ParamSpec{Name: fmt.Sprintf("conv%d.eps", l), Rows: 1, Cols: 1, Layer: l, Bias: true})
	w0 := ParamSpec{Name: part(0, "weight"), Rows: width, Cols: hidden, Init: Glorot, Transposed: true, Layer: l}
	w1 := ParamSpec{Name: part(2, "weight"), Rows: hidden, Cols: out, Init: Glorot, Transposed: true, Layer: l}
	inner := b.withBiasNamed(epilogue{bias: NoBuf, act: b.cfg.Activation, layer: l}, part(0, "bias"), l, hidden)
	outer := b.withBiasNamed(e, part(2, "bias"), l, out)
	var y int
	switch {
	case b.keeps(h):
		y = b.linear(b.addSelf(b.later(), b.kept("sum(X)", X, NormNone), X, eps, l, plain), l, w0, inner)
	case !productFirst && !(h == X && b.cfg.Sparse):
		if h == X {
			h = b.droppedInput()
		}
		place := b.later()
		y = b.linear(b.addSelf(place, b.gather(h, l, NormNone, plain), h, eps, l, plain), l, w0, inner)
	default:
		z := b.linear(h, l, w0, plain)
		place := b.later()
		y = b.addSelf(place, b.gather(z, l, NormNone, plain), z, eps, l, inner)
	}
	return b.linear(y, l, w1, outer)
}

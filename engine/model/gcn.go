package model

// GCN is the graph convolutional network of Kipf and Welling (ICLR 2017):
//
//	H_l = drop(act(Â·H_{l-1}·W_l + b_l)),   H_0 = X
//
// with no activation or dropout after the last layer. Each layer multiplies
// before or after its gather, whichever leaves the narrower rows to gather. The
// gather of constant dense features is made once and kept.
func GCN(cfg Config) *Program {
	b := newBuilder(cfg)
	b.loss(b.stack(b.widths(), b.gcn))
	return b.finish()
}

// gcn is one convolution.
func (b *builder) gcn(h, width, out, l int, e epilogue) int {
	spec := ParamSpec{Name: name("conv", l) + ".lin.weight", Rows: width, Cols: out, Init: Glorot, Transposed: true, Layer: l}
	switch {
	case b.keeps(h):
		return b.linear(b.kept("ÂX", X, NormGCN), l, spec, b.withBias(e, l, out))
	case width <= out && !(h == X && b.cfg.Sparse):
		if h == X {
			h = b.droppedInput()
		}
		return b.linear(b.gather(h, l, NormGCN, plain), l, spec, b.withBias(e, l, out))
	}
	z := b.linear(h, l, spec, plain)
	return b.gather(z, l, NormGCN, b.withBias(e, l, out))
}

// MLP is the control without a graph: the same layers with no gather.
func MLP(cfg Config) *Program {
	b := newBuilder(cfg)
	b.loss(b.stack(b.widths(), b.lin))
	return b.finish()
}

// plain is no epilogue.
var plain = epilogue{bias: NoBuf}

func (b *builder) withBias(e epilogue, l, width int) epilogue {
	return b.withBiasNamed(e, name("conv", l)+".bias", l, width)
}

func (b *builder) withBiasNamed(e epilogue, name string, l, width int) epilogue {
	if b.cfg.Bias {
		e.bias = b.param(ParamSpec{Name: name, Rows: 1, Cols: width, Layer: l, Bias: true})
	}
	return e
}

package model

import (
	"fmt"

	"dorylus/engine/task"
	"dorylus/kernels"
)

// layer wraps a convolution with what the options add to every layer but the last:
//
//	H' = drop(act(norm(conv(H) + residual(H))))
//
// Without residual and norm the activation and the dropout are the convolution's
// own epilogue.
func (b *builder) layer(h, l, width, out int, e epilogue, conv func(h int, e epilogue) int) int {
	last := l == b.cfg.Layers
	if last || !b.cfg.Residual && b.cfg.Norm == "" {
		return conv(h, e)
	}
	var place *func()
	res := NoBuf
	if b.cfg.Residual {
		if h == X && !b.cfg.Sparse && b.cfg.InputDropout > 0 {
			h = b.droppedInput() // once, for both
		}
		res = h
		if width != out || h == X {
			res = b.linear(h, l, ParamSpec{Name: fmt.Sprintf("res%d.weight", l), Rows: width, Cols: out, Init: Glorot, Transposed: true, Layer: l}, plain)
		}
		place = b.later()
	}
	y := conv(h, plain)
	if res != NoBuf {
		y = b.addSelf(place, y, res, NoBuf, l, plain)
	}
	switch b.cfg.Norm {
	case "layer":
		y = b.layerNorm(y, l)
	case "batch":
		y = b.batchNorm(y, l)
	}
	return b.activation(y, l, e)
}

// activation adds an epilogue as a stage of its own.
func (b *builder) activation(in, layer int, e epilogue) int {
	if e.trivial() {
		return in
	}
	of := b.p.Bufs[in]
	out := b.buf(Buf{Name: name("act", layer), Level: of.Level, Cols: of.Cols})
	b.tensor(Step{Kind: task.AV, Layer: layer, In: []int{in}, Out: []int{out}}, func(c *Ctx) {
		m := c.Mat(out)
		c.S.Forward(m, c.Mat(in), e.forward(c, of.Level, false), kernels.Span{Hi: m.Rows})
	})
	b.backward = append(b.backward, func() {
		b.backOp(out, e, layer)
		b.grad[in], b.begun[in] = b.gradOf(out), true
	})
	return out
}

// normEps is what a normalisation adds to a variance, as PyTorch does.
const normEps = 1e-5

// layerNorm adds layer normalisation over the columns of each row, with PyTorch's
// parameters and start (scale 1, shift 0).
func (b *builder) layerNorm(in, layer int) int {
	of := b.p.Bufs[in]
	gamma := b.param(ParamSpec{Name: fmt.Sprintf("norm%d.weight", layer), Rows: 1, Cols: of.Cols, Init: One, Layer: layer, Bias: true})
	beta := b.param(ParamSpec{Name: fmt.Sprintf("norm%d.bias", layer), Rows: 1, Cols: of.Cols, Layer: layer, Bias: true})
	out := b.buf(Buf{Name: name("norm", layer), Level: of.Level, Cols: of.Cols})
	stat := b.buf(Buf{Name: name("stat", layer), Level: of.Level, Cols: 2})
	b.tensor(Step{Kind: task.AV, Layer: layer, In: []int{in}, Out: []int{out, stat}, Params: []int{gamma, beta}}, func(c *Ctx) {
		c.S.LayerNorm(c.Mat(out), c.Mat(stat), c.Mat(in), c.Weights[gamma], c.Weights[beta], normEps)
	})
	b.backward = append(b.backward, func() {
		d := b.gradOf(out)
		dIn, _ := b.contribute(in)
		b.tensor(Step{Kind: task.AV, Layer: layer, In: []int{in, stat, d}, Out: []int{dIn}, Params: []int{gamma}, Grads: []int{gamma, beta}}, func(c *Ctx) {
			c.S.LayerNormBack(c.Mat(dIn), c.Grads[gamma], c.Grads[beta], c.Mat(d), c.Mat(in), c.Mat(stat), c.Weights[gamma])
		})
	})
	return out
}

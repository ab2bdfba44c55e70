package model

import (
	"fmt"

	"dorylus/engine/task"
	"dorylus/kernels"
)

// convolution adds layer l, from width columns to out, on h.
type convolution func(h, width, out, l int, e epilogue) int

// stack adds the layers of the config, of these widths, and returns the logits: the
// last layer, or with jumping knowledge a sum over all.
func (b *builder) stack(widths []int, conv convolution) int {
	h, width, sum := X, b.cfg.Features, NoBuf
	for l, out := range widths {
		h = b.layer(h, l+1, width, out, conv)
		width = out
		if b.cfg.JumpingKnowledge {
			sum = b.jump(sum, h, l+1, width)
		}
	}
	if b.cfg.JumpingKnowledge {
		return sum
	}
	return h
}

// isOutput says that layer l computes the logits itself.
func (b *builder) isOutput(l int) bool { return l == b.cfg.Layers && !b.cfg.JumpingKnowledge }

// widths are the layers' numbers of columns.
func (b *builder) widths() []int {
	w := make([]int, b.cfg.Layers)
	for l := range w {
		w[l] = b.cfg.Hidden
		if b.isOutput(l + 1) {
			w[l] = b.cfg.Classes
		}
	}
	return w
}

// lin is a layer without a graph.
func (b *builder) lin(h, width, out, l int, e epilogue) int {
	spec := ParamSpec{Name: name("lin", l) + ".weight", Rows: width, Cols: out, Init: Glorot, Transposed: true, Layer: l}
	return b.linear(h, l, spec, b.withBiasNamed(e, name("lin", l)+".bias", l, out))
}

// layer wraps a convolution with what the options add to every layer but the one
// that computes the logits:
//
//	H' = drop(act(norm(conv(H) + residual(H))))
//
// Without residual and norm the activation and the dropout are the convolution's
// own epilogue.
func (b *builder) layer(h, l, width, out int, conv convolution) int {
	if b.isOutput(l) {
		return conv(h, width, out, l, epilogue{bias: NoBuf, layer: l})
	}
	e := epilogue{bias: NoBuf, act: b.cfg.Activation, drop: b.cfg.Dropout, layer: l}
	if !b.cfg.Residual && b.cfg.Norm == "" {
		return conv(h, width, out, l, e)
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
	y := conv(h, width, out, l, plain)
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

// jump adds h's part of the logits of a jumping knowledge network (Xu et al., ICML
// 2018) whose layers are concatenated: what follows the concatenation is a product
// with one weight per layer, so the parts are added up on the way instead,
//
//	logits = sum over l of H_l·J_l + b
//
// sum has the parts of the layers below, NoBuf for none, for the vertices of a level
// below h's or of its own.
func (b *builder) jump(sum, h, l, width int) int {
	spec := ParamSpec{Name: name("jump", l) + ".weight", Rows: width, Cols: b.cfg.Classes, Init: Glorot, Transposed: true, Layer: b.cfg.Layers}
	e := plain
	if l == b.cfg.Layers {
		e = b.withBiasNamed(e, "jump.bias", l, b.cfg.Classes)
	}
	if sum == NoBuf {
		return b.linear(h, l, spec, e)
	}
	place := b.later()
	return b.addSelf(place, b.linear(h, l, spec, plain), sum, NoBuf, l, e)
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
			dx, dy, x, st := c.Mat(dIn), c.Mat(d), c.Mat(in), c.Mat(stat)
			c.eachPart(of.Level, []int{gamma, beta}, func(g []*kernels.Mat, rows kernels.Span) {
				c.S.LayerNormBack(dx.Sub(rows), g[0], g[1], dy.Sub(rows), x.Sub(rows), st.Sub(rows), c.Weights[gamma])
			})
		})
	})
	return out
}

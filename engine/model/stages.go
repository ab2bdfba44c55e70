package model

import (
	"dorylus/engine/task"
	"dorylus/kernels"
)

// linear adds out = epilogue(in·W). in may be the features: dense ones get the
// input dropout on the fly, sparse ones are multiplied as sparse.
//
// Backward, with dPre the gradient before the epilogue:
//
//	dW = inᵀ·dPre per block,  dIn = dPre·Wᵀ
func (b *builder) linear(in, layer int, spec ParamSpec, e epilogue) int {
	w := b.param(spec)
	of := b.p.Bufs[in]
	out := b.buf(Buf{Name: name("H", layer), Level: of.Level, Cols: spec.Cols})
	s := Step{Kind: task.AV, Layer: layer, In: []int{in}, Out: []int{out}, Params: []int{w}}
	if e.bias != NoBuf {
		s.Params = append(s.Params, e.bias)
	}
	switch {
	case in == X && b.cfg.Sparse:
		b.sparseLinear(s, w, out, e)
	case in == X && b.cfg.InputDropout > 0:
		b.droppedLinear(s, w, out, e)
	default:
		b.denseLinear(s, in, w, out, e)
	}
	return out
}

func (b *builder) denseLinear(s Step, in, w, out int, e epilogue) {
	level, layer := b.p.Bufs[out].Level, s.Layer
	b.tensor(s, func(c *Ctx) {
		c.S.GEMM(c.Mat(out), c.Mat(in), c.Weights[w], kernels.NN, e.forward(c, level, false))
	})
	b.backward = append(b.backward, func() {
		b.backOp(out, e, layer)
		d := b.gradOf(out)
		back := Step{Kind: task.AV, Layer: layer, In: []int{in, d}, Grads: []int{w}}
		dIn := NoBuf
		if b.needsGrad(in) {
			dIn = b.gradOf(in)
			back.Out, back.Params = []int{dIn}, []int{w}
		}
		b.tensor(back, func(c *Ctx) {
			dm := c.Mat(d)
			c.S.GEMM(c.Grads[w], c.Mat(in), dm, kernels.TN, nil)
			if dIn != NoBuf {
				c.S.GEMM(c.Mat(dIn), dm, c.Weights[w], kernels.NT, nil)
			}
		})
	})
}

// droppedLinear multiplies dense features under input dropout. The dropped
// features are made again for the backward product rather than kept.
func (b *builder) droppedLinear(s Step, w, out int, e epilogue) {
	level, layer, p := b.p.Bufs[out].Level, s.Layer, b.cfg.InputDropout
	dropped := func(c *Ctx) *kernels.Mat {
		x := c.Mat(X)
		if !c.Train {
			return x
		}
		d := c.Scratch(0, x.Rows, x.Cols)
		c.S.Forward(d, x, &kernels.Epilogue{Drop: c.BlockDrop(p, 0, 0)}, kernels.Span{Hi: x.Rows})
		return d
	}
	b.tensor(s, func(c *Ctx) {
		c.S.GEMM(c.Mat(out), dropped(c), c.Weights[w], kernels.NN, e.forward(c, level, false))
	})
	b.backward = append(b.backward, func() {
		b.backOp(out, e, layer)
		d := b.gradOf(out)
		b.tensor(Step{Kind: task.AV, Layer: layer, In: []int{X, d}, Grads: []int{w}}, func(c *Ctx) {
			c.S.GEMM(c.Grads[w], dropped(c), c.Mat(d), kernels.TN, nil)
		})
	})
}

// sparseLinear multiplies CSR features without making them dense. Under input
// dropout the values that survive are kept, one per non-zero, for both
// directions.
func (b *builder) sparseLinear(s Step, w, out int, e epilogue) {
	level, layer, p := b.p.Bufs[out].Level, s.Layer, b.cfg.InputDropout
	drop := NoBuf
	if p > 0 {
		drop = b.buf(Buf{Name: "drop(X)", Cols: 1, Edges: true})
		s.Out = append(s.Out, drop)
	}
	values := func(c *Ctx) *kernels.Mat {
		if drop == NoBuf || !c.Train {
			return nil
		}
		return c.Full[drop]
	}
	b.tensor(s, func(c *Ctx) {
		rows := c.Rows[0]
		if v := values(c); v != nil {
			c.S.EdgeDropout(v, c.SparseX, c.Drop(p, 0, 0), rows)
		}
		c.S.SpMM(c.Full[out], c.SparseX, c.Weights[w], kernels.Gather{W: values(c), Ep: e.forward(c, level, true)}, rows)
	})
	b.backward = append(b.backward, func() {
		b.backOp(out, e, layer)
		d := b.gradOf(out)
		back := Step{Kind: task.AV, Layer: layer, In: []int{X, d}, Grads: []int{w}}
		if drop != NoBuf {
			back.In = append(back.In, drop)
		}
		b.tensor(back, func(c *Ctx) {
			c.S.SpMMT(c.Grads[w], c.SparseX, values(c), c.Full[d], c.Rows[0])
		})
	})
}

// gather adds out = epilogue(Â·in), from in's level to the next one.
//
// Backward: dIn = Âᵀ·dPre, gathered along the transpose. Â's scales are the same
// vector at both ends, so the transpose swaps their levels only.
func (b *builder) gather(in, layer int, norm Norm, e epilogue) int {
	of := b.p.Bufs[in]
	out := b.buf(Buf{Name: name("A", layer), Level: of.Level + 1, Cols: of.Cols})
	g := Gather{Hop: of.Level, Src: in, Dst: out, Norm: norm}
	var params []int
	if e.bias != NoBuf {
		params = []int{e.bias}
	}
	if !e.trivial() || e.bias != NoBuf {
		g.Ep = func(c *Ctx) *kernels.Epilogue { return e.forward(c, of.Level+1, true) }
	}
	b.gatherStep(g, layer, params)
	b.leaf[out] = b.leaf[in] && e.bias == NoBuf
	if b.leaf[out] {
		return out
	}
	b.backward = append(b.backward, func() {
		b.backOp(out, e, layer)
		if b.needsGrad(in) {
			b.gatherStep(Gather{Hop: of.Level, Back: true, Src: b.gradOf(out), Dst: b.gradOf(in), Norm: norm}, layer, nil)
		}
	})
	return out
}

// droppedInput is the dense features under input dropout, for a gather.
func (b *builder) droppedInput() int {
	p := b.cfg.InputDropout
	out := b.buf(Buf{Name: "drop(X)", Cols: b.cfg.Features})
	b.tensor(Step{Kind: task.AV, Layer: 1, In: []int{X}, Out: []int{out}}, func(c *Ctx) {
		x := c.Mat(X)
		c.S.Forward(c.Mat(out), x, &kernels.Epilogue{Drop: c.BlockDrop(p, 0, 0)}, kernels.Span{Hi: x.Rows})
	})
	b.leaf[out] = true
	return out
}

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
	s := Step{Kind: task.AV, Layer: layer, In: []int{in}, Out: []int{out}, Params: []int{w}, Scratch: b.inputScratch(in)}
	if e.bias != NoBuf {
		s.Params = append(s.Params, e.bias)
	}
	if in == X && b.cfg.Sparse {
		b.sparseLinear(s, w, out, e)
	} else {
		b.denseLinear(s, in, w, out, e)
	}
	return out
}

func (b *builder) denseLinear(s Step, in, w, out int, e epilogue) {
	level, layer := b.p.Bufs[out].Level, s.Layer
	rows := b.denseInput(in)
	b.tensor(s, func(c *Ctx) {
		c.S.GEMM(c.Mat(out), rows(c), c.Weights[w], kernels.NN, e.forward(c, level, false))
	})
	b.backward = append(b.backward, func() {
		b.backOp(out, e, layer)
		d := b.gradOf(out)
		back := Step{Kind: task.AV, Layer: layer, In: []int{in, d}, Grads: []int{w}, Scratch: b.inputScratch(in)}
		dIn, first := NoBuf, true
		if b.needsGrad(in) {
			dIn, first = b.contribute(in)
			back.Out, back.Params = []int{dIn}, []int{w}
		}
		b.tensor(back, func(c *Ctx) {
			dm := c.Mat(d)
			c.gradGEMM(w, rows(c), dm, level)
			switch {
			case dIn == NoBuf:
			case first:
				c.S.GEMM(c.Mat(dIn), dm, c.Weights[w], kernels.NT, nil)
			default:
				c.S.AddGEMM(c.Mat(dIn), dm, c.Weights[w], kernels.NT, nil)
			}
		})
	})
}

// denseInput gives the block's rows of a dense input. Features under input dropout
// are dropped anew whenever they are asked for, in scratch slot 0, rather than
// kept.
func (b *builder) denseInput(in int) func(c *Ctx) *kernels.Mat {
	p := b.cfg.InputDropout
	if in != X || p == 0 {
		return func(c *Ctx) *kernels.Mat { return c.Mat(in) }
	}
	return func(c *Ctx) *kernels.Mat {
		x := c.Mat(X)
		if !c.Train {
			return x
		}
		d := c.Scratch(0, x.Rows, x.Cols)
		c.S.Forward(d, x, &kernels.Epilogue{Drop: c.BlockDrop(p, 0, 0)}, kernels.Span{Hi: x.Rows})
		return d
	}
}

// inputScratch is Step.Scratch of denseInput.
func (b *builder) inputScratch(in int) int {
	if in != X || b.cfg.InputDropout == 0 || b.cfg.Sparse {
		return 0
	}
	return b.cfg.Features
}

// sparseValues gives the values of the sparse features: nil for their own. Under
// input dropout those that survive are kept, one per non-zero, from their first
// use in an epoch to the last one backward; the first use sets them.
func (b *builder) sparseValues(s *Step) func(c *Ctx) *kernels.Mat {
	p := b.cfg.InputDropout
	if p == 0 {
		return func(*Ctx) *kernels.Mat { return nil }
	}
	set := b.dropX == NoBuf
	if set {
		b.dropX = b.buf(Buf{Name: "drop(X)", Cols: 1, Edges: true})
		s.Out = append(s.Out, b.dropX)
	} else {
		s.In = append(s.In, b.dropX)
	}
	drop := b.dropX
	return func(c *Ctx) *kernels.Mat {
		if !c.Train {
			return nil
		}
		v := c.Full[drop]
		if set {
			c.S.EdgeDropout(v, c.SparseX, c.Drop(p, 0, 0), c.Rows[0])
		}
		return v
	}
}

// sparseLinear multiplies CSR features without making them dense.
func (b *builder) sparseLinear(s Step, w, out int, e epilogue) {
	level, layer := b.p.Bufs[out].Level, s.Layer
	values := b.sparseValues(&s)
	b.tensor(s, func(c *Ctx) {
		c.S.SpMM(c.Full[out], c.SparseX, c.Weights[w], kernels.Gather{W: values(c), Ep: e.forward(c, level, true)}, c.Rows[0])
	})
	b.backward = append(b.backward, func() {
		b.backOp(out, e, layer)
		d := b.gradOf(out)
		back := Step{Kind: task.AV, Layer: layer, In: []int{X, d}, Grads: []int{w}}
		values := b.sparseValues(&back)
		b.tensor(back, func(c *Ctx) {
			c.sparseGrad(w, values(c), c.Full[d])
		})
	})
}

// sparseGrad sets the gradient of parameter p to Xᵀ·d, d being all rows of level 0.
func (c *Ctx) sparseGrad(p int, values, d *kernels.Mat) {
	c.eachPart(0, []int{p}, func(g []*kernels.Mat, rows kernels.Span) {
		c.S.SpMMT(g[0], c.SparseX, values, d, kernels.Span{Lo: c.Rows[0].Lo + rows.Lo, Hi: c.Rows[0].Lo + rows.Hi})
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
			b.gatherStep(Gather{Hop: of.Level, Back: true, Src: b.gradOf(out), Dst: b.setGrad(in), Norm: norm}, layer, nil)
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

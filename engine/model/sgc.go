package model

import (
	"dorylus/engine/task"
)

// SGC is simple graph convolution (Wu et al., ICML 2019): a linear classifier on
// features that have gone Hops times through GCN's normalised adjacency,
//
//	logits = Â^K·X·W + b
//
// Of constant dense features that is done once and kept, and an epoch gathers
// nothing; sparse ones are multiplied first, which leaves narrower rows to gather.
func SGC(cfg Config) *Program {
	b := newBuilder(cfg)
	spec := ParamSpec{Name: "conv1.lin.weight", Rows: cfg.Features, Cols: cfg.Classes, Init: Glorot, Transposed: true, Layer: 1}
	bias := func() epilogue {
		return b.withBiasNamed(epilogue{bias: NoBuf, layer: 1}, "conv1.lin.bias", 1, cfg.Classes)
	}
	h := X
	switch {
	case cfg.Hops == 0:
		h = b.linear(h, 1, spec, bias())
	case b.keeps(h):
		for k := range cfg.Hops {
			h = b.kept(name("Â^", k+1)+"X", h, NormGCN)
		}
		h = b.linear(h, 1, spec, bias())
	default:
		h = b.linear(h, 1, spec, plain)
		for k := range cfg.Hops {
			e := plain
			if k == cfg.Hops-1 {
				e = bias()
			}
			h = b.gather(h, k+1, NormGCN, e)
		}
	}
	b.loss(h)
	return b.finish()
}

// APPNP predicts with an MLP and propagates by personalised PageRank (Gasteiger,
// Bojchevski, Günnemann, ICLR 2019):
//
//	H = MLP(X),  Z_0 = H,  Z_k = (1-alpha)·Â·Z_{k-1} + alpha·H,  logits = Z_K
func APPNP(cfg Config) *Program {
	b := newBuilder(cfg)
	h := b.stack(b.widths(), b.lin)
	z, start := h, h
	for k := range cfg.Hops {
		liftPlace := b.later()
		lifted := b.lift(liftPlace, start, k+1)
		z = b.blend(b.gather(z, k+1, NormGCN, plain), lifted, cfg.Alpha, k+1)
		start = lifted
	}
	b.loss(z)
	return b.finish()
}

// lift is a buffer of the level above h's with the rows of the same vertices.
// Backward, what it gets is added to h's rows after the stages between have set
// their gradient.
func (b *builder) lift(place *func(), h, layer int) int {
	of := b.p.Bufs[h]
	out := b.buf(Buf{Name: name("up", layer), Level: of.Level + 1, Cols: of.Cols})
	b.tensor(Step{Kind: task.AV, Layer: layer, In: []int{h}, Out: []int{out}, Scratch: of.Cols}, func(c *Ctx) {
		c.S.Copy(c.Mat(out), c.SelfRows(h, of.Level))
	})
	b.leaf[out] = b.leaf[h]
	*place = func() {
		if !b.needsGrad(h) {
			return
		}
		d := b.gradOf(out)
		dh, first := b.contribute(h)
		b.tensor(Step{Kind: task.AV, Layer: layer, In: []int{d, dh}, Out: []int{dh}}, func(c *Ctx) {
			if first {
				c.S.Zero(c.Mat(dh))
			}
			c.AddToSelf(dh, c.Mat(d), of.Level)
		})
	}
	return out
}

// blend adds out = (1-alpha)·a + alpha·h, two buffers of one level.
func (b *builder) blend(a, h int, alpha float32, layer int) int {
	of := b.p.Bufs[a]
	out := b.buf(Buf{Name: name("Z", layer), Level: of.Level, Cols: of.Cols})
	b.tensor(Step{Kind: task.AV, Layer: layer, In: []int{a, h}, Out: []int{out}}, func(c *Ctx) {
		m, am := c.Mat(out), c.Mat(a)
		c.S.AddScaled(m, am, am, -alpha, nil)
		c.S.AddScaled(m, m, c.Mat(h), alpha, nil)
	})
	b.backward = append(b.backward, func() {
		d := b.gradOf(out)
		da, _ := b.contribute(a)
		s := Step{Kind: task.AV, Layer: layer, In: []int{d}, Out: []int{da}}
		dh, first := NoBuf, true
		if b.needsGrad(h) {
			dh, first = b.contribute(h)
			s.Out = append(s.Out, dh)
		}
		b.tensor(s, func(c *Ctx) {
			dm := c.Mat(d)
			c.S.AddScaled(c.Mat(da), dm, dm, -alpha, nil)
			if dh == NoBuf {
				return
			}
			m := c.Mat(dh)
			if first {
				c.S.Zero(m)
			}
			c.S.AddScaled(m, m, dm, alpha, nil)
		})
	})
	return out
}

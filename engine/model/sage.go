package model

import (
	"fmt"

	"dorylus/engine/task"
	"dorylus/kernels"
)

// SAGE is GraphSAGE (Hamilton, Ying, Leskovec, NeurIPS 2017) over all neighbours:
//
//	H_l = drop(act(agg(H_{l-1})·Wl_l + H_{l-1}·Wr_l + b_l))
//
// agg is the mean over in-neighbours, weighted by the edges, or their maximum; the
// aggregate of none is 0. No self-loops are added. A mean is taken after its
// product where that is narrower, a maximum always before.
func SAGE(cfg Config) *Program {
	b := newBuilder(cfg)
	b.loss(b.stack(b.widths(), b.sage))
	return b.finish()
}

// sage is one convolution.
func (b *builder) sage(h, width, out, l int, e epilogue) int {
	wl := ParamSpec{Name: fmt.Sprintf("conv%d.lin_l.weight", l), Rows: width, Cols: out, Init: Glorot, Transposed: true, Layer: l}
	wr := ParamSpec{Name: fmt.Sprintf("conv%d.lin_r.weight", l), Rows: width, Cols: out, Init: Glorot, Transposed: true, Layer: l}
	e = b.withBiasNamed(e, fmt.Sprintf("conv%d.lin_l.bias", l), l, out)
	if b.cfg.Aggregator == "max" {
		if h == X && (b.cfg.InputDropout > 0 || b.cfg.NoCache) {
			h = b.droppedInput()
		}
		place := b.later()
		return b.twoProducts(b.maxOf(h, l), h, wl, wr, l, e, place)
	}
	switch {
	case b.keeps(h):
		return b.twoProducts(b.kept("mean(X)", X, NormMean), h, wl, wr, l, e, b.later())
	case width <= out && !(h == X && b.cfg.Sparse):
		if h == X {
			h = b.droppedInput()
		}
		place := b.later()
		return b.twoProducts(b.gather(h, l, NormMean, plain), h, wl, wr, l, e, place)
	}
	own := b.linear(h, l, wr, plain)
	place := b.later()
	return b.addSelf(place, b.gather(b.linear(h, l, wl, plain), l, NormMean, plain), own, NoBuf, l, e)
}

// twoProducts adds out = epilogue(m·Wl + self(h)·Wr), m being one level above h.
func (b *builder) twoProducts(m, h int, wlSpec, wrSpec ParamSpec, layer int, e epilogue, place *func()) int {
	wl, wr := b.param(wlSpec), b.param(wrSpec)
	level, hop := b.p.Bufs[m].Level, b.p.Bufs[h].Level
	out := b.buf(Buf{Name: name("H", layer), Level: level, Cols: wlSpec.Cols})
	s := Step{Kind: task.AV, Layer: layer, In: []int{m, h}, Out: []int{out}, Params: []int{wl, wr}, Scratch: b.p.Bufs[h].Cols}
	if e.bias != NoBuf {
		s.Params = append(s.Params, e.bias)
	}
	b.tensor(s, func(c *Ctx) {
		y := c.Mat(out)
		c.S.GEMM(y, c.SelfRows(h, hop), c.Weights[wr], kernels.NN, nil)
		c.S.AddGEMM(y, c.Mat(m), c.Weights[wl], kernels.NN, e.forward(c, level, false))
	})
	dSelf := NoBuf // dPre·Wrᵀ, kept until the gather has set h's gradient
	b.backward = append(b.backward, func() {
		b.backOp(out, e, layer)
		d := b.gradOf(out)
		back := Step{Kind: task.AV, Layer: layer, In: []int{m, h, d}, Grads: []int{wl, wr}, Params: []int{wl, wr}, Scratch: b.p.Bufs[h].Cols}
		dm := NoBuf
		if b.needsGrad(m) {
			dm, _ = b.contribute(m)
			back.Out = append(back.Out, dm)
		}
		if b.needsGrad(h) {
			dSelf = b.buf(Buf{Name: name("dself", layer), Level: level, Cols: b.p.Bufs[h].Cols, Grad: true})
			back.Out = append(back.Out, dSelf)
		}
		b.tensor(back, func(c *Ctx) {
			dy := c.Mat(d)
			c.gradGEMM(wr, c.SelfRows(h, hop), dy, level)
			c.gradGEMM(wl, c.Mat(m), dy, level)
			if dm != NoBuf {
				c.S.GEMM(c.Mat(dm), dy, c.Weights[wl], kernels.NT, nil)
			}
			if dSelf != NoBuf {
				c.S.GEMM(c.Mat(dSelf), dy, c.Weights[wr], kernels.NT, nil)
			}
		})
	})
	*place = func() {
		if dSelf == NoBuf {
			return
		}
		dh, first := b.contribute(h)
		b.tensor(Step{Kind: task.AV, Layer: layer, In: []int{dSelf, dh}, Out: []int{dh}}, func(c *Ctx) {
			if first {
				c.S.Zero(c.Mat(dh))
			}
			c.AddToSelf(dh, c.Mat(dSelf), hop)
		})
	}
	return out
}

// maxOf adds the column-wise maximum over in-neighbours. Backward, each gradient
// goes to the neighbour that the maximum came from; which one that was is
// published beside the gradient.
func (b *builder) maxOf(h, layer int) int {
	of := b.p.Bufs[h]
	w := of.Cols
	if of.Const {
		dst := b.buf(Buf{Name: "max(X)", Level: of.Level + 1, Cols: w, Const: true})
		b.p.Bufs[dst].Made = &Gather{Hop: of.Level, Src: h, Dst: dst, Run: func(c *Ctx, a *GatherArgs) {
			c.S.SpMMMax(c.Full[dst], nil, a.G, a.Src, a.Rows)
		}}
		b.leaf[dst] = true
		return dst
	}
	// The maxima, and behind them where they came from; the gradient takes the
	// place of the maxima on its way back.
	out := b.buf(Buf{Name: name("M", layer), Level: of.Level + 1, Cols: w})
	back := b.buf(Buf{Name: name("dM+arg", layer), Level: of.Level + 1, Cols: 2 * w, RefLo: w, RefHi: 2 * w, Grad: true})
	b.gatherStep(Gather{Hop: of.Level, Src: h, Dst: out, Run: func(c *Ctx, a *GatherArgs) {
		c.S.SpMMMax(c.Full[out], c.Full[back].Columns(w, 2*w), a.G, a.Src, a.Rows)
	}}, layer, nil)
	b.p.Steps[len(b.p.Steps)-1].Out = []int{out, back}
	if b.leaf[h] {
		b.leaf[out] = true
		return out
	}
	b.backward = append(b.backward, func() {
		d := b.gradOf(out)
		b.tensor(Step{Kind: task.AV, Layer: layer, In: []int{d}, Out: []int{back}}, func(c *Ctx) {
			c.S.Copy(c.Mat(back).Columns(0, w), c.Mat(d))
		})
		dh := b.setGrad(h)
		b.gatherStep(Gather{Hop: of.Level, Back: true, Src: back, Dst: dh, Run: func(c *Ctx, a *GatherArgs) {
			c.S.SpMMMaxBack(c.Full[dh], a.G, a.Src.Columns(0, w), a.Src.Columns(w, 2*w), a.Rows)
		}}, layer, nil)
	})
	return out
}

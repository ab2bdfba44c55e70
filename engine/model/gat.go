package model

import (
	"fmt"

	"dorylus/engine/task"
	"dorylus/kernels"
)

// GAT is the graph attention network (Veličković et al., ICLR 2018): per head,
//
//	Z = H_{l-1}·W,  e(j->i) = LeakyReLU(<a_src,Z_j> + <a_dst,Z_i>) over in-edges and a self-loop
//	H_l[i] = drop(act(sum of softmax(e)·Z_j + b))
//
// with dropout on the coefficients, heads concatenated, and averaged in the last
// layer. An edge's weight acts like that many parallel edges.
//
// The scores are two scalars per vertex and head (AE); they travel beside Z. The
// gather computes softmax and sum in one go and keeps a logarithm per vertex and
// head, from which both backward gathers compute the coefficients again.
func GAT(cfg Config) *Program {
	b := newBuilder(cfg)
	widths := b.widths()
	for l := range widths {
		if !b.isOutput(l + 1) {
			widths[l] *= cfg.Heads
		}
	}
	b.loss(b.stack(widths, func(h, width, out, l int, e epilogue) int {
		if b.isOutput(l) {
			return b.gat(h, width, cfg.OutHeads, out, l, true, e)
		}
		return b.gat(h, width, cfg.Heads, out/cfg.Heads, l, false, e)
	}))
	return b.finish()
}

// attentionStage is the buffers of one attention layer. Columns of zs, published
// forward: Z, a_src scores, a_dst scores. Columns of gs, published backward: the
// gradient of the output, and of each destination its a_dst score, lse and dot.
type attentionStage struct {
	heads, d, layer int
	hop             int
	zs, gs, out     int
	lse             int
	p               float32 // dropout on coefficients
	slope           float32
}

func (a *attentionStage) hd() int { return a.heads * a.d }

// part is the k-th group of heads columns behind the first hd ones of m.
func (a *attentionStage) part(m *kernels.Mat, k int) *kernels.Mat {
	lo := a.hd() + k*a.heads
	return m.Columns(lo, lo+a.heads)
}

func (a *attentionStage) body(m *kernels.Mat) *kernels.Mat { return m.Columns(0, a.hd()) }

// attention is the op's argument, forward (from level hop to hop+1) or back.
func (a *attentionStage) attention(c *Ctx, self kernels.Self) kernels.Attention {
	at := kernels.Attention{Heads: a.heads, Slope: a.slope, Self: self, SrcIDs: c.IDs[a.hop], DstIDs: c.IDs[a.hop+1]}
	if c.Train && a.p > 0 {
		at.Drop = kernels.Dropout{P: a.p, Key: kernels.DropKey(c.Seed, c.Epoch, attentionDrop+a.layer)}
	}
	return at
}

// attentionDrop sets the layers of attention dropout apart from those of the
// activations.
const attentionDrop = 1 << 16

// gat is one attention layer.
func (b *builder) gat(h, width, heads, d, l int, last bool, e epilogue) int {
	name := func(what string) string { return fmt.Sprintf("conv%d.%s", l, what) }
	hd := heads * d
	level := b.p.Bufs[h].Level
	w := b.param(ParamSpec{Name: name("lin.weight"), Rows: width, Cols: hd, Init: Glorot, Transposed: true, Layer: l})
	src := b.param(ParamSpec{Name: name("att_src"), Rows: heads, Cols: d, Init: Glorot, Layer: l, Shape: []int{1, heads, d}})
	dst := b.param(ParamSpec{Name: name("att_dst"), Rows: heads, Cols: d, Init: Glorot, Layer: l, Shape: []int{1, heads, d}})
	a := &attentionStage{heads: heads, d: d, layer: l, hop: level, p: b.cfg.AttentionDropout, slope: 0.2}
	a.zs = b.buf(Buf{Name: fmt.Sprintf("Z%d", l), Level: level, Cols: hd + 2*heads})
	a.out = b.buf(Buf{Name: fmt.Sprintf("O%d", l), Level: level + 1, Cols: hd})
	a.lse = b.buf(Buf{Name: fmt.Sprintf("lse%d", l), Level: level + 1, Cols: heads})
	a.gs = b.buf(Buf{Name: fmt.Sprintf("dO%d", l), Level: level + 1, Cols: hd + 3*heads, Grad: true})

	b.product(a, h, w)
	// AE: two scores per vertex and head.
	b.tensor(Step{Kind: task.AE, Layer: l, In: []int{a.zs}, Out: []int{a.zs}, Params: []int{src, dst}}, func(c *Ctx) {
		zs := c.Mat(a.zs)
		c.S.HeadDot(a.part(zs, 0), a.body(zs), c.Weights[src])
		c.S.HeadDot(a.part(zs, 1), a.body(zs), c.Weights[dst])
	})
	b.attend(a, h, w, src, dst, l, last && heads > 1, &e)
	if last && heads > 1 {
		return b.headMean(a, l, e)
	}
	return a.out
}

// product sets Z = H·W, forward only: its gradient is part of attend's.
func (b *builder) product(a *attentionStage, h, w int) {
	s := Step{Kind: task.AV, Layer: a.layer, In: []int{h}, Out: []int{a.zs}, Params: []int{w}, Scratch: b.inputScratch(h)}
	switch {
	case h == X && b.cfg.Sparse:
		values := b.sparseValues(&s)
		b.tensor(s, func(c *Ctx) {
			rows := c.Rows[0]
			c.S.SpMM(a.body(c.Full[a.zs]), c.SparseX, c.Weights[w], kernels.Gather{W: values(c)}, rows)
		})
	default:
		in := b.denseInput(h)
		b.tensor(s, func(c *Ctx) {
			c.S.GEMM(a.body(c.Mat(a.zs)), in(c), c.Weights[w], kernels.NN, nil)
		})
	}
}

// attend adds the gather and, backward, both gathers and the gradients of
// everything up to h.
func (b *builder) attend(a *attentionStage, h, w, src, dst, l int, averaged bool, e *epilogue) {
	var params []int
	end := epilogue{bias: NoBuf, layer: l}
	if !averaged {
		*e = b.withBiasNamed(*e, fmt.Sprintf("conv%d.bias", l), l, a.hd())
		end = *e
		if e.bias != NoBuf {
			params = []int{e.bias}
		}
	}
	sc := b.publish(a.zs, l)
	b.gatherFrom(sc, Gather{Hop: a.hop, Src: a.zs, Dst: a.out, Norm: NormSelf, Run: func(c *Ctx, g *GatherArgs) {
		// A destination's own score is the one it computed as a source.
		ad := a.part(c.Full[a.gs], 0)
		rows := g.Rows
		own := a.part(c.Full[a.zs], 1)
		if ids := c.Self[a.hop]; ids == nil {
			c.S.Copy(ad.Sub(rows), own.Sub(rows))
		} else {
			c.S.GatherRows(ad.Sub(rows), own, ids[rows.Lo:rows.Hi])
		}
		var ep *kernels.Epilogue
		if !end.trivial() || end.bias != NoBuf {
			ep = end.forward(c, a.hop+1, true)
		}
		c.S.GAT(c.Full[a.out], c.Full[a.lse], g.G, a.body(g.Src), a.part(g.Src, 0), ad, a.attention(c, g.Args.Self), ep, rows)
	}}, l, params)
	b.p.Steps[len(b.p.Steps)-1].In = []int{a.zs}
	b.p.Steps[len(b.p.Steps)-1].Out = []int{a.out, a.lse, a.gs}

	b.backward = append(b.backward, func() {
		b.backOp(a.out, end, l)
		d := b.gradOf(a.out)
		// dO beside the scores that are in gs already.
		b.tensor(Step{Kind: task.AV, Layer: l, In: []int{d, a.lse}, Out: []int{a.gs}}, func(c *Ctx) {
			gs := c.Mat(a.gs)
			c.S.Copy(a.body(gs), c.Mat(d))
			c.S.Copy(a.part(gs, 1), c.Mat(a.lse))
		})
		dad := b.buf(Buf{Name: fmt.Sprintf("dadst%d", l), Level: a.hop + 1, Cols: a.heads, Grad: true})
		b.gatherFrom(sc, Gather{Hop: a.hop, Src: a.zs, Dst: dad, Norm: NormSelf, Run: func(c *Ctx, g *GatherArgs) {
			gs := c.Full[a.gs]
			c.S.GATBackDst(c.Full[dad], a.part(gs, 2), g.G, a.body(g.Src), a.part(g.Src, 0), a.part(gs, 0), a.part(gs, 1), a.body(gs), a.attention(c, g.Args.Self), g.Rows)
		}}, l, nil)
		b.p.Steps[len(b.p.Steps)-1].In = []int{a.zs, a.gs}
		b.p.Steps[len(b.p.Steps)-1].Out = []int{dad, a.gs}
		// Back along the edges: dZ and the gradient of the a_src scores; the
		// third group of columns is for that of the a_dst scores.
		dzs := b.buf(Buf{Name: fmt.Sprintf("dZ%d", l), Level: a.hop, Cols: a.hd() + 2*a.heads, Grad: true})
		b.gatherStep(Gather{Hop: a.hop, Back: true, Src: a.gs, Dst: dzs, Norm: NormSelf, Run: func(c *Ctx, g *GatherArgs) {
			zs, dz := c.Full[a.zs], c.Full[dzs]
			c.S.GATBackSrc(a.body(dz), a.part(dz, 0), g.G, a.body(zs), a.part(zs, 0), a.part(g.Src, 0), a.part(g.Src, 1), a.part(g.Src, 2), a.body(g.Src), a.attention(c, g.Args.Self), g.Rows)
		}}, l, nil)
		b.p.Steps[len(b.p.Steps)-1].In = []int{a.gs, a.zs}
		b.tensor(Step{Kind: task.AE, Layer: l, In: []int{dzs, dad, a.zs}, Out: []int{dzs}, Params: []int{src, dst}, Grads: []int{src, dst}}, func(c *Ctx) {
			dz, zs := c.Mat(dzs), c.Mat(a.zs)
			das, dadst := a.part(dz, 0), a.part(dz, 1)
			c.S.Zero(dadst)
			if ids := c.Self[a.hop]; ids == nil {
				c.S.Copy(dadst, c.Mat(dad))
			} else {
				span := c.Rows[a.hop+1]
				c.S.AddRows(a.part(c.Full[dzs], 1), c.Mat(dad), ids[span.Lo:span.Hi])
			}
			c.gradHeadDot(src, das, a.body(zs), a.hop)
			c.gradHeadDot(dst, dadst, a.body(zs), a.hop)
			c.S.HeadOuterAdd(a.body(dz), das, c.Weights[src])
			c.S.HeadOuterAdd(a.body(dz), dadst, c.Weights[dst])
		})
		b.productBack(a, h, w, dzs)
	})
}

// productBack is product's gradient.
func (b *builder) productBack(a *attentionStage, h, w, dzs int) {
	s := Step{Kind: task.AV, Layer: a.layer, In: []int{h, dzs}, Grads: []int{w}, Scratch: b.inputScratch(h)}
	if h == X && b.cfg.Sparse {
		values := b.sparseValues(&s)
		b.tensor(s, func(c *Ctx) {
			c.sparseGrad(w, values(c), a.body(c.Full[dzs]))
		})
		return
	}
	in := b.denseInput(h)
	dh, first := NoBuf, true
	if b.needsGrad(h) {
		dh, first = b.contribute(h)
		s.Out, s.Params = []int{dh}, []int{w}
	}
	b.tensor(s, func(c *Ctx) {
		dz := a.body(c.Mat(dzs))
		c.gradGEMM(w, in(c), dz, a.hop)
		switch {
		case dh == NoBuf:
		case first:
			c.S.GEMM(c.Mat(dh), dz, c.Weights[w], kernels.NT, nil)
		default:
			c.S.AddGEMM(c.Mat(dh), dz, c.Weights[w], kernels.NT, nil)
		}
	})
}

// headMean averages the heads of the last layer.
func (b *builder) headMean(a *attentionStage, l int, e epilogue) int {
	e = b.withBiasNamed(e, fmt.Sprintf("conv%d.bias", l), l, a.d)
	out := b.buf(Buf{Name: name("H", l), Level: a.hop + 1, Cols: a.d})
	s := Step{Kind: task.AV, Layer: l, In: []int{a.out}, Out: []int{out}}
	if e.bias != NoBuf {
		s.Params = []int{e.bias}
	}
	b.tensor(s, func(c *Ctx) {
		c.S.HeadMean(c.Mat(out), c.Mat(a.out), a.heads, e.forward(c, a.hop+1, false))
	})
	b.backward = append(b.backward, func() {
		b.backOp(out, e, l)
		d := b.gradOf(out)
		dO, _ := b.contribute(a.out)
		b.tensor(Step{Kind: task.AV, Layer: l, In: []int{d}, Out: []int{dO}}, func(c *Ctx) {
			c.S.HeadSpread(c.Mat(dO), c.Mat(d), a.heads)
		})
	})
	return out
}

package model

import (
	"dorylus/engine/task"
	"dorylus/kernels"
)

// addSelf adds out = epilogue(a + scale·self(h)), where a is a buffer of the level
// above h's and self(h) the rows of h of the same vertices; h may also be of a's
// own level. scale is 1 + the parameter eps, or 1 for NoBuf.
//
// Backward: da = dPre, dh gets scale·dPre in its own vertices' rows, deps =
// <dPre, self(h)>. What h gets is added after the stages between h and a have set
// its gradient, which is why place was kept before them.
func (b *builder) addSelf(place *func(), a, h, eps, layer int, e epilogue) int {
	of := b.p.Bufs[a]
	hop := b.p.Bufs[h].Level
	out := b.buf(Buf{Name: name("S", layer), Level: of.Level, Cols: of.Cols})
	s := Step{Kind: task.AV, Layer: layer, In: []int{a, h}, Out: []int{out}, Scratch: of.Cols}
	for _, p := range []int{eps, e.bias} {
		if p != NoBuf {
			s.Params = append(s.Params, p)
		}
	}
	self := func(c *Ctx) *kernels.Mat {
		if hop == of.Level {
			return c.Mat(h)
		}
		return c.SelfRows(h, hop)
	}
	scale := func(c *Ctx) *kernels.Mat {
		if eps == NoBuf {
			return nil
		}
		return c.Weights[eps]
	}
	b.tensor(s, func(c *Ctx) {
		m := c.Mat(out)
		c.S.AddScaled(m, c.Mat(a), self(c), 1, scale(c))
		if !e.trivial() || e.bias != NoBuf {
			c.S.Forward(m, m, e.forward(c, of.Level, false), kernels.Span{Hi: m.Rows})
		}
	})
	b.leaf[out] = b.leaf[a] && b.leaf[h] && eps == NoBuf && e.bias == NoBuf
	if b.leaf[out] {
		return out
	}
	b.backward = append(b.backward, func() {
		b.backOp(out, e, layer)
		d := b.gradOf(out)
		if eps != NoBuf {
			b.tensor(Step{Kind: task.AV, Layer: layer, In: []int{d, h}, Grads: []int{eps}, Scratch: of.Cols}, func(c *Ctx) {
				dm, own := c.Mat(d), self(c)
				c.eachPart(of.Level, []int{eps}, func(g []*kernels.Mat, rows kernels.Span) { c.S.Dot(g[0], dm.Sub(rows), own.Sub(rows)) })
			})
		}
		if b.needsGrad(a) {
			// a's gradient is out's: nothing changes it before a's own stage reads it.
			b.grad[a] = d
			b.begun[a] = true
		}
	})
	*place = func() {
		if !b.needsGrad(h) {
			return
		}
		d := b.gradOf(out)
		dh, first := b.contribute(h)
		s := Step{Kind: task.AV, Layer: layer, In: []int{d, dh}, Out: []int{dh}}
		if eps != NoBuf {
			s.Params, s.Scratch = []int{eps}, of.Cols
		}
		b.tensor(s, func(c *Ctx) {
			part := c.Mat(d)
			if eps != NoBuf {
				scaled := c.Scratch(2, part.Rows, part.Cols)
				c.S.Zero(scaled)
				c.S.AddScaled(scaled, scaled, part, 1, c.Weights[eps])
				part = scaled
			}
			switch {
			case hop == of.Level && first:
				c.S.Copy(c.Mat(dh), part)
			case hop == of.Level:
				m := c.Mat(dh)
				c.S.Add(m, m, part)
			default:
				if first {
					c.S.Zero(c.Mat(dh))
				}
				c.AddToSelf(dh, part, hop)
			}
		})
	}
	return out
}

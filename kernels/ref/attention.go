package ref

import (
	"math"

	"dorylus/kernels"
)

// GAT is attention's gather; the formulas are in kernels.AttentionGatherer.
func (s *stream) GAT(dst, lse *kernels.Mat, g kernels.Graph, x, as, ad *kernels.Mat, p kernels.Attention, ep *kernels.Epilogue, rows kernels.Span) {
	kernels.CheckGAT(dst, lse, g, x, as, ad, p, ep, rows)
	kernels.CheckHost("GAT", dst, lse, x, as, ad, p.Self.W, bias(ep))
	r := own("GAT", g)
	if !s.runs("GAT") {
		return
	}
	h, d := p.Heads, x.Cols/p.Heads
	for v := rows.Lo; v < rows.Hi; v++ {
		buf := s.zeros(x.Cols + 2*h)
		acc, top, sum := buf[:x.Cols], buf[x.Cols:x.Cols+h], buf[x.Cols+h:]
		for k := range top {
			top[k] = -math.MaxFloat32 // a score of -Inf is a term of 0, not 0/0
		}
		n := 0
		for t := termsOf(r, p.Self, v); t.next(); n++ {
			for k, a := range as.Row(t.at) {
				if z, _ := score(p, a, ad.Row(v)[k]); z > top[k] {
					top[k] = z
				}
			}
		}
		if n == 0 {
			for k := range h {
				lse.Row(v)[k] = float32(math.Inf(-1))
			}
			finish(dst.Row(v), acc, v, ep)
			continue
		}
		for t := termsOf(r, p.Self, v); t.next(); {
			for k, a := range as.Row(t.at) {
				z, _ := score(p, a, ad.Row(v)[k])
				e := t.w * math.Exp(z-top[k])
				sum[k] += e
				axpy(acc[k*d:(k+1)*d], kept(p, t.at, v, k, e), x.Row(t.at)[k*d:(k+1)*d])
			}
		}
		for k, total := range sum {
			for c := k * d; c < (k+1)*d; c++ {
				acc[c] /= total
			}
			lse.Row(v)[k] = float32(top[k] + math.Log(total))
		}
		finish(dst.Row(v), acc, v, ep)
	}
}

// GATBackDst is the part of the gradient that gathers along the graph.
func (s *stream) GATBackDst(dad, dot *kernels.Mat, g kernels.Graph, x, as, ad, lse, dy *kernels.Mat, p kernels.Attention, rows kernels.Span) {
	kernels.CheckGATBackDst(dad, dot, g, x, as, ad, lse, dy, p, rows)
	kernels.CheckHost("GATBackDst", dad, dot, x, as, ad, lse, dy, p.Self.W)
	r := own("GATBackDst", g)
	if !s.runs("GATBackDst") {
		return
	}
	h, d := p.Heads, x.Cols/p.Heads
	for v := rows.Lo; v < rows.Hi; v++ {
		buf := s.zeros(3 * h)
		aq, aqs, asl := buf[:h], buf[h:2*h], buf[2*h:]
		for t := termsOf(r, p.Self, v); t.next(); {
			for k, a := range as.Row(t.at) {
				z, slope := score(p, a, ad.Row(v)[k])
				alpha := t.w * math.Exp(z-float64(lse.Row(v)[k]))
				q := kept(p, t.at, v, k, 1) * inner(dy.Row(v)[k*d:(k+1)*d], x.Row(t.at)[k*d:(k+1)*d])
				aq[k] += alpha * q
				aqs[k] += alpha * q * slope
				asl[k] += alpha * slope
			}
		}
		for k := range h {
			dot.Row(v)[k] = float32(aq[k])
			dad.Row(v)[k] = float32(aqs[k] - aq[k]*asl[k])
		}
	}
}

// GATBackSrc is the part of the gradient that gathers along the transpose.
func (s *stream) GATBackSrc(dx, das *kernels.Mat, back kernels.Graph, x, as, ad, lse, dot, dy *kernels.Mat, p kernels.Attention, rows kernels.Span) {
	kernels.CheckGATBackSrc(dx, das, back, x, as, ad, lse, dot, dy, p, rows)
	kernels.CheckHost("GATBackSrc", dx, das, x, as, ad, lse, dot, dy, p.Self.W)
	r := own("GATBackSrc", back)
	if !s.runs("GATBackSrc") {
		return
	}
	h, d := p.Heads, x.Cols/p.Heads
	for u := rows.Lo; u < rows.Hi; u++ {
		buf := s.zeros(x.Cols + h)
		acc, sum := buf[:x.Cols], buf[x.Cols:]
		for t := termsOf(r, p.Self, u); t.next(); {
			for k, a := range as.Row(u) {
				z, slope := score(p, a, ad.Row(t.at)[k])
				alpha := t.w * math.Exp(z-float64(lse.Row(t.at)[k]))
				keep, grad := kept(p, u, t.at, k, 1), dy.Row(t.at)[k*d:(k+1)*d]
				axpy(acc[k*d:(k+1)*d], alpha*keep, grad)
				sum[k] += alpha * (keep*inner(grad, x.Row(u)[k*d:(k+1)*d]) - float64(dot.Row(t.at)[k])) * slope
			}
		}
		finish(dx.Row(u), acc, u, nil)
		finish(das.Row(u), sum, u, nil)
	}
}

// inner is the product of two rows, under a name that no operand has.
func inner(x, y []float32) float64 { return dot(x, y) }

// score is s of the formulas, and its slope.
func score(p kernels.Attention, src, dst float32) (s, slope float64) {
	z := float64(src) + float64(dst)
	if z > 0 {
		return z, 1
	}
	return float64(p.Slope) * z, float64(p.Slope)
}

// kept is a after the dropout of alphas: a/(1-P), or 0.
func kept(p kernels.Attention, u, v, head int, a float64) float64 {
	if p.Drop.P == 0 {
		return a
	}
	row := kernels.DropRow(p.Drop.Key, idOf(p.DstIDs, v))
	if !kernels.DropKeep(row, uint32(idOf(p.SrcIDs, u))*uint32(p.Heads)+uint32(head), p.Drop.Threshold()) {
		return 0
	}
	return a * keepScale(p.Drop)
}

func idOf(ids []int32, i int) int32 {
	if ids == nil {
		return int32(i)
	}
	return ids[i]
}

// terms goes through the terms of one row: its own first, then its edges, without
// those of weight 0.
type terms struct {
	at int     // the row that the term gathers
	w  float64 // its weight

	g     *graph
	e, hi int
	self  int // -1: none, or done
	selfW float64
}

func termsOf(g *graph, self kernels.Self, v int) terms {
	t := terms{g: g, e: int(g.RowPtr[v]), hi: int(g.RowPtr[v+1]), self: selfOf(self, v)}
	if t.self >= 0 {
		t.selfW = at(column(self.W), v)
	}
	return t
}

func (t *terms) next() bool {
	if t.self >= 0 {
		t.at, t.w, t.self = t.self, t.selfW, -1
		if t.w != 0 {
			return true
		}
	}
	for ; t.e < t.hi; t.e++ {
		if w := at(t.g.Val, t.e); w != 0 {
			t.at, t.w = int(t.g.Col[t.e]), w
			t.e++
			return true
		}
	}
	return false
}

package spill

import "dorylus/kernels"

// groups are the spans of heads that an attention gather runs on: each has the same
// number of heads, which divides that of all, and as many as a tile holds, or one.
func (s *Stream) groups(heads, d int) []kernels.Span {
	n := 1
	for k := 2; k <= heads; k++ {
		if heads%k == 0 && k*d <= s.mem.cfg.Tile {
			n = k
		}
	}
	var g []kernels.Span
	for h := 0; h < heads; h += n {
		g = append(g, kernels.Span{Lo: h, Hi: h + n})
	}
	return g
}

// ofHeads is p for a group of heads of groups. The bits of the dropout belong to
// id·Heads + h, modulo 2³²; with n heads in the group that is id'·n + h - h0 for
// id' = id·(Heads/n) + h0/n.
func ofHeads(p kernels.Attention, heads kernels.Span, sources int) kernels.Attention {
	n := heads.Len()
	if n == p.Heads {
		return p
	}
	q := p
	q.Heads = n
	if p.Drop.P == 0 {
		return q
	}
	q.SrcIDs = make([]int32, sources)
	for u := range q.SrcIDs {
		id := uint32(u)
		if p.SrcIDs != nil {
			id = uint32(p.SrcIDs[u])
		}
		q.SrcIDs[u] = int32(id*uint32(p.Heads/n) + uint32(heads.Lo/n))
	}
	return q
}

// wide is the columns of a group of heads.
func wide(heads kernels.Span, d int) kernels.Span {
	return kernels.Span{Lo: heads.Lo * d, Hi: heads.Hi * d}
}

// beside says whether two matrices are parts of the same spilled one. What a step writes
// must then be no part of what the whole op writes.
func (s *Stream) beside(a, b *kernels.Mat) bool {
	if !Spilled(a) || !Spilled(b) {
		return false
	}
	x, _, _ := s.mem.find(a.Addr)
	y, _, _ := s.mem.find(b.Addr)
	return x == y
}

func pick(m *kernels.Mat, heads kernels.Span) *kernels.Mat { return m.Columns(heads.Lo, heads.Hi) }

// GAT implements kernels.Stream.
func (s *Stream) GAT(dst, lse *kernels.Mat, g kernels.Graph, x, as, ad *kernels.Mat, p kernels.Attention, ep *kernels.Epilogue, rows kernels.Span) {
	if !anySpilled(dst, lse, x, as, ad, p.Self.W, biasOf(ep)) {
		s.Lower.GAT(dst, lse, g, x, as, ad, p, ep, rows)
		return
	}
	kernels.CheckGAT(dst, lse, g, x, as, ad, p, ep, rows)
	own := []part{all(p.Self.W, reads), all(biasOf(ep), reads)}
	if !anySpilled(x, as) {
		s.span("GAT", rows, own, []part{within(dst, rows, writes, true), within(lse, rows, writes, true), within(ad, rows, reads, true)}, func(r kernels.Span, w, m []*kernels.Mat) {
			q := p
			q.Self.W = w[0]
			s.Lower.GAT(m[0], m[1], g, x, as, m[2], q, wholeEpilogue(ep, w[1]), r)
		})
		return
	}
	d := x.Cols / p.Heads
	cut := s.groups(p.Heads, d)
	e := s.across(ep, cut)
	whole := append(own, all(as, reads), within(ad, rows, reads, true))
	apart := !s.beside(lse, dst)
	if apart {
		whole = append(whole, within(lse, rows, writes, true))
	}
	s.run(job{"GAT", whole, len(cut), func(i int) []part {
		c := wide(cut[i], d)
		parts := []part{columns(dst, rows, c, writes, true), columns(x, to(x.Rows), c, reads, false)}
		if !apart {
			parts = append(parts, columns(lse, rows, cut[i], writes, true))
		}
		return parts
	}, func(i int, w, m []*kernels.Mat) {
		q, h := ofHeads(p, cut[i], x.Rows), cut[i]
		q.Self.W = w[0]
		l := m[len(m)-1]
		if apart {
			l = pick(w[4], h)
		}
		e.on(wide(h, d), w[1], func(ep *kernels.Epilogue) {
			s.Lower.GAT(m[0], l, g, m[1], pick(w[2], h), pick(w[3], h), q, ep, rows)
		})
	}})
	e.end(dst, rows)
}

// GATBackDst implements kernels.Stream.
func (s *Stream) GATBackDst(dad, dot *kernels.Mat, g kernels.Graph, x, as, ad, lse, dy *kernels.Mat, p kernels.Attention, rows kernels.Span) {
	if !anySpilled(dad, dot, x, as, ad, lse, dy, p.Self.W) {
		s.Lower.GATBackDst(dad, dot, g, x, as, ad, lse, dy, p, rows)
		return
	}
	kernels.CheckGATBackDst(dad, dot, g, x, as, ad, lse, dy, p, rows)
	own := []part{all(p.Self.W, reads)}
	in := func(m *kernels.Mat, mo mode) part { return within(m, rows, mo, true) }
	if !anySpilled(x, as) {
		s.span("GATBackDst", rows, own, []part{in(dad, writes), in(dot, writes), in(ad, reads), in(lse, reads), in(dy, reads)}, func(r kernels.Span, w, m []*kernels.Mat) {
			q := p
			q.Self.W = w[0]
			s.Lower.GATBackDst(m[0], m[1], g, x, as, m[2], m[3], m[4], q, r)
		})
		return
	}
	d := x.Cols / p.Heads
	cut := s.groups(p.Heads, d)
	whole := append(own, in(dad, writes), in(dot, writes), all(as, reads), in(ad, reads), in(lse, reads))
	s.run(job{"GATBackDst", whole, len(cut), func(i int) []part {
		c := wide(cut[i], d)
		return []part{columns(x, to(x.Rows), c, reads, false), columns(dy, rows, c, reads, true)}
	}, func(i int, w, m []*kernels.Mat) {
		q, h := ofHeads(p, cut[i], x.Rows), cut[i]
		q.Self.W = w[0]
		s.Lower.GATBackDst(pick(w[1], h), pick(w[2], h), g, m[0], pick(w[3], h), pick(w[4], h), pick(w[5], h), m[1], q, rows)
	}})
}

// GATBackSrc implements kernels.Stream.
func (s *Stream) GATBackSrc(dx, das *kernels.Mat, back kernels.Graph, x, as, ad, lse, dot, dy *kernels.Mat, p kernels.Attention, rows kernels.Span) {
	if !anySpilled(dx, das, x, as, ad, lse, dot, dy, p.Self.W) {
		s.Lower.GATBackSrc(dx, das, back, x, as, ad, lse, dot, dy, p, rows)
		return
	}
	kernels.CheckGATBackSrc(dx, das, back, x, as, ad, lse, dot, dy, p, rows)
	own := []part{all(p.Self.W, reads)}
	in := func(m *kernels.Mat, mo mode) part { return within(m, rows, mo, true) }
	if !anySpilled(ad, lse, dot, dy) {
		s.span("GATBackSrc", rows, own, []part{in(dx, writes), in(das, writes), in(x, reads), in(as, reads)}, func(r kernels.Span, w, m []*kernels.Mat) {
			q := p
			q.Self.W = w[0]
			s.Lower.GATBackSrc(m[0], m[1], back, m[2], m[3], ad, lse, dot, dy, q, r)
		})
		return
	}
	d := x.Cols / p.Heads
	cut := s.groups(p.Heads, d)
	whole := append(own, in(as, reads), all(ad, reads), all(lse, reads), all(dot, reads))
	apart := !s.beside(das, dx)
	if apart {
		whole = append(whole, in(das, writes))
	}
	s.run(job{"GATBackSrc", whole, len(cut), func(i int) []part {
		c := wide(cut[i], d)
		parts := []part{columns(dx, rows, c, writes, true), columns(x, rows, c, reads, true), columns(dy, to(dy.Rows), c, reads, false)}
		if !apart {
			parts = append(parts, columns(das, rows, cut[i], writes, true))
		}
		return parts
	}, func(i int, w, m []*kernels.Mat) {
		q, h := ofHeads(p, cut[i], x.Rows), cut[i]
		q.Self.W = w[0]
		da := m[len(m)-1]
		if apart {
			da = pick(w[5], h)
		}
		s.Lower.GATBackSrc(m[0], da, back, m[1], pick(w[1], h), pick(w[2], h), pick(w[3], h), pick(w[4], h), m[2], q, rows)
	}})
}

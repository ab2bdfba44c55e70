package spill

import "dorylus/kernels"

// cuts are the spans of columns that gathers run on: none crosses from one tile to the
// next of a matrix that is spilled. All have the same number of columns.
func (s *Stream) cuts(cols int, wide ...*kernels.Mat) []kernels.Span {
	at := map[int]bool{}
	for _, m := range wide {
		if !Spilled(m) {
			continue
		}
		v, err := s.mem.view(m)
		if err != nil || v.linear() {
			continue // an error is met again
		}
		for c := v.tile - v.off%v.stride%v.tile; c < cols; c += v.tile {
			at[c] = true
		}
	}
	var cut []kernels.Span
	lo := 0
	for c := 1; c < cols; c++ {
		if at[c] {
			cut = append(cut, kernels.Span{Lo: lo, Hi: c})
			lo = c
		}
	}
	return append(cut, kernels.Span{Lo: lo, Hi: cols})
}

// across is how an epilogue goes along with an op that runs on some columns at a time.
type across struct {
	s     *Stream
	ep    *kernels.Epilogue
	shift Shifter // nil: not needed, or not to be had
	later bool    // dropout is left for a pass of its own
}

// across looks at what an epilogue needs if a gather is cut.
func (s *Stream) across(ep *kernels.Epilogue, cut []kernels.Span) across {
	a := across{s: s, ep: ep}
	if ep == nil || ep.Drop.P == 0 || len(cut) == 1 {
		return a
	}
	if sh, ok := s.Lower.(Shifter); ok {
		a.shift = sh
	} else {
		a.later = true
	}
	return a
}

// on calls f with the epilogue for columns cut, whose bias for all columns was staged.
func (a across) on(cut kernels.Span, bias *kernels.Mat, f func(*kernels.Epilogue)) {
	if a.ep == nil {
		f(nil)
		return
	}
	e := *a.ep
	if bias != nil {
		e.Bias = bias.Columns(cut.Lo, cut.Hi)
	}
	if a.later {
		e.Drop = kernels.Dropout{}
	}
	if a.shift == nil {
		f(&e)
		return
	}
	a.shift.EpilogueAt(cut.Lo)
	f(&e)
	a.shift.EpilogueAt(0)
}

// end does what was left.
func (a across) end(dst *kernels.Mat, rows kernels.Span) {
	if a.later {
		a.s.Forward(dst, dst, &kernels.Epilogue{Drop: a.ep.Drop}, rows)
	}
}

// wholeEpilogue is ep, of an op on all columns, with a bias that was staged.
func wholeEpilogue(ep *kernels.Epilogue, bias *kernels.Mat) *kernels.Epilogue {
	if ep == nil {
		return nil
	}
	e := *ep
	e.Bias = bias
	return &e
}

// SpMM implements kernels.Stream.
func (s *Stream) SpMM(dst *kernels.Mat, g kernels.Graph, x *kernels.Mat, ga kernels.Gather, rows kernels.Span) {
	if !anySpilled(dst, x, ga.Scale.Row, ga.Scale.Col, ga.Self.W, ga.W, biasOf(ga.Ep)) {
		s.Lower.SpMM(dst, g, x, ga, rows)
		return
	}
	kernels.CheckSpMM(dst, g, x, ga, rows)
	whole := []part{all(ga.Scale.Row, reads), all(ga.Scale.Col, reads), all(ga.Self.W, reads), all(ga.W, reads), all(biasOf(ga.Ep), reads)}
	with := func(w []*kernels.Mat, ep *kernels.Epilogue) kernels.Gather {
		to := ga
		to.Scale.Row, to.Scale.Col, to.Self.W, to.W, to.Ep = w[0], w[1], w[2], w[3], ep
		return to
	}
	if !Spilled(x) {
		s.span("SpMM", rows, whole, []part{within(dst, rows, writes, true)}, func(p kernels.Span, w, m []*kernels.Mat) {
			s.Lower.SpMM(m[0], g, x, with(w, wholeEpilogue(ga.Ep, w[4])), p)
		})
		return
	}
	cut := s.cuts(x.Cols, x, dst)
	ep := s.across(ga.Ep, cut)
	s.run(job{"SpMM", whole, len(cut), func(i int) []part {
		return []part{columns(dst, rows, cut[i], writes, true), columns(x, to(x.Rows), cut[i], reads, false)}
	}, func(i int, w, m []*kernels.Mat) {
		ep.on(cut[i], w[4], func(e *kernels.Epilogue) { s.Lower.SpMM(m[0], g, m[1], with(w, e), rows) })
	}})
	ep.end(dst, rows)
}

// SpMMT implements kernels.Stream.
func (s *Stream) SpMMT(dst *kernels.Mat, g kernels.Graph, w, x *kernels.Mat, rows kernels.Span) {
	if !anySpilled(dst, w, x) {
		s.Lower.SpMMT(dst, g, w, x, rows)
		return
	}
	kernels.CheckSpMMT(dst, g, w, x, rows)
	cut := s.cuts(x.Cols, x, dst)
	s.run(job{"SpMMT", []part{all(w, reads)}, len(cut), func(i int) []part {
		return []part{columns(dst, to(dst.Rows), cut[i], writes, false), columns(x, rows, cut[i], reads, true)}
	}, func(_ int, w, m []*kernels.Mat) { s.Lower.SpMMT(m[0], g, w[0], m[1], rows) }})
}

// SDDMM implements kernels.Stream. Its operands have to fit the arena.
func (s *Stream) SDDMM(dst *kernels.Mat, g kernels.Graph, x, y *kernels.Mat, rows kernels.Span) {
	if !anySpilled(dst, x, y) {
		s.Lower.SDDMM(dst, g, x, y, rows)
		return
	}
	kernels.CheckSDDMM(dst, g, x, y, rows)
	s.once("SDDMM", []part{all(dst, reads|writes), all(x, reads), within(y, rows, reads, true)}, func(m []*kernels.Mat) {
		s.Lower.SDDMM(m[0], g, m[1], m[2], rows)
	})
}

// EdgeDropout implements kernels.Stream. The edges' values have to fit the arena.
func (s *Stream) EdgeDropout(dst *kernels.Mat, g kernels.Graph, d kernels.Dropout, rows kernels.Span) {
	if !Spilled(dst) {
		s.Lower.EdgeDropout(dst, g, d, rows)
		return
	}
	kernels.CheckEdgeDropout(dst, g, d, rows)
	s.once("EdgeDropout", []part{all(dst, reads|writes)}, func(m []*kernels.Mat) { s.Lower.EdgeDropout(m[0], g, d, rows) })
}

// once runs an op on all of its operands.
func (s *Stream) once(op string, parts []part, f func(m []*kernels.Mat)) {
	s.run(job{op, parts, 1, func(int) []part { return nil }, func(_ int, w, _ []*kernels.Mat) { f(w) }})
}

// SpMMMax implements kernels.Stream.
func (s *Stream) SpMMMax(dst, arg *kernels.Mat, g kernels.Graph, x *kernels.Mat, rows kernels.Span) {
	if !anySpilled(dst, arg, x) {
		s.Lower.SpMMMax(dst, arg, g, x, rows)
		return
	}
	kernels.CheckSpMMMax(dst, arg, g, x, rows)
	if !Spilled(x) {
		s.span("SpMMMax", rows, nil, []part{within(dst, rows, writes, true), within(arg, rows, writes, true)}, func(p kernels.Span, _, m []*kernels.Mat) {
			s.Lower.SpMMMax(m[0], m[1], g, x, p)
		})
		return
	}
	cut := s.cuts(x.Cols, x, dst, arg)
	s.run(job{"SpMMMax", nil, len(cut), func(i int) []part {
		return []part{columns(dst, rows, cut[i], writes, true), columns(arg, rows, cut[i], writes, true), columns(x, to(x.Rows), cut[i], reads, false)}
	}, func(_ int, _, m []*kernels.Mat) { s.Lower.SpMMMax(m[0], m[1], g, m[2], rows) }})
}

// SpMMMaxBack implements kernels.Stream.
func (s *Stream) SpMMMaxBack(dx *kernels.Mat, back kernels.Graph, dy, arg *kernels.Mat, rows kernels.Span) {
	if !anySpilled(dx, dy, arg) {
		s.Lower.SpMMMaxBack(dx, back, dy, arg, rows)
		return
	}
	kernels.CheckSpMMMaxBack(dx, back, dy, arg, rows)
	if !anySpilled(dy, arg) {
		s.span("SpMMMaxBack", rows, nil, []part{within(dx, rows, writes, true)}, func(p kernels.Span, _, m []*kernels.Mat) {
			s.Lower.SpMMMaxBack(m[0], back, dy, arg, p)
		})
		return
	}
	cut := s.cuts(dy.Cols, dx, dy, arg)
	s.run(job{"SpMMMaxBack", nil, len(cut), func(i int) []part {
		return []part{columns(dx, rows, cut[i], writes, true), columns(dy, to(dy.Rows), cut[i], reads, false), columns(arg, to(arg.Rows), cut[i], reads, false)}
	}, func(_ int, _, m []*kernels.Mat) { s.Lower.SpMMMaxBack(m[0], back, m[1], m[2], rows) }})
}

package spill

import (
	"fmt"

	"dorylus/kernels"
)

// rowOf gives row r of a matrix of the host or of a spilled one.
func rowOf(m *kernels.Mat, v view, r int, f func(c int, values []float32)) {
	if m.Host != nil {
		f(0, m.Row(r))
		return
	}
	v.row(r, f)
}

// own panics at a matrix of the host, which no device has.
func own(op string, ms ...*kernels.Mat) {
	for _, m := range ms {
		if m.Host != nil && m.Rows > 0 && m.Cols > 0 {
			panic(&kernels.ShapeError{Op: op, Msg: fmt.Sprintf("a matrix of %d x %d in the host's memory, want one of the device", m.Rows, m.Cols)})
		}
	}
}

// onHost says whether the host can read m.
func onHost(m *kernels.Mat) bool { return m.Host != nil || Spilled(m) }

// between runs f on the host for the rows of two matrices, both of which it can address.
func (s *Stream) between(op string, dst, src *kernels.Mat, n int, f func(i int, dst, src view)) {
	d, s1 := view{m: dst}, view{m: src}
	var err error
	if Spilled(dst) {
		d, err = s.mem.view(dst)
	}
	if Spilled(src) && err == nil {
		s1, err = s.mem.view(src)
	}
	if err != nil {
		s.fail(op, err)
		return
	}
	s.HostStep(op, func() error {
		for i := range n {
			f(i, d, s1)
		}
		return nil
	})
}

// packs cuts n packed rows of cols values so that a piece fits the bounce buffer and
// the arena.
func (s *Stream) packs(op string, n, cols int) []kernels.Span {
	k := n
	if cols > 0 {
		k = min(n, min(bounceBytes, int(s.mem.cfg.Bytes))/4/cols)
	}
	if k == 0 && n > 0 {
		s.fail(op, s.tooSmall(0, cols*4))
		return nil
	}
	var cut []kernels.Span
	for lo := 0; lo < n; lo += k {
		cut = append(cut, kernels.Span{Lo: lo, Hi: min(lo+k, n)})
	}
	return cut
}

// staged is a packed matrix at the arena's start.
func (s *Stream) staged(rows, cols int) *kernels.Mat {
	return &kernels.Mat{Rows: rows, Cols: cols, Stride: cols, Addr: s.mem.cfg.Arena}
}

// GatherRows implements kernels.Stream. Only the rows that are named cross.
func (s *Stream) GatherRows(dst, src *kernels.Mat, ids []int32) {
	if !anySpilled(dst, src) {
		s.Lower.GatherRows(dst, src, ids)
		return
	}
	kernels.CheckGatherRows(dst, src, ids)
	own("GatherRows", dst)
	cols := src.Cols
	switch {
	case Spilled(dst) && onHost(src):
		s.between("GatherRows", dst, src, len(ids), func(i int, d, v view) {
			rowOf(src, v, int(ids[i]), func(c int, from []float32) { copyInto(dst, d, i, c, from) })
		})
	case onHost(src):
		for _, p := range s.packs("GatherRows", len(ids), cols) {
			s.host("GatherRows", func(v []view) {
				for i := p.Lo; i < p.Hi; i++ {
					v[0].read(int(ids[i]), s.mem.bounce[(i-p.Lo)*cols:(i-p.Lo+1)*cols])
				}
			}, src)
			m, n := s.staged(p.Len(), cols), p.Len()*cols
			s.mem.up.Add(int64(n) * 4)
			s.Upload(m.Addr, s.mem.bounce[:n])
			s.Await(Compute, s.Mark(In))
			s.Lower.Copy(dst.Sub(p), m)
		}
	default:
		s.rows("GatherRows", dst.Rows, nil, []part{all(dst, writes)}, func(p kernels.Span, _, m []*kernels.Mat) {
			s.Lower.GatherRows(m[0], src, ids[p.Lo:p.Hi])
		})
	}
}

// copyInto copies values into row r of a matrix of the host or a spilled one, from
// column c on.
func copyInto(m *kernels.Mat, v view, r, c int, from []float32) {
	rowOf(m, v, r, func(at int, to []float32) {
		lo, hi := max(at, c), min(at+len(to), c+len(from))
		if lo < hi {
			copy(to[lo-at:hi-at], from[lo-c:hi-c])
		}
	})
}

// ScatterRows implements kernels.Stream. Only the rows of src cross.
func (s *Stream) ScatterRows(dst, src *kernels.Mat, ids []int32) {
	if !anySpilled(dst, src) {
		s.Lower.ScatterRows(dst, src, ids)
		return
	}
	kernels.CheckScatterRows(dst, src, ids)
	own("ScatterRows", dst, src)
	switch {
	case Spilled(dst) && Spilled(src):
		s.between("ScatterRows", dst, src, len(ids), func(i int, d, v view) {
			rowOf(src, v, i, func(c int, from []float32) { copyInto(dst, d, int(ids[i]), c, from) })
		})
	case Spilled(dst):
		s.fetch("ScatterRows", dst, src, func(i int, d view, row []float32) { d.write(int(ids[i]), row) })
	default:
		s.rows("ScatterRows", src.Rows, nil, []part{all(src, reads)}, func(p kernels.Span, _, m []*kernels.Mat) {
			s.Lower.ScatterRows(dst, m[0], ids[p.Lo:p.Hi])
		})
	}
}

// fetch brings the rows of a resident matrix to the host, where f puts row i into dst.
func (s *Stream) fetch(op string, dst, src *kernels.Mat, f func(i int, dst view, row []float32)) {
	cols := src.Cols
	for _, p := range s.packs(op, src.Rows, cols) {
		s.begin()
		m, n := s.staged(p.Len(), cols), p.Len()*cols
		s.Lower.Copy(m, src.Sub(p))
		s.Await(Out, s.Mark(Compute))
		s.mem.down.Add(int64(n) * 4)
		s.Download(s.mem.bounce[:n], m.Addr)
		s.host(op, func(v []view) {
			for i := p.Lo; i < p.Hi; i++ {
				f(i, v[0], s.mem.bounce[(i-p.Lo)*cols:(i-p.Lo+1)*cols])
			}
		}, dst)
	}
}

// AddRows implements kernels.Stream. Only the rows of src cross; those of a spilled dst
// are added by the host.
func (s *Stream) AddRows(dst, src *kernels.Mat, ids []int32) {
	if !anySpilled(dst, src) {
		s.Lower.AddRows(dst, src, ids)
		return
	}
	kernels.CheckAddRows(dst, src, ids)
	own("AddRows", dst, src)
	add := func(d view, to int32, c int, from []float32) {
		if to < 0 {
			return
		}
		d.row(int(to), func(at int, sums []float32) {
			for k := range sums {
				if i := at + k - c; i >= 0 && i < len(from) {
					sums[k] += from[i]
				}
			}
		})
	}
	switch {
	case Spilled(dst) && Spilled(src):
		s.between("AddRows", dst, src, len(ids), func(i int, d, v view) {
			rowOf(src, v, i, func(c int, from []float32) { add(d, ids[i], c, from) })
		})
	case Spilled(dst):
		s.fetch("AddRows", dst, src, func(i int, d view, row []float32) { add(d, ids[i], 0, row) })
	default:
		s.rows("AddRows", src.Rows, nil, []part{all(src, reads)}, func(p kernels.Span, _, m []*kernels.Mat) {
			s.Lower.AddRows(dst, m[0], ids[p.Lo:p.Hi])
		})
	}
}

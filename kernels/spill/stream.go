package spill

import (
	"fmt"
	"slices"

	"dorylus/kernels"
)

// Stream is a kernels.Stream whose operands may be spilled.
type Stream struct {
	Lower
	mem   *Memory
	after []func() // what Wait does when all went well
	ids   []int32  // 0, 1, 2, …
}

// NewStream is a stream over one of the device beneath, which it closes with itself.
func NewStream(l Lower, m *Memory) *Stream { return &Stream{Lower: l, mem: m} }

// Wait implements kernels.Stream.
func (s *Stream) Wait() error {
	err := s.Lower.Wait()
	if err == nil {
		for _, f := range s.after {
			f()
		}
	}
	s.after = s.after[:0]
	return err
}

// Close implements kernels.Stream.
func (s *Stream) Close() error {
	s.after = nil
	return s.Lower.Close()
}

// fail makes err the stream's.
func (s *Stream) fail(op string, err error) {
	s.HostStep(op, func() error { return fmt.Errorf("spill: %s: %w", op, err) })
}

// host runs f on the host with the views of spilled matrices.
func (s *Stream) host(op string, f func(v []view), ms ...*kernels.Mat) {
	views := make([]view, len(ms))
	for i, m := range ms {
		v, err := s.mem.view(m)
		if err != nil {
			s.fail(op, err)
			return
		}
		views[i] = v
	}
	s.HostStep(op, func() error { f(views); return nil })
}

// Put implements kernels.Stream.
func (s *Stream) Put(dst *kernels.Mat, src []float32) {
	if !Spilled(dst) {
		s.Lower.Put(dst, src)
		return
	}
	kernels.CheckPut(dst, src)
	s.host("Put", func(v []view) {
		for r := range dst.Rows {
			v[0].write(r, src[r*dst.Cols:(r+1)*dst.Cols])
		}
	}, dst)
}

// Get implements kernels.Stream.
func (s *Stream) Get(dst []float32, src *kernels.Mat) {
	if !Spilled(src) {
		s.Lower.Get(dst, src)
		return
	}
	kernels.CheckGet(dst, src)
	s.host("Get", func(v []view) {
		for r := range src.Rows {
			v[0].read(r, dst[r*src.Cols:(r+1)*src.Cols])
		}
	}, src)
}

// Copy implements kernels.Stream.
func (s *Stream) Copy(dst, src *kernels.Mat) {
	if !anySpilled(dst, src) {
		s.Lower.Copy(dst, src)
		return
	}
	kernels.CheckCopy(dst, src)
	switch {
	case Spilled(src) && dst.Host != nil:
		s.host("Copy", func(v []view) {
			for r := range dst.Rows {
				v[0].read(r, dst.Row(r))
			}
		}, src)
	case Spilled(dst) && src.Host != nil:
		s.host("Copy", func(v []view) {
			for r := range dst.Rows {
				v[0].write(r, src.Row(r))
			}
		}, dst)
	case Spilled(dst) && Spilled(src):
		row := make([]float32, dst.Cols)
		s.host("Copy", func(v []view) {
			for r := range dst.Rows {
				v[1].read(r, row)
				v[0].write(r, row)
			}
		}, dst, src)
	default:
		s.rows("Copy", dst.Rows, nil, []part{all(dst, writes), all(src, reads)}, func(_ kernels.Span, _, m []*kernels.Mat) {
			s.Lower.Copy(m[0], m[1])
		})
	}
}

// Zero implements kernels.Stream.
func (s *Stream) Zero(dst *kernels.Mat) {
	if !Spilled(dst) {
		s.Lower.Zero(dst)
		return
	}
	kernels.CheckZero(dst)
	s.host("Zero", func(v []view) {
		for r := range dst.Rows {
			v[0].row(r, func(_ int, values []float32) { clear(values) })
		}
	}, dst)
}

// rows runs a row-wise op piece by piece: row r of each part is row r of the op. f gets
// the rows of a piece.
func (s *Stream) rows(op string, n int, whole, parts []part, f func(rows kernels.Span, whole, m []*kernels.Mat)) {
	s.span(op, kernels.Span{Hi: n}, whole, parts, f)
}

// span is rows of an op on some rows.
func (s *Stream) span(op string, rows kernels.Span, whole, parts []part, f func(rows kernels.Span, whole, m []*kernels.Mat)) {
	at := func(rows kernels.Span) []part {
		some := slices.Clone(parts)
		for i := range some {
			if some[i].m != nil {
				some[i].rows = rows
			}
		}
		return some
	}
	cut := s.pieces(rows, whole, at)
	s.run(job{op, whole, len(cut), func(i int) []part { return at(cut[i]) },
		func(i int, w, m []*kernels.Mat) { f(cut[i], w, m) }})
}

// epilogue is ep for a piece of rows, with a bias that was staged. Whoever has no row
// ids gets the numbers of the rows.
func (s *Stream) epilogue(ep *kernels.Epilogue, bias *kernels.Mat, rows kernels.Span) *kernels.Epilogue {
	if ep == nil {
		return nil
	}
	return &kernels.Epilogue{Bias: bias, Act: ep.Act, Drop: s.dropout(ep.Drop, rows)}
}

func (s *Stream) dropout(d kernels.Dropout, rows kernels.Span) kernels.Dropout {
	if d.P == 0 {
		return kernels.Dropout{}
	}
	ids := d.IDs
	if ids == nil {
		if len(s.ids) < rows.Hi {
			s.ids = make([]int32, rows.Hi)
			for i := range s.ids {
				s.ids[i] = int32(i)
			}
		}
		ids = s.ids
	}
	d.IDs = ids[rows.Lo:rows.Hi]
	return d
}

func biasOf(ep *kernels.Epilogue) *kernels.Mat {
	if ep == nil {
		return nil
	}
	return ep.Bias
}

func to(n int) kernels.Span { return kernels.Span{Hi: n} }

package ref

import (
	"errors"
	"fmt"

	"dorylus/kernels"
)

// stream runs each op when it is called. The only error it knows is its own end.
type stream struct {
	dev    *device
	closed bool
	err    error
	acc    []float64 // scratch, grown to the largest need and kept
}

var errClosed = errors.New("the stream is closed")

// runs says whether op may run, and remembers why not. Every op asks first.
func (s *stream) runs(op string) bool {
	if s.closed && s.err == nil {
		s.err = fmt.Errorf("ref: %s: %w", op, errClosed)
	}
	return s.err == nil
}

// zeros is n values of scratch, set to 0.
func (s *stream) zeros(n int) []float64 {
	if cap(s.acc) < n {
		s.acc = make([]float64, n)
	}
	acc := s.acc[:n]
	clear(acc)
	return acc
}

// own is g as ref loaded it.
func own(op string, g kernels.Graph) *graph {
	r, ok := g.(*graph)
	if !ok {
		panic(&kernels.ShapeError{Op: op, Msg: fmt.Sprintf("a graph (%T) that was not loaded on ref", g)})
	}
	return r
}

// Wait returns the first error since the last Wait; all work is done already.
func (s *stream) Wait() error {
	err := s.err
	s.err = nil
	return err
}

// Close ends the stream; a second Close does nothing.
func (s *stream) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	s.dev.mu.Lock()
	s.dev.mu.streams--
	s.dev.mu.Unlock()
	return s.Wait()
}

// Put copies packed values into dst.
func (s *stream) Put(dst *kernels.Mat, src []float32) {
	kernels.CheckPut(dst, src)
	kernels.CheckHost("Put", dst)
	if !s.runs("Put") {
		return
	}
	for r := range rowsOf(dst) {
		copy(dst.Row(r), src[r*dst.Cols:])
	}
}

// Get copies src into packed values.
func (s *stream) Get(dst []float32, src *kernels.Mat) {
	kernels.CheckGet(dst, src)
	kernels.CheckHost("Get", src)
	if !s.runs("Get") {
		return
	}
	for r := range rowsOf(src) {
		copy(dst[r*src.Cols:], src.Row(r))
	}
}

// Copy sets dst = src.
func (s *stream) Copy(dst, src *kernels.Mat) {
	kernels.CheckCopy(dst, src)
	kernels.CheckHost("Copy", dst, src)
	if !s.runs("Copy") {
		return
	}
	for r := range rowsOf(dst) {
		copy(dst.Row(r), src.Row(r))
	}
}

// Zero sets dst = 0.
func (s *stream) Zero(dst *kernels.Mat) {
	kernels.CheckZero(dst)
	kernels.CheckHost("Zero", dst)
	if !s.runs("Zero") {
		return
	}
	for r := range rowsOf(dst) {
		clear(dst.Row(r))
	}
}

// Add sets dst = a + b.
func (s *stream) Add(dst, a, b *kernels.Mat) {
	kernels.CheckAdd(dst, a, b)
	kernels.CheckHost("Add", dst, a, b)
	if !s.runs("Add") {
		return
	}
	for r := range rowsOf(dst) {
		d, x, y := dst.Row(r), a.Row(r), b.Row(r)
		for c := range d {
			d[c] = x[c] + y[c]
		}
	}
}

// GatherRows sets dst[i,:] = src[ids[i],:].
func (s *stream) GatherRows(dst, src *kernels.Mat, ids []int32) {
	kernels.CheckGatherRows(dst, src, ids)
	kernels.CheckHost("GatherRows", dst, src)
	if !s.runs("GatherRows") || dst.Cols == 0 {
		return
	}
	for i, id := range ids {
		copy(dst.Row(i), src.Row(int(id)))
	}
}

// ScatterRows sets dst[ids[i],:] = src[i,:].
func (s *stream) ScatterRows(dst, src *kernels.Mat, ids []int32) {
	kernels.CheckScatterRows(dst, src, ids)
	kernels.CheckHost("ScatterRows", dst, src)
	if !s.runs("ScatterRows") || dst.Cols == 0 {
		return
	}
	for i, id := range ids {
		copy(dst.Row(int(id)), src.Row(i))
	}
}

// rowsOf is the number of rows to visit: none where a row holds nothing, since
// such a matrix may have no memory.
func rowsOf(m *kernels.Mat) int {
	if m.Cols == 0 {
		return 0
	}
	return m.Rows
}

// within is rows, or no row where m holds nothing.
func within(m *kernels.Mat, rows kernels.Span) kernels.Span {
	if m.Cols == 0 {
		return kernels.Span{}
	}
	return rows
}

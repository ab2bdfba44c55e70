//go:build cgo && amd64 && linux

package cpu

import (
	"errors"
	"fmt"

	native "dorylus/csrc/cpu"
	"dorylus/kernels"
)

// A stream runs each op when it is called, on the caller's goroutine.
type stream struct {
	dev    *device
	table  *native.Table
	closed bool
	err    error
	// scratch holds the packed sources of a tiled gather, kept from op to op.
	scratch []byte
}

var errClosed = errors.New("the stream is closed")

// runs says whether op may run, and remembers why not. Every op asks first.
func (s *stream) runs(op string) bool {
	if s.closed && s.err == nil {
		s.err = fmt.Errorf("%s: %s: %w", s.dev.Name(), op, errClosed)
	}
	return s.err == nil
}

// fail keeps the first error of an op.
func (s *stream) fail(op string, err error) {
	if s.err == nil {
		s.err = fmt.Errorf("%s: %s: %w", s.dev.Name(), op, err)
	}
}

// own is g as this device loaded it.
func (s *stream) own(op string, g kernels.Graph) *graph {
	r, ok := g.(*graph)
	if !ok || r.dev != s.dev {
		panic(&kernels.ShapeError{Op: op, Msg: fmt.Sprintf("a graph of %d rows that was not loaded on this %s", g.Rows(), s.dev.Name())})
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
	s.dev.mu.mem.ScratchBytes -= int64(len(s.scratch))
	s.dev.mu.Unlock()
	err := s.dev.arena.release(s.scratch)
	s.scratch = nil
	return errors.Join(s.Wait(), err)
}

// growScratch makes scratch at least n bytes; what it held is lost.
func (s *stream) growScratch(n int) error {
	b, err := s.dev.arena.alloc(n)
	if err != nil {
		return fmt.Errorf("allocate scratch: %w", err)
	}
	s.dev.mu.Lock()
	s.dev.mu.mem.ScratchBytes += int64(len(b) - len(s.scratch))
	s.dev.mu.Unlock()
	err = s.dev.arena.release(s.scratch)
	s.scratch = b
	return err
}

// host is the values of m, nil for nil.
func host(m *kernels.Mat) []float32 {
	if m == nil {
		return nil
	}
	return m.Host
}

// epilogue turns an epilogue into what C takes; nil stays nil.
func epilogue(ep *kernels.Epilogue) *native.Epilogue {
	if ep == nil {
		return nil
	}
	e := dropout(ep.Drop)
	e.Bias, e.Act = host(ep.Bias), int(ep.Act)
	return e
}

func dropout(d kernels.Dropout) *native.Epilogue {
	return &native.Epilogue{
		IDs: d.IDs, Key: d.Key, Threshold: d.Threshold(), Drop: d.P > 0, KeepScale: d.KeepScale(),
	}
}

// biasOf is the matrix that an epilogue reads, or nil.
func biasOf(ep *kernels.Epilogue) *kernels.Mat {
	if ep == nil {
		return nil
	}
	return ep.Bias
}

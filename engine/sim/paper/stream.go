package paper

import (
	"sort"

	"dorylus/kernels"
)

// stream counts what ops read and write. They do nothing else: what comes to the host
// stays as it was, losses are 0.
type stream struct {
	c      *counts
	closed bool
}

// touch counts rows of a matrix: what lies between its columns too, since memory moves in
// whole rows. mu is held.
func (s *stream) touch(m *kernels.Mat, rows int) (*matrix, int64) {
	if s.c.paused || m == nil || m.Addr == 0 || m.Rows == 0 || m.Cols == 0 {
		return nil, 0
	}
	c := s.c
	i := sort.Search(len(c.blocks), func(i int) bool { return c.blocks[i].addr > m.Addr }) - 1
	if i < 0 {
		return nil, 0
	}
	return c.blocks[i], 4 * int64(rows) * int64(kernels.PadCols(m.Cols))
}

// reads counts whole matrices that an op reads.
func (s *stream) reads(ms ...*kernels.Mat) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	for _, m := range ms {
		if m == nil {
			continue
		}
		if b, n := s.touch(m, m.Rows); b != nil {
			b.read += n
		}
	}
}

// readsRows counts so many rows of each.
func (s *stream) readsRows(rows kernels.Span, ms ...*kernels.Mat) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	for _, m := range ms {
		if b, n := s.touch(m, rows.Len()); b != nil {
			b.read += n
		}
	}
}

// readsEdges counts the values of the edges of rows of a graph, about.
func (s *stream) readsEdges(w *kernels.Mat, g kernels.Graph, rows kernels.Span) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if b, n := s.touch(w, g.Edges()); b != nil {
		b.read += n * int64(rows.Len()) / int64(max(g.Rows(), 1))
	}
}

// setsEdges is readsEdges for values that an op sets.
func (s *stream) setsEdges(w *kernels.Mat, g kernels.Graph, rows kernels.Span) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if b, n := s.touch(w, g.Edges()); b != nil {
		b.written += n * int64(rows.Len()) / int64(max(g.Rows(), 1))
	}
}

// gathers counts whole matrices whose rows an op reads in any order.
func (s *stream) gathers(ms ...*kernels.Mat) {
	s.reads(ms...)
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	for _, m := range ms {
		if b, _ := s.touch(m, 0); b != nil {
			b.gathered = true
		}
	}
}

// heads notes how wide the heads of matrices are that attention gathers.
func (s *stream) heads(n int, ms ...*kernels.Mat) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	for _, m := range ms {
		if b, _ := s.touch(m, 0); b != nil {
			b.width = max(b.width, m.Cols/max(n, 1))
		}
	}
}

// sets counts whole matrices that an op writes.
func (s *stream) sets(ms ...*kernels.Mat) {
	for _, m := range ms {
		if m != nil {
			s.setsRows(kernels.Span{Hi: m.Rows}, m)
		}
	}
}

// setsRows counts so many rows of each.
func (s *stream) setsRows(rows kernels.Span, ms ...*kernels.Mat) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	for _, m := range ms {
		if b, n := s.touch(m, rows.Len()); b != nil {
			b.written += n
		}
	}
}

// Wait implements kernels.Stream.
func (s *stream) Wait() error { return nil }

// Close implements kernels.Stream.
func (s *stream) Close() error {
	if !s.closed {
		s.closed = true
		s.c.mu.Lock()
		s.c.streams--
		s.c.mu.Unlock()
	}
	return nil
}

package worker

import (
	"fmt"
	"math/bits"

	"dorylus/kernels"
)

// sums adds up gradients of the blocks of a run, as they are made, in pairs from the run's
// first block on: blocks 0 and 1, 2 and 3, those two sums, and so on. Blocks that have no
// rows are left out, as zeros. So the bits are those of the graph server's tree, which has
// a node over the run.
//
// At most one sum of each size waits for its other half.
type sums struct {
	dev    kernels.Device
	stream kernels.Stream
	free   [][]*kernels.Mat // by parameter
	params []int            // of the run's gradients
	parts  []part
}

// part is the sum over blocks at and some behind it.
type part struct {
	at   int            // counted from the run's first block
	mats []*kernels.Mat // by index into params
}

// take is a matrix for a gradient of parameter p.
func (s *sums) take(p, rows, cols int) (*kernels.Mat, error) {
	if n := len(s.free[p]); n > 0 {
		m := s.free[p][n-1]
		s.free[p] = s.free[p][:n-1]
		return m, nil
	}
	return s.dev.Alloc(rows, cols)
}

// give takes a matrix back.
func (s *sums) give(p int, m *kernels.Mat) {
	if m != nil {
		s.free[p] = append(s.free[p], m)
	}
}

// add adds the gradients of block at, of the run's blocks the next that has rows. The
// matrices are the sum's from then on. All blocks of a run have the same parameters.
func (s *sums) add(at int, params []int, mats []*kernels.Mat) error {
	s.params = params
	for n := len(s.parts); n >= 2; n = len(s.parts) {
		// The last two are halves of a sum that the new block is not part of.
		if bits.Len(uint(s.parts[n-2].at^s.parts[n-1].at)) > bits.Len(uint(s.parts[n-1].at^at)) {
			break
		}
		if err := s.join(); err != nil {
			return err
		}
	}
	s.parts = append(s.parts, part{at, mats})
	return nil
}

// join adds the last two parts.
func (s *sums) join() error {
	n := len(s.parts)
	left, right := s.parts[n-2], s.parts[n-1]
	if s.stream == nil {
		var err error
		if s.stream, err = s.dev.NewStream(); err != nil {
			return fmt.Errorf("add gradients: %w", err)
		}
	}
	for i, m := range left.mats {
		s.stream.Add(m, m, right.mats[i])
	}
	if err := s.stream.Wait(); err != nil {
		return fmt.Errorf("add gradients: %w", err)
	}
	for i, p := range s.params {
		s.give(p, right.mats[i])
	}
	s.parts = s.parts[:n-1]
	return nil
}

// total is the sum over the run, which has had blocks. It stays until drop.
func (s *sums) total() ([]*kernels.Mat, error) {
	for len(s.parts) > 1 {
		if err := s.join(); err != nil {
			return nil, err
		}
	}
	return s.parts[0].mats, nil
}

// drop begins another run.
func (s *sums) drop() {
	for _, x := range s.parts {
		for i, p := range s.params {
			s.give(p, x.mats[i])
		}
	}
	s.parts = s.parts[:0]
}

// close gives all memory back; no run may be under way.
func (s *sums) close() {
	for _, list := range s.free {
		for _, m := range list {
			s.dev.Free(m)
		}
	}
	if s.stream != nil {
		s.stream.Close()
	}
}

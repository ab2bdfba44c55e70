package params

import (
	"fmt"
	"math"

	"dorylus/engine"
	"dorylus/kernels"
)

// Gate decides when a server that has some rows of the parameters makes its updates.
// Its methods are called by the Push or Go that has brought the last that was missing,
// one at a time and in the order of epochs, while no lock is held: they may call Go and
// Snapshot.
type Gate interface {
	// Ready says that all gradients and losses of the epoch are in. Its update waits for
	// Go. squares are the sums of squares of the gradients' rows, by parameter, where
	// gradients are clipped, and nil where they are not.
	Ready(epoch int, squares [][]float64)
	// Made says that a version is there. The next one is not made before it returns.
	Made(u engine.Update)
}

// Go lets the update of an epoch be made that the Gate has been told is Ready. norm is
// that of all gradients of the model (optim.Norm), 0 where they are not clipped.
func (s *Server) Go(epoch int, norm float64) error {
	if math.IsNaN(norm) || norm < 0 {
		return fmt.Errorf("update of epoch %d: the norm of all gradients is %v", epoch, norm)
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	s.mu.Lock()
	e := s.mu.epochs[epoch]
	if s.cfg.Gate == nil || e == nil || !e.told || e.norm != nil {
		newest := s.newest().number
		s.mu.Unlock()
		return fmt.Errorf("update of epoch %d is not due: version %d is there", epoch, newest)
	}
	e.norm = &norm
	stream, err := s.mu.stream()
	s.mu.Unlock()
	if err != nil {
		return s.fail(fmt.Errorf("update of epoch %d: %w", epoch, err))
	}
	if err := s.advance(stream); err != nil {
		return s.fail(err)
	}
	s.mu.Lock()
	s.mu.putStream(stream)
	s.mu.Unlock()
	return nil
}

// knock tells the gate that an epoch is complete. mu is held, but not meanwhile.
func (s *Server) knock(stream kernels.Stream, epoch int, e *epochSum) error {
	s.mu.Unlock()
	defer s.mu.Lock()
	var squares [][]float64
	if s.cfg.Optim.ClipNorm > 0 {
		var err error
		if squares, err = s.opt.Squares(stream, e.sums); err != nil {
			return fmt.Errorf("epoch %d: %w", epoch, err)
		}
	}
	s.mu.Lock()
	e.told = true // before: the gate may call Go at once
	s.mu.Unlock()
	s.cfg.Gate.Ready(epoch, squares)
	return nil
}

package params

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"dorylus/engine"
	"dorylus/kernels"
)

// epochSum is what has arrived of one epoch.
type epochSum struct {
	partial
	sums []*kernels.Mat // by parameter, once all blocks are in; nil is zero
	loss float64
	open int           // sums that are not known yet, the loss included
	busy time.Duration // spent in adding, over all callers
	told bool          // the gate knows that all is in
	norm *float64      // what the gate has let the update go with
}

func (s *Server) newEpochSum() *epochSum {
	n := len(s.cfg.Specs)
	return &epochSum{partial: newPartial(s.shape, n), sums: make([]*kernels.Mat, n), open: n + 1}
}

// Made is how many matrices of the shape of each parameter there are so far, for weights
// and gradients. A plan of memory goes by it.
func (s *Server) Made() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mu.made)
}

// Buffer is an uninitialised matrix for a gradient of the parameter. It goes back
// to the server by Push. Where there is no memory for it the server fails: the next
// Push or Fetch says so.
func (s *Server) Buffer(param int) *kernels.Mat {
	spec := s.cfg.Specs[param]
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mu.closed {
		m, err := s.mu.lend(param, spec)
		if err == nil {
			return m
		}
		if s.mu.err == nil {
			s.mu.err = err
		}
	}
	return scratch(spec)
}

// Push hands over gradients, made in matrices of Buffer, and losses, of single blocks or
// summed below nodes of the tree. Each (epoch, param, block) and (epoch, block) counts
// once; repeats are dropped, and so is what comes when the epoch's update has been made. A
// sum of which only a part has arrived before is an error. The caller adds what it brings to
// what waits for it; if it brings the last of an epoch it makes the next version
// before Push returns.
//
// A sum that is not finite makes no version: Push says which, and the server has
// failed.
func (s *Server) Push(ctx context.Context, p *engine.Push) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("push of %v: %w", p.ID, err)
	}
	if err := s.checkPush(p); err != nil {
		return fmt.Errorf("push of %v: %w", p.ID, err)
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	s.mu.Lock()
	stream, err := s.mu.stream()
	s.mu.Unlock()
	if err != nil {
		return s.fail(fmt.Errorf("push of %v: %w", p.ID, err))
	}
	for _, l := range p.Losses {
		if err := s.addLoss(p.ID.Epoch, l); err != nil {
			return s.fail(err)
		}
	}
	for _, g := range p.Grads {
		if err := s.addGrad(stream, p.ID.Epoch, g); err != nil {
			return s.fail(err)
		}
	}
	if err := s.advance(stream); err != nil {
		return s.fail(err)
	}
	s.mu.Lock()
	s.mu.putStream(stream)
	s.mu.Unlock()
	return nil
}

// checkPush refuses what fits no parameter or block, before anything is counted.
func (s *Server) checkPush(p *engine.Push) error {
	for _, g := range p.Grads {
		if _, ok := s.shape.over(g.Block, max(g.Span, 1)); !ok || g.Param < 0 || g.Param >= len(s.cfg.Specs) {
			return fmt.Errorf("gradient of parameter %d of %d, %s", g.Param, len(s.cfg.Specs), s.noNode(g.Block, g.Span))
		}
		spec := s.cfg.Specs[g.Param]
		if g.G != nil && (g.G.Rows != spec.Rows || g.G.Cols != spec.Cols) {
			return fmt.Errorf("gradient of %s, block %d, is %d x %d, want %d x %d", spec.Name, g.Block, g.G.Rows, g.G.Cols, spec.Rows, spec.Cols)
		}
	}
	for _, l := range p.Losses {
		if _, ok := s.shape.over(l.Block, max(l.Span, 1)); !ok {
			return fmt.Errorf("loss of %s", s.noNode(l.Block, l.Span))
		}
	}
	return nil
}

// noNode names blocks that are not those below one node.
func (s *Server) noNode(block, span int) string {
	if span <= 1 {
		return fmt.Sprintf("block %d of %d", block, s.cfg.Blocks)
	}
	return fmt.Sprintf("blocks [%d,%d) of %d, want all below one node of the tree of sums", block, block+span, s.cfg.Blocks)
}

// sum is what has arrived of an epoch, nil if its update has been made. mu is held.
func (s *Server) sum(epoch int) *epochSum {
	if epoch < s.newest().number {
		return nil
	}
	e := s.mu.epochs[epoch]
	if e == nil {
		e = s.newEpochSum()
		s.mu.epochs[epoch] = e
	}
	return e
}

// parts are those of e, nil of none.
func (e *epochSum) parts() *partial {
	if e == nil {
		return nil
	}
	return &e.partial
}

func (s *Server) addLoss(epoch int, l engine.BlockLoss) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.sum(epoch)
	_, sum, done, err := s.adder.loss(e.parts(), epoch, l)
	if !done {
		return err
	}
	if math.IsNaN(sum) || math.IsInf(sum, 0) {
		return notFinite(epoch, "the loss")
	}
	e.loss = sum
	e.open--
	return nil
}

// addGrad counts the gradient of one block, or of those below one node, and adds up as
// far as that lets it.
func (s *Server) addGrad(stream kernels.Stream, epoch int, g engine.BlockGrad) error {
	s.mu.Lock()
	e := s.sum(epoch)
	m, counts, err := s.adder.claim(e.parts(), epoch, g)
	s.mu.Unlock()
	if !counts || err != nil {
		return err
	}
	_, sum, done, err := s.adder.grad(stream, &e.partial, epoch, g, m, &e.busy)
	if err != nil || !done {
		return err
	}
	return s.rootGrad(stream, epoch, e, g.Param, sum)
}

// rootGrad notes the sum over all blocks, if it is finite.
func (s *Server) rootGrad(stream kernels.Stream, epoch int, e *epochSum, param int, sum *kernels.Mat) error {
	start := time.Now()
	spec := s.cfg.Specs[param]
	s.mu.Lock()
	one, err := s.mu.takeOne()
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("epoch %d: read the gradient of %s: %w", epoch, spec.Name, err)
	}
	ok, err := finite(stream, sum, one)
	s.mu.Lock()
	s.mu.putOne(one)
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("epoch %d: read the gradient of %s: %w", epoch, spec.Name, err)
	}
	if !ok {
		return notFinite(epoch, fmt.Sprintf("gradient of %s (layer %d)", spec.Name, spec.Layer))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e.sums[param] = sum
	e.open--
	e.busy += time.Since(start)
	return nil
}

func notFinite(epoch int, what string) error {
	return fmt.Errorf("epoch %d: %s is not finite: lower --lr or check the features with 'dorylus-engine check'", epoch, what)
}

// finite says whether m has neither NaN nor infinity; nil is zero.
//
// On a device it is the sum of squares that comes to the host, in sum, and all values only
// where that is not finite, which it may be of values that are.
func finite(stream kernels.Stream, m, sum *kernels.Mat) (bool, error) {
	if m == nil || m.Rows == 0 || m.Cols == 0 {
		return true, nil
	}
	host := m
	if m.Host == nil {
		var total [1]float32
		stream.Dot(sum, m, m)
		stream.Get(total[:], sum)
		if err := stream.Wait(); err != nil {
			return false, err
		}
		if total[0]-total[0] == 0 {
			return true, nil
		}
		host = kernels.FromSlice(m.Rows, m.Cols, make([]float32, m.Rows*m.Cols))
		stream.Get(host.Host, m)
		if err := stream.Wait(); err != nil {
			return false, err
		}
	}
	for r := range host.Rows {
		for _, x := range host.Row(r) {
			if x-x != 0 { // NaN for both
				return false, nil
			}
		}
	}
	return true, nil
}

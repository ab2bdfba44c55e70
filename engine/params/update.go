package params

import (
	"fmt"
	"time"

	"dorylus/engine"
	"dorylus/engine/optim"
	"dorylus/kernels"
)

// advance makes the updates of all epochs that are complete, in order, unless
// another caller is at it, who will then see this caller's part too.
func (s *Server) advance(stream kernels.Stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.updating {
		return nil
	}
	s.mu.updating = true
	defer func() { s.mu.updating = false }()
	for s.mu.err == nil {
		epoch := s.newest().number
		e := s.mu.epochs[epoch]
		if e == nil || e.open > 0 {
			return nil
		}
		if s.cfg.Gate != nil && !e.told {
			if err := s.knock(stream, epoch, e); err != nil {
				return err
			}
			continue // the gate may have opened meanwhile
		}
		if s.cfg.Gate != nil && e.norm == nil {
			return nil
		}
		s.mu.Unlock()
		u, err := s.update(stream, epoch, e)
		if err == nil && s.cfg.Gate != nil {
			s.cfg.Gate.Made(u)
		}
		s.mu.Lock()
		if err != nil {
			return err
		}
	}
	return nil
}

// update makes version epoch+1 out of the newest and the sums of epoch.
func (s *Server) update(stream kernels.Stream, epoch int, e *epochSum) (u engine.Update, err error) {
	start := time.Now()
	s.step.Lock()
	defer s.step.Unlock()
	next := &version{number: epoch + 1}
	s.mu.Lock()
	last := s.newest()
	for p, spec := range s.cfg.Specs {
		var m *kernels.Mat
		if m, err = s.mu.take(p, spec); err != nil {
			break
		}
		next.mats = append(next.mats, m)
		if e.sums[p] == nil {
			if e.sums[p], err = s.mu.take(p, spec); err != nil {
				break
			}
			stream.Zero(e.sums[p])
		}
	}
	s.mu.Unlock()
	if err != nil {
		return u, fmt.Errorf("epoch %d: update weights: %w", epoch, err)
	}
	rate, norm, err := s.begin(stream, epoch, e, next.mats)
	if err != nil {
		return u, fmt.Errorf("epoch %d: update weights: %w", epoch, err)
	}
	for p, w := range next.mats {
		stream.Copy(w, last.mats[p])
		if s.cfg.Specs[p].Stat {
			stream.AddScaled(w, w, w, -statMomentum, nil)
			stream.AddScaled(w, w, e.sums[p], statMomentum, nil)
			continue
		}
		s.opt.Apply(stream, p, w, e.sums[p])
	}
	if err := stream.Wait(); err != nil {
		return u, fmt.Errorf("epoch %d: update weights: %w", epoch, err)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	for p, g := range e.sums {
		s.mu.put(p, g)
	}
	delete(s.mu.epochs, epoch)
	s.mu.stash = append(s.mu.stash, next)
	s.prune()
	u = engine.Update{
		Version: next.number, Epoch: epoch, Loss: e.loss, LR: rate, GradNorm: norm,
		Seconds: (e.busy + time.Since(start)).Seconds(),
	}
	if s.cfg.Gate == nil {
		s.mu.queue = append(s.mu.queue, u)
		select {
		case s.wake <- struct{}{}:
		default: // the pump is about to look anyway
		}
	}
	return u, nil
}

// statMomentum is how far an update moves a running statistic towards that of its
// epoch: PyTorch's default.
const statMomentum = 0.1

// begin is the optimiser's next step up to the parameters: the learning rate of the
// epoch, and the gradients clipped. spare has a matrix per gradient to work in.
func (s *Server) begin(stream kernels.Stream, epoch int, e *epochSum, spare []*kernels.Mat) (rate, norm float64, err error) {
	rate = s.opt.Next(epoch)
	if err := stream.Wait(); err != nil { // zeros may be on their way
		return 0, 0, err
	}
	if s.cfg.Gate != nil {
		s.opt.Scale(stream, e.sums, spare, *e.norm)
		return rate, *e.norm, nil
	}
	norm, err = s.opt.Clip(stream, e.sums, spare)
	return rate, norm, err
}

// State is a server at one version, in host memory.
type State struct {
	Version int // the updates of all epochs before this one are in it
	Weights []*kernels.Mat
	Optim   *optim.State
}

// Snapshot copies the newest weights and the moments that go with them.
func (s *Server) Snapshot() (*State, error) {
	s.step.Lock()
	defer s.step.Unlock()
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	s.mu.Lock()
	v := s.newest() // stays the newest while step is held
	stream, err := s.mu.stream()
	s.mu.Unlock()
	if err != nil {
		return nil, s.fail(fmt.Errorf("snapshot of version %d: %w", v.number, err))
	}
	st := &State{Version: v.number}
	if st.Weights, err = toHost(stream, v.mats); err == nil {
		st.Optim, err = s.opt.Snapshot(stream)
	}
	if err != nil {
		return nil, s.fail(fmt.Errorf("snapshot of version %d: %w", v.number, err))
	}
	s.mu.Lock()
	s.mu.putStream(stream)
	s.mu.Unlock()
	return st, nil
}

// Copy copies fetched weights, which must still be pinned, into host memory.
func (s *Server) Copy(w engine.Weights) ([]*kernels.Mat, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	s.mu.Lock()
	stream, err := s.mu.stream()
	s.mu.Unlock()
	if err != nil {
		return nil, s.fail(err)
	}
	mats, err := toHost(stream, w.Mats)
	if err != nil {
		return nil, s.fail(fmt.Errorf("copy weights %d: %w", w.Version, err))
	}
	s.mu.Lock()
	s.mu.putStream(stream)
	s.mu.Unlock()
	return mats, nil
}

func toHost(stream kernels.Stream, mats []*kernels.Mat) ([]*kernels.Mat, error) {
	var host []*kernels.Mat
	for _, m := range mats {
		c := kernels.FromSlice(m.Rows, m.Cols, make([]float32, m.Rows*m.Cols))
		stream.Get(c.Host, m)
		host = append(host, c)
	}
	return host, stream.Wait()
}

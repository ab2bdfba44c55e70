package params

import (
	"context"
	"fmt"

	"dorylus/engine"
	"dorylus/kernels"
)

// version is one version of the weights; it changes no more.
type version struct {
	number int
	mats   []*kernels.Mat
	pins   int
}

// pin is who holds a version.
type pin struct{ interval, epoch int }

// Fetch gives an interval the newest weights the first time it asks in an epoch,
// and the same ones until Release. After Release it is an error: a task that comes
// so late is a repeat whose result nobody wants. It never waits.
func (s *Server) Fetch(_ context.Context, interval, epoch int) (engine.Weights, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.mu.closed:
		return engine.Weights{}, errClosed
	case s.mu.err != nil:
		return engine.Weights{}, s.mu.err
	case interval >= s.cfg.Intervals:
		return engine.Weights{}, fmt.Errorf("fetch weights: interval %d of %d", interval, s.cfg.Intervals)
	}
	key := pin{interval, epoch}
	v := s.mu.pins[key]
	if v == nil {
		if interval >= 0 && epoch <= s.mu.released[interval] {
			return engine.Weights{}, fmt.Errorf("fetch weights: interval %d has finished epoch %d: this task is a late repeat", interval, epoch)
		}
		v = s.newest()
		v.pins++
		s.mu.pins[key] = v
	}
	return engine.Weights{Version: v.number, Mats: v.mats}, nil
}

// Release ends what Fetch pinned: the interval has finished the epoch, or will not
// go on with it. It may be repeated.
func (s *Server) Release(interval, epoch int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed || interval >= s.cfg.Intervals {
		return
	}
	if interval >= 0 {
		s.mu.released[interval] = max(s.mu.released[interval], epoch)
	}
	key := pin{interval, epoch}
	v := s.mu.pins[key]
	if v == nil {
		return
	}
	delete(s.mu.pins, key)
	v.pins--
	s.prune()
}

// newest is the newest version. mu is held.
func (s *Server) newest() *version { return s.mu.stash[len(s.mu.stash)-1] }

// prune gives back the versions that nobody has pinned, but for the newest. mu is
// held.
func (s *Server) prune() {
	kept := s.mu.stash[:0]
	last := s.newest()
	for _, v := range s.mu.stash {
		if v.pins > 0 || v == last {
			kept = append(kept, v)
			continue
		}
		for p, m := range v.mats {
			s.mu.put(p, m)
		}
	}
	clear(s.mu.stash[len(kept):])
	s.mu.stash = kept
}

// VersionInfo describes a version in the stash.
type VersionInfo struct {
	Version int
	Pins    int // intervals that hold it
}

// Stash lists the versions that are kept, the newest last.
func (s *Server) Stash() []VersionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []VersionInfo
	for _, v := range s.mu.stash {
		list = append(list, VersionInfo{v.number, v.pins})
	}
	return list
}

package local

import (
	"slices"
	"time"
)

// function is a deployed function and its environments. Fields below rate belong
// to Service.mu.
type function struct {
	Function
	name string

	rate    *bucket // requests
	scale   *bucket // new environments
	running int     // calls
	idle    []*environment
}

// admit lets a call run, if the limits allow: with a warm environment, or with
// nil for a new one. The longest-used environment comes first, so that those that
// are not needed grow idle and end.
func (s *Service) admit(f *function) (*environment, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closing {
		return nil, errClosing
	}
	now := s.opt.Clock.Now()
	if ok, wait := f.rate.take(now); !ok {
		return nil, errThrottled(overRate, wait)
	}
	if f.Reserved > 0 && f.running >= f.Reserved {
		return nil, errThrottled(overReserved, 0)
	}
	if s.mu.running >= s.opt.Concurrency {
		return nil, errThrottled(overConcurrency, 0)
	}
	var e *environment
	if n := len(f.idle); n > 0 {
		e, f.idle = f.idle[n-1], f.idle[:n-1]
		e.reap.Stop()
		e.reapings++
	} else if ok, wait := f.scale.take(now); !ok {
		return nil, errThrottled(overRate, wait)
	}
	f.running++
	s.mu.running++
	return e, nil
}

// release ends a call's turn. An environment that can go on becomes idle, and is
// reaped when it stays so; another has ended, or e is nil.
func (s *Service) release(f *function, e *environment, healthy bool, why string) {
	if healthy {
		e.freeze()
	} else if e != nil {
		e.end(why)
	}
	s.mu.Lock()
	f.running--
	s.mu.running--
	if healthy && !s.mu.closing {
		f.idle = append(f.idle, e)
		e.reapings++
		turn := e.reapings
		e.reap = s.opt.Clock.AfterFunc(s.opt.IdleReap, func() { s.reapIdle(f, e, turn) })
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	if healthy {
		e.end("the service closes")
	}
}

// reapIdle ends an environment whose timer fired, unless a call took it meanwhile.
func (s *Service) reapIdle(f *function, e *environment, turn int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(f.idle, e)
	if s.mu.closing || i < 0 || e.reapings != turn {
		return
	}
	f.idle = slices.Delete(f.idle, i, i+1)
	s.running.Go(func() { e.end("idle for " + s.opt.IdleReap.String()) })
}

// takeIdle empties the pool for good.
func (s *Service) takeIdle() []*environment {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.closing = true
	var all []*environment
	for _, f := range s.functions {
		for _, e := range f.idle {
			e.reap.Stop()
			all = append(all, e)
		}
		f.idle = nil
	}
	return all
}

func (s *Service) newFunction(name string, f Function) *function {
	now := s.opt.Clock.Now()
	return &function{
		Function: f, name: name,
		rate:  newBucket(10*s.opt.Concurrency, time.Second, now),
		scale: newBucket(s.opt.ScaleUp, scaleWindow, now),
	}
}

package group

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"dorylus/cluster/rpc"
	"dorylus/engine"
)

// Local is engine.Group between graph servers of one process.
type Local struct {
	rank    int
	all     *locals
	stopped chan string
}

var _ engine.Group = (*Local)(nil)

// locals is what they share.
type locals struct {
	mu struct {
		sync.Mutex
		pots    map[string]*localPot
		members []*Local
		stopped bool
		left    map[int]bool
		err     error
		down    chan struct{} // closed with err
	}
}

type localPot struct {
	parts   [][]byte
	have    int
	full    chan struct{}
	collect bool
}

// NewLocal is the groups of n servers, by rank.
func NewLocal(n int) []*Local {
	all := &locals{}
	all.mu.pots, all.mu.left, all.mu.down = make(map[string]*localPot), make(map[int]bool), make(chan struct{})
	for rank := range n {
		all.mu.members = append(all.mu.members, &Local{rank, all, make(chan string, 1)})
	}
	return all.mu.members
}

// Rank implements engine.Group.
func (l *Local) Rank() int { return l.rank }

// Size implements engine.Group.
func (l *Local) Size() int { return len(l.all.mu.members) }

// Stopped implements engine.Group.
func (l *Local) Stopped() <-chan string { return l.stopped }

// Gather implements engine.Group.
func (l *Local) Gather(ctx context.Context, key string, mine []byte) ([][]byte, error) {
	return l.gather(ctx, key, mine, false)
}

// Collect implements engine.Group.
func (l *Local) Collect(ctx context.Context, key string, mine []byte) ([][]byte, error) {
	return l.gather(ctx, key, mine, true)
}

func (l *Local) gather(ctx context.Context, key string, mine []byte, collect bool) ([][]byte, error) {
	a := l.all
	a.mu.Lock()
	p := a.mu.pots[key]
	if p == nil {
		p = &localPot{parts: make([][]byte, l.Size()), full: make(chan struct{}), collect: collect}
		a.mu.pots[key] = p
	}
	err := a.mu.err
	if err == nil && (p.parts[l.rank] != nil || p.collect != collect) {
		err = errors.New("the key is in use already")
	}
	if err != nil {
		a.mu.Unlock()
		return nil, fmt.Errorf("gather %q: %w", key, err)
	}
	p.parts[l.rank] = append([]byte{}, mine...)
	if p.have++; p.have == l.Size() {
		delete(a.mu.pots, key)
		close(p.full)
	}
	a.hopelessLocked()
	a.mu.Unlock()
	if collect && l.rank != 0 {
		return nil, nil
	}
	select {
	case <-p.full:
	case <-a.mu.down:
		return nil, fmt.Errorf("gather %q: %w", key, a.err())
	case <-ctx.Done():
		return nil, fmt.Errorf("gather %q: %v did not give theirs: %w", key, a.missing(p), ctx.Err())
	}
	own := make([][]byte, len(p.parts))
	for i := range own {
		own[i] = bytes.Clone(p.parts[i])
	}
	return own, nil
}

func (a *locals) err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mu.err
}

func (a *locals) missing(p *localPot) []rpc.Who {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []rpc.Who
	for rank, part := range p.parts {
		if part == nil {
			all = append(all, rpc.Who{Role: rpc.Graph, Rank: rank})
		}
	}
	return all
}

// Stop implements engine.Group.
func (l *Local) Stop(reason string) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	if l.all.mu.stopped {
		return
	}
	l.all.mu.stopped = true
	for _, m := range l.all.mu.members {
		m.stopped <- reason
	}
}

// Abort ends the run for all servers by err.
func (l *Local) Abort(err error) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	l.all.failLocked(err)
}

// Leave says that this server takes part no more. Whoever waits for it fails.
func (l *Local) Leave() {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	l.all.mu.left[l.rank] = true
	l.all.hopelessLocked()
}

// hopelessLocked fails the run if a pot waits for a server that has left.
func (a *locals) hopelessLocked() {
	for key, p := range a.mu.pots {
		for rank := range a.mu.left {
			if p.parts[rank] == nil {
				a.failLocked(&rpc.PeerError{Who: rpc.Who{Role: rpc.Graph, Rank: rank}, Addr: "this process",
					Awaited: fmt.Sprintf("its part of %q", key), Err: errors.New("it has left the run")})
				return
			}
		}
	}
}

func (a *locals) failLocked(err error) {
	if a.mu.err == nil {
		a.mu.err = err
		close(a.mu.down)
	}
}

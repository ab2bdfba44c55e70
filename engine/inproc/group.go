package inproc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"dorylus/engine"
)

// Group is the partitions of a run as those who decide together.
type Group struct {
	names []string // of the partitions' devices

	mu      sync.Mutex
	pots    map[string]*pot
	stops   []chan string
	stopped bool
	err     error
	down    chan struct{} // closed with err
}

// pot is what has been given under a key.
type pot struct {
	parts   [][]byte // nil: not yet
	have    int
	full    chan struct{}
	collect bool
}

// NewGroup is of as many partitions as there are names of their devices.
func NewGroup(names []string) *Group {
	g := &Group{names: names, pots: make(map[string]*pot), down: make(chan struct{})}
	for range names {
		g.stops = append(g.stops, make(chan string, 1))
	}
	return g
}

// Member is the group as partition rank sees it: engine.Group.
func (g *Group) Member(rank int) *Member { return &Member{g, rank} }

// Member is one partition in a group.
type Member struct {
	g    *Group
	rank int
}

var _ engine.Group = (*Member)(nil)

// Rank implements engine.Group.
func (m *Member) Rank() int { return m.rank }

// Size implements engine.Group.
func (m *Member) Size() int { return len(m.g.names) }

// Stopped implements engine.Group.
func (m *Member) Stopped() <-chan string { return m.g.stops[m.rank] }

// Stop implements engine.Group.
func (m *Member) Stop(reason string) {
	g := m.g
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return
	}
	g.stopped = true
	for _, c := range g.stops {
		c <- reason
	}
}

// Gather implements engine.Group.
func (m *Member) Gather(ctx context.Context, key string, mine []byte) ([][]byte, error) {
	return m.gather(ctx, key, mine, false)
}

// Collect implements engine.Group.
func (m *Member) Collect(ctx context.Context, key string, mine []byte) ([][]byte, error) {
	return m.gather(ctx, key, mine, true)
}

func (m *Member) gather(ctx context.Context, key string, mine []byte, collect bool) ([][]byte, error) {
	g := m.g
	g.mu.Lock()
	p := g.pots[key]
	if p == nil {
		p = &pot{parts: make([][]byte, len(g.names)), full: make(chan struct{}), collect: collect}
		g.pots[key] = p
	}
	err := g.err
	if err == nil && (p.parts[m.rank] != nil || p.collect != collect) {
		err = errors.New("the key is in use already")
	}
	if err != nil {
		g.mu.Unlock()
		return nil, fmt.Errorf("gather %q: %w", key, err)
	}
	p.parts[m.rank] = append([]byte{}, mine...)
	if p.have++; p.have == len(g.names) {
		delete(g.pots, key)
		close(p.full)
	}
	g.mu.Unlock()
	if collect && m.rank != 0 {
		return nil, nil
	}
	select {
	case <-p.full:
	case <-g.down:
		return nil, fmt.Errorf("gather %q: %w", key, g.cause())
	case <-ctx.Done():
		return nil, fmt.Errorf("gather %q: %s did not give theirs: %w", key, g.missing(p), ctx.Err())
	}
	own := make([][]byte, len(p.parts))
	for i := range own {
		own[i] = bytes.Clone(p.parts[i])
	}
	return own, nil
}

func (g *Group) missing(p *pot) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []string
	for rank, part := range p.parts {
		if part == nil {
			all = append(all, g.names[rank])
		}
	}
	return strings.Join(all, ", ")
}

func (g *Group) cause() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// Fail ends the run for all by err; the first one counts.
func (g *Group) Fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.err = err
		close(g.down)
	}
}

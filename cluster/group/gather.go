package group

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"dorylus/cluster/rpc"
)

// Gather implements engine.Group. An error that a server is to blame for is an
// *rpc.PeerError.
func (g *Group) Gather(ctx context.Context, key string, mine []byte) ([][]byte, error) {
	return g.gather(ctx, key, mine, kindGive)
}

// Collect implements engine.Group, with the errors of Gather.
func (g *Group) Collect(ctx context.Context, key string, mine []byte) ([][]byte, error) {
	return g.gather(ctx, key, mine, kindCollect)
}

func (g *Group) gather(ctx context.Context, key string, mine []byte, kind byte) ([][]byte, error) {
	if len(key) > maxKey || int64(len(mine))*int64(g.base.Size) > maxBytes {
		return nil, fmt.Errorf("gather %.40q: a key of %d bytes, %d bytes from each of %d servers; at most %d, and %d in all, may be", key, len(key), len(mine), g.base.Size, maxKey, int64(maxBytes))
	}
	w := &wait{done: make(chan [][]byte, 1)}
	g.mu.Lock()
	err := g.mu.err
	switch {
	case err != nil:
	case g.mu.closed:
		err = errors.New("this server has left the run")
	case g.mu.waits[key] != nil:
		err = errors.New("the key is in use already")
	default:
		g.mu.waits[key] = w
		err = g.hopelessLocked()
	}
	if err == nil {
		g.mu.Unlock()
	} else {
		if g.mu.waits[key] == w {
			delete(g.mu.waits, key)
		}
		g.mu.Unlock()
		return nil, fmt.Errorf("gather %q: %w", key, err)
	}
	defer func() {
		g.mu.Lock()
		delete(g.mu.waits, key)
		g.mu.Unlock()
	}()
	mine = append([]byte{}, mine...) // it travels after the call, and is not nil
	if g.base.Rank == 0 {
		g.give(0, key, mine, kind == kindCollect)
	} else if err := g.mesh.Send(ctx, 0, &note{kind: kind, key: key, parts: [][]byte{mine}}); err != nil {
		return nil, g.because(key, err)
	}
	timer := time.NewTimer(g.c.Timeout)
	defer timer.Stop()
	select {
	case all := <-w.done:
		return all, nil
	case <-g.down:
		return nil, fmt.Errorf("gather %q: %w", key, g.Err())
	case <-ctx.Done():
		return nil, fmt.Errorf("gather %q: %s did not give theirs: %w", key, g.names(g.missing(key, w)), ctx.Err())
	case <-timer.C:
	}
	missing := g.missing(key, w)
	p := g.base.Peers[missing[0]]
	p.Who = rpc.Who{Role: rpc.Graph, Rank: missing[0]}
	late := &rpc.PeerError{Who: p.Who, Addr: p.Addr, Awaited: fmt.Sprintf("its part of %q", key),
		Err: fmt.Errorf("%s gave nothing for %v", g.names(missing), g.c.Timeout)}
	g.Abort(late)
	return nil, fmt.Errorf("gather %q: %w", key, late)
}

// because prefers what has ended the run to what Send says of it.
func (g *Group) because(key string, err error) error {
	if why := g.Err(); why != nil {
		err = why
	}
	return fmt.Errorf("gather %q: %w", key, err)
}

// missing is who has not given under key, as far as this server knows: at least one rank.
func (g *Group) missing(key string, w *wait) []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p := g.mu.pots[key]; p != nil {
		return p.missing()
	}
	if len(w.missing) > 0 {
		return w.missing
	}
	return []int{0} // who has not said whom it waits for
}

func (p *pot) missing() []int {
	var all []int
	for rank, part := range p.parts {
		if part == nil {
			all = append(all, rank)
		}
	}
	return all
}

// give puts a server's part into the hub's pot, and hands the pot to all when it is
// full, or to this server alone.
func (g *Group) give(from int, key string, part []byte, collect bool) {
	g.mu.Lock()
	if g.mu.err != nil || g.mu.closed {
		g.mu.Unlock()
		return
	}
	p := g.mu.pots[key]
	if p == nil {
		p = &pot{parts: make([][]byte, g.base.Size), collect: collect}
		p.timer = time.AfterFunc(g.c.Tell, func() { g.tellMissing(key, p) })
		g.mu.pots[key] = p
	}
	if p.parts[from] != nil || p.collect != collect {
		g.mu.Unlock()
		g.Abort(fmt.Errorf("%s gives under the key %q, which is in use: for this, by the same, or for something else", g.names([]int{from}), key))
		return
	}
	p.parts[from] = part
	p.have++
	full := p.have == g.base.Size
	var hopeless error
	if full {
		p.timer.Stop()
		delete(g.mu.pots, key)
	} else {
		hopeless = g.hopelessLocked()
	}
	g.mu.Unlock()
	if collect && from != 0 {
		g.work(func() { g.send(from, &note{kind: kindTaken, key: key}) })
	}
	switch {
	case hopeless != nil:
		g.Abort(hopeless)
	case full && collect:
		g.deliver(key, p.parts)
	case full:
		g.work(func() { g.tell(&note{kind: kindAll, key: key, parts: p.parts}, 0) })
		// Slices of its own, as all others get.
		mine := make([][]byte, len(p.parts))
		for i := range mine {
			mine[i] = bytes.Clone(p.parts[i])
		}
		g.deliver(key, mine)
	}
}

// tellMissing tells those who wait for key whom they wait for.
func (g *Group) tellMissing(key string, p *pot) {
	g.mu.Lock()
	if g.mu.pots[key] != p || g.mu.err != nil || g.mu.closed {
		g.mu.Unlock()
		return
	}
	missing := p.missing()
	news := !slices.Equal(missing, p.told)
	p.told = missing
	var to []int
	for rank, part := range p.parts {
		if part != nil && rank != 0 {
			to = append(to, rank)
		}
	}
	p.timer.Reset(g.c.Tell)
	g.mu.Unlock()
	if news {
		g.work(func() {
			for _, rank := range to {
				g.send(rank, &note{kind: kindMissing, key: key, ranks: missing})
			}
		})
	}
}

// deliver ends this server's Gather.
func (g *Group) deliver(key string, all [][]byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w := g.mu.waits[key]; w != nil {
		select {
		case w.done <- all:
		default:
		}
	}
}

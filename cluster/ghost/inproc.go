package ghost

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"dorylus/cluster/rpc"
	"dorylus/engine"
	"dorylus/lambda/codec"
)

// Local is engine.Exchanger between partitions of one process: the same frames, the same
// rounding, the same window, without connections.
type Local struct {
	rank int
	hub  *localHub
	dec  *decoder
}

var _ engine.Exchanger = (*Local)(nil)

// localHub is what the exchangers of one run share.
type localHub struct {
	c      Config
	window int64
	encs   encoders

	mu struct {
		sync.Mutex
		boxes   []box
		err     error
		changed chan struct{} // closed, and replaced, when somebody should look again
	}
}

// box is what waits for one partition.
type box struct {
	queue []*engine.RowMsg
	held  map[int]int64 // bytes of it, by sender
	count map[int]int
	left  bool
}

// NewLocal is the exchangers of n partitions, by rank. window bounds the bytes under way
// between two of them; 0: 32 MiB.
func NewLocal(n int, c Config, window int64) ([]*Local, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	if window <= 0 {
		window = 32 << 20
	}
	encs, err := newEncoders(codec.Options{Wire: c.Wire, Codec: codec.None})
	if err != nil {
		return nil, err
	}
	h := &localHub{c: c, window: window, encs: encs}
	h.mu.boxes, h.mu.changed = make([]box, n), make(chan struct{})
	all := make([]*Local, n)
	for rank := range all {
		h.mu.boxes[rank] = box{held: make(map[int]int64), count: make(map[int]int)}
		all[rank] = &Local{rank, h, &decoder{c: &h.c, self: rank, got: func(int, *engine.RowMsg, *rpc.Message, bool) {}}}
	}
	return all, nil
}

func (h *localHub) notifyLocked() {
	close(h.mu.changed)
	h.mu.changed = make(chan struct{})
}

// Send implements engine.Exchanger.
func (l *Local) Send(ctx context.Context, m *engine.RowMsg) error {
	h := l.hub
	if m.From != l.rank || m.To < 0 || m.To >= len(h.mu.boxes) || m.To == l.rank {
		return fmt.Errorf("send %s from %d to %d: this is graph server %d of %d", name(m), m.From, m.To, l.rank, len(h.mu.boxes))
	}
	r, err := newRows(m, &h.c, h.encs.of(m))
	if err != nil {
		return err
	}
	copied, err := l.carry(r)
	if err != nil {
		return fmt.Errorf("send %s: %w", name(m), err)
	}
	for {
		h.mu.Lock()
		b := &h.mu.boxes[m.To]
		switch {
		case h.mu.err != nil:
			err := h.mu.err
			h.mu.Unlock()
			return err
		case b.left:
			h.mu.Unlock()
			return nil
		case b.count[l.rank] == 0 || b.held[l.rank]+r.Size() <= h.window:
			b.queue = append(b.queue, copied)
			b.count[l.rank]++
			b.held[l.rank] += r.Size()
			h.notifyLocked()
			h.mu.Unlock()
			return nil
		}
		changed := h.mu.changed
		h.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("send %s to graph server %d: %w", name(m), m.To, ctx.Err())
		}
	}
}

// carry is what comes out where r goes in.
func (l *Local) carry(r *rows) (*engine.RowMsg, error) {
	d := l.dec
	to := &decoder{c: d.c, self: r.m.To, got: d.got}
	var v *arriving
	var err error
	i := 0
	r.Encode(func(m *rpc.Message) bool {
		if i == 0 {
			if _, err = to.Size(l.rank, m); err != nil {
				return false
			}
		}
		v, err = to.Add(l.rank, v, i, r.Chunks(), m)
		i++
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	return v.m, nil
}

// Recv implements engine.Exchanger.
func (l *Local) Recv(ctx context.Context) (*engine.RowMsg, error) {
	h := l.hub
	for {
		h.mu.Lock()
		b := &h.mu.boxes[l.rank]
		if len(b.queue) > 0 {
			m := b.queue[0]
			b.queue[0] = nil
			b.queue = b.queue[1:]
			b.count[m.From]--
			b.held[m.From] -= sizeOf(len(m.Data), 1)
			h.notifyLocked()
			h.mu.Unlock()
			return m, nil
		}
		err, left, changed := h.mu.err, b.left, h.mu.changed
		h.mu.Unlock()
		switch {
		case err != nil:
			return nil, fmt.Errorf("wait for rows: %w", err)
		case left:
			return nil, errors.New("wait for rows: this server has left the run")
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for rows: %w", ctx.Err())
		}
	}
}

// Fail ends the exchange for all, by err.
func (l *Local) Fail(err error) {
	h := l.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.err == nil {
		h.mu.err = err
		h.notifyLocked()
	}
}

// Leave says that this partition needs nothing any more: what is sent to it is dropped.
func (l *Local) Leave() {
	h := l.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.boxes[l.rank].left = true
	h.mu.boxes[l.rank].queue = nil
	h.notifyLocked()
}

package ghost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"dorylus/cluster/link"
	"dorylus/cluster/rpc"
	"dorylus/engine"
	"dorylus/lambda/codec"
)

// Service is the name of the gRPC service.
const Service = "dorylus.cluster.v1.Rows"

// Exchanger is engine.Exchanger between processes.
type Exchanger struct {
	c      Config
	base   link.Base
	mesh   *link.Mesh[*arriving]
	encs   map[int]encoders // by peer: each probes for itself
	counts *counts

	mu    sync.Mutex
	check func(m *engine.RowMsg, rows int) error
	open  chan struct{} // closed while something may come
	shut  bool
}

var (
	_ engine.Exchanger = (*Exchanger)(nil)
	_ engine.Expecter  = (*Exchanger)(nil)
)

// New is an Exchanger of the server base.Rank. Add Links().Service to its rpc.Server and
// Start the links. lost hears of each peer that is lost; nil: nobody.
func New(c Config, base link.Base, lost func(peer int, err error)) (*Exchanger, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	x := &Exchanger{c: c, base: base, encs: make(map[int]encoders), counts: newCounts(base.Size), open: make(chan struct{}), shut: true}
	if !c.Await {
		x.Expect(func(*engine.RowMsg, int) error { return nil })
	}
	for peer := range base.Peers {
		if x.encs[peer], err = newEncoders(codec.Options{Wire: c.Wire, Codec: c.Codec, Link: c.Link}); err != nil {
			return nil, err
		}
	}
	x.mesh, err = link.New(link.Config[*arriving]{
		Base: base, Service: Service, Lost: lost,
		Decoder: &decoder{c: &x.c, self: base.Rank, wanted: x.wanted, got: x.counts.got},
		Open:    x.opened,
		Sent: func(to int, it link.Item, i int, m *rpc.Message, again bool) {
			x.counts.sent(to, it.(*rows).m, m, i == 0, again)
		},
		Got: func(from int, m *rpc.Message, again bool) {
			if again {
				x.counts.repeat(from, m)
			}
		},
	})
	return x, err
}

// Expect implements engine.Expecter.
func (x *Exchanger) Expect(check func(m *engine.RowMsg, rows int) error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case check == nil && !x.shut:
		x.open, x.shut = make(chan struct{}), true
	case check != nil:
		x.check = check // of the last one, what it was asked for may still be on its way in
		if x.shut {
			close(x.open)
			x.shut = false
		}
	}
}

// opened is closed while something may come.
func (x *Exchanger) opened() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.open
}

// wanted says why a message is not wanted.
func (x *Exchanger) wanted(m *engine.RowMsg, rows int) error {
	x.mu.Lock()
	check := x.check
	x.mu.Unlock()
	return check(m, rows)
}

// Links are the links beneath, of some type of message.
func (x *Exchanger) Links() Links { return x.mesh }

// Links is what a link.Mesh offers whatever it carries.
type Links interface {
	Service() rpc.Service
	Start()
	Ready(ctx context.Context) error
	States() []link.State
	Fail(err error)
	Err() error
	Down() <-chan struct{}
	Leave(ctx context.Context, why string) error
}

// Send implements engine.Exchanger. It waits while more than a window of bytes is under
// way to the receiver; an error of the receiver is an *rpc.PeerError and final.
func (x *Exchanger) Send(ctx context.Context, m *engine.RowMsg) error {
	encs, known := x.encs[m.To]
	if m.From != x.base.Rank || !known {
		return fmt.Errorf("send %s from %d to %d: this is graph server %d of %d", name(m), m.From, m.To, x.base.Rank, x.base.Size)
	}
	r, err := newRows(m, &x.c, encs.of(m))
	if err != nil {
		return err
	}
	began := time.Now()
	err = x.mesh.Send(ctx, m.To, r)
	x.counts.waited(m.To, m.Pass, time.Since(began), true)
	return err
}

// Recv implements engine.Exchanger.
func (x *Exchanger) Recv(ctx context.Context) (*engine.RowMsg, error) {
	began := time.Now()
	from, v, err := x.mesh.Recv(ctx)
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("wait for rows: all other graph servers have left the run: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("wait for rows: %w", err)
	}
	x.counts.waited(from, v.m.Pass, time.Since(began), false)
	return v.m, nil
}

// Counters is what has been exchanged so far.
func (x *Exchanger) Counters() Snapshot {
	s := x.counts.snapshot(x.base.Rank)
	for i := range s.Peers {
		p := &s.Peers[i]
		p.Out, p.In = x.mesh.Stats(p.Peer)
	}
	return s
}

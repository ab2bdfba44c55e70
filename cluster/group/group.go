package group

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"dorylus/cluster/link"
	"dorylus/cluster/rpc"
	"dorylus/engine"
)

// Service is the name of the gRPC service.
const Service = "dorylus.cluster.v1.Group"

// Config of a Group.
type Config struct {
	// Timeout bounds a Gather, from this server's call on, so that a server that is there
	// but does nothing is named; 0: 15 min.
	Timeout time.Duration
	// Tell is how often the hub tells those who wait whom they wait for; 0: 5 s.
	Tell time.Duration
}

// Group is engine.Group between processes.
type Group struct {
	c    Config
	base link.Base
	self rpc.Who
	addr string
	mesh *link.Mesh[*arriving]

	ctx     context.Context
	cancel  context.CancelFunc
	hearing sync.WaitGroup
	sending sync.WaitGroup // on behalf of others
	stopped chan string
	down    chan struct{} // closed with err

	mu struct {
		sync.Mutex
		waits   map[string]*wait
		pots    map[string]*pot // at the hub
		left    map[int]bool    // peers that have left in good order
		stopped bool
		closed  bool
		err     error
	}
}

var _ engine.Group = (*Group)(nil)

// wait is a Gather of this server that waits.
type wait struct {
	done    chan [][]byte
	missing []int
}

// pot is what the hub has got for one key.
type pot struct {
	parts [][]byte // by rank; nil: not yet
	have  int
	// collect: for the hub alone.
	collect bool
	told    []int // who is known to be missing
	timer   *time.Timer
}

// New is the Group of the server base.Rank, which others reach at addr. Of base.Peers the
// hub needs all, the others rank 0. Add Links().Service to its rpc.Server and Start it.
func New(c Config, base link.Base, addr string) (*Group, error) {
	if c.Timeout <= 0 {
		c.Timeout = 15 * time.Minute
	}
	if c.Tell <= 0 {
		c.Tell = 5 * time.Second
	}
	all := base.Peers
	base.Peers = make(map[int]link.Peer)
	for rank, p := range all {
		if base.Rank == 0 || rank == 0 {
			base.Peers[rank] = p
		}
	}
	want := 1
	if base.Rank == 0 {
		want = base.Size - 1
	}
	if len(base.Peers) != want {
		return nil, fmt.Errorf("make the group of rank %d of %d: it has %d peers to talk to, want %d", base.Rank, base.Size, len(base.Peers), want)
	}
	g := &Group{c: c, base: base, self: rpc.Who{Role: rpc.Graph, Rank: base.Rank}, addr: addr, stopped: make(chan string, 1), down: make(chan struct{})}
	g.mu.waits, g.mu.pots, g.mu.left = make(map[string]*wait), make(map[string]*pot), make(map[int]bool)
	g.ctx, g.cancel = context.WithCancel(context.Background())
	var err error
	g.mesh, err = link.New(link.Config[*arriving]{Base: base, Service: Service, Decoder: decoder{}, Lost: g.lost, Left: g.gone})
	return g, err
}

// Links are the links beneath.
func (g *Group) Links() *link.Mesh[*arriving] { return g.mesh }

// Start begins to call the others.
func (g *Group) Start() {
	g.mesh.Start()
	g.hearing.Go(g.hear)
}

// Rank implements engine.Group.
func (g *Group) Rank() int { return g.base.Rank }

// Size implements engine.Group.
func (g *Group) Size() int { return g.base.Size }

// Stopped implements engine.Group.
func (g *Group) Stopped() <-chan string { return g.stopped }

// Down is closed when the run cannot go on; Err says why.
func (g *Group) Down() <-chan struct{} { return g.down }

// Err is why the run cannot go on.
func (g *Group) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.err
}

// hear takes what the others say, until there is nothing more to come.
func (g *Group) hear() {
	for {
		from, v, err := g.mesh.Recv(g.ctx)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, context.Canceled) {
				g.fail(err)
			}
			return
		}
		g.take(from, v.note)
	}
}

// take acts on a note.
func (g *Group) take(from int, n *note) {
	switch {
	case n.kind == kindGive && g.base.Rank == 0 && len(n.parts) == 1:
		g.give(from, n.key, n.parts[0], false)
	case n.kind == kindCollect && g.base.Rank == 0 && len(n.parts) == 1:
		g.give(from, n.key, n.parts[0], true)
	case n.kind == kindTaken && g.base.Rank != 0:
		g.deliver(n.key, nil)
	case n.kind == kindAll && g.base.Rank != 0 && len(n.parts) == g.base.Size:
		g.deliver(n.key, n.parts)
	case n.kind == kindMissing && g.base.Rank != 0:
		g.mu.Lock()
		if w := g.mu.waits[n.key]; w != nil {
			w.missing = n.ranks
		}
		g.mu.Unlock()
	case n.kind == kindStop:
		g.stop(n.key)
	case n.kind == kindLost && len(n.ranks) == 1 && len(n.parts) == 1:
		lost := &rpc.PeerError{Who: rpc.Who{Role: rpc.Graph, Rank: n.ranks[0]}, Addr: n.key, Err: errors.New(string(n.parts[0]))}
		if n.ranks[0] == g.base.Rank { // for the others, behind a partition
			p := g.base.Peers[from]
			lost = &rpc.PeerError{Who: p.Who, Addr: p.Addr, Err: fmt.Errorf("it says that this server is lost: %w", lost)}
		}
		g.abort(lost, from)
	default:
		p := g.base.Peers[from]
		g.abort(&rpc.PeerError{Who: p.Who, Addr: p.Addr, Err: fmt.Errorf("it sends what does not fit: a note of kind %d with %d parts", n.kind, len(n.parts))}, g.base.Rank)
	}
}

// send tells one server, unless it is lost, which is told otherwise.
func (g *Group) send(to int, n *note) {
	if err := g.mesh.Send(g.ctx, to, n); err != nil && g.ctx.Err() == nil {
		g.fail(err)
	}
}

// tell tells all peers but one.
func (g *Group) tell(n *note, but int) {
	for rank := range g.base.Size {
		if _, ok := g.base.Peers[rank]; ok && rank != but {
			g.send(rank, n)
		}
	}
}

// work runs f, which may wait for others, by itself, unless the group is closed.
func (g *Group) work(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.mu.closed {
		g.sending.Go(f)
	}
}

// fail ends all that waits.
func (g *Group) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.err != nil || g.mu.closed {
		return
	}
	g.mu.err = err
	close(g.down)
	for _, p := range g.mu.pots {
		p.timer.Stop()
	}
}

// Abort ends the run for all servers by err: of a *rpc.PeerError they hear which server
// it is about, else that this one has failed.
func (g *Group) Abort(err error) { g.abort(err, g.base.Rank) }

// abort is Abort, for whoever has not heard it from there.
func (g *Group) abort(err error, heard int) {
	g.mu.Lock()
	old := g.mu.err != nil
	g.mu.Unlock()
	if old {
		return
	}
	g.fail(err)
	n := &note{kind: kindLost, ranks: []int{g.base.Rank}, key: g.addr, parts: [][]byte{[]byte("it has failed: " + rpc.Text(err))}}
	if p := (*rpc.PeerError)(nil); errors.As(err, &p) && p.Who.Role == rpc.Graph && p.Who.Rank >= 0 {
		text := rpc.Text(p.Err)
		if p.Awaited != "" {
			text += " (awaited: " + p.Awaited + ")"
		}
		n.ranks[0], n.key, n.parts[0] = p.Who.Rank, p.Addr, []byte(text)
	}
	g.work(func() { g.tell(n, heard) })
}

// lost hears from the links.
func (g *Group) lost(_ int, err error) { g.Abort(err) }

// gone hears that a peer has left in good order: it will give nothing more.
func (g *Group) gone(peer int) {
	g.mu.Lock()
	g.mu.left[peer] = true
	err := g.hopelessLocked()
	g.mu.Unlock()
	if err != nil {
		g.Abort(err)
	}
}

// hopelessLocked is an error if something waits for a server that has left.
func (g *Group) hopelessLocked() error {
	for peer := range g.mu.left {
		p := g.base.Peers[peer]
		for key := range g.mu.waits {
			if g.base.Rank != 0 {
				return &rpc.PeerError{Who: p.Who, Addr: p.Addr, Awaited: fmt.Sprintf("the parts of all for %q", key), Err: errors.New("it has left the run")}
			}
		}
		for key, pot := range g.mu.pots {
			if pot.parts[peer] == nil {
				return &rpc.PeerError{Who: p.Who, Addr: p.Addr, Awaited: fmt.Sprintf("its part of %q", key), Err: errors.New("it has left the run")}
			}
		}
	}
	return nil
}

// Stop implements engine.Group.
func (g *Group) Stop(reason string) {
	if g.base.Rank == 0 {
		g.stop(reason)
		return
	}
	g.work(func() {
		if g.mesh.Send(g.ctx, 0, &note{kind: kindStop, key: cut(reason)}) != nil {
			g.stop(reason) // the hub is lost: for this server it is true anyway
		}
	})
}

// stop notes the first reason; the hub tells it to all.
func (g *Group) stop(reason string) {
	g.mu.Lock()
	first := !g.mu.stopped
	g.mu.stopped = true
	g.mu.Unlock()
	if !first {
		return
	}
	g.stopped <- reason
	if g.base.Rank == 0 {
		g.work(func() { g.tell(&note{kind: kindStop, key: cut(reason)}, g.base.Rank) })
	}
}

// cut bounds a text that travels as a key.
func cut(s string) string { return s[:min(len(s), maxKey)] }

// names of servers, for errors.
func (g *Group) names(ranks []int) string {
	var all []string
	for _, r := range ranks {
		s := rpc.Who{Role: rpc.Graph, Rank: r}.String()
		if p, ok := g.base.Peers[r]; ok {
			s += " at " + p.Addr
		}
		all = append(all, s)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// Leave ends the group: in good order, where why is empty, or since this server has
// failed. The others have heard all that was told them, unless ctx ends before.
func (g *Group) Leave(ctx context.Context, why string) error {
	g.mu.Lock()
	if g.mu.closed {
		g.mu.Unlock()
		return nil
	}
	g.mu.closed = true
	for _, p := range g.mu.pots {
		p.timer.Stop()
	}
	g.mu.Unlock()
	sent := make(chan struct{})
	go func() {
		g.sending.Wait()
		close(sent)
	}()
	select {
	case <-sent:
	case <-ctx.Done():
	case <-g.down: // who is lost takes nothing any more
	}
	err := g.mesh.Leave(ctx, why)
	g.cancel()
	<-sent
	g.hearing.Wait()
	return err
}

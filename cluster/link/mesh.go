package link

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"dorylus/cluster/rpc"
)

const (
	maxWindow = 4 << 30
	method    = "Items"
)

// Mesh is one server's links with its peers.
type Mesh[T any] struct {
	cfg  Config[T]
	env  *env
	born uint64
	outs map[int]*out
	ins  map[int]*in[T]

	ctx     context.Context // ends when streams must
	cancel  context.CancelFunc
	leaving chan struct{} // closed when this server leaves, why says why
	why     string
	running sync.WaitGroup // the outs
	serving sync.WaitGroup // streams and their readers
	down    chan struct{}  // closed with the first error
	drained chan struct{}  // closed when nobody receives any more

	mu struct {
		sync.Mutex
		queue    []arrival[T]
		changed  chan struct{} // closed, and replaced, when Recv or Ready should look again
		lost     map[int]bool  // peers
		draining bool          // nobody receives any more
		closed   bool
		started  bool
		err      error
	}
}

// env is what links need of their mesh.
type env struct {
	rank               int
	method             string
	window             int64
	ready, away, stall time.Duration
	faults             Faults
	hello              func(to int) *hello
	lost               func(peer int, err error)
	bye                func(peer int) bool // it has left in good order
	sent               func(to int, it Item, i int, m *rpc.Message, again bool)
}

type arrival[T any] struct {
	in   *in[T]
	v    T
	size int64
	bye  bool // no item: the sender has left
}

// New is a Mesh. Add its Service to the server, then Start it.
func New[T any](c Config[T]) (*Mesh[T], error) {
	c.defaults()
	if c.Decoder == nil || c.Service == "" || c.Rank < 0 || c.Rank >= c.Size {
		return nil, fmt.Errorf("make links of rank %d of %d: want a service, a decoder and a rank below the size", c.Rank, c.Size)
	}
	if c.Window > maxWindow {
		return nil, fmt.Errorf("make links: a window of %d bytes, at most %d may be", c.Window, int64(maxWindow))
	}
	var id [8]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, fmt.Errorf("make links: %w", err)
	}
	m := &Mesh[T]{cfg: c, born: binary.LittleEndian.Uint64(id[:]) | 1, outs: make(map[int]*out), ins: make(map[int]*in[T]),
		leaving: make(chan struct{}), down: make(chan struct{}), drained: make(chan struct{})}
	m.mu.changed, m.mu.lost = make(chan struct{}), make(map[int]bool)
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.env = &env{rank: c.Rank, method: "/" + c.Service + "/" + method, window: c.Window, ready: c.ReadyTimeout, away: c.PeerTimeout, stall: c.StallTimeout,
		faults: c.Faults, lost: m.lose, sent: c.Sent,
		bye: func(peer int) bool { return m.ins[peer].gone() },
		hello: func(to int) *hello {
			return &hello{Version: version, Job: c.Job.ID, Settings: c.Job.Settings, From: c.Rank, To: to, Size: c.Size, Born: m.born, Window: c.Window}
		}}
	for rank, p := range c.Peers {
		if rank == c.Rank || rank < 0 || rank >= c.Size {
			return nil, fmt.Errorf("make links of rank %d of %d: rank %d is no peer", c.Rank, c.Size, rank)
		}
		m.outs[rank] = newOut(rank, p, m.env)
		i := &in[T]{from: rank, peer: p, mesh: m, wake: make(chan struct{}, 1)}
		i.mu.next, i.mu.partial = 1, make(map[uint64]*partial[T])
		m.ins[rank] = i
	}
	return m, nil
}

// Service is what the server has to offer to the peers.
func (m *Mesh[T]) Service() rpc.Service {
	return rpc.Service{Name: m.cfg.Service, Roles: []rpc.Role{rpc.Graph}, Streams: map[string]func(rpc.Stream) error{method: m.serve}}
}

// Start begins to call the peers.
func (m *Mesh[T]) Start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.started || m.mu.closed {
		return
	}
	m.mu.started = true
	for _, o := range m.outs {
		m.running.Go(func() { o.run(m.ctx) })
	}
}

// enter counts a stream in, unless the mesh is closed.
func (m *Mesh[T]) enter() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.closed {
		return false
	}
	m.serving.Add(1)
	return true
}

// notify makes Recv and Ready look again.
func (m *Mesh[T]) notify() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notifyLocked()
}

func (m *Mesh[T]) notifyLocked() {
	close(m.mu.changed)
	m.mu.changed = make(chan struct{})
}

// changed is closed at the next notify.
func (m *Mesh[T]) changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.changed
}

// Ready waits until links in both directions have been there with all peers. The error
// says who is missing.
func (m *Mesh[T]) Ready(ctx context.Context) error {
	for _, rank := range m.ranks() {
		select {
		case <-m.outs[rank].first:
		case <-m.down:
			return m.Err()
		case <-ctx.Done():
			return m.missing(ctx.Err())
		}
	}
	for {
		changed := m.changed()
		if !slices.ContainsFunc(m.ranks(), func(rank int) bool { return !m.ins[rank].there() }) {
			return nil
		}
		select {
		case <-changed:
		case <-m.down:
			return m.Err()
		case <-ctx.Done():
			return m.missing(ctx.Err())
		}
	}
}

// missing names the peers that are not there.
func (m *Mesh[T]) missing(err error) error {
	var who []string
	for _, s := range m.States() {
		if !s.Ready {
			who = append(who, fmt.Sprintf("%v at %s (%s)", s.Who, s.Addr, s.State))
		}
	}
	return fmt.Errorf("wait for the others: %w; missing: %s", err, strings.Join(who, "; "))
}

// State is how a peer stands.
type State struct {
	Who   rpc.Who
	Addr  string
	Ready bool
	State string
}

// States is how all peers stand, by rank.
func (m *Mesh[T]) States() []State {
	var all []State
	for _, rank := range m.ranks() {
		o := m.outs[rank]
		s := State{Who: o.peer.Who, Addr: o.peer.Addr}
		o.mu.Lock()
		there := o.mu.born != 0
		s.State = o.mu.state.String()
		if o.mu.err != nil {
			s.State += ": " + rpc.Text(o.mu.err)
		}
		o.mu.Unlock()
		s.Ready = there && m.ins[rank].there()
		if there && !s.Ready {
			s.State = "can be called, has not called yet"
		}
		if why := m.ins[rank].whyRefused(); why != "" && !s.Ready {
			s.State = "has called, and was refused: " + why
		}
		all = append(all, s)
	}
	return all
}

func (m *Mesh[T]) ranks() []int {
	all := make([]int, 0, len(m.outs))
	for rank := range m.outs {
		all = append(all, rank)
	}
	slices.Sort(all)
	return all
}

// Send hands an item to peer to. It waits while the peer's window is full. Items for a
// peer that has left are dropped: it needs them no more.
func (m *Mesh[T]) Send(ctx context.Context, to int, it Item) error {
	o := m.outs[to]
	if o == nil {
		return fmt.Errorf("send %v to rank %d: rank %d of %d has no link with it", it, to, m.cfg.Rank, m.cfg.Size)
	}
	return o.send(ctx, it)
}

// deliver puts a whole item into the queue of Recv. The caller holds its link's lock.
func (m *Mesh[T]) deliver(a arrival[T]) {
	m.mu.Lock()
	if m.mu.draining {
		m.mu.Unlock()
		a.in.mu.read++
		a.in.mu.held -= a.size
		a.in.poke()
		return
	}
	m.mu.queue = append(m.mu.queue, a)
	m.notifyLocked()
	m.mu.Unlock()
}

// Recv is the next item, and who has sent it: those of one sender in the order in which
// they were sent. It is io.EOF when all peers have left. Only one goroutine may call it.
func (m *Mesh[T]) Recv(ctx context.Context) (from int, v T, err error) {
	for {
		m.mu.Lock()
		if len(m.mu.queue) > 0 {
			a := m.mu.queue[0]
			m.mu.queue[0] = arrival[T]{}
			m.mu.queue = m.mu.queue[1:]
			m.mu.Unlock()
			if a.bye {
				m.cfg.Left(a.in.from)
				continue
			}
			a.in.taken(a.size)
			return a.in.from, a.v, nil
		}
		err, closed, changed := m.mu.err, m.mu.draining, m.mu.changed
		m.mu.Unlock()
		switch {
		case err != nil:
			return 0, v, err
		case closed:
			return 0, v, errors.New("receive: this server has left the run")
		case m.allLeft():
			return 0, v, io.EOF
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, v, ctx.Err()
		}
	}
}

// allLeft says whether there were peers and none will send any more. What they have sent
// is in the queue before they say bye.
func (m *Mesh[T]) allLeft() bool {
	for _, i := range m.ins {
		if !i.gone() {
			return false
		}
	}
	if len(m.ins) == 0 {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.mu.queue) == 0
}

// lose notes that a peer is lost.
func (m *Mesh[T]) lose(peer int, err error) {
	m.mu.Lock()
	if m.mu.closed || m.mu.lost[peer] {
		m.mu.Unlock()
		return
	}
	m.mu.lost[peer] = true
	m.failLocked(err)
	m.mu.Unlock()
	m.outs[peer].lose(err)
	m.ins[peer].forget()
	m.cfg.Lost(peer, err)
}

// failLocked keeps the first error.
func (m *Mesh[T]) failLocked(err error) {
	if m.mu.err == nil && !m.mu.closed {
		m.mu.err = err
		close(m.down)
		m.notifyLocked()
	}
}

// Fail ends Send and Recv by err, which came about elsewhere.
func (m *Mesh[T]) Fail(err error) {
	m.mu.Lock()
	m.failLocked(err)
	m.mu.Unlock()
	for _, o := range m.outs {
		o.lose(err)
	}
}

// Err is the first error.
func (m *Mesh[T]) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.err
}

// Down is closed when there is an error.
func (m *Mesh[T]) Down() <-chan struct{} { return m.down }

// Leave ends the links. In good order, why is empty: what has been sent is taken by the
// peers first, which ctx may cut short, and what comes is dropped. Else the peers hear
// why this server has failed. No goroutine of the mesh is left, once the server is
// closed too.
func (m *Mesh[T]) Leave(ctx context.Context, why string) error {
	m.mu.Lock()
	if m.mu.closed {
		m.mu.Unlock()
		return nil
	}
	if !m.mu.draining {
		close(m.drained)
	}
	m.mu.draining = true
	queue := m.mu.queue
	m.mu.queue = nil
	m.mu.Unlock()
	for _, a := range queue {
		if !a.bye {
			a.in.taken(a.size)
		}
	}
	m.notify()
	if err := m.Err(); why == "" && err != nil {
		why = rpc.Text(err)
	}
	var errs []error
	if why == "" {
		for _, o := range m.outs {
			o.close()
		}
		for _, rank := range m.ranks() {
			if err := m.flushed(ctx, m.outs[rank]); err != nil {
				errs = append(errs, err)
			}
		}
	}
	m.mu.Lock()
	m.mu.closed = true
	m.mu.Unlock()
	m.why = why
	close(m.leaving)
	m.settle()
	m.cancel()
	m.running.Wait()
	m.serving.Wait()
	for _, i := range m.ins {
		i.forget()
	}
	return errors.Join(errs...)
}

// flushed waits for an out's good end.
func (m *Mesh[T]) flushed(ctx context.Context, o *out) error {
	m.mu.Lock()
	started := m.mu.started
	m.mu.Unlock()
	if !started {
		return nil
	}
	for {
		freed := o.freed()
		if o.flushed() || o.ended() {
			break
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return o.fault("leave: %w", ctx.Err())
		}
	}
	farewell := time.NewTimer(m.cfg.LeaveTimeout)
	defer farewell.Stop()
	select {
	case <-o.done:
	case <-farewell.C:
	case <-ctx.Done():
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.state == failed {
		return o.mu.err
	}
	return nil
}

// settle waits until the streams that peers have opened are ended by them, for a while.
func (m *Mesh[T]) settle() {
	quiet := make(chan struct{})
	go func() {
		m.serving.Wait()
		close(quiet)
	}()
	timer := time.NewTimer(m.cfg.LeaveTimeout)
	defer timer.Stop()
	select {
	case <-quiet:
	case <-timer.C:
		m.cancel()
		<-quiet
	}
}

// Stats of the links with a peer.
func (m *Mesh[T]) Stats(peer int) (OutStats, InStats) {
	var os OutStats
	var is InStats
	if o := m.outs[peer]; o != nil {
		o.mu.Lock()
		os = o.mu.stats
		o.mu.Unlock()
	}
	if i := m.ins[peer]; i != nil {
		i.mu.Lock()
		is = i.mu.stats
		i.mu.Unlock()
	}
	return os, is
}

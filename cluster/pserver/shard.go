package pserver

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"dorylus/cluster/rpc"
	"dorylus/engine"
	"dorylus/engine/model"
	"dorylus/engine/params"
	"dorylus/kernels"
	"dorylus/lambda/codec"
)

// shard is the state of one parameter server: its rows of the parameters, its clients,
// and what has to be said to them. It has no goroutine: streams call it, and ask it what
// to send (next) whenever their client's wake says so.
type shard struct {
	cfg    ServerConfig
	id     string // of this process
	enc    *codec.Encoder
	ended  chan struct{} // all clients have said goodbye
	once   sync.Once
	failed chan struct{}

	mu       sync.Mutex
	job      *adopted
	leader   int // whose job it is
	slices   []Slice
	at       map[int]int    // by parameter: its slice
	ps       *params.Server // once the leader has said what to start with
	begun    bool           // it has, on whatever stream
	first    int            // the version it started with
	clients  []*client      // by rank; nil: not seen yet
	refused  map[int]error  // by rank: why not
	kept     []*kept        // ascending; the newest version, and the one before
	due      *due           // the epoch whose gradients are all in
	stopping bool           // the run was asked to stop
	again    bool           // it has stopped before its end
	err      error
}

// kept is a version that is retained: a client that is one version behind may ask for it.
type kept struct {
	state   *params.State
	weights *rpc.Message
}

// due is an update that waits for clients.
type due struct {
	epoch int
	ask   *rpc.Message // to the leader, where gradients are clipped
	norm  *float64
	gone  bool // it is being made
}

// client is a graph server as a shard sees it.
type client struct {
	rank          int
	process, addr string
	blocks        kernels.Span
	acked         int // the newest version that it has of all shards
	bye           bool
	parted        bool // and has been answered

	// Of the stream that it has now.
	stream  int // its number, from 1
	sent    int // the newest version sent
	told    int // the epoch whose norm was asked for
	asked   int // the version whose state it wants, -1 for none
	done    bool
	halted  bool // it was told that the run should stop
	welcome *rpc.Message
	kick    chan struct{} // closed when it has come back on another stream
	wake    chan struct{} // there may be something to send
	away    *time.Timer
}

func newShard(cfg ServerConfig) (*shard, error) {
	enc, err := codec.NewEncoder(codec.Options{Link: cfg.Link})
	if err != nil {
		return nil, err
	}
	return &shard{
		cfg: cfg, id: rand.Text(), enc: enc, refused: map[int]error{},
		ended: make(chan struct{}), failed: make(chan struct{}),
	}, nil
}

// graph names a graph server.
func graph(rank int) rpc.Who { return rpc.Who{Role: rpc.Graph, Rank: rank} }

// fail ends the run for all clients, unless it has failed before, and is why.
func (s *shard) fail(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failLocked(err)
}

func (s *shard) failLocked(err error) error {
	if s.err == nil {
		s.err = err
		close(s.failed)
		s.tell()
	}
	return s.err
}

// blame fails the run for what a client has done.
func (s *shard) blame(c *client, err error) error {
	if s.cause() != nil { // what follows a failure is not news
		return s.cause()
	}
	return s.fail(&rpc.PeerError{Who: graph(c.rank), Addr: c.addr, Err: err})
}

func (s *shard) cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// newest is the newest version, -1 before the start. mu is held.
func (s *shard) newest() int {
	if len(s.kept) == 0 {
		return -1
	}
	return s.kept[len(s.kept)-1].state.Version
}

// tell wakes the streams of all clients. mu is held.
func (s *shard) tell() {
	for _, c := range s.clients {
		if c != nil {
			c.tell()
		}
	}
}

func (c *client) tell() {
	select {
	case c.wake <- struct{}{}:
	default: // it is about to look anyway
	}
}

// start makes the server of the slices, from what the leader has sent.
func (s *shard) start(m *rpc.Message) error {
	var h start
	if err := readHead(m, kindStart, &h); err != nil {
		return err
	}
	s.mu.Lock()
	j, begun := s.job, s.begun
	s.begun = true
	s.mu.Unlock()
	if begun {
		return nil // it has come again on another stream, maybe while the first is being read
	}
	specs := sliced(j.Specs, s.slices)
	cfg := params.Config{Specs: specs, FirstEpoch: h.Version, Optim: j.Optim, Blocks: j.Blocks, Device: s.cfg.Device, Gate: s}
	st := &params.State{Version: h.Version, Weights: newMats(specs)}
	all := slices.Clone(st.Weights)
	cfg.Init = st.Weights
	if h.Moments {
		st.Optim = newMoments(j.Optim, specs, h.Step)
		for _, mats := range st.Optim.Slots {
			all = append(all, mats...)
		}
		cfg.Init, cfg.From = nil, st
	}
	if err := readTensors(m.Parts, all); err != nil {
		return fmt.Errorf("read what to start with: %w", err)
	}
	ps, err := params.New(cfg)
	if err != nil {
		return err
	}
	s.first = h.Version // nobody else looks at it before ps is there
	if err := s.keep(ps, engine.Update{Version: h.Version, Epoch: h.Version - 1}); err != nil {
		return errors.Join(err, ps.Close())
	}
	return nil
}

// keep retains the newest version, and lets go of the one before the last.
func (s *shard) keep(ps *params.Server, u engine.Update) error {
	st, err := ps.Snapshot()
	if err != nil {
		return err
	}
	k := &kept{state: st, weights: newMessage(kindWeights, weights{u})}
	for i, m := range st.Weights {
		k.weights.Parts = appendTensor(s.enc, k.weights.Parts, codec.Key(i), m)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ps == nil {
		s.ps = ps
	}
	s.kept = append(s.kept, k)
	if len(s.kept) > 2 {
		s.kept = slices.Delete(s.kept, 0, len(s.kept)-2)
	}
	s.due = nil
	s.tell()
	return nil
}

// Ready implements params.Gate.
func (s *shard) Ready(epoch int, squares [][]float64) {
	d := &due{epoch: epoch}
	if squares != nil {
		d.ask = newMessage(kindReady, ready{epoch}, encodeSquares(squares)...)
	} else {
		d.norm = new(float64)
	}
	s.mu.Lock()
	s.due = d
	s.tell()
	s.mu.Unlock()
	s.letGo()
}

// Made implements params.Gate.
func (s *shard) Made(u engine.Update) {
	if err := s.keep(s.ps, u); err != nil {
		s.fail(err)
	}
}

// letGo makes the update that is due, if all clients have the version before it from all
// shards. So no shard is ever two versions ahead of another, or of a client.
func (s *shard) letGo() {
	s.mu.Lock()
	d := s.due
	if d == nil || d.gone || d.norm == nil || !s.heard(d.epoch) {
		s.mu.Unlock()
		return
	}
	d.gone = true
	s.mu.Unlock()
	if err := s.ps.Go(d.epoch, *d.norm); err != nil {
		s.fail(err)
	}
}

// heard says whether all clients have a version. mu is held.
func (s *shard) heard(version int) bool {
	for _, c := range s.clients {
		if c == nil || !c.bye && c.acked < version {
			return false
		}
	}
	return true
}

// handle takes a message of a client; an error is the client's fault or the end of the
// run.
func (s *shard) handle(c *client, m *rpc.Message) error {
	if m.Kind != kindStart && m.Kind != kindBye {
		s.mu.Lock()
		early := s.ps == nil
		s.mu.Unlock()
		if early {
			return fmt.Errorf("a message of kind %d before the start", m.Kind)
		}
	}
	if lead := m.Kind == kindStart || m.Kind == kindNorm; lead && c.rank != 0 {
		return fmt.Errorf("a message of kind %d, which is for graph server 0 to send", m.Kind)
	}
	switch m.Kind {
	case kindStart:
		return s.start(m)
	case kindPush:
		return s.push(c, m)
	case kindAck:
		return s.ack(c, m)
	case kindNorm:
		return s.norm(m)
	case kindAsk:
		return s.asked(c, m)
	case kindBye:
		return s.goodbye(c, m)
	}
	return fmt.Errorf("a message of kind %d, which no client sends", m.Kind)
}

func (s *shard) ack(c *client, m *rpc.Message) error {
	var a ack
	if err := readHead(m, kindAck, &a); err != nil {
		return err
	}
	s.mu.Lock()
	newest := s.newest()
	if a.Version <= newest {
		c.acked = max(c.acked, a.Version)
	}
	s.mu.Unlock()
	if a.Version > newest {
		return fmt.Errorf("it says that it has version %d, the newest is %d", a.Version, newest)
	}
	s.letGo()
	return nil
}

func (s *shard) norm(m *rpc.Message) error {
	var n norm
	if err := readHead(m, kindNorm, &n); err != nil {
		return err
	}
	x := math.Float64frombits(n.Bits)
	s.mu.Lock()
	newest, d := s.newest(), s.due
	if d != nil && d.epoch == n.Epoch && d.norm == nil {
		d.norm = &x
	}
	s.mu.Unlock()
	if n.Epoch > newest || n.Epoch == newest && d == nil {
		return fmt.Errorf("the norm of epoch %d, while version %d is being waited for", n.Epoch, newest+1)
	}
	s.letGo()
	return nil
}

func (s *shard) asked(c *client, m *rpc.Message) error {
	var a ask
	if err := readHead(m, kindAsk, &a); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version(a.Version) == nil {
		return fmt.Errorf("it asks for version %d, of which the server has no state; the newest is %d", a.Version, s.newest())
	}
	c.asked = a.Version
	c.tell()
	return nil
}

// version is what is kept of one. mu is held.
func (s *shard) version(number int) *kept {
	for _, k := range s.kept {
		if k.state.Version == number {
			return k
		}
	}
	return nil
}

func (s *shard) goodbye(c *client, m *rpc.Message) error {
	var b bye
	if err := readHead(m, kindBye, &b); err != nil {
		return err
	}
	if b.Why != "" {
		return errors.New(b.Why)
	}
	s.mu.Lock()
	s.again = s.again || b.Again
	c.bye = true
	c.tell()
	s.mu.Unlock()
	s.letGo()
	return nil
}

// stop asks all clients to end the run.
func (s *shard) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	s.tell()
}

// parted notes that a client that has said goodbye has been answered, or has not waited
// for that.
func (s *shard) parted(c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.parted = true
	for _, c := range s.clients {
		if c == nil || !c.parted {
			return
		}
	}
	if s.err == nil {
		s.once.Do(func() { close(s.ended) })
	}
}

// next is what to send to a client on a stream now, nil for nothing. last says that
// nothing will follow it.
func (s *shard) next(c *client, stream int) (m *rpc.Message, last bool) {
	s.mu.Lock()
	if c.stream != stream {
		s.mu.Unlock()
		return nil, false // the client has another one
	}
	if s.err != nil {
		defer s.mu.Unlock()
		if c.done {
			return nil, false
		}
		c.done = true
		return newMessage(kindFail, failure{rpc.Text(s.err)}), true
	}
	if w := c.welcome; w != nil {
		c.welcome = nil
		s.mu.Unlock()
		return w, false
	}
	if s.stopping && !c.halted && !c.bye {
		c.halted = true
		s.mu.Unlock()
		return newMessage(kindStop, struct{}{}), false
	}
	for _, k := range s.kept {
		if k.state.Version > c.sent {
			c.sent = k.state.Version
			s.mu.Unlock()
			return k.weights, false
		}
	}
	if d := s.due; c.rank == 0 && d != nil && d.norm == nil && d.epoch > c.told {
		c.told = d.epoch
		s.mu.Unlock()
		return d.ask, false
	}
	if k := s.version(c.asked); k != nil {
		c.asked = -1
		s.mu.Unlock()
		return s.stateOf(k.state), false
	}
	defer s.mu.Unlock()
	if c.bye && !c.done {
		c.done = true
		return newMessage(kindDone, struct{}{}), true
	}
	return nil, false
}

// stateOf is a version's state as a message.
func (s *shard) stateOf(st *params.State) *rpc.Message {
	head := state{Version: st.Version, Step: st.Optim.Step}
	if s.cfg.PeakMemory != nil {
		head.Peak = s.cfg.PeakMemory()
	}
	m := newMessage(kindState, head)
	for k, mats := range append([][]*kernels.Mat{st.Weights}, st.Optim.Slots...) {
		for i, x := range mats {
			m.Parts = appendTensor(s.enc, m.Parts, codec.Key(k<<20+i), x)
		}
	}
	return m
}

// close frees what the shard holds. No stream is served any more.
func (s *shard) close() error {
	s.mu.Lock()
	ps := s.ps
	for _, c := range s.clients {
		if c != nil && c.away != nil {
			c.away.Stop()
		}
	}
	s.mu.Unlock()
	if ps == nil {
		return nil
	}
	return ps.Close()
}

// specsOf are the specifications of the model, for limits; nil before anybody came.
func (s *shard) specsOf() []model.ParamSpec {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.job == nil {
		return nil
	}
	return s.job.Specs
}

package pserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"dorylus/cluster/rpc"
	"dorylus/engine/optim"
	"dorylus/engine/params"
	"dorylus/kernels"
)

// retry is how long a client waits before it calls a shard again; each time in vain it
// waits twice as long, up to a second.
const retry = 10 * time.Millisecond

// dial opens a stream to a shard.
func (c *Client) dial(ctx context.Context, shard int) (rpc.Stream, error) {
	if s := c.cfg.Local; s != nil {
		near, far := pipe(ctx)
		c.wg.Go(func() { far.end(s.serve(far)) })
		return near, nil
	}
	return rpc.Open(ctx, c.conns[shard], method)
}

// keep has a stream to a shard, and another when that breaks, until the end.
func (c *Client) keep(l *link) {
	reached, wait := time.Now(), retry
	patience := c.cfg.Join
	for {
		met, err := c.session(l)
		c.mu.Lock()
		left := c.closing && l.byed && (!met || errors.Is(err, io.EOF))
		over := l.ended || c.err != nil || left || c.ctx.Err() != nil
		c.mu.Unlock()
		if over {
			return
		}
		if met {
			reached, patience, wait = time.Now(), c.cfg.Grace, retry
		}
		if lost := time.Since(reached) > patience; lost || !rpc.Passing(err) {
			if lost {
				err = fmt.Errorf("lost: out of reach for %v: %s", patience, rpc.Text(err))
			}
			gone := &rpc.PeerError{Who: c.cfg.who(l.shard), Addr: c.addr(l.shard), Awaited: c.awaited(), Err: err}
			if over := (*overError)(nil); errors.As(err, &over) {
				gone.Awaited = "" // it has done its part
			}
			c.fail(gone)
			return
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-c.failed:
		case <-c.ctx.Done():
		}
		t.Stop()
		wait = min(2*wait, time.Second)
	}
}

func (c *Client) addr(shard int) string {
	if c.cfg.Local != nil {
		return "this process"
	}
	return c.cfg.Addrs[shard]
}

// session is one stream with a shard, from hello to its end. met says that the shard has
// answered.
func (c *Client) session(l *link) (met bool, err error) {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	st, err := c.open(ctx, l.shard)
	if err != nil {
		return false, err
	}
	answer := time.AfterFunc(c.cfg.Stall, cancel)
	err = c.greet(st, l)
	if !answer.Stop() && err != nil {
		err = status.Errorf(codes.Unavailable, "no answer for %v", c.cfg.Stall)
	}
	if err != nil {
		return false, err
	}
	heard, spoken := make(chan error, 1), make(chan error, 1)
	c.wg.Go(func() { heard <- c.listen(st, l) })
	c.wg.Go(func() { spoken <- c.speak(ctx, st, l) })
	select {
	case err = <-heard:
		cancel()
		<-spoken
	case err = <-spoken:
		if status.Code(err) == codes.Unavailable {
			cancel() // it does not read
			<-heard
			break
		}
		err = <-heard // knows better why the stream has ended
	}
	return true, err
}

// greet says who calls and hears who answers.
func (c *Client) greet(st rpc.Stream, l *link) error {
	h := c.hello(l)
	if err := send(st, newMessage(kindHello, h)); err != nil {
		if _, heard := st.Recv(); heard != nil {
			return heard // it says why
		}
		return err
	}
	m, err := receive(st, 1<<20)
	if err != nil {
		return err
	}
	if m.Kind == kindFail {
		return told(m)
	}
	return c.welcomed(l, h, m)
}

// overError says why a shard has ended the run.
type overError struct{ why string }

// Error implements error.
func (e *overError) Error() string { return "it says that the run has failed: " + e.why }

// told is the error with which a shard says that the run has ended.
func told(m *rpc.Message) error {
	var f failure
	if err := readHead(m, kindFail, &f); err != nil {
		return err
	}
	return &overError{f.Why}
}

// hello is the first message to a shard on a stream.
func (c *Client) hello(l *link) *hello {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &hello{
		Protocol: protocol, Run: c.cfg.Run, Rank: c.cfg.Rank, Shard: l.shard, Process: c.process, Server: l.server,
		Lo: c.cfg.Blocks.Lo, Hi: c.cfg.Blocks.Hi, Have: l.have, Acked: c.ackable(), Job: c.job,
	}
}

// welcomed takes the answer to hello, with which the stream begins.
func (c *Client) welcomed(l *link, h *hello, m *rpc.Message) error {
	var w welcome
	if err := readHead(m, kindWelcome, &w); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.server != "" && l.server != w.Server {
		return errors.New("it has been started anew and has lost what it held: resume the run from its last checkpoint")
	}
	if w.Start && c.cfg.Rank != 0 {
		return errors.New("it asks for what to start with, which graph server 0 has")
	}
	l.server = w.Server
	l.opened(h.Acked, w.Start)
	return nil
}

// ackable is the version to be acknowledged: no newer one than that of a snapshot that is
// being taken, so that all shards keep it. mu is held.
func (c *Client) ackable() int {
	if c.snap != nil {
		return min(c.snap.state.Version, c.complete)
	}
	return c.complete
}

// speak sends what there is for a shard.
func (c *Client) speak(ctx context.Context, st rpc.Stream, l *link) error {
	for {
		m := c.next(l)
		if m == nil {
			select {
			case <-l.wake:
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err := timed(&c.wg, st, m, c.cfg.Stall); err != nil {
			return err
		}
		c.traffic.sent.Add(size(m))
	}
}

// next is what to send to a shard now, nil for nothing.
func (c *Client) next(l *link) *rpc.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := -1
	if c.snap != nil && !c.snap.from[l.shard] {
		asked = c.snap.state.Version
	}
	return l.next(c.ackable(), asked, c.begin)
}

// listen takes a shard's messages until there are no more, or the shard has nothing more to
// say.
func (c *Client) listen(st rpc.Stream, l *link) error {
	most := limit(c.cfg.Params.Specs)
	for {
		m, err := receive(st, most)
		if err != nil {
			return err
		}
		c.traffic.received.Add(size(m))
		if m.Kind == kindDone {
			c.mu.Lock()
			l.ended = l.bye != nil
			c.mu.Unlock()
			continue
		}
		if m.Kind == kindFail {
			return told(m)
		}
		if err := c.handle(l, m); err != nil {
			return fmt.Errorf("what it says is of no use: %w", err)
		}
	}
}

func (c *Client) handle(l *link, m *rpc.Message) error {
	switch m.Kind {
	case kindWeights:
		return c.version(l, m)
	case kindReady:
		return c.norm(l, m)
	case kindState:
		return c.stateOf(l, m)
	case kindStop:
		if c.cfg.Stop != nil {
			c.cfg.Stop()
		}
		return nil
	}
	return fmt.Errorf("a message of kind %d, which no parameter server sends", m.Kind)
}

// version takes a shard's slices of a version, and puts it in place when it is whole.
func (c *Client) version(l *link, m *rpc.Message) error {
	var h weights
	if err := readHead(m, kindWeights, &h); err != nil {
		return err
	}
	v := h.Update.Version
	c.mu.Lock()
	if v < 0 || h.Update.Epoch != v-1 || l.have >= 0 && v != l.have+1 || c.complete >= 0 && v != c.complete+1 {
		defer c.mu.Unlock()
		return fmt.Errorf("version %d after version %d, while all shards have %d", v, l.have, c.complete)
	}
	part := c.coming[v]
	if part == nil {
		if len(c.coming) > 0 {
			defer c.mu.Unlock()
			return fmt.Errorf("the first version is %d, other shards have another one", v)
		}
		mats := c.spare
		if c.spare = nil; mats == nil {
			mats = newMats(c.cfg.Params.Specs)
		}
		part = &coming{mats: mats, from: make([]bool, len(c.links)), left: len(c.links), head: &h}
		c.coming[v] = part
	}
	c.mu.Unlock()
	var mats []*kernels.Mat
	for _, s := range l.slices {
		mats = append(mats, part.mats[s.Param].Sub(s.Rows))
	}
	if err := readTensors(m.Parts, mats); err != nil {
		return fmt.Errorf("version %d: %w", v, err)
	}
	c.mu.Lock()
	l.arrived(v)
	part.from[l.shard] = true
	part.left--
	a, b := &part.head.Update, &h.Update
	same := a.Loss == b.Loss && a.LR == b.LR && a.GradNorm == b.GradNorm
	a.Seconds = max(a.Seconds, b.Seconds)
	whole := part.left == 0
	if whole {
		delete(c.coming, v)
	}
	c.mu.Unlock()
	if !same {
		return fmt.Errorf("version %d was made with %+v, at another shard with %+v", v, *b, *a)
	}
	if !whole {
		return nil
	}
	return c.install(part)
}

// install puts a whole version in place and lets it be acknowledged.
func (c *Client) install(part *coming) error {
	c.installing.Lock()
	defer c.installing.Unlock()
	u := part.head.Update
	if c.replica == nil {
		p := &c.cfg.Params
		r, err := params.NewReplica(params.ReplicaConfig{
			Specs: p.Specs, Blocks: p.Blocks, Own: c.cfg.Blocks, Intervals: c.cfg.Intervals, Device: p.Device,
			Version: u.Version, Weights: part.mats, Send: c.push,
		})
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.replica, c.first = r, u.Version
		if c.err != nil {
			r.Fail(c.err)
		}
		close(c.ready)
		c.mu.Unlock()
	} else if err := c.replica.Install(part.mats, u); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.complete, c.spare = u.Version, part.mats
	c.tellAll()
	return nil
}

// norm takes the squares of a shard's rows; those of all shards give the norm, added in the
// order in which one process adds them.
func (c *Client) norm(l *link, m *rpc.Message) error {
	var h ready
	if err := readHead(m, kindReady, &h); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cfg.Rank != 0 || h.Epoch != l.have {
		return fmt.Errorf("squares of epoch %d, after version %d", h.Epoch, l.have)
	}
	if l.norm != nil && l.norm.Epoch >= h.Epoch {
		return nil // its question has crossed the answer
	}
	if c.epoch != h.Epoch {
		c.epoch, c.squared = h.Epoch, make([]bool, len(c.links))
		c.squares = make([][]float64, len(c.job.Specs))
		for p, s := range c.job.Specs {
			if !s.Stat {
				c.squares[p] = make([]float64, s.Rows)
			}
		}
	}
	if err := decodeSquares(m.Parts, c.job.Specs, l.slices, c.squares); err != nil {
		return fmt.Errorf("squares of epoch %d: %w", h.Epoch, err)
	}
	c.squared[l.shard] = true
	for _, yes := range c.squared {
		if !yes {
			return nil
		}
	}
	n := &norm{Epoch: h.Epoch, Bits: math.Float64bits(optim.Norm(c.squares))}
	for _, l := range c.links {
		l.norm = n
		l.tell()
	}
	return nil
}

// stateOf takes a shard's part of a snapshot.
func (c *Client) stateOf(l *link, m *rpc.Message) error {
	var h state
	if err := readHead(m, kindState, &h); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.snap
	if s == nil || s.state.Version != h.Version || s.from[l.shard] {
		return nil // it has answered twice, on two streams
	}
	if step := s.state.Optim.Step; step >= 0 && step != h.Step {
		return fmt.Errorf("version %d comes after %d steps, at another shard after %d", h.Version, h.Step, step)
	}
	s.state.Optim.Step = h.Step
	if err := readTensors(m.Parts, sliceState(s.state, l.slices)); err != nil {
		return fmt.Errorf("the state of version %d: %w", h.Version, err)
	}
	s.from[l.shard] = true
	l.asked, l.peak = -1, h.Peak
	if s.left--; s.left == 0 {
		c.snap = nil
		close(s.done)
		c.tellAll()
	}
	return nil
}

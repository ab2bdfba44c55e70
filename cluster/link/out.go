package link

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"dorylus/cluster/rpc"
)

// state of an outgoing link.
type state uint8

const (
	starting  state = iota // no stream yet
	connected              // a stream, welcomed
	broken                 // no stream any more; trying again
	over                   // the peer has left, or we have
	failed
)

// String is the state for people.
func (s state) String() string {
	return [...]string{"not there yet", "connected", "connection lost", "left", "failed"}[s]
}

// An out is the sending end of a link. Its goroutine, run, opens one stream after
// another until the link is over.
type out struct {
	to    int
	peer  Peer
	env   *env
	wake  chan struct{} // run looks again
	first chan struct{} // closed at the first welcome
	done  chan struct{} // closed when run has returned

	mu struct {
		sync.Mutex
		state state
		err   error  // why failed, or the last failure while starting or broken
		born  uint64 // of the peer
		// items are not acknowledged, the first has number acked+1; bytes is their size.
		items []Item
		acked uint64
		bytes int64
		since time.Time // when the peer last took something or had nothing to take
		// high is the number of the last item that was sent, on whatever stream, and sent
		// how many of its messages were.
		high    uint64
		sent    int
		closing bool
		freed   chan struct{} // closed, and replaced, when items go or the link ends
		stats   OutStats
	}
}

// OutStats count what an outgoing link has done.
type OutStats struct {
	Items, Messages int64         // sent, repeats not counted
	Again           int64         // messages sent again
	Streams         int64         // opened and welcomed: one more than have broken
	Waited          time.Duration // of Send for room
	Dropped         int64         // items for a peer that had left
}

func newOut(to int, peer Peer, e *env) *out {
	o := &out{to: to, peer: peer, env: e, wake: make(chan struct{}, 1), first: make(chan struct{}), done: make(chan struct{})}
	o.mu.freed = make(chan struct{})
	return o
}

// poke makes run look again.
func (o *out) poke() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// freed is closed when items go next, or the link ends.
func (o *out) freed() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mu.freed
}

func (o *out) freeLocked() {
	close(o.mu.freed)
	o.mu.freed = make(chan struct{})
}

// send queues it, when there is room.
func (o *out) send(ctx context.Context, it Item) error {
	size := it.Size()
	var began time.Time
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		switch {
		case o.mu.state == failed:
			return o.mu.err
		case o.mu.state == over:
			o.mu.stats.Dropped++
			return nil
		case o.mu.closing:
			return fmt.Errorf("send %v to %v: this server is leaving", it, o.peer.Who)
		case len(o.mu.items) == 0 || o.mu.bytes+size <= o.env.window:
			if len(o.mu.items) == 0 {
				o.mu.since = time.Now()
			}
			o.mu.items = append(o.mu.items, it)
			o.mu.bytes += size
			o.mu.stats.Items++
			if !began.IsZero() {
				o.mu.stats.Waited += time.Since(began)
			}
			o.poke()
			return nil
		}
		if began.IsZero() {
			began = time.Now()
		}
		freed := o.mu.freed
		o.mu.Unlock()
		var err error
		select {
		case <-freed:
		case <-ctx.Done():
			err = ctx.Err()
		}
		o.mu.Lock()
		if err != nil {
			o.mu.stats.Waited += time.Since(began)
			return fmt.Errorf("send %v to %v at %s: %d items of %d bytes wait to be taken: %w", it, o.peer.Who, o.peer.Addr, len(o.mu.items), o.mu.bytes, err)
		}
	}
}

// lose ends the link by an error.
func (o *out) lose(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.state == over || o.mu.state == failed {
		return
	}
	o.mu.state, o.mu.err, o.mu.items = failed, err, nil
	o.freeLocked()
	o.poke()
}

// end is a link's good end: the peer has left, and needs nothing of what is left.
func (o *out) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.state == failed {
		return
	}
	o.mu.state = over
	o.mu.stats.Dropped += int64(len(o.mu.items))
	o.mu.items, o.mu.bytes = nil, 0
	o.freeLocked()
	o.poke()
}

func (o *out) ended() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mu.state == over || o.mu.state == failed
}

// close lets run end when all has been taken.
func (o *out) close() {
	o.mu.Lock()
	o.mu.closing = true
	o.mu.Unlock()
	o.poke()
}

// taken counts items up to number read as taken by the peer.
func (o *out) taken(read uint64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.state == over || o.mu.state == failed {
		return nil
	}
	if read < o.mu.acked || read > o.mu.high {
		return fmt.Errorf("it acknowledges item %d, items %d to %d are under way", read, o.mu.acked+1, o.mu.high)
	}
	n := read - o.mu.acked
	if n == 0 {
		return nil
	}
	for _, it := range o.mu.items[:n] {
		o.mu.bytes -= it.Size()
	}
	clear(o.mu.items[:n])
	o.mu.items = o.mu.items[n:]
	o.mu.acked, o.mu.since = read, time.Now()
	o.freeLocked()
	o.poke()
	return nil
}

// awaited is the first item that the peer has not taken.
func (o *out) awaited() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.mu.items) == 0 {
		return ""
	}
	return fmt.Sprintf("that it takes %v, the first of %d items for it", o.mu.items[0], len(o.mu.items))
}

func (o *out) fault(format string, args ...any) error {
	return &rpc.PeerError{Who: o.peer.Who, Addr: o.peer.Addr, Awaited: o.awaited(), Err: fmt.Errorf(format, args...)}
}

// run opens streams until the link is over, or ctx ends.
func (o *out) run(ctx context.Context) {
	defer close(o.done)
	const least, most = 20 * time.Millisecond, time.Second
	pause, away, patience := least, time.Now(), o.env.ready
	for !o.ended() {
		welcomed, err := o.session(ctx)
		switch {
		case ctx.Err() != nil || o.ended():
			return
		case err == nil, rpc.Passing(err) && o.env.bye(o.to):
			// Who has said bye takes nothing any more, and may have gone before it could say
			// so on this stream.
			o.end()
			return
		case !rpc.Passing(err):
			o.env.lost(o.to, o.fault("it refuses: %w", rpc.Plain(err)))
			return
		}
		if welcomed {
			pause, away, patience = least, time.Now(), o.env.away
		}
		o.mu.Lock()
		o.mu.err = err
		if o.mu.state == connected {
			o.mu.state = broken
		}
		stalled := len(o.mu.items) > 0 && o.mu.high > o.mu.acked && time.Since(o.mu.since) > o.env.stall
		o.mu.Unlock()
		switch gone := time.Since(away); {
		case gone >= patience:
			o.env.lost(o.to, o.fault("no connection for %v: %w", gone.Round(time.Millisecond), rpc.Plain(err)))
			return
		case stalled:
			o.env.lost(o.to, o.fault("it has taken nothing for %v, over several connections: %w", o.env.stall, rpc.Plain(err)))
			return
		case gone+pause > patience:
			pause = patience - gone
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		pause = min(2*pause+time.Millisecond, most)
	}
}

// session is the life of one stream. It returns nil when the link has come to its good
// end; welcomed says that the peer was there.
func (o *out) session(ctx context.Context) (welcomed bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	late := time.AfterFunc(o.env.away, cancel)
	defer late.Stop()
	s, err := rpc.Open(ctx, o.peer.Conn, o.env.method)
	if err != nil {
		return false, err
	}
	m, err := note(kindHello, o.env.hello(o.to))
	if err != nil {
		return false, err
	}
	// An error of Send is told by Recv, in full.
	if err := s.Send(m); err != nil && err != io.EOF {
		return false, err
	}
	if m, err = s.Recv(); err != nil {
		return false, err
	}
	if m.Kind == kindLeft {
		return false, o.peerLeft(m)
	}
	var w welcome
	if err := readNote(m, kindWelcome, &w); err != nil {
		return false, rpc.Refuse("%v", err)
	}
	if !late.Stop() {
		return false, errMute
	}
	again, err := o.welcomed(&w)
	if err != nil {
		return false, err
	}
	heard := make(chan error, 1)
	go func() {
		err := o.hear(s)
		cancel()
		o.poke()
		heard <- err
	}()
	unwatch := o.watch()
	err = o.speak(ctx, s, w.Have, again)
	if err != nil {
		cancel()
	}
	told := <-heard
	unwatch()
	if err != nil && err != errTold {
		return true, err
	}
	if told == io.EOF {
		if o.flushed() || o.ended() {
			return true, nil
		}
		return true, errEarly
	}
	return true, told
}

// welcomed notes what the peer has, and returns the number up to which items were sent
// before.
func (o *out) welcomed(w *welcome) (again uint64, err error) {
	o.mu.Lock()
	first := o.mu.born == 0
	again = o.mu.high
	switch {
	case first:
		o.mu.born = w.Born
	case o.mu.born != w.Born:
		err = rpc.Refuse("it was started again, and has lost what it had")
	case w.Have > again || w.Read > w.Have:
		err = rpc.Refuse("it says that it has %d items and has taken %d, %d were sent", w.Have, w.Read, again)
	}
	if err == nil && o.mu.state != failed && o.mu.state != over {
		o.mu.state, o.mu.err = connected, nil
		o.mu.stats.Streams++
	}
	o.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if first {
		close(o.first)
	}
	if err := o.taken(w.Read); err != nil {
		return 0, rpc.Refuse("%v", err)
	}
	return again, nil
}

func (o *out) flushed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mu.closing && len(o.mu.items) == 0
}

// peerLeft reads why the peer leaves.
func (o *out) peerLeft(m *rpc.Message) error {
	var l left
	if err := readNote(m, kindLeft, &l); err != nil {
		return rpc.Refuse("%v", err)
	}
	if l.Why != "" {
		o.env.lost(o.to, o.fault("it has failed: %s", l.Why))
		return io.EOF
	}
	o.end()
	return io.EOF
}

// hear reads what the peer says until the stream ends.
func (o *out) hear(s rpc.Stream) error {
	for {
		m, err := s.Recv()
		if err != nil {
			return err
		}
		switch m.Kind {
		case kindAck:
			read, err := readAck(m)
			if err == nil {
				err = o.taken(read)
			}
			if err != nil {
				return rpc.Refuse("%v", err)
			}
		case kindLeft:
			return o.peerLeft(m)
		default:
			return rpc.Refuse("a message of kind %d to a sender", m.Kind)
		}
	}
}

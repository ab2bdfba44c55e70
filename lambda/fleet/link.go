package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"dorylus/lambda/codec"
	"dorylus/lambda/wire"
)

// link is one worker's stream, and what the worker is thought to hold.
type link struct {
	f     *Fleet
	pool  *pool
	conn  wire.Conn
	hello wire.Hello
	enc   *codec.Encoder
	stop  func() // ends the stream at once
	gone  chan struct{}

	// Owned by whoever has acquired the link.
	opened bool
	rooms  map[roomKey]map[int]content // shards that were sent; what their buffers hold
	params map[int]uint64

	own bool // the worker is in this process: its bytes do not count

	// Guarded by the fleet's mutex.
	holds map[roomKey]bool // the keys of rooms, and of the task that it has
	slow  bool             // its task is beyond its limit
	at    *crowd           // of the task that it has; nil: none
	sent  time.Time        // when the worker was sent for
	tasks int64
	// leaving links are in no pool any more.
	leaving bool

	sending sync.Mutex // one sender at a time
	mu      struct {
		sync.Mutex
		inbox *inbox // of the attempt under way; nil: none
		err   error  // why the stream has ended
	}
}

var (
	errLost = errors.New("the worker has lost what it was thought to hold")
	errOver = errors.New("another attempt has been faster")
	errSlow = errors.New("it took too long")
	// errOff is the end of an attempt that nobody needs any more, on a worker that is free.
	errOff = errors.New("it was called off")
	// errEnded is the end of a stream without a word.
	errEnded = errors.New("its stream has ended")
)

func newLink(f *Fleet, p *pool, conn wire.Conn, hello wire.Hello, stop func()) *link {
	return &link{
		f: f, pool: p, conn: conn, hello: hello, enc: f.enc, stop: stop, gone: make(chan struct{}),
		rooms: map[roomKey]map[int]content{}, params: map[int]uint64{}, holds: map[roomKey]bool{},
	}
}

// inbox is where the results of one attempt arrive, in any order. Repeats are dropped,
// so it never holds more than one message a block and a failure.
type inbox struct {
	id   int64
	seen map[int]bool
	ch   chan *wire.Message
}

func newInbox(id int64, blocks int) *inbox {
	return &inbox{id: id, seen: map[int]bool{}, ch: make(chan *wire.Message, blocks+2)}
}

// put takes a message that belongs to the attempt and is no repeat.
func (b *inbox) put(m *wire.Message) bool {
	block := failed
	if m.Result != nil {
		block = m.Result.Block
	}
	if b.seen[block] || len(b.ch) == cap(b.ch) {
		return false
	}
	b.seen[block] = true
	b.ch <- m
	return true
}

// failed stands for a block number where a task has failed.
const failed = -2

// listen hands results to the attempt that waits for them, and drops those that nobody
// waits for any more. It returns when the stream has ended.
func (l *link) listen() error {
	defer close(l.gone)
	for {
		m, err := l.conn.Recv()
		if err == nil && m.Bye != nil {
			err = fmt.Errorf("the worker has left: %s", m.Bye.Why)
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errEnded
			}
			return l.because(err)
		}
		id := int64(-1)
		switch {
		case m.Result != nil:
			id = m.Result.ID
		case m.Fail != nil:
			id = m.Fail.ID
		}
		l.mu.Lock()
		taken := l.mu.inbox != nil && l.mu.inbox.id == id && l.mu.inbox.put(m)
		l.mu.Unlock()
		l.f.count(func(s *Stats) {
			if !l.own {
				s.ReceivedBytes += int64(m.Size())
			}
			if !taken {
				s.Late++
			}
		})
	}
}

// because keeps the first reason why the stream ends.
func (l *link) because(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.err == nil {
		l.mu.err = err
	}
	return l.mu.err
}

// expect names the attempt that results are for; nil: none.
func (l *link) expect(b *inbox) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.inbox = b
}

// dead says that the stream has ended, or is being ended.
func (l *link) dead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.err != nil
}

// do runs a task on the worker, until over is done: then it calls the task off, and waits
// until the worker is free. It says errOver, with nothing sent, if the task was over before.
func (l *link) do(ctx, over context.Context, t *workItem) (*result, error) {
	for again := 0; ; again++ {
		res, err := l.try(ctx, over, t)
		if err == nil || errors.Is(err, errOver) || errors.Is(err, errOff) {
			return res, err
		}
		delete(l.rooms, t.key) // whatever it holds now
		clear(l.params)
		if !errors.Is(err, errLost) || again == 2 {
			return nil, err
		}
	}
}

// try runs a task on the worker by what that is thought to hold.
func (l *link) try(ctx, over context.Context, t *workItem) (*result, error) {
	p, err := t.prepare(ctx, l)
	if err != nil {
		return nil, err
	}
	in := newInbox(p.id, len(p.blocks))
	l.expect(in)
	defer l.expect(nil)
	start := time.Now()
	cut := context.AfterFunc(ctx, func() { // for the sender may be stuck, whatever has been received
		l.because(context.Cause(ctx))
		l.stop()
	})
	defer cut()
	refused, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)
	told := make(chan struct{})
	off := context.AfterFunc(over, func() {
		defer close(told)
		l.callOff(p.id)
	})
	l.count(func(s *Stats) {
		s.SentBytes += p.bytes
		s.WeightBytes += p.weights
		s.Replayed += int64(p.replayed)
		if p.shard != nil {
			s.Shards++
		}
	})
	sent := make(chan error, 1)
	go func() {
		err := l.send(ctx, over, p)
		if errors.Is(err, ErrTooLarge) {
			refuse(err) // the stream goes on, and no result will come
		}
		sent <- err
	}()
	res, err := l.collect(refused, in, t, p.blocks)
	sendErr := <-sent
	if !off() {
		<-told
	}
	cold := p.shard != nil
	switch {
	case errors.Is(err, errOff):
		l.opened = true
		l.calledOff(t, p, sendErr)
		return nil, errOff
	case err == nil && sendErr != nil:
		err = sendErr
	}
	if err != nil {
		return nil, err
	}
	l.opened = true
	l.rooms[t.key] = p.after
	l.f.times.note(work{t.Pass, t.step, cold}, time.Since(start))
	return res, nil
}

// callOff has the worker drop an attempt. It answers, and is free then.
func (l *link) callOff(id int64) {
	l.sending.Lock()
	defer l.sending.Unlock()
	l.conn.Send(&wire.Message{Cancel: &wire.Cancel{ID: id}}) // an error ends the stream, which collect sees
}

// calledOff notes what the worker holds that has dropped an attempt: the shard and the
// weights, if they were sent before, but of buffers nobody knows.
func (l *link) calledOff(t *workItem, p *prepared, sendErr error) {
	l.f.count(func(s *Stats) { s.Off++ })
	if p.shard == nil || p.shard.whole {
		l.rooms[t.key] = map[int]content{}
	} else {
		delete(l.rooms, t.key)
	}
	if sendErr != nil {
		clear(l.params)
	}
}

// count changes the fleet's statistics, unless the worker is the graph server's own.
func (l *link) count(change func(s *Stats)) {
	if !l.own {
		l.f.count(change)
	}
}

// send sends what has been prepared. It stops with errOff where over is done: what calls
// the attempt off waits for it.
func (l *link) send(ctx, over context.Context, p *prepared) error {
	l.sending.Lock()
	defer l.sending.Unlock()
	if p.shard != nil {
		defer p.shard.stop()
	}
	one := func(m *wire.Message) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return l.conn.Send(m)
	}
	if p.job != nil { // a worker without a job does not know what to call off
		if err := one(p.job); err != nil {
			return err
		}
	}
	if p.shard != nil {
		for more := true; more; {
			if over.Err() != nil {
				return errOff
			}
			m, rest, err := p.shard.message()
			if err == nil {
				err = one(m)
			}
			if errors.Is(err, errOver) {
				err = errOff
			}
			if err != nil {
				return err
			}
			n := int64(m.Size())
			l.count(func(s *Stats) {
				s.SentBytes += n
				s.ShardBytes += n
			})
			more = rest
		}
		p.shard.whole = true
		l.f.brought(p.shard)
	}
	for i, m := range p.msgs {
		if over.Err() != nil {
			return errOff
		}
		if err := one(m); err != nil {
			return err
		}
		p.msgs[i] = nil // sent, and often large
	}
	return nil
}

// collect gathers the results of a task's blocks.
func (l *link) collect(ctx context.Context, in *inbox, t *workItem, blocks []int) (*result, error) {
	res := newResult(len(blocks))
	for {
		var m *wire.Message
		select {
		case m = <-in.ch:
		case <-ctx.Done():
			return nil, fmt.Errorf("worker %d: %w", l.hello.Worker, context.Cause(ctx))
		case <-l.gone:
			select {
			case m = <-in.ch:
			default:
				return nil, fmt.Errorf("worker %d is gone: %w", l.hello.Worker, l.because(errEnded))
			}
		}
		switch {
		case m.Fail != nil && m.Fail.Off:
			return nil, errOff
		case m.Fail != nil && m.Fail.Lost:
			return nil, fmt.Errorf("worker %d: %s: %w", l.hello.Worker, m.Fail.Text, errLost)
		case m.Fail != nil:
			return nil, fmt.Errorf("worker %d: %s", l.hello.Worker, m.Fail.Text)
		}
		if m.Result.Block >= 0 {
			if err := t.read(res, m); err != nil {
				return nil, fmt.Errorf("worker %d: %w", l.hello.Worker, err)
			}
		}
		if len(res.blocks) == len(blocks) {
			return res, nil
		}
	}
}

// leave asks an idle worker to leave, and ends the stream of one that does not within a
// time, or is busy.
func (l *link) leave(idle bool, why string, within time.Duration) {
	defer l.stop()
	if !idle {
		l.because(errClosed)
		return
	}
	timer := time.AfterFunc(within, l.stop)
	defer timer.Stop()
	l.sending.Lock()
	err := l.conn.Send(&wire.Message{Stop: &wire.Stop{Why: why}})
	l.sending.Unlock()
	if err != nil {
		return
	}
	<-l.gone
}

package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"dorylus/lambda/codec"
	"dorylus/lambda/shard"
	"dorylus/lambda/wire"
)

// link is one worker's stream, and what the worker is thought to hold.
type link struct {
	f     *Fleet
	conn  wire.Conn
	hello wire.Hello
	enc   *codec.Encoder
	stop  func() // ends the stream at once
	gone  chan struct{}
	busy  chan struct{} // of the own worker: has one value while it is idle

	// Owned by whoever has acquired the link.
	opened bool
	rooms  map[roomKey]map[int]content // shards that were sent; what their buffers hold
	params map[int]uint64

	mu struct {
		sync.Mutex
		task int64
		to   chan<- *wire.Message // of the task's attempt
		err  error
	}
}

var errLost = errors.New("the worker has lost what it was thought to hold")

func newLink(f *Fleet, conn wire.Conn, hello wire.Hello, stop func()) *link {
	return &link{
		f: f, conn: conn, hello: hello, enc: f.enc, stop: stop, gone: make(chan struct{}),
		rooms: map[roomKey]map[int]content{}, params: map[int]uint64{},
	}
}

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
			l.mu.Lock()
			l.mu.err = err
			l.mu.Unlock()
			return err
		}
		var id int64
		switch {
		case m.Result != nil:
			id = m.Result.ID
		case m.Fail != nil:
			id = m.Fail.ID
		}
		l.f.count(func(s *Stats) { s.ReceivedBytes += int64(m.Size()) })
		l.mu.Lock()
		to := l.mu.to
		if l.mu.task != id {
			to = nil
		}
		l.mu.Unlock()
		if to == nil {
			l.f.count(func(s *Stats) { s.Late++ })
			continue
		}
		to <- m // has room for all messages of a task
	}
}

// expect names the attempt that results are for; nil: none.
func (l *link) expect(id int64, to chan<- *wire.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.task, l.mu.to = id, to
}

// do runs a task on the worker.
func (l *link) do(ctx context.Context, t *workItem) (*result, error) {
	for again := 0; ; again++ {
		res, err := l.try(ctx, t)
		if err == nil {
			return res, nil
		}
		delete(l.rooms, t.key) // whatever it holds now
		if !errors.Is(err, errLost) || again == 2 {
			return nil, err
		}
		clear(l.params)
	}
}

func (l *link) try(ctx context.Context, t *workItem) (*result, error) {
	id := l.f.nextAttempt()
	var msgs []*wire.Message
	if !l.opened {
		msgs = append(msgs, l.f.opening())
	}
	held := l.rooms[t.key]
	if held == nil {
		m, err := l.f.shard(t.key, l.enc)
		if err != nil {
			return nil, err
		}
		msgs = append(msgs, m)
	}
	script, after, replayed, err := l.f.script(ctx, t, id, held, l.enc)
	if err != nil {
		return nil, err
	}
	for _, w := range script[0].Task.Params {
		if l.params[w.Param] == w.Hash {
			continue
		}
		msgs = append(msgs, &wire.Message{Weight: &w, Parts: [][]byte{l.enc.Append(nil, shard.Key(w.Param, true)+1<<33, t.weights.Mats[w.Param])}})
		l.params[w.Param] = w.Hash
	}
	msgs = append(msgs, script...)
	task := script[0].Task
	blocks := task.Steps[len(task.Steps)-1].Blocks
	inbox := make(chan *wire.Message, len(blocks)+1)
	l.expect(id, inbox)
	defer l.expect(0, nil)
	start := time.Now()
	var bytes int64
	for _, m := range msgs {
		bytes += int64(m.Size())
	}
	l.f.count(func(s *Stats) {
		s.SentBytes += bytes
		s.Replayed += int64(replayed)
		if held == nil {
			s.Shards++
		}
	})
	sent := make(chan error, 1)
	go func() { sent <- l.send(ctx, msgs) }()
	res, err := l.collect(ctx, inbox, len(blocks))
	if sendErr := <-sent; err == nil && sendErr != nil {
		err = sendErr
	}
	if err != nil {
		return nil, err
	}
	l.opened = true
	l.rooms[t.key] = after
	l.f.times.note(t.step, time.Since(start))
	return res, nil
}

func (l *link) send(ctx context.Context, msgs []*wire.Message) error {
	for _, m := range msgs {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := l.conn.Send(m); err != nil {
			return err
		}
	}
	return nil
}

// collect gathers the results of a task's blocks.
func (l *link) collect(ctx context.Context, inbox <-chan *wire.Message, blocks int) (*result, error) {
	res := &result{blocks: map[int][][]byte{}, loss: map[int]float64{}}
	for {
		var m *wire.Message
		select {
		case m = <-inbox:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-l.gone:
			select {
			case m = <-inbox:
			default:
				l.mu.Lock()
				defer l.mu.Unlock()
				return nil, fmt.Errorf("worker %d is gone: %w", l.hello.Worker, l.mu.err)
			}
		}
		switch {
		case m.Fail != nil && m.Fail.Lost:
			return nil, fmt.Errorf("worker %d: %s: %w", l.hello.Worker, m.Fail.Text, errLost)
		case m.Fail != nil:
			return nil, fmt.Errorf("worker %d: %s", l.hello.Worker, m.Fail.Text)
		}
		if m.Result.Block >= 0 {
			res.blocks[m.Result.Block], res.loss[m.Result.Block] = m.Parts, m.Result.Loss
		}
		if m.Result.Last {
			if len(res.blocks) != blocks {
				return nil, fmt.Errorf("worker %d: %d of %d blocks came", l.hello.Worker, len(res.blocks), blocks)
			}
			return res, nil
		}
	}
}

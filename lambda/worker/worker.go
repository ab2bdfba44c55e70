// Package worker is the Lambda side: it keeps shards and weights between tasks and
// runs tensor steps of a model on them.
package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"dorylus/engine/model"
	"dorylus/kernels"
	"dorylus/lambda/wire"
)

// Config says what a worker works with.
type Config struct {
	Device kernels.Device
	// Memory bounds what is kept between tasks, in bytes: shards with their buffers, and
	// the model's weights and gradients. Messages under way and scratch matrices come on
	// top.
	Memory int64
	// Margin is how long before its deadline a worker leaves; default 2 s.
	Margin time.Duration
}

// Worker holds what survives from one invocation to the next. It serves one at a
// time.
type Worker struct {
	cfg   Config
	job   *wire.Job
	prog  *model.Program
	store *store
	busy  chan struct{}
}

// New is a worker without a job.
func New(cfg Config) *Worker {
	if cfg.Margin == 0 {
		cfg.Margin = 2 * time.Second
	}
	return &Worker{cfg: cfg, busy: make(chan struct{}, 1)}
}

// Invitation is what an invocation brings: who has sent for the worker.
type Invitation struct {
	Worker int    `json:"worker"`
	Token  string `json:"token"`
	// Addresses are where the graph server listens, host:port, and Certificate the PEM
	// certificate that it has.
	Addresses   []string `json:"addresses,omitempty"`
	Certificate string   `json:"certificate,omitempty"`
	// Messages are a whole task (wire.Pack), for a worker that shall call nobody.
	Messages []byte `json:"messages,omitempty"`
}

// Answer is what an invocation that has brought Messages returns.
type Answer struct {
	Messages []byte `json:"messages"` // wire.Pack
}

// Stream is a connection that its user ends: Close lets a Recv that waits return, and
// may be called again.
type Stream interface {
	wire.Conn
	Close()
}

// Serve runs tasks from conn until it is told to stop, ctx's deadline is near, or the
// connection ends. Once it has greeted it closes conn at the end, and leaves no goroutine
// behind.
func (w *Worker) Serve(ctx context.Context, conn Stream, in Invitation) (*wire.Bye, error) {
	select {
	case w.busy <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-w.busy }()
	hello := &wire.Hello{Version: wire.Version, Token: in.Token, Worker: in.Worker, Device: w.cfg.Device.Name()}
	if err := conn.Send(&wire.Message{Hello: hello}); err != nil {
		return nil, err
	}
	s := &session{w: w, conn: conn, inbox: make(chan received, aheadMessages), taken: make(chan struct{}, 1)}
	s.off.Store(-1)
	ctx, cancel := context.WithCancel(ctx)
	var listening sync.WaitGroup
	listening.Go(func() { s.listen(ctx) })
	defer func() {
		cancel()
		conn.Close() // a Recv may be waiting
		listening.Wait()
	}()
	return s.run(ctx)
}

// session is one invocation.
type session struct {
	w     *Worker
	conn  wire.Conn
	inbox chan received
	ahead atomic.Int64  // bytes of messages in inbox
	taken chan struct{} // has a value when one has been taken out
	off   atomic.Int64  // the attempt that was called off last
	task  *running      // nil between tasks
	tasks int
}

// Messages are read ahead, so that one that calls a task off is seen before the blocks in
// front of it are computed: up to aheadBytes, about what the stream itself holds on its way.
const (
	aheadMessages = 256
	aheadBytes    = 16 << 20
)

type received struct {
	m   *wire.Message
	err error
}

// listen hands messages on until the connection or ctx ends.
func (s *session) listen(ctx context.Context) {
	for {
		m, err := s.conn.Recv()
		if err == nil {
			if m.Cancel != nil {
				s.off.Store(m.Cancel.ID)
			}
			s.ahead.Add(int64(m.Size()))
		}
		select {
		case s.inbox <- received{m, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
		for s.ahead.Load() > aheadBytes {
			select {
			case <-s.taken:
			case <-ctx.Done():
				return
			}
		}
	}
}

// took notes that a message has been taken out of the inbox.
func (s *session) took(m *wire.Message) {
	s.ahead.Add(-int64(m.Size()))
	select {
	case s.taken <- struct{}{}:
	default:
	}
}

func (s *session) run(ctx context.Context) (*wire.Bye, error) {
	var leave <-chan time.Time
	if at, ok := ctx.Deadline(); ok {
		timer := time.NewTimer(time.Until(at) - s.w.cfg.Margin)
		defer timer.Stop()
		leave = timer.C
	}
	late := false
	for {
		if late && s.task == nil {
			return s.bye("the deadline is near")
		}
		select {
		case r := <-s.inbox:
			switch {
			case errors.Is(r.err, io.EOF):
				return &wire.Bye{Why: "the graph server has closed the stream", Tasks: s.tasks}, nil
			case r.err != nil:
				return nil, r.err
			case r.m.Stop != nil:
				return s.bye(r.m.Stop.Why)
			}
			s.took(r.m)
			if err := s.handle(ctx, r.m); err != nil {
				s.bye(err.Error()) // the graph server says it too
				return nil, err
			}
		case <-leave:
			late = true
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *session) bye(why string) (*wire.Bye, error) {
	b := &wire.Bye{Why: why, Tasks: s.tasks}
	return b, s.conn.Send(&wire.Message{Bye: b})
}

// handle takes one message. What is wrong with a task is reported and ends that; only
// a stream that makes no sense is an error.
func (s *session) handle(ctx context.Context, m *wire.Message) error {
	switch {
	case m.Job != nil:
		s.end()
		return s.w.begin(m.Job)
	case s.w.prog == nil:
		return fmt.Errorf("the graph server sent work before the job")
	case m.Cancel != nil:
		return s.cancel(m.Cancel)
	case m.Chunk != nil:
		return s.w.store.putChunk(m)
	}
	if err := s.w.store.incomplete("another message"); err != nil {
		return err
	}
	switch {
	case m.Shard != nil:
		s.end() // it would go on with what is about to change
		return s.w.store.putShard(m)
	case m.Weight != nil:
		s.end()
		return s.w.store.putWeight(m)
	case m.Task != nil:
		return s.begin(m.Task)
	case m.Block != nil:
		return s.block(ctx, m)
	}
	return fmt.Errorf("the graph server sent a message that a worker does not know")
}

// begin builds the program of a job, unless it is the one that is there.
func (w *Worker) begin(j *wire.Job) error {
	if w.job != nil && *w.job == *j {
		w.store.forgo() // of an earlier stream
		return nil
	}
	prog, err := j.Model.Build()
	if err != nil {
		return fmt.Errorf("build the job's model: %w", err)
	}
	if len(prog.Steps) != j.Steps {
		return fmt.Errorf("the job's model has %d steps here and %d at the graph server: deploy the worker of the same version", len(prog.Steps), j.Steps)
	}
	st, err := newStore(w.cfg, prog, j)
	if err != nil {
		return fmt.Errorf("begin the job: %w", err)
	}
	if w.store != nil {
		w.store.close()
	}
	w.job, w.prog, w.store = j, prog, st
	return nil
}

// Close gives all memory back.
func (w *Worker) Close() {
	if w.store != nil {
		w.store.close()
		w.store, w.job, w.prog = nil, nil, nil
	}
}

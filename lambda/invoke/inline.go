package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"dorylus/lambda/fleet"
	"dorylus/lambda/wire"
	"dorylus/lambda/worker"
)

// MaxPayload is Lambda's limit on what an invocation brings, in bytes.
const MaxPayload = 6291456

// smaller is what to do about tasks that are over Lambda's limits.
const smaller = "use more --intervals, or --lambda-transport=stream"

// Inline is a Launcher for graph servers that workers cannot call: each task is an
// invocation, whose payload brings what the task needs and whose answer brings the
// results. Which environment answers is Lambda's choice: one that does not hold what it
// is thought to hold says so, and gets it with the next invocation.
type Inline struct {
	*Launcher
	// Serve takes the stream over, as fleet.Fleet does.
	Serve func(conn wire.Conn, stop func()) error
}

// Launch implements fleet.Launcher: it stands for one worker until its stream ends.
func (l *Inline) Launch(ctx context.Context, in worker.Invitation) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &inlineConn{l: l.Launcher, ctx: ctx, in: in, answers: []*wire.Message{{Hello: &wire.Hello{
		Version: wire.Version, Token: in.Token, Worker: in.Worker, Device: "inline",
	}}}}
	c.more = sync.NewCond(&c.mu)
	context.AfterFunc(ctx, c.wake) // at the latest when this returns: somebody may still receive
	if err := l.Serve(c, cancel); err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
		return err
	}
	return nil
}

// inlineConn looks like a stream. What is sent waits until a task is complete.
type inlineConn struct {
	l   *Launcher
	ctx context.Context
	in  worker.Invitation

	mu      sync.Mutex
	more    *sync.Cond
	job     *wire.Message
	pending []*wire.Message
	blocks  int // that the task still misses
	answers []*wire.Message
	broken  error // a call failed: the stream is at its end
	left    bool
}

func (c *inlineConn) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.more.Broadcast()
}

// Send implements wire.Conn. The last message of a task makes the call and waits for the
// answer.
func (c *inlineConn) Send(m *wire.Message) error {
	c.mu.Lock()
	switch {
	case m.Stop != nil:
		c.left = true
		c.answers = append(c.answers, &wire.Message{Bye: &wire.Bye{Why: m.Stop.Why}})
		c.more.Broadcast()
		c.mu.Unlock()
		return nil
	case m.Cancel != nil: // a call that has been made is waited for
		c.pending = nil
		c.answers = append(c.answers, &wire.Message{Fail: &wire.Fail{ID: m.Cancel.ID, Text: "it was called off", Off: true}})
		c.more.Broadcast()
		c.mu.Unlock()
		return nil
	case m.Job != nil:
		c.job = m // any environment may be a new one
		c.mu.Unlock()
		return nil
	}
	c.pending = append(c.pending, m)
	switch {
	case m.Task != nil:
		c.blocks = 0
		for _, s := range m.Task.Steps {
			c.blocks += len(s.Blocks)
		}
	case m.Block != nil:
		c.blocks--
	}
	complete := (m.Task != nil || m.Block != nil) && c.blocks == 0
	if !complete {
		c.mu.Unlock()
		return nil
	}
	msgs := c.pending
	if c.job != nil {
		msgs = append([]*wire.Message{c.job}, msgs...)
	}
	c.pending = nil
	c.mu.Unlock()
	answers, err := c.call(msgs)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers = append(c.answers, answers...)
	if !errors.Is(err, fleet.ErrTooLarge) { // then other tasks may fit
		c.broken = err
	}
	c.more.Broadcast()
	return err
}

// Recv implements wire.Conn.
func (c *inlineConn) Recv() (*wire.Message, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.answers) == 0 {
		if c.broken != nil {
			return nil, c.broken
		}
		if c.ctx.Err() != nil || c.left {
			return nil, io.EOF
		}
		c.more.Wait()
	}
	m := c.answers[0]
	c.answers = c.answers[1:]
	return m, nil
}

// call invokes the function with messages and returns those of its answer.
func (c *inlineConn) call(msgs []*wire.Message) ([]*wire.Message, error) {
	in := c.in
	var err error
	if in.Messages, err = wire.Pack(msgs); err != nil {
		return nil, err
	}
	payload, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	if len(payload) > MaxPayload {
		return nil, fmt.Errorf("invoke %s: a task needs a payload of %d bytes, Lambda takes %d: %w: %s",
			c.l.opt.Function, len(payload), MaxPayload, fleet.ErrTooLarge, smaller)
	}
	out, err := c.l.invoke(c.ctx, payload)
	if err != nil {
		return nil, err
	}
	var answer worker.Answer
	if err := json.Unmarshal(out.Payload, &answer); err != nil {
		return nil, fmt.Errorf("invoke %s: read the answer: %w", c.l.opt.Function, err)
	}
	return wire.Unpack(answer.Messages)
}

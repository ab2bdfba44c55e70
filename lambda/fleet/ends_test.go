package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dorylus/engine"
	"dorylus/engine/model"
	"dorylus/lambda/plan"
	"dorylus/lambda/wire"
	"dorylus/lambda/worker"
)

// stuck is a stream on which the first task fails, and what is sent behind it blocks until
// the stream ends.
type stuck struct {
	*wire.PipeConn
	heard chan *wire.Message
	done  chan struct{}
	once  sync.Once
	full  bool
}

func newStuck(c *wire.PipeConn) *stuck {
	s := &stuck{PipeConn: c, heard: make(chan *wire.Message, 2), done: make(chan struct{})}
	go func() {
		if hello, err := c.Recv(); err == nil {
			s.heard <- hello
		}
	}()
	return s
}

func (c *stuck) Send(m *wire.Message) error {
	switch {
	case c.full:
		<-c.done
		return io.ErrClosedPipe
	case m.Task != nil:
		c.full = true
		c.heard <- &wire.Message{Fail: &wire.Fail{ID: m.Task.ID, Text: "it has failed"}}
		return nil
	}
	return c.PipeConn.Send(m)
}

func (c *stuck) Recv() (*wire.Message, error) {
	select {
	case m := <-c.heard:
		return m, nil
	case <-c.done:
		return nil, io.EOF
	}
}

func (c *stuck) Close() {
	c.once.Do(func() { close(c.done) })
	c.PipeConn.Close()
}

func TestASenderIsStuckBehindAFailure(t *testing.T) {
	st, dev := tiny(t), device(t)
	want := train(t, options(t, st, dev, gat), nil)
	p := &inProcess{dev: dev}
	p.wrap = func(in worker.Invitation, c *wire.PipeConn) conn {
		if in.Worker > 1 {
			return c
		}
		return newStuck(c)
	}
	o := quick(1)
	o.Attempts = 1 // a second one, of a hedge, would be fine
	out := scripted(t, st, o, p, gat, nil)
	if out.err != nil {
		t.Fatal(out.err)
	}
	sameBits(t, "stuck", want, out.res)
	own := all[engine.OwnCores](out.d)
	if out.s.Own != 1 || len(own) != 1 || !strings.Contains(own[0].Cause, "it has failed") || out.took > 3*o.Patience {
		t.Errorf("it took %v, own cores did %d tasks: %+v; want at most 3 s, 1 because of the failure", out.took, out.s.Own, own)
	}
}

// Workers that come and die at once are sent for less and less often, and then done
// without.
func TestWorkersDieAtOnce(t *testing.T) {
	st, dev := tiny(t), device(t)
	want := train(t, options(t, st, dev, gat), nil)
	out := scripted(t, st, quick(1), &inProcess{dev: dev}, gat, func(*Fleet, int, *wire.Task, *wire.Message) fate { return breaks })
	if out.err != nil {
		t.Fatal(out.err)
	}
	sameBits(t, "they die", want, out.res)
	// Within 3 s they come at 0, 0.1, 0.3, 0.7 and 1.5 s, and the last at 3.1 s.
	if out.s.Workers > 6 || out.took > 5*time.Second || out.s.Own == 0 {
		t.Errorf("%d workers came, it took %v, %d tasks on own cores; want at most 6, 5 s, some", out.s.Workers, out.took, out.s.Own)
	}
	if w := all[engine.Warned](out.d); len(w) != 1 || !strings.Contains(w[0].Message, errEnded.Error()) {
		t.Errorf("warnings %+v, want one with %q", w, errEnded)
	}
}

// small is a stream that refuses the tasks of one kind.
type small struct {
	*wire.PipeConn
	refuses func(*wire.Task) bool
	count   *atomic.Int64
}

func (c *small) Send(m *wire.Message) error {
	if m.Task != nil && c.refuses(m.Task) {
		c.count.Add(1)
		return fmt.Errorf("send the task: %w", ErrTooLarge)
	}
	return c.PipeConn.Send(m)
}

// A task that fits no worker is tried once, and costs no worker.
func TestTasksAreTooLarge(t *testing.T) {
	st, dev := tiny(t), device(t)
	want := train(t, options(t, st, dev, gat), nil)
	var tried atomic.Int64
	p := &inProcess{dev: dev}
	p.wrap = func(_ worker.Invitation, c *wire.PipeConn) conn {
		return &small{PipeConn: c, count: &tried, refuses: func(x *wire.Task) bool { return stepName(p.f, x) == "AV2" }}
	}
	out := scripted(t, st, quick(1), p, gat, nil)
	if out.err != nil {
		t.Fatal(out.err)
	}
	sameBits(t, "too large", want, out.res)
	if n := tried.Load(); n == 0 || out.s.Own != n || out.s.Retries > 0 || out.s.Workers != 1 {
		t.Errorf("%d tasks were too large, %d were done by own cores, %d retries, %d workers; want all, 0, 1", n, out.s.Own, out.s.Retries, out.s.Workers)
	}
	if own := all[engine.OwnCores](out.d); len(own) == 0 || !strings.Contains(own[0].Cause, ErrTooLarge.Error()) {
		t.Errorf("of own cores is told %+v", own)
	}
}

// Own cores that are busy are no reason to do without workers, and the end of waiting for
// them says why.
func TestOwnCoresAreBusy(t *testing.T) {
	prog, err := (model.Config{Model: "gcn", Features: 3, Hidden: 2, Classes: 2, Layers: 2}).Build()
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("enough")
	for _, c := range []struct {
		end  func(f *Fleet, cancel context.CancelCauseFunc)
		want error
	}{
		{func(f *Fleet, _ context.CancelCauseFunc) { f.mu.own.dismiss() }, errClosed},
		{func(_ *Fleet, cancel context.CancelCauseFunc) { cancel(why) }, why},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := (&inProcess{dev: device(t)}).start(t, Options{Workers: 1, GiveUp: time.Second})
			item := &workItem{Work: &engine.Work{}, f: f, plan: plan.New(prog, len(prog.Steps))}
			ctx, cancel := context.WithCancelCause(t.Context())
			got := make(chan error, 1)
			f.mu.closed = true // no core is added
			go func() {
				_, err := f.alone(ctx, item, errNobody)
				got <- err
			}()
			wait(5*time.Second, nil)
			f.mu.Lock()
			if f.mu.alone {
				t.Error("the fleet does without workers")
			}
			c.end(f, cancel)
			f.mu.Unlock()
			if err := <-got; !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			cancel(nil)
		})
	}
}

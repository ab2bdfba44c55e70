package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"dorylus/engine"
	"dorylus/engine/backend"
)

// hanging is a remote backend whose tasks hang, from one of them on, until their ctx ends.
type hanging struct {
	engine.Backend
	from  int64 // tasks that are done before
	hangs func()
	// ends is what a task that has hung says.
	ends func(context.Context, *engine.Work) error
	done atomic.Int64
	hung atomic.Int64
}

func (h *hanging) Local() bool { return false }
func (h *hanging) Slots() int  { return 3 }

func (h *hanging) Run(ctx context.Context, w *engine.Work) error {
	if h.done.Add(1) <= h.from {
		return h.Backend.Run(ctx, w)
	}
	h.hung.Add(1)
	h.hangs()
	<-ctx.Done()
	return h.ends(ctx, w)
}

// An interrupt does not wait for tasks of a worker that hangs, wherever in the run it is
// and whatever they say; the checkpoint is that of the last epoch, and goes on as ever.
func TestInterruptCallsOffTasksThatHang(t *testing.T) {
	straight := mustTrain(t, options(t))
	plain := func(ctx context.Context, w *engine.Work) error { return ctx.Err() }
	other := func(context.Context, *engine.Work) error { return errors.New("the worker's stream has ended") }
	for _, async := range []bool{false, true} {
		for i, from := range []int64{0, 5, 21, 40} {
			ends := plain
			if i%2 == 1 {
				ends = other
			}
			ctx, interrupt := context.WithCancel(context.Background())
			var saved *State
			var h *hanging
			o := options(t, func(o *Options) {
				local := backend.NewLocal(o.Device)
				h = &hanging{Backend: local, from: from, hangs: interrupt, ends: ends}
				o.Backend = h
				o.Save = func(s *State) error { saved = s; return nil }
				if async {
					o.Config.Pipeline, o.Config.Staleness = "async", 1
				}
			})
			res, err := Train(ctx, o)
			interrupt()
			check(t, h.Close())
			what := fmt.Sprintf("async %v, hung after %d tasks", async, from)
			if err != nil || res.Reason != "interrupted" {
				t.Errorf("%s: result %+v, error %v, want one that was interrupted", what, res, err)
				continue
			}
			if h.hung.Load() == 0 || saved == nil || saved.Params.Version != res.Epochs {
				t.Errorf("%s: %d tasks hung, checkpoint %v after %d epochs", what, h.hung.Load(), saved != nil, res.Epochs)
				continue
			}
			if err := o.Device.Close(); err != nil {
				t.Errorf("%s: memory is left behind: %v", what, err)
			}
			if async {
				continue
			}
			if got := mustTrain(t, options(t, func(o *Options) { o.From = saved })); got.WeightsSHA256 != straight.WeightsSHA256 {
				t.Errorf("%s: resumed to weights %.12s, want %.12s", what, got.WeightsSHA256, straight.WeightsSHA256)
			}
		}
	}
}

// A run that fails calls off what hangs, and says why it has failed.
func TestFailureCallsOffTasksThatHang(t *testing.T) {
	b := &oneFails{hung: make(chan struct{})}
	o := options(t, func(o *Options) {
		b.Backend = backend.NewLocal(o.Device)
		o.Backend = b
	})
	if _, err := Train(context.Background(), o); !errors.Is(err, errFull) {
		t.Errorf("got %v, want %v", err, errFull)
	}
	check(t, b.Close())
	if err := o.Device.Close(); err != nil {
		t.Errorf("memory is left behind: %v", err)
	}
}

var errFull = errors.New("the worker is full")

// oneFails hangs with interval 0 of epoch 1, and then fails with interval 1.
type oneFails struct {
	engine.Backend
	hung chan struct{}
	once sync.Once
}

func (b *oneFails) Local() bool { return false }
func (b *oneFails) Slots() int  { return 4 }

func (b *oneFails) Run(ctx context.Context, w *engine.Work) error {
	switch {
	case w.Pass == engine.Training && w.Epoch == 1 && w.Interval == 0:
		b.once.Do(func() { close(b.hung) })
		<-ctx.Done()
		return ctx.Err()
	case w.Pass == engine.Training && w.Epoch == 1 && w.Interval == 1:
		<-b.hung
		return errFull
	}
	return b.Backend.Run(ctx, w)
}

package pipeline

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"dorylus/engine"
	"dorylus/engine/backend"
)

// chatty is a backend in which things happen beside the tasks: each of them leaves an
// event, told by a goroutine of its own.
type chatty struct {
	engine.Backend
	bell chan struct{}

	mu   sync.Mutex
	list []engine.Event
	told int
}

func (c *chatty) Local() bool              { return false }
func (c *chatty) Slots() int               { return 3 }
func (c *chatty) Reports() <-chan struct{} { return c.bell }

func (c *chatty) Take() []engine.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.list
	c.list = nil
	return out
}

func (c *chatty) Run(ctx context.Context, w *engine.Work) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.list = append(c.list, engine.Warned{Message: fmt.Sprint(c.told)})
		c.told++
		select {
		case c.bell <- struct{}{}:
		default:
		}
	})
	return c.Backend.Run(ctx, w)
}

// alone fails the test if two goroutines call it at once.
type alone struct {
	t  *testing.T
	mu sync.Mutex
	l  log
}

func (a *alone) Event(e engine.Event) {
	if !a.mu.TryLock() {
		a.t.Errorf("the listener was called by two goroutines at once, the second time with %v", e)
		return
	}
	defer a.mu.Unlock()
	a.l.Event(e)
}

func TestListenerHearsWhatTheBackendReports(t *testing.T) {
	c := &chatty{bell: make(chan struct{}, 1)}
	a := &alone{t: t}
	o := options(t, func(o *Options) {
		local := backend.NewLocal(o.Device)
		t.Cleanup(func() { local.Close() })
		c.Backend, o.Backend, o.Listener = local, c, a
		o.Config.Epochs = 3
	})
	mustTrain(t, o)
	heard, before := 0, 0 // of them before the second epoch's end
	ends := 0
	for i, e := range a.l.events {
		switch e := e.(type) {
		case engine.Warned:
			if e.Message != fmt.Sprint(heard) {
				t.Fatalf("report %s came instead of %d", e.Message, heard)
			}
			heard++
			if ends < 2 {
				before++
			}
		case engine.EpochDone:
			ends++
		case engine.RunDone:
			if i != len(a.l.events)-1 {
				t.Errorf("%d events after the run's end", len(a.l.events)-1-i)
			}
		}
	}
	if heard != c.told || heard == 0 {
		t.Errorf("%d reports, heard %d", c.told, heard)
	}
	if before == 0 || before == heard {
		t.Errorf("%d of %d reports were heard before the second epoch had ended: they have to come as they happen", before, heard)
	}
}

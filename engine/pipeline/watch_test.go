package pipeline

import (
	"testing"

	"dorylus/engine"
	"dorylus/engine/backend"
)

// observer is a backend elsewhere that keeps what it is shown.
type observer struct {
	engine.Backend
	slots int
	seen  []engine.Load
}

func (o *observer) Local() bool { return false }
func (o *observer) Slots() int  { return o.slots }

func (o *observer) Observe(l engine.Load) { o.seen = append(o.seen, l) }

// A backend that asks for the load sees queues that make sense, and in the end every
// tensor task.
func TestBackendSeesTheLoad(t *testing.T) {
	b := &observer{slots: 2}
	opt := options(t, func(o *Options) {
		local := backend.NewLocal(o.Device)
		t.Cleanup(func() { local.Close() })
		b.Backend = local
		o.Backend = b
		o.Config.Epochs, o.Config.EvalEvery, o.Config.Intervals = 3, 100, 6
	})
	mustTrain(t, opt)
	tensor := int64(0)
	for _, e := range events(opt).events {
		if e, ok := e.(engine.TaskDone); ok && e.Task.Kind.Tensor() {
			tensor++
		}
	}
	last, waited := engine.Load{}, false
	for i, l := range b.seen {
		if l.GraphWaiting < 0 || l.GraphRunning < 0 || l.TensorWaiting < 0 || l.TensorRunning < 0 || l.TensorRunning > b.slots {
			t.Fatalf("load %d: %+v", i, l)
		}
		if l.At < last.At || l.Done < last.Done || l.Busy < last.Busy {
			t.Fatalf("load %d goes back: %+v after %+v", i, l, last)
		}
		last, waited = l, waited || l.TensorWaiting > 0
	}
	if last.Done == 0 || last.Done > tensor || tensor-last.Done > int64(b.slots) {
		t.Errorf("the last load has %d tensor tasks, the run had %d", last.Done, tensor)
	}
	if !waited {
		t.Error("6 intervals never waited for 2 slots")
	}
}

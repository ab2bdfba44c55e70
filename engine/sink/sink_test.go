package sink

import (
	"errors"
	"strings"
	"testing"
	"time"

	"dorylus/engine"
	"dorylus/engine/task"
)

// clock is a time that moves 50 ms with every look at it.
func clock() func() time.Time {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	return func() time.Time {
		at = at.Add(50 * time.Millisecond)
		return at
	}
}

func start(epochs, first int) engine.RunStart {
	return engine.RunStart{
		Time: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Mode: "cpu", Model: "gcn", Dataset: "cora", Seed: 7,
		Vertices: 2708, Edges: 10556, Features: 1433, Classes: 7, TrainRows: 140, ValRows: 500, TestRows: 1000,
		Parameters: 23063, Pipeline: "async", Staleness: 1, Intervals: 2, Threads: 2, Epochs: epochs, FirstEpoch: first,
		Device: "cpu/avx2", Version: "v1",
	}
}

func tasks(epoch int) []engine.Event {
	id := func(step int) task.ID { return task.ID{Epoch: epoch, Interval: 1, Step: step} }
	at := time.Duration(epoch) * time.Second
	return []engine.Event{
		engine.TaskDone{Task: task.Task{ID: id(0), Kind: task.GA, Layer: 1}, Name: "GA", Worker: 1, Start: at, Took: 3 * time.Millisecond, Age: []int64{5, 2, 1}},
		engine.TaskDone{Task: task.Task{ID: id(1), Kind: task.AV, Layer: 1}, Name: "AV", Start: at + 3*time.Millisecond, Took: 2 * time.Millisecond},
		engine.TaskDone{Task: task.Task{ID: id(2), Kind: task.GA, Dir: task.Backward, Layer: 1}, Name: "∇GA", Start: at + 5*time.Millisecond, Took: 1500 * time.Microsecond},
	}
}

func epoch(e int, loss, val, test float64) []engine.Event {
	events := tasks(e)
	events = append(events, engine.EpochDone{Epoch: e, Loss: loss, Took: 0.01 * float64(e+1), Update: 0.001},
		engine.TaskDone{Task: task.Task{ID: task.ID{Epoch: e}, Kind: task.GA}, Name: "eval GA", Start: time.Second, Took: 4 * time.Millisecond},
		engine.Evaluated{Epoch: e, Metric: "accuracy", Train: 0.9 + float64(e)/100, Val: val, Test: test, ValLoss: 1.5, Took: 0.005})
	return events
}

func done(reason string) engine.RunDone {
	return engine.RunDone{Reason: reason, Epochs: 3, Seconds: 2.5, PeakMem: 3 << 20, Weights: strings.Repeat("ab", 32), Predicts: strings.Repeat("cd", 32)}
}

// script is a run of three epochs; validation is best after the second, and as
// good after the third.
func script() []engine.Event {
	events := []engine.Event{start(3, 0)}
	events = append(events, epoch(0, 1.9, 0.5, 0.4)...)
	events = append(events, epoch(1, 1.5, 0.75, 0.7)...)
	events = append(events, epoch(2, 1.25, 0.75, 0.8)...)
	return append(events, done("epochs"))
}

func send(l engine.Listener, events ...engine.Event) {
	for _, e := range events {
		l.Event(e)
	}
}

// fullDisk takes n bytes and then fails.
type fullDisk struct{ n int }

var errFull = errors.New("no space left on device")

func (d *fullDisk) Write(p []byte) (int, error) {
	if len(p) > d.n {
		n := d.n
		d.n = 0
		return n, errFull
	}
	d.n -= len(p)
	return len(p), nil
}

func TestSinksWarnOnceWhenTheDiskIsFull(t *testing.T) {
	for name, open := range map[string]func(*fullDisk, func(error)) interface {
		engine.Listener
		Close() error
	}{
		"events": func(d *fullDisk, warn func(error)) interface {
			engine.Listener
			Close() error
		} {
			return NewJSONL(d, true, warn)
		},
		"TensorBoard": func(d *fullDisk, warn func(error)) interface {
			engine.Listener
			Close() error
		} {
			return NewTensorBoard(d, clock(), warn)
		},
		"trace": func(d *fullDisk, warn func(error)) interface {
			engine.Listener
			Close() error
		} {
			return NewTrace(d, 1000, warn)
		},
	} {
		var warnings []error
		s := open(&fullDisk{n: 300}, func(err error) { warnings = append(warnings, err) })
		for range 40 { // beyond any buffer
			send(s, script()...)
		}
		err := s.Close()
		if len(warnings) != 1 || !errors.Is(warnings[0], errFull) {
			t.Errorf("%s: warnings %v, want one about the full disk", name, warnings)
			continue
		}
		if !errors.Is(err, errFull) {
			t.Errorf("%s: Close gives %v, want %v", name, err, errFull)
		}
		if got := warnings[0].Error(); !strings.HasPrefix(got, "write ") || !strings.Contains(got, "training goes on") {
			t.Errorf("%s: the warning %q does not say what happens now", name, got)
		}
	}
}

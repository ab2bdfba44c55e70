package fleet

import (
	"context"
	"fmt"

	"dorylus/engine"
	"dorylus/lambda/tuner"
)

// Tuned is a fleet whose size follows the graph server's load, as a tuner decides.
type Tuned struct {
	*Fleet
	cores   int
	most    int
	refused func() int64
	tuner   *tuner.Tuner
}

// Tune has a tuner decide about f's size, up to most workers (0: one for each interval of
// this partition), beside a graph server of so many cores. refused counts the launches that
// the service has refused for too many requests.
func Tune(f *Fleet, cores, most int, refused func() int64) *Tuned {
	return &Tuned{Fleet: f, cores: cores, most: most, refused: refused}
}

// Bind implements engine.Binder.
func (t *Tuned) Bind(ctx context.Context, j *engine.Job) error {
	// A partition of no intervals has nothing for a worker to do, but is bound like others.
	intervals, steps := max(1, j.Own(engine.Training)), 0
	for i := range j.Program.Steps {
		if j.Program.Steps[i].Kind.Tensor() {
			steps++
		}
	}
	c := tuner.Config{Intervals: intervals, Cores: t.cores, PerEpoch: steps * intervals}
	if t.most > 0 {
		c.Max = min(t.most, intervals)
	}
	var err error
	if t.tuner, err = tuner.New(c); err != nil {
		return fmt.Errorf("lambda fleet: %w", err)
	}
	t.Resize(t.tuner.Wanted())
	return t.Fleet.Bind(ctx, j)
}

// Observe implements engine.Watcher.
func (t *Tuned) Observe(l engine.Load) {
	t.Fleet.Observe(l)
	workers, busy := t.size()
	all := l.TensorWaiting + l.TensorRunning // more are handed over than there are workers
	running := min(busy, all)
	d, moved := t.tuner.Observe(tuner.Sample{
		At: l.At, GraphWaiting: l.GraphWaiting, GraphRunning: l.GraphRunning, TensorWaiting: all - running, TensorRunning: running,
		Workers: workers, Done: l.Done, Busy: l.Busy, Refused: t.refused(),
	})
	if !moved {
		return
	}
	t.Resize(d.Workers)
	e := engine.LambdasTuned{Before: d.Before, Workers: d.Workers, Why: d.Why}
	if f := d.Figures; f != nil {
		e.Rate, e.GraphQueue, e.TensorQueue = f.Rate, f.GraphWaiting, f.TensorWaiting
	}
	t.Tell(e)
}

// size is how many workers are there, and how many of them work.
func (f *Fleet) size() (workers, busy int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, idle := range f.mu.crew.links {
		workers++
		if !idle {
			busy++
		}
	}
	return workers, busy
}

package pipeline

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"dorylus/engine"
	"dorylus/engine/ckpt"
)

// A run of any model that goes on from a checkpoint on disk, whichever, equals the
// one that was never interrupted: weights, moments, learning rates, losses, the best
// epoch and what it predicts.
func TestEveryModelResumes(t *testing.T) {
	optimizers := []func(c *engine.Config){
		func(c *engine.Config) { c.LRSchedule, c.Warmup, c.ClipNorm = "cosine", 3, 0.5 },
		func(c *engine.Config) { c.Optimizer, c.LRSchedule, c.LRGamma = "adamw", "exponential", 0.8 },
		func(c *engine.Config) {
			c.Optimizer, c.LR, c.Momentum, c.LRSchedule, c.LRStep = "sgd", 0.01, 0.9, "step", 2
		},
	}
	everyModel(t, func(t *testing.T, m modelCase, seed uint64) {
		set := func(o *Options) {
			o.Config.Epochs, o.Config.EvalEvery = 7, 2
			optimizers[seed%3](&o.Config)
		}
		straight := m.options(t, seed, set)
		id, err := Identify(&straight.Config, straight.Store, straight.Split, seed)
		check(t, err)
		dir := t.TempDir()
		var saved []int
		straight.Config.CheckpointEvery = 2 // needs no OutDir: Save is ours
		straight.Save = func(s *State) error {
			saved = append(saved, s.Params.Version)
			return SaveTo(checkpointDir(dir, s.Params.Version), id, straight.Listener)(s)
		}
		want := mustTrain(t, straight)
		if len(saved) != 4 {
			t.Fatalf("checkpoints after epochs %v, want four", saved)
		}
		for _, at := range saved {
			if testing.Short() && at != 4 {
				continue
			}
			path, err := ckpt.Latest(checkpointDir(dir, at))
			check(t, err)
			c, err := ckpt.Load(path)
			check(t, err)
			o := m.options(t, seed, set, func(o *Options) { o.Config.Threads, o.Config.Intervals = 1+at%3, 3 })
			o.From, err = Restore(c)
			check(t, err)
			got := mustTrain(t, o)
			what := fmt.Sprintf("resumed after epoch %d, %s, seed %d", at, o.Config.Optimizer, seed)
			sameBits(t, what, want, got, events(straight).losses()[at:], events(o).losses())
			sameProgress(t, what, want, got)
			if a, b := rates(events(straight))[at:], rates(events(o)); fmt.Sprint(a) != fmt.Sprint(b) {
				t.Errorf("%s: learning rates %v, want %v", what, b, a)
			}
		}
	})
}

func checkpointDir(dir string, epoch int) string { return filepath.Join(dir, fmt.Sprint(epoch)) }

// sameProgress compares what a run keeps beside its weights.
func sameProgress(t *testing.T, what string, want, got *Result) {
	t.Helper()
	a, b := want.State.Params.Optim, got.State.Params.Optim
	if a.Step != b.Step || len(a.Slots) != len(b.Slots) {
		t.Fatalf("%s: %d moments after %d steps, want %d after %d", what, len(b.Slots), b.Step, len(a.Slots), a.Step)
	}
	for k := range a.Slots {
		if d := firstDifference(want.Specs, a.Slots[k], b.Slots[k]); d != "" {
			t.Errorf("%s: moment %d of %s", what, k, d)
		}
	}
	x, y := want.State.Best, got.State.Best
	if d := firstDifference(want.Specs, x.Weights, y.Weights); d != "" {
		t.Errorf("%s: best weights: %s", what, d)
	}
	x.Weights, y.Weights = nil, nil
	if fmt.Sprint(x) != fmt.Sprint(y) {
		t.Errorf("%s: best so far %+v, want %+v", what, y, x)
	}
}

// rates are the learning rates in epoch order.
func rates(l *log) []uint64 {
	var out []uint64
	for _, e := range l.events {
		if d, ok := e.(engine.EpochDone); ok {
			out = append(out, math.Float64bits(d.LR))
		}
	}
	return out
}

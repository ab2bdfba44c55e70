package pipeline

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"dorylus/engine"
	"dorylus/engine/dataset"
	"dorylus/engine/prepare"
	"dorylus/engine/store"
	"dorylus/kernels/devices"
)

// cora is the built-in graph, prepared once.
var cora = sync.OnceValues(func() (*store.Store, error) {
	raw, err := dataset.Cora()
	if err != nil {
		return nil, err
	}
	return prepare.Build(context.Background(), raw, prepare.Options{Features: prepare.RowNormalize, Order: "degree"})
})

// log keeps the events of a run.
type log struct {
	mu     sync.Mutex
	events []engine.Event
}

func (l *log) Event(e engine.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// losses are the training losses in epoch order.
func (l *log) losses() []float64 {
	var out []float64
	for _, e := range l.events {
		if d, ok := e.(engine.EpochDone); ok {
			out = append(out, d.Loss)
		}
	}
	return out
}

// ages adds up the ages that gathers have read.
func (l *log) ages() []int64 {
	var sum []int64
	for _, e := range l.events {
		if d, ok := e.(engine.TaskDone); ok {
			for a, n := range d.Age {
				for len(sum) <= a {
					sum = append(sum, 0)
				}
				sum[a] += n
			}
		}
	}
	return sum
}

// options are a short sync run on Cora with the best kernels of this host.
func options(t testing.TB, set ...func(*Options)) Options {
	t.Helper()
	st, err := cora()
	if err != nil {
		t.Fatal(err)
	}
	dev, err := devices.Open("auto")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Config: engine.DefaultConfig("gcn"), Store: st, Split: st.Splits[0], Device: dev, Listener: &log{}}
	o.Config.Epochs, o.Config.Threads, o.Config.Intervals = 8, 2, 4
	for _, f := range set {
		f(&o)
	}
	if err := o.Config.Validate(); err != nil {
		t.Fatal(err)
	}
	return o
}

func mustTrain(t testing.TB, o Options) *Result {
	t.Helper()
	res, err := Train(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func events(o Options) *log { return o.Listener.(*log) }

func TestSyncBitsDoNotDependOnTheSchedule(t *testing.T) {
	want := mustTrain(t, options(t))
	for _, threads := range []int{1, 2, 3} {
		for _, cuts := range []int{1, 3, 16} {
			got := mustTrain(t, options(t, func(o *Options) { o.Config.Threads, o.Config.Intervals = threads, cuts }))
			if got.WeightsSHA256 != want.WeightsSHA256 || got.PredictionsSHA256 != want.PredictionsSHA256 {
				t.Errorf("%d threads, %d intervals: weights %.12s, predictions %.12s; want %.12s, %.12s",
					threads, cuts, got.WeightsSHA256, got.PredictionsSHA256, want.WeightsSHA256, want.PredictionsSHA256)
			}
		}
	}
}

func TestSeedsDiffer(t *testing.T) {
	a := mustTrain(t, options(t))
	b := mustTrain(t, options(t, func(o *Options) { o.Seed = 1 }))
	if a.WeightsSHA256 == b.WeightsSHA256 {
		t.Error("two seeds gave the same weights")
	}
}

func TestResumeGoesOnAsIfNothingHappened(t *testing.T) {
	for _, every := range []int{1, 3} {
		straight := mustTrain(t, options(t, func(o *Options) { o.Config.EvalEvery = every }))
		for _, at := range []int{1, 3, 7} {
			first := mustTrain(t, options(t, func(o *Options) { o.Config.EvalEvery, o.Config.Epochs = every, at }))
			if first.Epochs != at {
				t.Fatalf("%d epochs done, want %d", first.Epochs, at)
			}
			rest := mustTrain(t, options(t, func(o *Options) { o.Config.EvalEvery, o.From = every, first.State }))
			if rest.WeightsSHA256 != straight.WeightsSHA256 {
				t.Errorf("%d epochs, resumed to 8: weights %.12s, straight %.12s", at, rest.WeightsSHA256, straight.WeightsSHA256)
			}
		}
	}
}

// No label of a validation or test vertex reaches the weights.
func TestHeldOutLabelsChangeNoWeight(t *testing.T) {
	want := mustTrain(t, options(t))
	got := mustTrain(t, options(t, func(o *Options) {
		changed := *o.Store
		changed.Labels = slices.Clone(changed.Labels)
		rng := rand.New(rand.NewPCG(1, 2))
		for _, rows := range [][]int32{o.Split.Val, o.Split.Test} {
			for _, v := range rows {
				changed.Labels[v] = int32(rng.IntN(o.Store.Meta.Classes))
			}
		}
		o.Store = &changed
	}))
	if got.WeightsSHA256 != want.WeightsSHA256 {
		t.Errorf("other held-out labels gave weights %.12s, want %.12s", got.WeightsSHA256, want.WeightsSHA256)
	}
}

// Every parameter of every model moves in the first step.
func TestEveryParameterMoves(t *testing.T) {
	for _, name := range []string{"gcn", "mlp"} {
		for _, layers := range []int{1, 2, 3, 5} {
			set := func(epochs int) func(*Options) {
				return func(o *Options) {
					o.Config.Model, o.Config.Layers, o.Config.Epochs, o.Config.Dropout = name, layers, epochs, 0
				}
			}
			one, two := mustTrain(t, options(t, set(1))), mustTrain(t, options(t, set(2)))
			for i, spec := range one.Specs {
				if slices.Equal(one.State.Params.Weights[i].Host, two.State.Params.Weights[i].Host) {
					t.Errorf("%s with %d layers: %s did not move", name, layers, spec.Name)
				}
			}
		}
	}
}

func TestLossFallsAndAccuracyRises(t *testing.T) {
	o := options(t, func(o *Options) { o.Config.Epochs = 40; o.Config.Hidden = 16 })
	res := mustTrain(t, o)
	l := events(o).losses()
	if len(l) != 40 || l[39] > 0.9*l[0] {
		t.Errorf("losses %v", l)
	}
	if b := res.State.Best; b.Val < 0.6 || b.Test < 0.6 {
		t.Errorf("best validation accuracy %v, test %v after 40 epochs", b.Val, b.Test)
	}
}

func TestAsyncKeepsTheBound(t *testing.T) {
	for s := range 4 {
		for seed := range uint64(3) {
			o := options(t, func(o *Options) {
				o.Config.Pipeline, o.Config.Staleness, o.Config.Epochs, o.Seed = "async", s, 10, seed
				o.Config.AsyncWait = float64(seed) / 2
				o.Config.Intervals, o.Config.EvalEvery, o.Config.Threads = 8, 3, 4
			})
			mustTrain(t, o)
			ages := events(o).ages()
			// A row that lags a epochs is max(0, a-1) epochs stale: what the
			// reader could not have waited for does not count.
			if len(ages) > s+2 {
				t.Errorf("S=%d seed %d: rows up to %d epochs old were read: %v", s, seed, len(ages)-1, ages)
			}
			if n := len(events(o).losses()); n != 10 {
				t.Errorf("S=%d seed %d: %d epochs, want 10", s, seed, n)
			}
		}
	}
}

func TestStops(t *testing.T) {
	target := options(t, func(o *Options) { o.Config.Epochs, o.Config.TargetAccuracy = 200, 0.4 })
	if res := mustTrain(t, target); res.Reason != "target" || res.Epochs >= 200 || res.State.Best.Val < 0.4 {
		t.Errorf("target: %s after %d epochs at %v", res.Reason, res.Epochs, res.State.Best.Val)
	}
	patience := options(t, func(o *Options) { o.Config.Epochs, o.Config.Patience, o.Config.LR = 200, 3, 1e-9 })
	if res := mustTrain(t, patience); res.Reason != "patience" || res.Epochs != 4 {
		t.Errorf("patience 3 with no progress: %s after %d epochs, want 4", res.Reason, res.Epochs)
	}
}

// TestStopEndsARunAfterAnEpoch stops after some epoch, with and without an
// evaluation of it, and goes on from the checkpoint.
func TestStopEndsARunAfterAnEpoch(t *testing.T) {
	for _, every := range []int{1, 4} {
		straight := mustTrain(t, options(t, func(o *Options) { o.Config.EvalEvery = every }))
		asked := 0
		var saved *State
		o := options(t, func(o *Options) {
			o.Config.EvalEvery = every
			o.Save = func(s *State) error { saved = s; return nil }
			o.Stop = func() string {
				if asked++; asked == 3 {
					return "max-cost"
				}
				return ""
			}
		})
		res := mustTrain(t, o)
		if res.Reason != "max-cost" || res.Epochs != 3 || saved == nil || saved.Params.Version != 3 || res.Logits == nil {
			t.Fatalf("evaluated every %d: %q after %d epochs, saved %v; want max-cost after 3", every, res.Reason, res.Epochs, saved != nil)
		}
		rest := mustTrain(t, options(t, func(o *Options) { o.Config.EvalEvery, o.From = every, saved }))
		if rest.WeightsSHA256 != straight.WeightsSHA256 || rest.Reason != "epochs" {
			t.Errorf("evaluated every %d: resumed weights %.12s (%s), straight %.12s", every, rest.WeightsSHA256, rest.Reason, straight.WeightsSHA256)
		}
	}
}

func TestInterruptedRunCanBeResumed(t *testing.T) {
	straight := mustTrain(t, options(t))
	ctx, cancel := context.WithCancel(context.Background())
	o := options(t)
	o.Listener = stopAt{log: &log{}, epoch: 3, stop: cancel}
	var saved *State
	o.Save = func(s *State) error { saved = s; return nil }
	res, err := Train(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	if res.Reason != "interrupted" || saved == nil || saved.Params.Version < 4 || saved.Params.Version > 7 {
		t.Fatalf("interrupted at epoch 3: %s, checkpoint %+v", res.Reason, saved)
	}
	rest := mustTrain(t, options(t, func(o *Options) { o.From = saved }))
	if n := len(o.Listener.(stopAt).losses()); n != saved.Params.Version {
		t.Errorf("the checkpoint is of %d epochs, %d were reported", saved.Params.Version, n)
	}
	if rest.WeightsSHA256 != straight.WeightsSHA256 {
		t.Errorf("resumed weights %.12s, straight %.12s", rest.WeightsSHA256, straight.WeightsSHA256)
	}
}

type stopAt struct {
	*log
	epoch int
	stop  func()
}

func (s stopAt) Event(e engine.Event) {
	s.log.Event(e)
	if d, ok := e.(engine.EpochDone); ok && d.Epoch == s.epoch {
		s.stop()
	}
}

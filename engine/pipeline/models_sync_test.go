package pipeline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dorylus/engine"
	"dorylus/engine/backend"
	"dorylus/engine/model"
	"dorylus/engine/testkit"
)

// A sync run of every model has the same bits for any number of threads and
// intervals.
func TestEveryModelSameBitsForAnySchedule(t *testing.T) {
	threads, cuts := []int{1, 2, 3}, []int{1, 3, 16}
	if testing.Short() {
		threads, cuts = []int{1, 3}, []int{1, 16}
	}
	everyModel(t, func(t *testing.T, m modelCase, seed uint64) {
		base := m.options(t, seed, func(o *Options) { o.Config.Intervals = 5 })
		want := mustTrain(t, base)
		for _, n := range threads {
			for _, cut := range cuts {
				o := m.options(t, seed, func(o *Options) { o.Config.Threads, o.Config.Intervals = n, cut })
				got := mustTrain(t, o)
				sameBits(t, fmt.Sprintf("%d threads, %d intervals, seed %d", n, cut, seed), want, got, events(base).losses(), events(o).losses())
			}
		}
	})
}

// Two and three partitions that exchange rows, some of them twice and out of
// order, make the weights of one process.
func TestEveryModelSameBitsInPartitions(t *testing.T) {
	everyModel(t, func(t *testing.T, m modelCase, seed uint64) {
		o := m.options(t, seed)
		want := mustTrain(t, o)
		counts := []int{2, 3}
		if testing.Short() {
			counts = counts[1:]
		}
		for _, parts := range counts {
			what := fmt.Sprintf("%d partitions, seed %d", parts, seed)
			got := trainPartitioned(t, partitioned{parts: parts, seed: seed + uint64(parts)}, func() Options { return m.options(t, seed) })
			sameBits(t, what, want, got.Result, events(o).losses(), events(got.opts[0]).losses())
			sameEvaluations(t, what, events(o), events(got.opts[0]))
		}
	})
}

// Partitions of an async run end, with every epoch's loss finite.
func TestEveryModelRunsAsyncInPartitions(t *testing.T) {
	everyModel(t, func(t *testing.T, m modelCase, seed uint64) {
		got := trainPartitioned(t, partitioned{parts: 2, seed: seed}, func() Options {
			return m.options(t, seed, func(o *Options) {
				c := &o.Config
				c.Pipeline, c.AsyncWait = "async", 0
				if m.model == "gat" { // whose coefficients of rows of two epochs grow with the scores
					c.LR, c.Dropout, c.InputDropout, c.AttentionDropout, c.Residual = 0.001, 0, 0, 0, false
				}
			})
		})
		for e, l := range events(got.opts[0]).losses() {
			if math.IsNaN(l) || math.IsInf(l, 0) || l <= 0 {
				t.Errorf("seed %d: the loss of epoch %d is %v", seed, e, l)
			}
		}
	})
}

// Workers that vanish before a task or with its answer change no bit.
func TestEveryModelSameBitsWhenTasksAreLost(t *testing.T) {
	everyModel(t, func(t *testing.T, m modelCase, seed uint64) {
		base := m.options(t, seed)
		want := mustTrain(t, base)
		for slots := 1; slots <= 3; slots += 2 {
			var f *flaky
			o := m.options(t, seed, func(o *Options) {
				local := backend.NewLocal(o.Device)
				t.Cleanup(func() { local.Close() })
				f = &flaky{Backend: local, slots: slots, rng: rand.New(rand.NewPCG(seed, 4)), of: map[string]int{}}
				o.Backend = f
			})
			got := mustTrain(t, o)
			what := fmt.Sprintf("%d slots, %d tasks lost, seed %d", slots, f.lost, seed)
			if f.lost == 0 {
				t.Errorf("%s: the test shows nothing", what)
			}
			sameBits(t, what, want, got, events(base).losses(), events(o).losses())
			if n := count[engine.Retried](events(o)); n != f.lost {
				t.Errorf("%s: %d retries reported", what, n)
			}
		}
	})
}

// count is how many events of a kind a run has made.
func count[E engine.Event](l *log) int {
	n := 0
	for _, e := range l.events {
		if _, ok := e.(E); ok {
			n++
		}
	}
	return n
}

// A training pass computes only the rows that the loss can see. Computing all rows
// gives the same losses and weights, dropout included: to rounding, since rows are
// multiplied in other company.
func TestEveryModelTrainsAloneWhatTheLossSees(t *testing.T) {
	everyModel(t, func(t *testing.T, m modelCase, seed uint64) {
		gentle := func(o *Options) { o.Config.Optimizer, o.Config.LR = "sgd", 0.01 }
		less, more := m.options(t, seed, gentle), m.options(t, seed, gentle, func(o *Options) { o.Config.PruneRows = false })
		some, all := mustTrain(t, less), mustTrain(t, more)
		if fewer, rows := rowsOf(t, less), rowsOf(t, more); m.model != "mlp" && m.model != "sgc" && rows <= fewer {
			t.Errorf("the training pass has %d rows, the one of everything %d: the test shows nothing", fewer, rows)
		}
		closeLosses(t, "all rows", events(less).losses(), events(more).losses())
		closeWeights(t, seed, less.Config.Norm, some, all)
	})
}

// The kept gather of constant features is what gathering them in every epoch gives, to
// rounding: products come before that gather where rows are narrower so.
func TestEveryModelTrainsAsWellWithoutTheCache(t *testing.T) {
	shown := 0
	everyModel(t, func(t *testing.T, m modelCase, seed uint64) {
		gentle := func(o *Options) { o.Config.Optimizer, o.Config.LR, o.Config.InputDropout = "sgd", 0.01, 0 }
		cached, anew := m.options(t, seed, gentle), m.options(t, seed, gentle, func(o *Options) { o.Config.CacheGather = false })
		if a, b := mustBuild(t, cached), mustBuild(t, anew); slices.ContainsFunc(a.Bufs, isKept) {
			shown++
			if slices.ContainsFunc(b.Bufs, isKept) {
				t.Error("without the cache something is kept all the same")
			}
		}
		some, all := mustTrain(t, cached), mustTrain(t, anew)
		closeLosses(t, "gathered anew", events(cached).losses(), events(anew).losses())
		closeWeights(t, seed, cached.Config.Norm, some, all)
	})
	if shown == 0 {
		t.Error("no model keeps a gather: the test shows nothing")
	}
}

// closeWeights holds b's weights to a's, to rounding, by name.
func closeWeights(t *testing.T, seed uint64, norm string, a, b *Result) {
	t.Helper()
	for p, spec := range a.Specs {
		if norm == "batch" && spec.Bias && strings.HasPrefix(spec.Name, "conv") {
			continue // what normalisation takes off again has no gradient but rounding
		}
		q := slices.IndexFunc(b.Specs, func(s model.ParamSpec) bool { return s.Name == spec.Name })
		if q < 0 {
			t.Errorf("seed %d: %s is missing", seed, spec.Name)
			continue
		}
		if d := testkit.Far(a.State.Params.Weights[p], b.State.Params.Weights[q], 1e-5); d != "" {
			t.Errorf("seed %d: %s%s", seed, spec.Name, d)
		}
	}
}

func isKept(b model.Buf) bool { return b.Made != nil }

func mustBuild(t *testing.T, o Options) *model.Program {
	t.Helper()
	cfg, err := ModelConfig(&o.Config, o.Store)
	check(t, err)
	prog, err := cfg.Build()
	check(t, err)
	return prog
}

// rowsOf is the number of rows of all levels, by what the run has said of its plan.
func rowsOf(t *testing.T, o Options) (n int) {
	t.Helper()
	for _, e := range events(o).events {
		e, ok := e.(engine.RunStart)
		if !ok {
			continue
		}
		for _, line := range e.Plan {
			if list, ok := strings.CutPrefix(line, "rows per level, input first: "); ok {
				for _, f := range strings.Split(list, ", ") {
					k, err := strconv.Atoi(f)
					check(t, err)
					n += k
				}
			}
		}
	}
	return n
}

package pipeline

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"dorylus/engine"
	"dorylus/engine/backend"
)

// dawdler is a backend whose tasks take their time, by seed, so that intervals
// drift apart.
type dawdler struct {
	engine.Backend
	mu  sync.Mutex
	rng *rand.Rand
}

func (d *dawdler) Local() bool { return false }
func (d *dawdler) Slots() int  { return 4 }

func (d *dawdler) Run(ctx context.Context, w *engine.Work) error {
	d.mu.Lock()
	yields := d.rng.IntN(60)
	if d.rng.IntN(8) == 0 {
		yields *= 10
	}
	d.mu.Unlock()
	for range yields {
		runtime.Gosched()
	}
	return d.Backend.Run(ctx, w)
}

// Over random schedules of the real pipeline no gather reads rows older than the
// bound, every epoch is complete, the loss stays finite, and the bound is used:
// somebody does run ahead.
func TestRandomSchedulesKeepTheBound(t *testing.T) {
	seeds := 1500
	if testing.Short() {
		seeds = 100
	}
	st := build(t, small(96, 1), "natural")
	var all [4][]int64
	for seed := range seeds {
		s := seed % 4
		o := options(t, on(st, func(o *Options) {
			o.Config.Pipeline, o.Config.Staleness, o.Config.Epochs, o.Seed = "async", s, 4+s, uint64(seed)
			o.Config.AsyncWait = 0
			o.Config.Intervals, o.Config.EvalEvery, o.Config.Threads = 6, 3, 3
			local := backend.NewLocal(o.Device)
			t.Cleanup(func() { local.Close() })
			o.Backend = &dawdler{Backend: local, rng: rand.New(rand.NewPCG(uint64(seed), 6))}
		}))
		mustTrain(t, o)
		ages := events(o).ages()
		if len(ages) > s+2 {
			t.Fatalf("S=%d seed %d: rows %d epochs old were read, at most %d may be: %v", s, seed, len(ages)-1, s+1, ages)
		}
		if n := len(events(o).losses()); n != 4+s {
			t.Fatalf("S=%d seed %d: %d epochs, want %d", s, seed, n, 4+s)
		}
		for a, n := range ages {
			for len(all[s]) <= a {
				all[s] = append(all[s], 0)
			}
			all[s][a] += n
		}
	}
	for s, ages := range all {
		t.Logf("S=%d: source rows read by age in epochs: %v", s, ages)
		if len(ages) < 2 || ages[1] == 0 {
			t.Errorf("S=%d: no gather ever read rows of the epoch before: the schedules show nothing", s)
		}
	}
}

// An async run whose idle cores wait for as long as it takes reads nothing old: it has the
// bits of a sync run, however its tasks dawdle.
func TestAsyncThatAlwaysWaitsHasTheBitsOfSync(t *testing.T) {
	st := build(t, small(96, 1), "natural")
	run := func(pipeline string, bound int, seed uint64) (*Result, Options) {
		o := options(t, on(st, func(o *Options) {
			o.Config.Pipeline, o.Config.Staleness, o.Config.AsyncWait, o.Config.Epochs = pipeline, bound, 1, 6
			o.Config.Intervals, o.Config.EvalEvery, o.Config.Threads = 6, 3, 3
			local := backend.NewLocal(o.Device)
			t.Cleanup(func() { local.Close() })
			o.Backend = &dawdler{Backend: local, rng: rand.New(rand.NewPCG(seed, 6))}
		}))
		return mustTrain(t, o), o
	}
	want, sync := run("sync", 0, 0)
	for seed := range uint64(12) {
		bound := int(seed % 4)
		got, o := run("async", bound, seed)
		sameBits(t, fmt.Sprintf("S=%d, seed %d", bound, seed), want, got, events(sync).losses(), events(o).losses())
		if ages := events(o).ages(); len(ages) != 1 {
			t.Errorf("S=%d, seed %d: rows were read by age in epochs: %v", bound, seed, ages)
		}
	}
}

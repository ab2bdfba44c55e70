package sched

import (
	"math/rand/v2"
	"testing"

	"dorylus/engine/task"
)

// TestRandomRuns plays thousands of small runs with failures, repeats, delays and
// reordering: the machine agrees with its twin, never passes the bound, never
// stops before everything is done exactly once, and repeats itself.
func TestRandomRuns(t *testing.T) {
	seeds := 4000
	if testing.Short() {
		seeds = 500
	}
	ages, stale := map[int]int{}, 0
	for seed := range uint64(seeds) {
		w := randomWorld(seed)
		if err := w.run(); err != nil {
			t.Fatalf("seed %d (%d intervals, %d partitions, sync %v, S=%d): %v",
				seed, w.cfg.Intervals, len(w.parts), w.cfg.Sync, w.cfg.Staleness, err)
		}
		for a, n := range w.ages {
			ages[a] += n
			if a > 0 {
				stale += n
			}
		}
	}
	if stale == 0 {
		t.Errorf("no gather ever read an old row (ages %v): the runs do not reach the bound", ages)
	}
}

// TestStopAtAnyMoment stops runs at random and checks that nothing follows.
func TestStopAtAnyMoment(t *testing.T) {
	for seed := range uint64(300) {
		w := randomWorld(seed)
		w.cfg.Hold = 0
		p := w.parts[0]
		p.cfg.Own, p.cfg.Hold = task.Range{}, 0
		p.cfg = w.cfg
		m, err := New(p.cfg)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		out := m.Start()
		for n := w.rng.IntN(30); n > 0 && len(out) > 0; n-- {
			k := w.rng.IntN(len(out))
			id := out[k].ID
			out = append(out[:k:k], out[k+1:]...)
			out = append(out, m.Step(Input{Done: &id})...)
		}
		if got := m.Step(Input{Stop: true}); got != nil {
			t.Fatalf("seed %d: the stop issued %v", seed, got)
		}
		if m.Outstanding() != len(out) || m.Finished() != (len(out) == 0) {
			t.Fatalf("seed %d: stopped with %d tasks out, the machine says %d, finished %v", seed, len(out), m.Outstanding(), m.Finished())
		}
		v := w.cfg.Epochs
		if got := m.Step(Input{Weights: &v}); got != nil {
			t.Fatalf("seed %d: weights after the stop issued %v", seed, got)
		}
		for _, o := range out {
			in := Input{Done: &o.ID}
			if w.rng.IntN(2) == 0 {
				in = Input{Failed: &o.ID}
			}
			if got := m.Step(in); got != nil {
				t.Fatalf("seed %d: %s after the stop issued %v", seed, describe(in), got)
			}
		}
		if !m.Finished() {
			t.Fatalf("seed %d: all tasks have ended after the stop, but the machine is not finished\n%s", seed, m)
		}
	}
}

// manyIntervals is a run of 10,000 intervals that each gather from 41 others.
func manyIntervals(epochs, staleness int) Config {
	const n = 10_000
	c := Config{Intervals: n, Own: task.Range{Hi: n}, Epochs: epochs, Staleness: staleness}
	sources := make([][]int32, n)
	for i := range sources {
		for d := -20; d <= 20; d++ {
			sources[i] = append(sources[i], int32((i+d*d*d+n)%n))
		}
	}
	for layer := 1; layer <= 2; layer++ {
		c.Steps = append(c.Steps,
			Step{Kind: task.AV, Layer: layer, Reads: -1},
			Step{Kind: task.SC, Layer: layer, Reads: -1, Publishes: true},
			Step{Kind: task.GA, Layer: layer, Reads: 3*layer - 2, Sources: sources})
	}
	return c
}

// drain does all tasks in random order, with the weights of each epoch as soon as
// all have finished it, and is the number of tasks done.
func drain(m *Machine, rng *rand.Rand) int {
	out := m.Start()
	version, done := m.MinFinished(), 0
	for len(out) > 0 {
		k := rng.IntN(len(out))
		id := out[k].ID
		out[k] = out[len(out)-1]
		out = append(out[:len(out)-1], m.Step(Input{Done: &id})...)
		done++
		for version < m.MinFinished() {
			version++
			out = append(out, m.Step(Input{Weights: &version})...)
		}
	}
	return done
}

func TestManyIntervals(t *testing.T) {
	c := manyIntervals(3, 1)
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := drain(m, rand.New(rand.NewPCG(1, 1))), c.Intervals*c.Epochs*len(c.Steps); got != want || !m.Finished() {
		t.Fatalf("%d tasks of %d are done, finished %v", got, want, m.Finished())
	}
}

// BenchmarkStep is the cost of one task with 10,000 intervals.
func BenchmarkStep(b *testing.B) {
	c := manyIntervals(3, 1)
	tasks := 0
	for b.Loop() {
		m, err := New(c)
		if err != nil {
			b.Fatal(err)
		}
		tasks += drain(m, rand.New(rand.NewPCG(1, 1)))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(tasks), "ns/task")
}

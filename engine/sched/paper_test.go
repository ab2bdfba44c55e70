package sched

import (
	"math/rand/v2"
	"testing"

	"dorylus/engine/task"
)

// The tests of this file are named after what the Dorylus paper (OSDI'21) says
// about the order of tasks; the sections are the paper's.

// twoLayers is a model of two layers, forward and backward, over n intervals that
// all gather from each other.
func twoLayers(n, epochs int) Config {
	all := make([][]int32, n)
	for i := range all {
		for j := range n {
			all[i] = append(all[i], int32(j))
		}
	}
	return Config{Intervals: n, Own: task.Range{Hi: n}, Epochs: epochs, Steps: []Step{
		{Kind: task.AV, Layer: 1, Reads: -1},
		{Kind: task.SC, Layer: 1, Reads: -1, Publishes: true},
		{Kind: task.GA, Layer: 2, Reads: 1, Sources: all},
		{Kind: task.AV, Layer: 2, Reads: -1},
		{Kind: task.SC, Dir: task.Backward, Layer: 2, Reads: -1, Publishes: true},
		{Kind: task.GA, Dir: task.Backward, Layer: 2, Reads: 4, Sources: all},
		{Kind: task.AV, Dir: task.Backward, Layer: 1, Reads: -1},
	}}
}

// A story drives a machine by hand.
type story struct {
	*testing.T
	m   *Machine
	out map[task.ID]bool
}

func tell(t *testing.T, c Config) *story {
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	s := &story{T: t, m: m, out: map[task.ID]bool{}}
	s.note(m.Start())
	return s
}

func (s *story) note(tasks []task.Task) {
	for _, t := range tasks {
		s.out[t.ID] = true
	}
}

func (s *story) weights(v int) { s.note(s.m.Step(Input{Weights: &v})) }

// do does one task, which must be out.
func (s *story) do(e, i, step int) {
	s.Helper()
	id := task.ID{Epoch: e, Interval: i, Step: step}
	if !s.out[id] {
		s.Fatalf("%v is not out:\n%s", id, s.m)
	}
	delete(s.out, id)
	s.note(s.m.Step(Input{Done: &id}))
}

// through does the tasks of an interval until it is held up, and is the number done.
func (s *story) through(i int) int {
	for n := 0; ; n++ {
		p := s.m.own[i]
		if !p.issued {
			return n
		}
		s.do(p.epoch, i, p.step)
	}
}

// at checks where an interval stands and whether its task is out.
func (s *story) at(i, epoch, step int, out bool) {
	s.Helper()
	if p := s.m.own[i]; p.epoch != epoch || p.step != step || p.issued != out {
		s.Fatalf("interval %d: want epoch %d step %d out %v:\n%s", i, epoch, step, out, s.m)
	}
}

// Section 4: vertices are cut into intervals, and while one interval is in one
// task, others are in other tasks, of other layers too: nothing but data holds one
// up.
func TestSection4IntervalsFlowThroughThePipelineIndependently(t *testing.T) {
	c := twoLayers(3, 1)
	c.Sync = true
	c.Steps[2].Sources = [][]int32{{0}, {1}, {2}}
	s := tell(t, c)
	s.do(0, 0, 0)
	s.do(0, 0, 1)
	s.do(0, 0, 2)
	s.do(0, 1, 0)
	s.at(0, 0, 3, true) // AV of layer 2
	s.at(1, 0, 1, true) // SC of layer 1
	s.at(2, 0, 0, true) // AV of layer 1
}

// Section 4: the first interval's task need not wait for others of its kind, only
// a gather waits, for its own in-neighbours.
func TestSection4OnlyAGatherWaitsForOthers(t *testing.T) {
	c := twoLayers(2, 1)
	c.Sync = true
	s := tell(t, c)
	if got := s.through(0); got != 2 {
		t.Fatalf("interval 0 did %d tasks before its gather, want AV and SC:\n%s", got, s.m)
	}
	s.do(0, 1, 0)
	s.at(0, 0, 2, false) // applied is not yet scattered
	s.do(0, 1, 1)
	s.at(0, 0, 2, true)
}

// Section 4: the backward pass goes through ∇SC and ∇GA as the forward one goes
// through SC and GA: gradients are of the same epoch too.
func TestSection4SyncGathersGradientsOfItsOwnEpoch(t *testing.T) {
	c := twoLayers(2, 2)
	c.Sync = true
	s := tell(t, c)
	s.do(0, 0, 0)
	s.do(0, 0, 1)
	s.do(0, 1, 0)
	s.do(0, 1, 1)
	s.through(0)
	s.at(0, 0, 5, false) // ∇GA wants the ∇SC of interval 1
	s.through(1)
	s.at(0, 0, 5, true)
	s.through(0)
	s.at(0, 1, 0, false) // and epoch 1 the update of epoch 0
	s.weights(1)
	s.at(0, 1, 0, true)
}

// Section 5, S=0: an interval goes on to the next epoch only when all intervals
// have finished this one.
func TestSection5ZeroStalenessKeepsEpochsApart(t *testing.T) {
	s := tell(t, twoLayers(3, 2))
	for i := range 3 {
		s.do(0, i, 0)
		s.do(0, i, 1)
	}
	s.through(0) // up to ∇GA, which wants everybody's first ∇SC
	s.through(1)
	for step := 2; step <= 4; step++ {
		s.do(0, 2, step)
	}
	s.through(0)
	s.through(1)
	s.weights(1) // even if the weights were there already
	s.at(0, 1, 0, false)
	s.at(1, 1, 0, false)
	s.do(0, 2, 5)
	s.do(0, 2, 6)
	s.at(0, 1, 0, true)
	s.at(1, 1, 0, true)
	s.at(2, 1, 0, true)
}

// Section 5, S=0: inside an epoch there is no barrier: an interval runs through
// both layers, forward and backward, on its neighbours' rows of the epoch before.
func TestSection5ZeroStalenessHasNoBarrierInsideAnEpoch(t *testing.T) {
	c := twoLayers(3, 2)
	s := tell(t, c)
	for s.m.MinFinished() == 0 {
		for i := range 3 {
			s.through(i)
		}
	}
	s.weights(1)
	if got := s.through(1); got != len(c.Steps) {
		t.Fatalf("interval 1 did %d tasks of epoch 1 on its own, want all %d:\n%s", got, len(c.Steps), s.m)
	}
	s.at(0, 1, 0, true)
	s.at(2, 1, 0, true)
}

// Section 5: there is nothing older than the first rows: in the first epoch every
// gather waits for rows that have been computed, whatever the bound.
func TestSection5TheFirstEpochGathersComputedRows(t *testing.T) {
	for bound := range 4 {
		c := twoLayers(2, 6)
		c.Staleness = bound
		s := tell(t, c)
		s.through(0)
		s.at(0, 0, 2, false)
	}
}

// Section 5: a fast interval may be at most S epochs ahead of the slowest one.
func TestSection5AFastIntervalIsAtMostSEpochsAhead(t *testing.T) {
	for bound := range 4 {
		c := twoLayers(2, 9)
		c.Staleness = bound
		s := tell(t, c)
		s.do(0, 1, 0)
		s.do(0, 1, 1)
		s.through(0)
		for step := 2; step <= 4; step++ {
			s.do(0, 1, step) // interval 1 publishes all of its rows, and lingers in epoch 0
		}
		for v := range 9 {
			s.weights(v + 1)
		}
		s.through(0)
		s.at(1, 0, 5, true)
		s.at(0, bound+1, 0, false) // it has run epoch S, S ahead of the slowest
		s.do(0, 1, 5)
		s.do(0, 1, 6)
		s.at(0, bound+1, 0, true)
	}
}

// Section 5: a gather never reads rows older than the bound, though they are here
// and others may read them: here the rows travel more slowly than the news that
// their interval is through.
func TestSection5AGatherNeverReadsRowsOlderThanTheBound(t *testing.T) {
	for bound := range 3 {
		c := twoLayers(2, 9)
		c.Own = task.Range{Lo: 0, Hi: 1}
		c.Staleness = bound
		for s := range c.Steps {
			if c.Steps[s].Reads >= 0 {
				c.Steps[s].Sources = c.Steps[s].Sources[:1]
			}
		}
		s := tell(t, c)
		rows := func(step, epoch int) { s.note(s.m.Step(Input{Rows: &Rows{Interval: 1, Step: step, Epoch: epoch}})) }
		rows(1, 0)
		rows(4, 0)
		s.note(s.m.Step(Input{Finished: &Finish{Interval: 1, Epoch: 8}}))
		s.weights(9)
		s.through(0)
		s.at(0, bound+2, 2, false) // in epoch S+2, rows of epoch 0 would be S+1 behind e-1
		rows(1, 1)
		s.through(0)
		s.at(0, bound+2, 5, false) // its ∇GA is bound likewise
	}
}

// Section 5: updates are asynchronous: with S>0 an epoch starts on weights that
// lack the last epochs' gradients, but not more than S epochs of them.
func TestSection5WeightsMayLackSEpochs(t *testing.T) {
	for bound := range 3 {
		c := twoLayers(1, 9)
		c.Staleness = bound
		s := tell(t, c)
		s.through(0)
		s.at(0, 1+bound, 0, false)
		s.weights(1)
		s.at(0, 1+bound, 0, true)
	}
}

// Section 5: pipelining without asynchrony is the bound's opposite end: a sync run
// never uses a row or a weight of another epoch, whatever the timing (the world
// checks it at each task).
func TestSection5SyncReadsNothingOld(t *testing.T) {
	for seed := range uint64(15) {
		c := twoLayers(4, 3)
		c.Sync = true
		w := newWorld(rand.New(rand.NewPCG(seed, 2)), c, 1+int(seed%3))
		if err := w.run(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for age := range w.ages {
			if age != 0 {
				t.Fatalf("seed %d: rows of age %d were read", seed, age)
			}
		}
	}
}

// Section 5: staleness S=1 does read rows one epoch older than S=0 does, or it
// would buy nothing.
func TestSection5ALargerBoundIsUsed(t *testing.T) {
	for bound := range 3 {
		ages := map[int]int{}
		for seed := range uint64(15) {
			c := twoLayers(4, 6)
			c.Staleness = bound
			w := newWorld(rand.New(rand.NewPCG(seed, 3)), c, 2)
			if err := w.run(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for a, n := range w.ages {
				ages[a] += n
			}
		}
		if ages[bound] == 0 || ages[bound+1] != 0 {
			t.Errorf("S=%d: the ages read are %v, want some of %d and none above", bound, ages, bound)
		}
	}
}

// Section 6: a Lambda that times out is relaunched: the task is given out again,
// by itself, and the interval goes on when either attempt answers.
func TestSection6AFailedTaskIsRelaunched(t *testing.T) {
	s := tell(t, twoLayers(2, 1))
	id := task.ID{Epoch: 0, Interval: 0, Step: 0}
	again := s.m.Step(Input{Failed: &id})
	if len(again) != 1 || again[0].ID != id {
		t.Fatalf("the failure of %v issued %v, want it alone", id, again)
	}
	s.do(0, 0, 0)
	if late := s.m.Step(Input{Done: &id}); late != nil {
		t.Fatalf("the second answer of %v issued %v, want nothing", id, late)
	}
	s.at(0, 0, 1, true)
}

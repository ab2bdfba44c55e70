package sink

import (
	"maps"
	"math"
	"slices"

	"dorylus/engine"
	"dorylus/engine/cost"
)

// Tally folds events into a Summary. The events of a resumed run may follow
// those of the run it goes on with: epochs that are run again count once.
type Tally struct {
	start   engine.RunStart
	done    *engine.RunDone
	meter   cost.Meter
	peak    int64
	metric  string
	classes *engine.Classes
	wired   *engine.Wired // since the last start, of all servers
	gpu     *engine.GPUUsed
	// emulated: a part of the run was on an emulated device.
	emulated bool
	before   engine.Wired // of the runs that this one goes on with
	servers  []engine.ServerDone
	epochs   map[int]*epochTally
}

// epochTally is what is known of one epoch.
type epochTally struct {
	run   *engine.EpochDone
	eval  *engine.Evaluated
	tasks TaskTotals
}

// NewTally is an empty tally.
func NewTally() *Tally { return &Tally{epochs: map[int]*epochTally{}} }

func (t *Tally) epoch(e int) *epochTally {
	if t.epochs[e] == nil {
		t.epochs[e] = &epochTally{tasks: TaskTotals{Nanos: map[string]int64{}, Count: map[string]int64{}}}
	}
	return t.epochs[e]
}

// Event implements engine.Listener.
func (t *Tally) Event(e engine.Event) {
	t.meter.Event(e)
	switch e := e.(type) {
	case engine.RunStart:
		t.resume(e)
	case engine.TaskDone:
		t.epoch(e.Task.Epoch).tasks.add(e)
	case TaskTotals:
		sum := &t.epoch(e.Epoch).tasks
		for k, n := range e.Nanos {
			sum.Nanos[k] += n
			sum.Count[k] += e.Count[k]
		}
		sum.Age = addAges(sum.Age, e.Age)
	case engine.EpochDone:
		t.epoch(e.Epoch).run = &e
	case engine.Evaluated:
		t.epoch(e.Epoch).eval = &e
		t.metric = e.Metric
	case engine.Classes:
		t.classes = &e
	case engine.Wired:
		if t.wired == nil {
			t.wired = &engine.Wired{}
		}
		t.wired.Add(e)
	case engine.GPUUsed:
		t.gpu, t.emulated = &e, t.emulated || e.Emulated
	case engine.ServerDone:
		t.servers = append(t.servers, e)
		t.peak = max(t.peak, e.PeakMem) // of one server: what a machine has to have
	case engine.RunDone:
		t.done = &e
		t.peak = max(t.peak, e.PeakMem)
	}
}

// resume opens a segment: what was done from its first epoch on is run again.
func (t *Tally) resume(s engine.RunStart) {
	if t.wired != nil {
		t.before.Add(*t.wired)
	}
	t.start, t.done, t.classes, t.servers, t.wired, t.gpu = s, nil, nil, nil, nil, nil
	maps.DeleteFunc(t.epochs, func(e int, _ *epochTally) bool { return e >= s.FirstEpoch })
}

// Bill is what the run has cost so far.
func (t *Tally) Bill() cost.Bill { return t.meter.Bill() }

// Summary is the run so far.
func (t *Tally) Summary() Summary {
	s := Summary{
		Mode: t.start.Mode, Model: t.start.Model, Dataset: t.start.Dataset, Seed: t.start.Seed,
		Vertices: t.start.Vertices, Edges: t.start.Edges,
		Pipeline: t.start.Pipeline, Bound: t.start.Staleness, Intervals: t.start.Intervals,
		Threads: t.start.Threads, Device: t.start.Device, Version: t.start.Version,
		PeakMemory: t.peak, CostNote: t.meter.Note(), Servers: t.servers,
		Reason: "unfinished", Metric: t.metric,
	}
	t.foldTraining(&s)
	t.foldBest(&s)
	t.foldTasks(&s)
	s.charge(t.meter.Bill())
	if t.wired != nil {
		w := *t.wired
		w.Sent, w.Received = w.Sent+t.before.Sent, w.Received+t.before.Received
		w.Shards, w.Weights = w.Shards+t.before.Shards, w.Weights+t.before.Weights
		moved := Number(w.Sent + w.Received)
		s.Moved, s.Wire = &moved, &w
	}
	t.foldGPU(&s)
	if t.done != nil {
		s.Reason, s.Error = t.done.Reason, t.done.Error
		s.WeightsSHA256, s.PredictionsSHA256 = t.done.Weights, t.done.Predicts
	}
	return s
}

func (t *Tally) foldTraining(s *Summary) {
	s.Loss = Number(math.NaN())
	var took []float64
	for _, e := range t.order() {
		rec := t.epochs[e]
		if rec.run != nil {
			s.EpochsRun++
			s.Loss = Number(rec.run.Loss)
			took = append(took, rec.run.Took)
		}
	}
	s.EpochSeconds = Number(median(took))
	s.TotalSeconds = Number(t.meter.Seconds())
}

// foldBest takes the metrics of the best validation epoch.
func (t *Tally) foldBest(s *Summary) {
	nan := Number(math.NaN())
	s.BestEpoch, s.TrainAcc, s.ValAcc, s.TestAcc = nan, nan, nan, nan
	var best *engine.Evaluated
	top := nan
	for _, e := range t.order() {
		ev := t.epochs[e].eval
		if ev == nil {
			continue
		}
		val := known(ev.Val, t.start.ValRows)
		if top.Known() && !(val > top) {
			continue
		}
		best, top, s.BestEpoch = ev, val, Number(e+1)
	}
	if best == nil {
		best = &engine.Evaluated{Train: math.NaN(), Val: math.NaN(), Test: math.NaN(), TrainAcc: math.NaN(), ValAcc: math.NaN(), TestAcc: math.NaN()}
	}
	train, val, test := t.known(best.Train, best.Val, best.Test)
	if s.Metric == "" || s.Metric == accuracy {
		s.TrainAcc, s.ValAcc, s.TestAcc = train, val, test
		return
	}
	s.TrainMetric, s.ValMetric, s.TestMetric = &train, &val, &test
	s.TrainAcc, s.ValAcc, s.TestAcc = t.known(best.TrainAcc, best.ValAcc, best.TestAcc)
}

// accuracy is the metric whose name need not be said.
const accuracy = "accuracy"

// known are measurements on the rows of a split: NaN where there are none.
func (t *Tally) known(train, val, test float64) (Number, Number, Number) {
	return known(train, t.start.TrainRows), known(val, t.start.ValRows), known(test, t.start.TestRows)
}

func known(x float64, rows int) Number {
	if rows == 0 {
		return Number(math.NaN())
	}
	return Number(x)
}

func (t *Tally) foldTasks(s *Summary) {
	nanos := map[string]int64{}
	var ages []int64
	update := 0.0
	for _, e := range t.order() {
		rec := t.epochs[e]
		for k, n := range rec.tasks.Nanos {
			nanos[k] += n
		}
		ages = addAges(ages, rec.tasks.Age)
		if rec.run != nil {
			update += rec.run.Update
		}
	}
	s.TaskSeconds = map[string]Number{"WU": Number(update)}
	for k, n := range nanos {
		if k != "WU" { // counted by EpochDone
			s.TaskSeconds[k] = Number(float64(n) / 1e9)
		}
	}
	s.RowAge, s.Staleness = map[int]int64{}, map[int]int64{}
	for age, n := range ages {
		if n != 0 {
			s.RowAge[age] += n
			s.Staleness[max(0, age-1)] += n
		}
	}
}

// order lists the epochs, ascending.
func (t *Tally) order() []int { return slices.Sorted(maps.Keys(t.epochs)) }

// median is the middle value, or the mean of the two middle ones; NaN of none.
func median(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	x = slices.Sorted(slices.Values(x))
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

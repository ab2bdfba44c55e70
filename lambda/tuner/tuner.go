package tuner

import (
	"fmt"
	"math"
	"time"
)

// What the tuner goes by. Between any two of them that call for opposite moves lies a
// gap, where it holds still.
const (
	busyUse    = 0.95 // above: the cores have as much to do as they can
	starvedUse = 0.5  // below, with a long queue for workers: double them at once
	waiting    = 0.5  // tensor tasks that wait for a worker, on the average
	idleUse    = 0.85 // below: workers have too little to do
	headroom   = 0.95 // the use of workers that moves aim at
	growing    = 0.1  // growth of the graph tasks' queue, see Figures
	worth      = 0.3  // the share of a move's size by which the rate has to follow
	change     = 0.25 // of rate or task time, at the same number of workers: another load
	recheck    = 128  // windows until what trials have ruled out is tried again
)

// Decision is a change of the number of workers wanted.
type Decision struct {
	At      time.Duration `json:"at_ns"` // since the run began
	Before  int           `json:"before"`
	Workers int           `json:"workers"` // wanted from now on
	Why     string        `json:"why"`
	// Figures are what it rests on; nil: a refusal, or the end of a pause.
	Figures *Figures `json:"figures,omitempty"`
}

// String is one line: "12.4s: 8 -> 11 workers: ...".
func (d Decision) String() string {
	return fmt.Sprintf("%.1fs: %d -> %d workers: %s", d.At.Seconds(), d.Before, d.Workers, d.Why)
}

// Tuner is the state of the search. It is not safe for concurrent use.
type Tuner struct {
	c    Config
	want int
	win  window
	now  time.Duration
	open bool // a window has been opened

	prev    *Figures // of the window before, at the same number of workers
	trial   *trial   // what the last move has to prove; nil: nothing
	ramping bool     // no whole window has been seen yet

	// [low, high] are the numbers that no trial has ruled out, and want is among them.
	low, high int
	// step is the size of the next trial where both sides of want are open to doubt, as
	// a share; it halves with each trial that fails. up is the side to try first.
	step float64
	up   bool

	ref      *Figures // of the first window in which the tuner held still here
	unlike   int      // windows in a row that differ from ref
	held     int      // windows in a row in which only trials spoke for the count
	patience int      // of these until the trials are made again
	refusals
}

// trial is a move that has to prove itself.
type trial struct {
	from int
	was  Figures
	// gain is the factor by which the rate may rise at most, where workers are added.
	gain float64
}

// New is a tuner at its start.
func New(c Config) (*Tuner, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	t := &Tuner{c: c, want: c.Start, ramping: true, patience: recheck}
	if c.Fixed > 0 {
		t.want = c.Fixed
	}
	t.forget(1)
	return t, nil
}

// forget opens all counts to trial again.
func (t *Tuner) forget(step float64) {
	t.low, t.high, t.step, t.up = t.c.Min, t.c.Max, step, true
	t.ref, t.unlike, t.held = nil, 0, 0
}

// Wanted is the number of workers that should be there now.
func (t *Tuner) Wanted() int { return t.want }

// Observe takes one sample in, and reports a decision if it has led to one.
func (t *Tuner) Observe(s Sample) (Decision, bool) {
	if t.c.Fixed > 0 || s.At < t.now {
		return Decision{}, false
	}
	t.now = s.At
	if !t.open {
		t.open = true
		t.settle(s)
	}
	t.win.add(s)
	if to, why := t.throttled(s, t.want, &t.c); why != "" {
		t.trial = nil
		return t.move(s, to, why, nil)
	}
	tasks, lasted := t.win.lasted()
	if t.ramping && tasks >= int64(4*t.want) && lasted >= t.c.Window/4 {
		f := t.win.figures(t.c.Cores)
		if to := min(2*t.want, t.most()); to > t.want && f.GraphUse < starvedUse && f.TensorWaiting >= float64(t.want) {
			return t.move(s, to, fmt.Sprintf("graph tasks take %s of the cores' time while %.1f tensor tasks wait: far too few", percent(f.GraphUse), f.TensorWaiting), &f)
		}
	}
	if !t.win.full(int64(t.c.PerEpoch), t.c.Window) {
		return Decision{}, false
	}
	t.ramping = false
	f := t.win.figures(t.c.Cores)
	if t.prev != nil {
		f.Growth = (f.GraphWaiting - t.prev.GraphWaiting) / ((f.Seconds + t.prev.Seconds) / 2) / f.Rate
	}
	to, why := t.decide(&f)
	if to == t.want {
		t.win.open(s, 0, 0)
		t.prev = &f
		return Decision{}, false
	}
	return t.move(s, to, why, &f)
}

// settle begins a new window when every interval has been through the workers once: until
// then the number before shows. A first one that is far too small is seen sooner.
func (t *Tuner) settle(s Sample) {
	skip := t.c.Intervals
	if t.ramping {
		skip = min(skip, 4*t.want)
	}
	t.win.open(s, int64(skip), t.c.Window/4)
}

// move changes the number of workers.
func (t *Tuner) move(s Sample, to int, why string, f *Figures) (Decision, bool) {
	d := Decision{At: s.At, Before: t.want, Workers: to, Why: why, Figures: f}
	t.want, t.prev, t.ref, t.unlike, t.held = to, nil, nil, 0, 0
	t.settle(s)
	return d, d.Before != to
}

// most is the largest number that may be tried now.
func (t *Tuner) most() int {
	if t.ceiling > 0 {
		return min(t.high, t.ceiling)
	}
	return t.high
}

// decide is the number of workers that follows from a window, and why.
func (t *Tuner) decide(f *Figures) (int, string) {
	if tr := t.trial; tr != nil {
		t.trial = nil
		if back, why := t.judge(tr, f); why != "" {
			return back, why
		}
	}
	note := ""
	to, why := t.verdict(f)
	if t.strange(f, to) {
		if t.unlike++; t.unlike == 1 {
			return t.want, "" // one odd window need not be another load
		}
		if t.other(f) {
			note = fmt.Sprintf("the load has changed (%.1f tensor tasks a second of %.0f ms); ", f.Rate, 1000*f.TaskSeconds)
		}
		t.forget(0.5)
		to, why = t.verdict(f)
	}
	t.unlike = 0
	if to != t.want {
		t.trial = &trial{from: t.want, was: *f, gain: min(float64(to)/float64(t.want), 1/max(f.GraphUse, 0.01))}
		return to, note + why
	}
	if t.ref == nil {
		t.ref = f
	}
	return to, ""
}

// strange says that a window is not like the one in which the tuner began to hold still.
func (t *Tuner) strange(f *Figures, to int) bool {
	return t.ref != nil && (to != t.want || t.other(f))
}

// other says so of what there is to do.
func (t *Tuner) other(f *Figures) bool {
	far := func(x, y float64) bool { return math.Abs(x-y) > change*y }
	return far(f.Rate, t.ref.Rate) || far(f.TaskSeconds, t.ref.TaskSeconds)
}

func percent(x float64) string { return fmt.Sprintf("%.0f%%", 100*x) }

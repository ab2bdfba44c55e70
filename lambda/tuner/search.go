package tuner

import (
	"fmt"
	"math"
)

// verdict is the number of workers that a window calls for, among those that are not
// ruled out.
func (t *Tuner) verdict(f *Figures) (int, string) {
	w, cores := t.want, float64(t.c.Cores)
	idle := f.TensorRunning < idleUse*float64(w) && float64(w)-f.TensorRunning >= 2
	if f.GraphUse < busyUse && (f.TensorWaiting >= waiting || !idle) {
		return t.search(f)
	}
	switch {
	case f.GraphUse >= busyUse && f.Growth > growing && f.GraphWaiting > cores:
		return t.fewer(int(float64(w)*(1-min(f.Growth, 0.5))),
			fmt.Sprintf("the queue of graph tasks grows by %.2f for each tensor task, to %.1f: too many", f.Growth, f.GraphWaiting))
	case idle:
		side := fmt.Sprintf("%.1f graph tasks wait for %d cores", f.GraphWaiting, t.c.Cores)
		if f.GraphUse < busyUse {
			side = "no tensor task waits"
		}
		return t.fewer(max(int(math.Ceil(f.TensorRunning/headroom)), 1), fmt.Sprintf("%.1f of %d have work and %s: too many", f.TensorRunning, w, side))
	}
	t.held = 0
	return w, ""
}

// fewer moves down to a number, or halfway to what is too few.
func (t *Tuner) fewer(to int, why string) (int, string) {
	if to = max(to, t.low); to == t.low && t.low > t.c.Min {
		to = (t.low + t.want) / 2
	}
	if to < t.want {
		return to, why
	}
	return t.stay()
}

// stay leaves a count that is not right by the verdict, but is by the trials. They need
// not be right for ever: in the end they are made again, and later and later.
func (t *Tuner) stay() (int, string) {
	if t.held++; t.held == t.patience {
		t.patience *= 2
		t.forget(0.125)
	}
	return t.want, ""
}

// search is for cores that stand still while tensor tasks are with the workers or wait
// for them: more workers help, unless the network, or what is behind it, is the narrowest
// place. Then fewer do as well, and are cheaper. It goes on in a direction until a trial
// fails, and turns round with half the step.
func (t *Tuner) search(f *Figures) (int, string) {
	if t.ceiling > 0 && t.want >= t.ceiling {
		return t.want, "" // more cannot be tried, and fewer would be a guess
	}
	w := float64(t.want)
	for ; t.step*w >= 0.5; t.step /= 2 {
		for range 2 {
			if t.up {
				to := int(math.Ceil(w * min(1+t.step, 1/headroom/max(f.GraphUse, 0.01))))
				if to = min(max(to, t.want+1), t.most()); to > t.want {
					return to, fmt.Sprintf("the queue of graph tasks is drained (%.1f wait, cores %s in use) while %.1f tensor tasks wait: try more",
						f.GraphWaiting, percent(f.GraphUse), f.TensorWaiting)
				}
				t.step = min(t.step, 0.5)
			} else if to := max(min(int(w/(1+t.step)), t.want-1), t.low); to < t.want {
				return to, fmt.Sprintf("more workers do not help (%.1f tensor tasks a second): try fewer", f.Rate)
			}
			t.up = !t.up
		}
	}
	return t.stay()
}

// judge is the end of a trial: it rules counts out, and goes back if the move was none
// for the better.
func (t *Tuner) judge(tr *trial, f *Figures) (int, string) {
	w, rise := t.want, f.Rate/tr.was.Rate-1
	size := float64(w)/float64(tr.from) - 1
	switch {
	case w > tr.from && (f.GraphUse >= busyUse || rise >= worth*min(size, tr.gain-1)):
		t.low = max(t.low, tr.from+1)
		return w, ""
	case w < tr.from && (f.GraphUse >= busyUse || rise >= worth*size):
		t.high = min(t.high, tr.from-1)
		return w, ""
	case w > tr.from:
		t.high = w - 1
	default:
		t.low = w + 1
	}
	t.up, t.step = w < tr.from, t.step/2
	return tr.from, fmt.Sprintf("%+.0f%% workers made it %+.1f%% tensor tasks a second: back", 100*size, 100*rise)
}

package sched

import (
	"cmp"
	"slices"

	"dorylus/engine/task"
)

// twin is the scheduler in the plainest words: it keeps all that it was ever told
// and works out, each time and from nothing else, which tasks may run.
type twin struct {
	cfg     Config
	done    map[task.ID]bool
	out     map[task.ID]bool
	rows    []Rows
	fins    []Finish
	weights []int
	allows  []int
	asked   map[task.ID]bool // by idle cores, or issued before
	stopped bool
}

func newTwin(c Config) *twin {
	return &twin{cfg: c, done: map[task.ID]bool{}, out: map[task.ID]bool{}, asked: map[task.ID]bool{}}
}

func (w *twin) step(in Input) []task.Task {
	switch {
	case in.Done != nil:
		if w.out[*in.Done] {
			delete(w.out, *in.Done)
			w.done[*in.Done] = true
		}
	case in.Failed != nil:
		delete(w.out, *in.Failed)
	case in.Rows != nil:
		w.rows = append(w.rows, *in.Rows)
	case in.Finished != nil:
		w.fins = append(w.fins, *in.Finished)
	case in.Weights != nil:
		w.weights = append(w.weights, *in.Weights)
	case in.Allow != nil:
		w.allows = append(w.allows, *in.Allow)
	case in.Idle > 0:
		var late []task.ID
		for i := w.cfg.Own.Lo; i < w.cfg.Own.Hi; i++ {
			if id, more := w.next(i); more && !w.out[id] && w.mayRun(id) {
				late = append(late, id)
			}
		}
		slices.SortStableFunc(late, func(a, b task.ID) int { return cmp.Compare(a.Epoch, b.Epoch) })
		for _, id := range late[:min(in.Idle, len(late))] {
			w.asked[id] = true
		}
	case in.Stop:
		w.stopped = true
	}
	return w.issue()
}

func (w *twin) issue() []task.Task {
	var tasks []task.Task
	for i := w.cfg.Own.Lo; i < w.cfg.Own.Hi && !w.stopped; i++ {
		id, more := w.next(i)
		if !more || w.out[id] || !w.mayRun(id) || w.cfg.Fresh && !w.asked[id] && !w.fresh(id) {
			continue
		}
		w.out[id], w.asked[id] = true, true
		st := w.cfg.Steps[id.Step]
		tasks = append(tasks, task.Task{ID: id, Kind: st.Kind, Dir: st.Dir, Layer: st.Layer})
	}
	slices.SortFunc(tasks, func(a, b task.Task) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Interval, b.Interval))
	})
	return tasks
}

// next is the first task of an own interval that is not done.
func (w *twin) next(i int) (task.ID, bool) {
	for e := w.cfg.First; e < w.cfg.Epochs; e++ {
		for s := range w.cfg.Steps {
			if id := (task.ID{Epoch: e, Interval: i, Step: s}); !w.done[id] {
				return id, true
			}
		}
	}
	return task.ID{}, false
}

func (w *twin) mayRun(id task.ID) bool {
	e := id.Epoch
	if id.Step == 0 {
		limit := w.cfg.Epochs
		if w.cfg.Hold > 0 {
			limit = w.cfg.First + w.cfg.Hold
			for _, a := range w.allows {
				limit = max(limit, a)
			}
		}
		version := w.cfg.First
		for _, v := range w.weights {
			version = max(version, v)
		}
		if e >= limit {
			return false
		}
		if w.cfg.Sync {
			return version >= e
		}
		for j := range w.cfg.Intervals {
			if w.finished(j) < e-1-w.cfg.Staleness {
				return false
			}
		}
		return version >= max(w.cfg.First, e-w.cfg.Staleness)
	}
	st := w.cfg.Steps[id.Step]
	if st.Reads < 0 {
		return true
	}
	for _, j := range st.Sources[id.Interval-w.cfg.Own.Lo] {
		need := max(w.cfg.First, e-1-w.cfg.Staleness)
		if w.cfg.Sync {
			need = e
		}
		if w.published(st.Reads, int(j)) < need {
			return false
		}
	}
	return true
}

// fresh says that a task would read nothing older than its own epoch.
func (w *twin) fresh(id task.ID) bool {
	sync := *w
	sync.cfg.Sync = true
	return sync.mayRun(id)
}

// published is the newest epoch whose rows of interval j, step s, are here.
func (w *twin) published(s, j int) int {
	newest := w.cfg.First - 1
	for _, r := range w.rows {
		if r.Interval == j && r.Step == s {
			newest = max(newest, r.Epoch)
		}
	}
	for id := range w.done {
		if id.Interval == j && id.Step == s {
			newest = max(newest, id.Epoch)
		}
	}
	return newest
}

// finished is the newest epoch that interval j is known to have finished.
func (w *twin) finished(j int) int {
	newest := w.cfg.First - 1
	for _, f := range w.fins {
		if f.Interval == j {
			newest = max(newest, f.Epoch)
		}
	}
	for id := range w.done {
		if id.Interval == j && id.Step == len(w.cfg.Steps)-1 {
			newest = max(newest, id.Epoch)
		}
	}
	return newest
}

func (w *twin) minFinished() int {
	least := w.finished(0)
	for j := range w.cfg.Intervals {
		least = min(least, w.finished(j))
	}
	return least + 1
}

func (w *twin) over() bool {
	if len(w.out) > 0 {
		return false
	}
	for i := w.cfg.Own.Lo; i < w.cfg.Own.Hi; i++ {
		if _, more := w.next(i); more && !w.stopped {
			return false
		}
	}
	return true
}

package fleet

import (
	"context"
	"errors"
	"hash/fnv"
	"time"

	"dorylus/engine"
)

// errNobody says that there is no worker, and none will come.
var errNobody = errors.New("there is no worker")

// word is what an attempt says: that it has begun, on a worker, or what has become of it.
type word struct {
	began *link
	limit time.Duration // how long the task usually takes at most
	link  *link
	res   *result
	err   error
}

// race is a task's attempts on workers, from several of which a result may come. One
// goroutine, that of Run, owns it; the attempts only say their words.
//
// A task that is beyond its limit is hedged: a second worker starts it while the first
// goes on, and the first result wins. A worker beyond twice the limit is taken for hung,
// and its stream closed. A task whose attempts have all failed is tried again after a
// pause that doubles, unless it is too large for any worker.
type race struct {
	f     *Fleet
	t     *workItem
	ctx   context.Context // while a result is wanted
	words chan word
	tried int
	with  []*link // that are at it
	// flying attempts have been started and have not ended.
	flying int
	limit  time.Duration
	hedge  *time.Timer // the youngest attempt is beyond its limit
	pause  *time.Timer // until the next attempt
}

// race runs a task on workers, until one has a result or none can.
func (f *Fleet) race(ctx context.Context, t *workItem) (*result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &race{f: f, t: t, ctx: ctx, words: make(chan word, 2*f.opt.Attempts), hedge: stopped(), pause: stopped()}
	defer r.hedge.Stop()
	defer r.pause.Stop()
	if !r.start() {
		return nil, errNobody
	}
	for {
		select {
		case w := <-r.words:
			switch {
			case w.began != nil:
				r.with = append(r.with, w.began)
				r.limit = w.limit
				r.hedge.Reset(w.limit)
			case w.err == nil:
				return w.res, nil
			default:
				if err := r.failed(w); err != nil {
					return nil, err
				}
			}
		case <-r.hedge.C:
			r.late()
		case <-r.pause.C:
			f.count(func(s *Stats) { s.Retries++ })
			if !r.start() {
				return nil, errNobody
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// stopped is a timer that has not been set.
func stopped() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// start begins an attempt. false: it has not, since the fleet is closed.
func (r *race) start() bool {
	if !r.f.enter() {
		return false
	}
	r.tried++
	r.flying++
	go func() {
		defer r.f.wg.Done()
		r.f.attempt(r)
	}()
	return true
}

// attempt runs the task on one worker. It may outlive the race, and then calls the task
// off.
func (f *Fleet) attempt(r *race) {
	l := f.acquire(r.ctx, &f.mu.crew, r.t)
	if l == nil {
		r.words <- word{err: errNobody}
		return
	}
	w := work{r.t.Pass, r.t.step, l.rooms[r.t.key] == nil}
	limit := f.times.limit(w, f.opt.Patience, f.opt.Floor)
	if !l.opened {
		limit = max(limit, f.opt.Patience)
	}
	r.words <- word{began: l, limit: limit}
	ctx, cancel := context.WithTimeoutCause(f.ctx, 2*limit, errSlow)
	defer cancel()
	res, err := l.do(ctx, r.ctx, r.t)
	f.mu.Lock()
	if err == nil {
		if l.tasks++; l.tasks == 1 {
			f.workedLocked()
		}
		f.mu.vain = time.Now()
		f.mu.stats.Tasks++
		if r.t.over.Load() {
			f.mu.stats.Late++
		}
	}
	f.mu.Unlock()
	f.release(l)
	r.words <- word{link: l, res: res, err: err}
}

// late hedges a task, if there are attempts left and not too many tasks are hedged
// already.
func (r *race) late() {
	if len(r.with) == 0 { // it has failed; the next one waits for a worker
		return
	}
	slow := r.with[len(r.with)-1]
	r.f.mu.Lock()
	if busy, there := r.f.mu.crew.links[slow]; there && !busy && !slow.slow {
		slow.slow = true
		r.f.mu.slow++
	}
	s := &r.f.mu.stats
	may := r.tried < r.f.opt.Attempts && s.Hedges < freeHedges+s.Tasks/hedgeShare
	if may {
		s.Hedges++
	}
	r.f.mu.Unlock()
	if may && r.start() {
		r.f.reports.add(engine.Hedged{Task: r.t.Task, Attempt: r.tried, Worker: slow.hello.Worker, After: r.limit.Seconds()})
	}
}

// Of all tasks at most one in hedgeShare is hedged, besides the first freeHedges: were it
// more, the workers would not be slow but too few.
const (
	hedgeShare = 10
	freeHedges = 4
)

// failed has another attempt made, unless one is under way. An error is the end.
func (r *race) failed(w word) error {
	r.flying--
	for i, l := range r.with {
		if l == w.link {
			r.with = append(r.with[:i:i], r.with[i+1:]...)
			break
		}
	}
	if r.flying > 0 {
		return nil
	}
	r.hedge.Stop()
	if r.tried >= r.f.opt.Attempts || errors.Is(w.err, errNobody) || errors.Is(w.err, ErrTooLarge) {
		return w.err
	}
	r.f.reports.add(engine.Retried{Task: r.t.Task, Attempt: r.tried + 1, Cause: w.err.Error()})
	r.pause.Reset(r.backOff())
	return nil
}

// backOff is the pause before the next attempt: twice as long each time, and for each
// task another, so that they do not come back together.
func (r *race) backOff() time.Duration {
	h := fnv.New32a()
	h.Write([]byte(r.t.Task.String()))
	full := min(r.f.opt.BackOff<<min(r.tried-1, 10), maxPause)
	return full/2 + full/2*time.Duration(h.Sum32()%1024)/1024
}

package fleet

import (
	"context"
	"slices"
	"time"

	"dorylus/lambda/plan"
)

// graceLocked is how long a task waits for its interval's home where that is busy: one
// usual task, which the home has under way, and as long as doing the task elsewhere would
// take in addition. That is bringing the shard, by its bytes on one worker's connection or
// by experience where that is more, and running those steps again whose results only the
// home has.
func (f *Fleet) graceLocked(t *workItem) time.Duration {
	usual, cold := f.times.usual(t.Pass, t.step)
	replay := len(t.plan.Replay(t.step, func(plan.Version) bool { return false }))
	bring := time.Duration(float64(f.mu.shardBytes[t.key]) / linkSpeed * float64(time.Second))
	return usual*time.Duration(1+replay) + max(bring, cold-usual)
}

// linkSpeed is what one Lambda worker's connection carries, in bytes per second.
const linkSpeed = 75e6

// acquire is a worker for a task, another than those that it is with. It calls for
// workers where there are too few, and waits. nil: there is none, and none will come, or
// ctx is done.
func (f *Fleet) acquire(ctx context.Context, p *pool, t *workItem) *link {
	f.mu.Lock()
	now := time.Now()
	w := &waiter{key: t.key, at: &t.at, until: now.Add(f.graceLocked(t)), got: make(chan *link, 1)}
	p.waiters = append(p.waiters, w)
	p.match(now)
	crew := p == &f.mu.crew
	if crew && len(w.got) == 0 {
		f.callLocked()
		f.despairLocked(false)
	}
	f.mu.Unlock()
	grace, patience := time.NewTimer(time.Until(w.until)), time.NewTimer(f.opt.GiveUp)
	defer grace.Stop()
	defer patience.Stop()
	if !crew { // the graph server's own cores are there, if busy
		patience.Stop()
	}
	for {
		select {
		case l := <-w.got:
			return l
		case <-grace.C:
			f.mu.Lock()
			p.match(time.Now())
			f.mu.Unlock()
		case <-patience.C:
			f.mu.Lock()
			f.despairLocked(true)
			f.mu.Unlock()
			patience.Reset(f.opt.GiveUp)
		case <-ctx.Done():
			f.forget(p, w)
			return nil
		}
	}
}

// forget takes a waiter back; a link that it has been given meanwhile goes to another.
func (f *Fleet) forget(p *pool, w *waiter) {
	f.mu.Lock()
	n := len(p.waiters)
	p.waiters = slices.DeleteFunc(p.waiters, func(x *waiter) bool { return x == w })
	waited := len(p.waiters) < n
	f.mu.Unlock()
	if waited {
		return
	}
	if l := <-w.got; l != nil {
		f.release(l)
	}
}

// release makes a link idle, or forgets it if its stream has ended.
func (f *Fleet) release(l *link) {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(l.holds)
	for k := range l.rooms {
		l.holds[k] = true
	}
	l.pool.free(l)
	if l.slow {
		l.slow = false
		f.mu.slow--
	}
	if _, there := l.pool.links[l]; !there {
		l.pool.match(time.Now())
		return
	}
	if l.dead() {
		l.pool.drop(l)
		return
	}
	l.pool.links[l] = true
	l.pool.match(time.Now())
	f.thinOutLocked()
}

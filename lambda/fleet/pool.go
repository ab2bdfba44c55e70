package fleet

import (
	"maps"
	"slices"
	"time"
)

// pool hands workers to tasks. All of it is guarded by the fleet's mutex.
//
// An interval's home is the worker that has done its last task: it holds the shard, and
// what the last steps have left. Where the home is idle, the task goes there. Where it is
// busy, the task waits for it for a usual task and as long as the move elsewhere would
// cost, and only then goes there (graceLocked): so it never loses much more than twice
// what the better choice would have cost. Elsewhere is a worker that holds the shard from
// earlier, else the one with the fewest, so that intervals spread evenly.
type pool struct {
	links   map[*link]bool // true: idle
	home    map[roomKey]*link
	waiters []*waiter
}

// waiter is an attempt that wants a worker.
type waiter struct {
	key roomKey
	at  *crowd // of the task: none of them will do
	// until is how long it waits for the interval's home.
	until time.Time
	got   chan *link // has room for one; nil: there is none, and none will come
}

// crowd is the workers that a task is with. It may come back to one that has failed.
type crowd struct{ links []*link }

func (c *crowd) has(l *link) bool { return slices.Contains(c.links, l) }

func newPool() pool { return pool{links: map[*link]bool{}, home: map[roomKey]*link{}} }

// match gives idle links to waiters: first to those who are at home there.
func (p *pool) match(now time.Time) {
	for _, pick := range []func(*waiter, time.Time) *link{p.atHome, p.elsewhere} {
		p.waiters = slices.DeleteFunc(p.waiters, func(w *waiter) bool {
			l := pick(w, now)
			if l == nil {
				return false
			}
			p.links[l], p.home[w.key] = false, l
			l.holds[w.key] = true // soon
			l.at, w.at.links = w.at, append(w.at.links, l)
			w.got <- l
			return true
		})
	}
}

// atHome is the interval's home, if it is idle.
func (p *pool) atHome(w *waiter, _ time.Time) *link {
	if l := p.home[w.key]; p.links[l] && !w.at.has(l) {
		return l
	}
	return nil
}

// elsewhere is an idle link for a waiter that need not wait for its home.
func (p *pool) elsewhere(w *waiter, now time.Time) *link {
	home := p.home[w.key]
	if _, there := p.links[home]; there && now.Before(w.until) && !w.at.has(home) {
		return nil
	}
	if l := p.best(func(l *link, idle bool) bool { return idle && l.holds[w.key] && !w.at.has(l) }); l != nil {
		return l
	}
	return p.best(func(l *link, idle bool) bool { return idle && !w.at.has(l) })
}

// best is the link with the fewest shards, and of those the one that came first, among
// those that fit.
func (p *pool) best(fit func(l *link, idle bool) bool) *link {
	var best *link
	for l, idle := range p.links {
		if !fit(l, idle) {
			continue
		}
		if best == nil || len(l.holds) < len(best.holds) || len(l.holds) == len(best.holds) && l.hello.Worker < best.hello.Worker {
			best = l
		}
	}
	return best
}

// free ends what a link had to do.
func (p *pool) free(l *link) {
	if l.at != nil {
		l.at.links = slices.DeleteFunc(l.at.links, func(x *link) bool { return x == l })
		l.at = nil
	}
}

// drop forgets a link.
func (p *pool) drop(l *link) {
	delete(p.links, l)
	maps.DeleteFunc(p.home, func(_ roomKey, at *link) bool { return at == l })
}

// dismiss tells all who wait that nobody will come.
func (p *pool) dismiss() {
	for _, w := range p.waiters {
		w.got <- nil
	}
	p.waiters = nil
}

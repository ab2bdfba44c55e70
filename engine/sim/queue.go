package sim

import "math"

// instant is a moment, or a length of time, in nanoseconds of virtual time.
type instant int64

func instantOf(seconds float64) instant { return instant(math.Round(seconds * 1e9)) }

func (t instant) seconds() float64 { return float64(t) / 1e9 }

// event is something that happens at a moment; those of one moment happen in the order in
// which they were planned.
type event struct {
	at instant
	n  int64
	do func()
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.n < o.n }

// queue is what is going to happen: a heap.
type queue struct {
	now    instant
	n      int64
	events []event
}

// at plans do for a moment that is not past.
func (q *queue) at(t instant, do func()) {
	q.n++
	q.events = append(q.events, event{max(t, q.now), q.n, do})
	for i := len(q.events) - 1; i > 0; {
		up := (i - 1) / 2
		if !q.events[i].before(&q.events[up]) {
			break
		}
		q.events[i], q.events[up] = q.events[up], q.events[i]
		i = up
	}
}

// next lets the next event happen; false: there is none.
func (q *queue) next() bool {
	last := len(q.events) - 1
	if last < 0 {
		return false
	}
	first := q.events[0]
	q.events[0], q.events[last] = q.events[last], event{}
	q.events = q.events[:last]
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < last; c++ {
			if q.events[c].before(&q.events[least]) {
				least = c
			}
		}
		if least == i {
			break
		}
		q.events[i], q.events[least] = q.events[least], q.events[i]
		i = least
	}
	q.now = first.at
	first.do()
	return true
}

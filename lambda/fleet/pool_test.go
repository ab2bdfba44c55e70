package fleet

import (
	"fmt"
	"testing"
	"time"

	"dorylus/engine"
	"dorylus/lambda/wire"
)

// deck is a pool with idle links numbered from 1.
func deck(n int) (*pool, []*link) {
	p := newPool()
	var links []*link
	for i := range n {
		l := &link{hello: wire.Hello{Worker: i + 1}, holds: map[roomKey]bool{}, gone: make(chan struct{})}
		p.links[l] = true
		links = append(links, l)
	}
	return &p, links
}

// ask has a task of an interval wait until a time; not are excluded.
func ask(p *pool, interval int, until time.Time, not ...*link) *waiter {
	w := &waiter{key: roomKey{engine.Training, interval}, until: until, at: &crowd{not}, got: make(chan *link, 1)}
	p.waiters = append(p.waiters, w)
	return w
}

// given is the number of the link that a waiter has been given, 0 for none.
func given(w *waiter) int {
	select {
	case l := <-w.got:
		return l.hello.Worker
	default:
		return 0
	}
}

func expect(t *testing.T, what string, got, want int) {
	t.Helper()
	if got != want {
		t.Errorf("%s: worker %d, want %d (0: none)", what, got, want)
	}
}

func TestPoolSpreadsIntervalsAndSendsThemHome(t *testing.T) {
	p, links := deck(3)
	now := time.Unix(100, 0)
	var ws []*waiter
	for i := range 3 {
		ws = append(ws, ask(p, i, now))
	}
	p.match(now)
	for i, w := range ws {
		expect(t, fmt.Sprintf("interval %d, which nobody holds", i), given(w), i+1)
	}
	for _, l := range links {
		p.links[l] = true
	}
	for i := 2; i >= 0; i-- {
		w := ask(p, i, now)
		p.match(now)
		expect(t, fmt.Sprintf("interval %d again", i), given(w), i+1)
	}
}

func TestPoolWaitsForTheHomeAWhile(t *testing.T) {
	p, links := deck(2)
	now := time.Unix(100, 0)
	first := ask(p, 7, now)
	p.match(now)
	expect(t, "the first task", given(first), 1)
	until := now.Add(time.Second)
	second, other := ask(p, 7, until), ask(p, 8, now)
	p.match(now)
	expect(t, "a task whose home is busy", given(second), 0)
	expect(t, "a task behind it with no home", given(other), 2)
	p.links[links[1]] = true
	p.match(until.Add(-1))
	expect(t, "the same within the time", given(second), 0)
	p.match(until)
	expect(t, "the same after the time", given(second), 2)
	if p.home[second.key] != links[1] {
		t.Errorf("interval 7 is at home with %v, want worker 2", p.home[second.key])
	}
	// The one that holds the shard from earlier comes before others.
	p.links[links[0]] = true
	p.drop(links[1])
	p3 := &link{hello: wire.Hello{Worker: 3}, holds: map[roomKey]bool{}}
	p.links[p3] = true
	third := ask(p, 7, until)
	p.match(now)
	expect(t, "a task whose home is gone", given(third), 1)
}

func TestPoolNeverGivesATaskAWorkerThatHasItAlready(t *testing.T) {
	p, links := deck(1)
	now := time.Unix(100, 0)
	hedge := ask(p, 0, now, links[0])
	p.match(now)
	expect(t, "a hedge with no second worker", given(hedge), 0)
	l := &link{hello: wire.Hello{Worker: 2}, holds: map[roomKey]bool{}}
	p.links[l] = true
	p.match(now)
	expect(t, "a hedge with a second worker", given(hedge), 2)
	// It goes back to the first worker once that has failed.
	last := ask(p, 0, now)
	last.at = hedge.at
	links[0].at = hedge.at
	p.links[links[0]] = true
	p.match(now)
	expect(t, "a third attempt while two are at it", given(last), 0)
	p.free(links[0])
	p.match(now)
	expect(t, "the same when the first has failed", given(last), 1)
	w := ask(p, 1, now)
	p.dismiss()
	if l, ok := <-w.got; l != nil || !ok || len(p.waiters) > 0 {
		t.Errorf("a dismissed waiter was given %v; %d wait", l, len(p.waiters))
	}
}

func TestReportsAreBoundedButForTheBill(t *testing.T) {
	r := newReports()
	for i := range maxReports + 10 {
		r.add(engine.WorkerCame{Worker: i})
		r.add(engine.LambdaUsed{BilledMS: int64(i)})
	}
	r.add(engine.LambdaHeld{Invocations: 1})
	r.add(engine.LambdaHeld{Invocations: 2})
	count := map[string]int{}
	list := r.take()
	for _, e := range list {
		count[e.Kind()]++
	}
	if count["worker_came"] != maxReports || count["lambda_used"] != maxReports+10 || count["lambda_held"] != 1 || count["warning"] != 1 {
		t.Errorf("got %v, want %d, all %d, the last of 2, 1 warning", count, maxReports, maxReports+10)
	}
	select {
	case <-r.bell:
		t.Error("the bell rings for nothing")
	default:
	}
	if len(r.take()) > 0 {
		t.Error("events are given twice")
	}
	r.add(engine.WorkerCame{})
	select {
	case <-r.bell:
	default:
		t.Error("the bell does not ring")
	}
}

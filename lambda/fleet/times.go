package fleet

import (
	"sync"
	"time"

	"dorylus/engine"
)

// work names tasks that take about the same time: cold ones bring a shard along.
type work struct {
	pass engine.Pass
	step int
	cold bool
}

// times are how long tasks usually take once a worker has been found for them.
type times struct {
	mu   sync.Mutex
	mean map[work]time.Duration
}

func newTimes() *times { return &times{mean: map[work]time.Duration{}} }

// note takes one more into the moving average.
func (t *times) note(w work, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, ok := t.mean[w]
	if !ok {
		t.mean[w] = took
		return
	}
	t.mean[w] = m + (took-m)/8
}

// limit is how long to wait for a task: patience without experience, else eight times
// the usual time, at least floor.
func (t *times) limit(w work, patience, floor time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, ok := t.mean[w]
	if !ok {
		return patience
	}
	return max(8*m, floor)
}

// moving is how much longer a task takes where the shard has to be brought first, as
// far as is known.
func (t *times) moving(pass engine.Pass, step int) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	warm, ok := t.mean[work{pass, step, false}]
	cold, both := t.mean[work{pass, step, true}]
	if !ok || !both {
		return 0
	}
	return max(cold-warm, 0)
}

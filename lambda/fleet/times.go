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

// usual is how long a task takes where the shard is there, and where it has to be brought
// first; 0 where that is not known.
func (t *times) usual(pass engine.Pass, step int) (warm, cold time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mean[work{pass, step, false}], t.mean[work{pass, step, true}]
}

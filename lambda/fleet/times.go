package fleet

import (
	"sync"
	"time"
)

// times are how long tasks of each step usually take.
type times struct {
	mu   sync.Mutex
	mean map[int]time.Duration
}

func newTimes() *times { return &times{mean: map[int]time.Duration{}} }

// note takes one more into the moving average.
func (t *times) note(step int, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, ok := t.mean[step]
	if !ok {
		t.mean[step] = took
		return
	}
	t.mean[step] = m + (took-m)/8
}

// limit is how long to wait for a task: patience without experience, else eight times
// the usual time, at least floor.
func (t *times) limit(step int, patience, floor time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, ok := t.mean[step]
	if !ok {
		return patience
	}
	return max(8*m, floor)
}

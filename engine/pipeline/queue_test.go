package pipeline

import (
	"context"
	"math/rand/v2"
	"testing"

	"dorylus/engine/task"
)

// Jobs are taken by their turn, and within it as they came.
func TestQueueTakesOldEpochsFirst(t *testing.T) {
	const n = 300
	rng := rand.New(rand.NewPCG(1, 9))
	q := newQueue(n)
	for i := range n {
		q.put(job{turn: rng.IntN(5), t: task.Task{ID: task.ID{Interval: i}}})
	}
	ctx, cancel := context.WithCancel(t.Context())
	last := job{turn: -1}
	for i := range n {
		j, ok := q.take(ctx)
		if !ok || q.len() != n-1-i {
			t.Fatalf("job %d: %v, and %d are left", i, ok, q.len())
		}
		if j.turn < last.turn || j.turn == last.turn && j.t.ID.Interval < last.t.ID.Interval {
			t.Errorf("turn %d, interval %d came after turn %d, interval %d", j.turn, j.t.ID.Interval, last.turn, last.t.ID.Interval)
		}
		last = j
	}
	cancel()
	if _, ok := q.take(ctx); ok {
		t.Error("an empty queue gave a job")
	}
}

package pipeline

import (
	"cmp"
	"container/heap"
	"context"
	"sync"
)

// queue is what waits for a core of the graph server: the oldest epoch first, and within
// it what came first. An async run that took its tasks as they come would let intervals run
// ahead that nobody waits for, and read older rows and weights than it must: running ahead
// is for cores that have nothing older to do.
type queue struct {
	some chan struct{} // one for each job

	mu   sync.Mutex
	jobs byTurn
	came int
}

// newQueue has room for n jobs.
func newQueue(n int) *queue { return &queue{some: make(chan struct{}, n)} }

func (q *queue) put(j job) {
	q.mu.Lock()
	heap.Push(&q.jobs, queued{j, q.came})
	q.came++
	q.mu.Unlock()
	q.some <- struct{}{}
}

// take waits for a job; false: ctx has ended.
func (q *queue) take(ctx context.Context) (job, bool) {
	select {
	case <-q.some:
	case <-ctx.Done():
		return job{}, false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return heap.Pop(&q.jobs).(queued).job, true
}

func (q *queue) len() int { return len(q.some) }

// queued is a job and how many came before it.
type queued struct {
	job
	came int
}

// byTurn implements heap.Interface.
type byTurn []queued

func (b byTurn) Len() int      { return len(b) }
func (b byTurn) Swap(i, k int) { b[i], b[k] = b[k], b[i] }
func (b *byTurn) Push(x any)   { *b = append(*b, x.(queued)) }

func (b byTurn) Less(i, k int) bool {
	return cmp.Or(cmp.Compare(b[i].turn, b[k].turn), cmp.Compare(b[i].came, b[k].came)) < 0
}

func (b *byTurn) Pop() any {
	last := len(*b) - 1
	q := (*b)[last]
	(*b)[last] = queued{} // lets go of the pass
	*b = (*b)[:last]
	return q
}

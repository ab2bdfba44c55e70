//go:build cgo && amd64 && linux

package main

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"dorylus/kernels"

	"golang.org/x/sys/unix"
)

// A variant is one way to do a piece of work that is cut into jobs, which workers
// pull off a counter. Times are CPU times of the workers' threads, and their mean
// is what counts: other load on the machine makes one worker pull more than its
// share, but does not count itself.
type variant struct {
	name    string
	jobs    int
	workers int
	run     func(worker, job int)

	byLongest bool // the best round is the one whose longest worker was shortest

	best  time.Duration // the longest worker in the best round
	total time.Duration // all workers in the best round
}

// perWorker is the mean CPU time of a worker in the best round, in nanoseconds.
func (v *variant) perWorker() float64 { return float64(v.total) / float64(v.workers) }

// compete runs the variants in turn, rounds times, and keeps each one's best.
func compete(rounds int, vs ...*variant) {
	for range rounds {
		for _, v := range vs {
			longest, total := v.once()
			if v.best == 0 || total < v.total && !v.byLongest || longest < v.best && v.byLongest {
				v.best, v.total = longest, total
			}
		}
	}
}

func (v *variant) once() (longest, total time.Duration) {
	var next atomic.Int64
	spent := make([]time.Duration, v.workers)
	var wg sync.WaitGroup
	for w := range v.workers {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			start := threadTime()
			for {
				job := int(next.Add(1)) - 1
				if job >= v.jobs {
					break
				}
				v.run(w, job)
			}
			spent[w] = threadTime() - start
		})
	}
	wg.Wait()
	for _, s := range spent {
		longest = max(longest, s)
		total += s
	}
	return longest, total
}

// threadTime is the CPU time of the calling thread.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(fmt.Sprintf("read the thread's clock: %v", err))
	}
	return time.Duration(t.Nano())
}

// spans cuts rows into runs of about the given number of edges.
func spans(g *kernels.CSR, rows kernels.Span, edges int64) []kernels.Span {
	var cut []kernels.Span
	lo := rows.Lo
	for v := rows.Lo; v < rows.Hi; v++ {
		if g.RowPtr[v+1]-g.RowPtr[lo] >= edges || v+1 == rows.Hi {
			cut = append(cut, kernels.Span{Lo: lo, Hi: v + 1})
			lo = v + 1
		}
	}
	return cut
}

package pipeline

import (
	"sync"

	"dorylus/engine/graph"
	"dorylus/engine/task"
	"dorylus/kernels"
)

// published are the rows of one buffer as other intervals read them.
//
// In a sync run they are the interval's own rows: the scheduler lets nobody read
// them before they are done, nor lets the next epoch write them before all have
// read them. In an async run an interval computes its next rows while others
// still gather the last ones, so the rows have memory of their own, and a latch
// per interval keeps a gather from seeing half of a publication. A gather holds
// the latches of its sources, in ascending order, for the length of its native
// call; a publication holds one latch for the length of a copy. Making the
// gather read without latches would need a second copy of the rows and an
// indirection per edge.
type published struct {
	rows  *kernels.Mat
	spans []kernels.Span // by interval
	latch []latch        // by interval; nil where the scheduler alone keeps order
}

type latch struct {
	sync.RWMutex
	epoch int // of the rows; -1: none yet. Guarded by the latch.
}

func newPublished(rows *kernels.Mat, level *graph.Level, intervals []task.Range, latched bool) published {
	p := published{rows: rows, spans: make([]kernels.Span, len(intervals))}
	for i, r := range intervals {
		p.spans[i] = level.Span(r)
	}
	if latched {
		p.latch = make([]latch, len(intervals))
		for i := range p.latch {
			p.latch[i].epoch = -1
		}
	}
	return p
}

// read holds the sources' latches while f gathers, and adds the ages of their
// rows, in epochs before the reader's, to age.
func (p *published) read(sources []int32, epoch int, age []int64, f func()) []int64 {
	for _, j := range sources {
		l := &p.latch[j]
		l.RLock()
		a := max(epoch-l.epoch, 0)
		for len(age) <= a {
			age = append(age, 0)
		}
		age[a]++
	}
	f()
	for _, j := range sources {
		p.latch[j].RUnlock()
	}
	return age
}

// write publishes rows of an interval and epoch with set, unless newer ones are
// there already. It reports whether it did.
func (p *published) write(interval, epoch int, set func()) bool {
	l := &p.latch[interval]
	l.Lock()
	defer l.Unlock()
	if epoch <= l.epoch {
		return false
	}
	set()
	l.epoch = epoch
	return true
}

package pipeline

import (
	"sync"

	"dorylus/engine"
	"dorylus/engine/graph"
	"dorylus/kernels"
)

// published are the rows of one buffer as other intervals read them.
//
// In a sync run they are the interval's own rows: the scheduler lets nobody read
// them before they are done, nor lets the next epoch write them before all have
// read them. In an async run an interval computes its next rows while others
// still gather the last ones, so the rows have memory of their own, and a latch
// per interval keeps a gather from seeing half of a publication. A gather holds
// the latches of its sources for the length of its native call. A publication
// that finds readers does not wait for them, it would hold a core idle: it is left
// with the latch, and the last of the readers makes it. Making the gather read
// without latches would need a second copy of the rows and an indirection per
// edge.
type published struct {
	rows  *kernels.Mat
	spans []kernels.Span // by interval
	latch []latch        // by interval; nil where the scheduler alone keeps order
	ends  []int          // by partition: the interval behind its last one
}

type latch struct {
	mu      sync.Mutex // held for no longer than a copy takes
	epoch   int        // of the rows; -1: none yet
	readers int
	left    *publication // for the last reader; nil: none
}

// publication sets rows of an interval.
type publication struct {
	epoch int
	set   func(kernels.Stream) error
	// made is called when the publication was left and then made, by whoever made it.
	made func(error)
	// gone is called when it was left and a newer one took its place; nil: nobody is.
	gone func()
}

// publish makes rows of a level the ones that others read.
func (p *pass) publish(rows *kernels.Mat, level *graph.Level, latched bool) published {
	pub := published{rows: rows, spans: make([]kernels.Span, len(p.intervals)), ends: p.ends}
	for i, r := range p.intervals {
		pub.spans[i] = level.Span(r)
	}
	if latched {
		pub.latch = make([]latch, len(p.intervals))
		for i := range pub.latch {
			pub.latch[i].epoch = -1
		}
	}
	return pub
}

// read holds the latches of the sources, ascending, while f gathers, and counts the
// sources by the partitions that have them and by the ages of their rows, in epochs
// before the reader's. s is the reader's stream.
func (p *published) read(s kernels.Stream, sources []int32, epoch int, f func()) engine.Ages {
	ages, part := engine.NewAges(len(p.ends)), 0
	for _, j := range sources {
		for int(j) >= p.ends[part] {
			part++
		}
		l := &p.latch[j]
		l.mu.Lock()
		l.readers++
		age := max(epoch-l.epoch, 0)
		l.mu.Unlock()
		ages.Count(part, age, 1)
	}
	f()
	for _, j := range sources {
		p.latch[j].release(s)
	}
	return ages
}

// release ends one reader's hold, and makes what was left.
func (l *latch) release(s kernels.Stream) {
	l.mu.Lock()
	l.readers--
	w := l.left
	if w == nil || l.readers > 0 {
		l.mu.Unlock()
		return
	}
	l.left = nil
	err := l.make(s, w)
	l.mu.Unlock()
	w.made(err)
}

// make makes a publication. The latch is held.
func (l *latch) make(s kernels.Stream, w *publication) error {
	err := w.set(s)
	if err == nil {
		l.epoch = w.epoch
	}
	return err
}

// What became of a publication.
type fate int

const (
	dropped fate = iota // newer rows are there
	made                // it was made
	left                // the last of those who read now will make it
)

// write publishes rows of an interval, unless newer ones are there already.
func (p *published) write(s kernels.Stream, interval int, w publication) (fate, error) {
	l := &p.latch[interval]
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case w.epoch <= l.epoch, l.left != nil && w.epoch <= l.left.epoch:
		return dropped, nil
	case l.readers > 0:
		if l.left != nil && l.left.gone != nil {
			l.left.gone()
		}
		l.left = &w // an older one that waits is not news any more
		return left, nil
	}
	return made, l.make(s, &w)
}

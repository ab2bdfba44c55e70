package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"dorylus/engine"
	"dorylus/engine/graph"
	"dorylus/kernels"
)

// inbox takes what other partitions send for as long as the run lives, so that nobody
// waits for this one to read: it publishes rows at once and keeps a note of each message
// for the goroutine that owns the scheduler.
type inbox struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
	some   chan struct{} // capacity 1: there may be notes

	mu    sync.Mutex
	notes []note
}

// note is a message from another partition whose rows are published.
type note struct {
	m    *engine.RowMsg // without its data
	news bool
	err  error // the last note: nothing comes any more
}

// listen starts an inbox.
func (t *trainer) listen() error {
	s, err := t.eval.pass.dev.NewStream()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.inbox = &inbox{cancel: cancel, some: make(chan struct{}, 1)}
	if x, ok := t.exchange.(engine.Expecter); ok {
		x.Expect(t.wants)
		t.inbox.cancel = func() { x.Expect(nil); cancel() }
	}
	t.inbox.done.Go(func() {
		defer s.Close()
		for ctx.Err() == nil {
			m, err := t.exchange.Recv(ctx)
			if ctx.Err() != nil {
				return
			}
			n := note{m: m, err: err}
			if err == nil && !m.Finished {
				n.news, n.err = t.receive(s, m)
			}
			t.inbox.add(n)
			if n.err != nil {
				return
			}
		}
	})
	return nil
}

func (b *inbox) add(n note) {
	if n.m != nil {
		short := *n.m
		short.Data, short.Mat = nil, nil
		n.m = &short
	}
	b.mu.Lock()
	b.notes = append(b.notes, n)
	b.mu.Unlock()
	select {
	case b.some <- struct{}{}:
	default:
	}
}

// take gives the notes since the last call.
func (b *inbox) take() []note {
	b.mu.Lock()
	defer b.mu.Unlock()
	notes := b.notes
	b.notes = nil
	return notes
}

// close ends the listening.
func (b *inbox) close() {
	if b != nil {
		b.cancel()
		b.done.Wait()
	}
}

// wants says what is wrong with a message of another partition, n rows or the end of an
// interval. It is asked before the rows themselves have come.
func (t *trainer) wants(m *engine.RowMsg, n int) error {
	p := t.train
	if m.Pass == engine.Evaluation {
		p = t.eval.pass
	}
	if p == nil {
		return errors.New("nothing is trained here")
	}
	return p.wants(m, n)
}

// receive publishes another partition's rows. It reports whether they are news; where
// they are left with those who read, a note of their own says so later.
func (t *trainer) receive(s kernels.Stream, m *engine.RowMsg) (bool, error) {
	n := 0
	switch {
	case m.Mat != nil:
		n = m.Mat.Rows
	case m.Cols > 0:
		n = len(m.Data) / m.Cols
	}
	err := t.wants(m, n)
	if err == nil && m.Mat == nil && len(m.Data) != n*m.Cols {
		err = fmt.Errorf("%d values in rows of %d", len(m.Data), m.Cols)
	}
	if err != nil {
		return false, fmt.Errorf("rows of interval %d, step %d, epoch %d from server %d: %w", m.Interval, m.Step, m.Epoch, m.From, err)
	}
	p := t.train
	if m.Pass == engine.Evaluation {
		p = t.eval.pass
	}
	pub, rows := &p.pub[p.steps[m.Step].Publish], p.routes[m.Step].recv[m.Interval]
	cols := m.Cols
	free := func() {
		if f, ok := t.exchange.(engine.Ferry); ok && m.Mat != nil {
			f.Free(m.Mat)
		}
	}
	fate, err := pub.write(s, m.Interval, publication{
		epoch: m.Epoch,
		set: func(s kernels.Stream) error {
			defer free()
			if m.Mat != nil {
				s.ScatterRows(pub.rows, m.Mat, rows)
				return s.Wait()
			}
			data := p.localRefs(m)
			for lo := 0; lo < len(rows); {
				hi := lo + 1
				for hi < len(rows) && rows[hi] == rows[hi-1]+1 {
					hi++
				}
				s.Put(pub.rows.Sub(kernels.Span{Lo: int(rows[lo]), Hi: int(rows[lo]) + hi - lo}), data[lo*cols:hi*cols])
				lo = hi
			}
			return s.Wait()
		},
		made: func(err error) { t.inbox.add(note{m: m, news: true, err: err}) },
		gone: free,
	})
	if fate == dropped {
		free()
	}
	return fate == made, err
}

// localRefs is a message's data with references to rows as this partition numbers them.
func (p *pass) localRefs(m *engine.RowMsg) []float32 {
	spec := &p.prog.Bufs[p.steps[m.Step].Publish]
	if spec.RefHi == 0 {
		return m.Data
	}
	data := slices.Clone(m.Data) // it is the sender's in one process
	p.refs(spec, data, func(l *graph.Level, v int32) int32 {
		if l.Rows == nil {
			return v
		}
		if at, found := slices.BinarySearch(l.Rows, v); found {
			return int32(at)
		}
		return -1 // a row that this partition does not hold is none of its own
	})
	return data
}

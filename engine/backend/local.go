// Package backend runs a model's tensor stages on a kernels.Device: the graph
// server's own cores, or a GPU.
package backend

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"dorylus/engine"
	"dorylus/kernels"
)

// Local runs tensor tasks on the device that also runs the graph tasks.
type Local struct {
	dev kernels.Device

	mu struct {
		sync.Mutex
		free []*bench
	}
}

// bench is what one running task works with: a stream and scratch matrices.
type bench struct {
	dev     kernels.Device
	stream  kernels.Stream
	scratch []*kernels.Mat
	err     error
}

// NewLocal is a backend on dev. It does not own dev.
func NewLocal(dev kernels.Device) *Local { return &Local{dev: dev} }

// Name implements engine.Backend.
func (l *Local) Name() string { return l.dev.Name() }

// Local implements engine.Backend.
func (l *Local) Local() bool { return true }

// Slots implements engine.Backend.
func (l *Local) Slots() int { return 0 }

// Run implements engine.Backend.
func (l *Local) Run(ctx context.Context, w *engine.Work) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b, err := l.take()
	if err != nil {
		return fmt.Errorf("run %v: %w", w.Task, err)
	}
	defer l.put(b)
	for _, c := range w.Blocks {
		c.S, c.Scratch = b.stream, b.get
		for _, op := range w.Ops {
			op(c)
		}
	}
	if err := errors.Join(b.err, b.stream.Wait()); err != nil {
		b.err = nil
		return fmt.Errorf("run %v: %w", w.Task, err)
	}
	return nil
}

func (l *Local) take() (*bench, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.mu.free); n > 0 {
		b := l.mu.free[n-1]
		l.mu.free = l.mu.free[:n-1]
		return b, nil
	}
	s, err := l.dev.NewStream()
	if err != nil {
		return nil, err
	}
	return &bench{dev: l.dev, stream: s}, nil
}

func (l *Local) put(b *bench) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.free = append(l.mu.free, b)
}

// get is model.Ctx.Scratch: the slot's matrix, grown where it is too small.
func (b *bench) get(slot, rows, cols int) *kernels.Mat {
	for len(b.scratch) <= slot {
		b.scratch = append(b.scratch, nil)
	}
	m := b.scratch[slot]
	if m == nil || m.Rows < rows || m.Cols != cols {
		if m != nil {
			b.dev.Free(m)
			b.scratch[slot] = nil
		}
		grown, err := b.dev.Alloc(rows, cols)
		if err != nil {
			// The op goes on in ordinary memory; Run reports the error.
			b.err = err
			return kernels.FromSlice(rows, cols, make([]float32, rows*cols))
		}
		b.scratch[slot], m = grown, grown
	}
	return m.Sub(kernels.Span{Hi: rows})
}

// Close frees streams and scratch. No Run may be under way.
func (l *Local) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, b := range l.mu.free {
		for _, m := range b.scratch {
			if m != nil {
				b.dev.Free(m)
			}
		}
		errs = append(errs, b.stream.Close())
	}
	l.mu.free = nil
	return errors.Join(errs...)
}

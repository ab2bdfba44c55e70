// Package backend runs a model's tensor stages on a kernels.Device: the graph
// server's own cores, or a GPU.
package backend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"dorylus/engine"
	"dorylus/engine/model"
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
	old     []*kernels.Mat // outgrown, freed after the task
	// Of sums.go: spare gradients by parameter, and all that were made.
	grads map[int][]*kernels.Mat
	made  []*kernels.Mat

	losses []func() // of together.go: what is to be done when the stream is
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
	b.losses = b.losses[:0]
	if err := errors.Join(b.run(w), b.stream.Wait()); err != nil {
		return fmt.Errorf("run %v: %w", w.Task, err)
	}
	for _, tell := range b.losses {
		tell()
	}
	return nil
}

// noMemory is what alloc leaves run by: ops have no way to return an error.
type noMemory struct{ error }

// run queues all of the work, up to an allocation that fails.
func (b *bench) run(w *engine.Work) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case noMemory:
			err = p.error
		default:
			panic(p)
		}
	}()
	rest := w.Blocks
	for _, run := range w.Sums {
		rest, _ = b.sum(w, run, rest)
	}
	for len(rest) > 0 {
		n := b.fitting(w, rest)
		b.doAll(w, rest[:n], rest[0].Block)
		rest = rest[n:]
	}
	return nil
}

// do queues the work of one block.
func (b *bench) do(w *engine.Work, c *model.Ctx) {
	c.S, c.Scratch = b.stream, b.get
	for _, op := range w.Ops {
		op(c)
	}
}

// alloc is a matrix of the device, or the end of run.
func (b *bench) alloc(purpose kernels.Purpose, rows, cols int) *kernels.Mat {
	m, err := kernels.AllocFor(b.dev, purpose, rows, cols)
	if err != nil {
		panic(noMemory{err})
	}
	return m
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
	for _, m := range b.old {
		b.dev.Free(m)
	}
	b.old = nil
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
			b.old, b.scratch[slot] = append(b.old, m), nil // ops that use it may be queued
		}
		m = b.alloc(kernels.Other, rows, cols)
		b.scratch[slot] = m
	}
	return m.Sub(kernels.Span{Hi: rows})
}

// Close frees streams and scratch. No Run may be under way.
func (l *Local) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, b := range l.mu.free {
		for _, m := range slices.Concat(b.scratch, b.made) {
			b.dev.Free(m)
		}
		errs = append(errs, b.stream.Close())
	}
	l.mu.free = nil
	return errors.Join(errs...)
}

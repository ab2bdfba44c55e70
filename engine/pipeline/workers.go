package pipeline

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"dorylus/kernels"
)

// workers are the streams of the graph server's cores, one each.
type workers struct {
	n       int
	streams []kernels.Stream
}

func newWorkers(dev kernels.Device, n int) (*workers, error) {
	w := &workers{n: n}
	for range n {
		s, err := dev.NewStream()
		if err != nil {
			return nil, errors.Join(err, w.close())
		}
		w.streams = append(w.streams, s)
	}
	return w, nil
}

// each runs f on all workers over [0,n) in pieces of at most size rows, outside
// of any run. The first error is returned.
func (w *workers) each(n, size int, f func(kernels.Stream, kernels.Span) error) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for _, s := range w.streams {
		wg.Go(func() {
			for ctx.Err() == nil {
				lo := int(next.Add(int64(size))) - size
				if lo >= n {
					return
				}
				if err := f(s, kernels.Span{Lo: lo, Hi: min(lo+size, n)}); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

func (w *workers) close() error {
	var errs []error
	for _, s := range w.streams {
		errs = append(errs, s.Close())
	}
	w.streams = nil
	return errors.Join(errs...)
}

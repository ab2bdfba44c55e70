package pipeline

import (
	"context"
	"sync"

	"dorylus/engine"
	"dorylus/engine/task"
	"dorylus/kernels"
)

// forward runs the evaluation pass once with the given weights, step by step,
// outside of any schedule.
func (t *trainer) forward(ctx context.Context, w engine.Weights) error {
	p := t.eval.pass
	epoch := t.eval.runs // no task of an earlier evaluation has the same ID
	t.eval.runs++
	var events sync.Mutex
	for s, step := range p.steps {
		err := t.workers.each(p.own.Len(), 1, func(st kernels.Stream, span kernels.Span) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			id := task.ID{Epoch: epoch, Interval: p.own.Lo + span.Lo, Step: s}
			x := task.Task{ID: id, Kind: step.Kind, Dir: step.Dir, Layer: step.Layer}
			for n := 1; ; n++ {
				_, err := t.exec(ctx, st, &job{p: p, t: x, weights: &w})
				if err == nil || !t.mayRetry(x, err, n) {
					return err
				}
				events.Lock()
				t.listener.Event(engine.Retried{Task: x, Attempt: n + 1, Cause: err.Error()})
				events.Unlock()
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

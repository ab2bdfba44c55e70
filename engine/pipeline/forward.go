package pipeline

import (
	"context"

	"dorylus/engine"
	"dorylus/engine/task"
	"dorylus/kernels"
)

// forward runs the evaluation pass once with the given weights, step by step,
// outside of any schedule.
func (t *trainer) forward(ctx context.Context, w engine.Weights) error {
	p := t.eval.pass
	for s, step := range p.steps {
		err := t.workers.each(p.own.Len(), 1, func(st kernels.Stream, span kernels.Span) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			id := task.ID{Interval: p.own.Lo + span.Lo, Step: s}
			_, err := t.exec(ctx, st, &job{p: p, t: task.Task{ID: id, Kind: step.Kind, Dir: step.Dir, Layer: step.Layer}, weights: &w})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

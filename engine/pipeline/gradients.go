package pipeline

import (
	"context"
	"errors"

	"dorylus/engine"
	"dorylus/engine/model"
	"dorylus/engine/params"
	"dorylus/engine/task"
)

// share is a run of blocks whose gradients come as one sum, and the block among them that
// gets it; nil: none of them has rows, and the sum is zero.
type share struct {
	blocks task.Range
	to     *model.Ctx
}

// shares cuts the blocks of an interval into runs, as the backend likes them, and makes
// room for the gradients of w's step. The graph has so many blocks.
func (t *trainer) shares(ctx context.Context, w *engine.Work, all []*model.Ctx, blocks int) ([]share, error) {
	if len(all) == 0 {
		return nil, nil
	}
	first := all[0].Block
	if s, ok := t.backend.(engine.Summer); ok && s.Sums() {
		if w.Sums = params.Subtrees(first, first+len(all)); s.Tails() {
			w.Sums = params.SubtreesOf(first, first+len(all), blocks)
		}
	}
	runs := w.Sums
	for i := 0; w.Sums == nil && i < len(all); i++ {
		runs = append(runs, task.Range{Lo: first + i, Hi: first + i + 1})
	}
	out, rest := make([]share, len(runs)), w.Blocks
	for i, run := range runs {
		out[i].blocks = run
		for ; len(rest) > 0 && rest[0].Block < run.Hi; rest = rest[1:] {
			if out[i].to == nil {
				out[i].to = rest[0]
			}
		}
	}
	for _, c := range all {
		for _, g := range w.Step.Grads {
			c.Grads[g] = nil
		}
	}
	for _, s := range out {
		for _, g := range w.Step.Grads {
			if s.to == nil {
				continue
			}
			m := t.params.Buffer(g)
			if m.Host != nil && !t.hosted { // there was no memory for it: the server has failed
				_, err := t.params.Fetch(ctx, w.Task.Interval, w.Task.Epoch)
				return nil, errors.Join(errors.New("there is no room for a gradient"), err)
			}
			s.to.Grads[g] = m
		}
	}
	return out, nil
}

// taken are a step's gradients as they are handed over.
func taken(shares []share, step *model.Step) []engine.BlockGrad {
	var out []engine.BlockGrad
	for _, s := range shares {
		for _, g := range step.Grads {
			b := engine.BlockGrad{Param: g, Block: s.blocks.Lo, Span: s.blocks.Len()}
			if s.to != nil {
				b.G, s.to.Grads[g] = s.to.Grads[g], nil
			}
			out = append(out, b)
		}
	}
	return out
}

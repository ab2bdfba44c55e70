package backend

import (
	"dorylus/engine"
	"dorylus/engine/model"
	"dorylus/engine/task"
	"dorylus/kernels"
)

// Where ops are queued for a device, waiting for it costs more than an addition: the
// gradients of an interval's blocks are added up there, in the tree that the parameter
// server would add them in, and go to it as few sums.

// Sums implements engine.Summer: on a device whose memory the host cannot address.
func (l *Local) Sums() bool {
	_, far := l.dev.(kernels.Keeper)
	return far
}

// Tails implements engine.Summer.
func (l *Local) Tails() bool { return true }

// sum runs the blocks of a run, which is all that is below a node of the tree, and leaves
// the sum of their gradients in those of the first block that has any. It returns the
// rest of the blocks, and the block that has the sum, nil if none of the run is there.
func (b *bench) sum(w *engine.Work, run task.Range, blocks []*model.Ctx) (rest []*model.Ctx, has *model.Ctx) {
	if len(blocks) == 0 || blocks[0].Block >= run.Hi {
		return blocks, nil // its rows are none: it adds nothing
	}
	n := 1
	for n < len(blocks) && blocks[n].Block < run.Hi {
		n++
	}
	if c := blocks[0]; run.Len() == 1 || n <= b.fitting(w, blocks[:n]) && n > 1 {
		b.lend(w, c)
		b.doAll(w, blocks[:n], run.Lo)
		return blocks[n:], c
	}
	half := 1 // the left child's; the right one may have fewer
	for 2*half < run.Len() {
		half *= 2
	}
	rest, left := b.sum(w, task.Range{Lo: run.Lo, Hi: run.Lo + half}, blocks)
	rest, right := b.sum(w, task.Range{Lo: run.Lo + half, Hi: run.Hi}, rest)
	if left == nil || right == nil {
		if left == nil {
			left = right
		}
		return rest, left
	}
	for _, g := range w.Step.Grads {
		b.stream.Add(left.Grads[g], left.Grads[g], right.Grads[g])
	}
	b.giveBack(w, right)
	return rest, left
}

// lend gives a block that has no gradients of its own some of the bench.
func (b *bench) lend(w *engine.Work, c *model.Ctx) {
	for _, g := range w.Step.Grads {
		if c.Grads[g] != nil {
			continue
		}
		if b.grads == nil {
			b.grads = map[int][]*kernels.Mat{}
		}
		if n := len(b.grads[g]); n > 0 {
			c.Grads[g] = b.grads[g][n-1]
			b.grads[g] = b.grads[g][:n-1]
			continue
		}
		like := b.like(w, g)
		c.Grads[g] = b.alloc(kernels.Weights, like.Rows, like.Cols)
		b.made = append(b.made, c.Grads[g])
	}
}

// like is a gradient of parameter g that the work has come with.
func (b *bench) like(w *engine.Work, g int) *kernels.Mat {
	for _, c := range w.Blocks {
		if c.Grads[g] != nil {
			return c.Grads[g]
		}
	}
	return nil
}

// giveBack takes back what lend has given. Ops that use it may still be queued: those that
// use it next are behind them.
func (b *bench) giveBack(w *engine.Work, c *model.Ctx) {
	for _, g := range w.Step.Grads {
		b.grads[g] = append(b.grads[g], c.Grads[g])
		c.Grads[g] = nil
	}
}

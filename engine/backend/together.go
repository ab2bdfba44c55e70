package backend

import (
	"dorylus/engine"
	"dorylus/engine/model"
	"dorylus/kernels"
)

// A kernel on a GPU costs some microseconds to start, as much as the rows of a block take.
// A device that can sum over many blocks in one op gets all blocks of a task in one context;
// one at a time they would keep what they read in a processor's caches.

// scratchBytes is about how much scratch memory a context of several blocks may take.
const scratchBytes = 64 << 20

// fitting is how many of the first of blocks, at least one, can be done together.
func (b *bench) fitting(w *engine.Work, blocks []*model.Ctx) int {
	if _, ok := b.stream.(kernels.BlockSummer); !ok || w.Step.Alone || w.Sums == nil && withGrads(w) {
		return 1
	}
	n := 1
	for n < len(blocks) && scratchOf(w.Step, blocks[:n+1]) <= scratchBytes {
		n++
	}
	return n
}

// withGrads says that each block has gradients of its own.
func withGrads(w *engine.Work) bool {
	for _, g := range w.Step.Grads {
		if w.Blocks[0].Grads[g] != nil {
			return true
		}
	}
	return false
}

// scratchOf is about how much scratch memory blocks take together.
func scratchOf(s *model.Step, blocks []*model.Ctx) int64 {
	rows, last := 0, blocks[len(blocks)-1]
	for k, r := range blocks[0].Rows {
		rows = max(rows, last.Rows[k].Hi-r.Lo)
	}
	return 4 * int64(rows) * int64(kernels.PadCols(s.Scratch))
}

// doAll queues the work of blocks, of which first is leaf 0 of the tree of their sums.
func (b *bench) doAll(w *engine.Work, blocks []*model.Ctx, first int) {
	if len(blocks) == 1 {
		b.do(w, blocks[0])
		return
	}
	all := model.Together(blocks, first)
	b.do(w, all)
	b.losses = append(b.losses, func() {
		for i, c := range blocks {
			c.Loss[0] = all.Loss[i]
		}
	})
}

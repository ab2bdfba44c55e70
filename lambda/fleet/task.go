package fleet

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"dorylus/engine"
	"dorylus/engine/model"
	"dorylus/kernels"
	"dorylus/lambda/codec"
	"dorylus/lambda/plan"
	"dorylus/lambda/wire"
)

// roomKey names a shard.
type roomKey struct {
	pass     engine.Pass
	interval int
}

// workItem is a task on its way. Several attempts may read it at once.
//
// An attempt reads the engine's buffers in prepare only, under gate. close waits for
// those that do, and lets no other begin: from then on the buffers are the engine's, and
// a late attempt has nothing but messages of its own.
type workItem struct {
	*engine.Work
	f    *Fleet
	key  roomKey
	plan *plan.Plan
	step int
	walk int64
	// all are the contexts of the interval's blocks, of which attempts use the shapes.
	all          []*model.Ctx
	ships, grads []int
	runs         []run // of blocks whose gradients come as one sum
	ends         []int // of runs
	at           crowd // guarded by the fleet's mutex

	over atomic.Bool // nothing of it is wanted any more
	gate sync.RWMutex

	mu struct {
		sync.Mutex
		// weights are those that the interval has pinned; got once they are needed.
		weights engine.Weights
		hashes  map[int]uint64 // of the parameters, as they are asked for
	}
}

// run is blocks of the interval, counted from its first one, behind those of the run before
// and up to end. Of them last is the last that has rows, with which the sum comes, and to
// gets it; last is -1 where none has.
type run struct {
	end, last int
	to        *model.Ctx
}

func (f *Fleet) newTask(w *engine.Work, walk int64) *workItem {
	t := &workItem{
		Work: w, f: f, key: roomKey{w.Pass, w.Interval}, plan: f.plans[w.Pass], step: w.Task.Step, walk: walk,
		all: f.job.Blocks(w.Pass, w.Interval),
	}
	t.mu.hashes = map[int]uint64{}
	t.ships = t.plan.Steps[t.step].Ships
	if w.Pass == engine.Training && len(w.Step.Grads) > 0 {
		t.grads = w.Step.Grads
		t.cut()
	}
	return t
}

// cut notes the runs of blocks.
func (t *workItem) cut() {
	first := t.all[0].Block
	for _, r := range t.Sums {
		t.runs = append(t.runs, run{end: r.Hi - first, last: -1})
	}
	for i := 0; t.Sums == nil && i < len(t.all); i++ {
		t.runs = append(t.runs, run{end: i + 1, last: -1})
	}
	rest := t.Blocks
	for i := range t.runs {
		r := &t.runs[i]
		t.ends = append(t.ends, r.end)
		for ; len(rest) > 0 && rest[0].Block-first < r.end; rest = rest[1:] {
			if r.to == nil {
				r.to = rest[0]
			}
			r.last = rest[0].Block - first
		}
	}
}

// runOf is the run that a block is the last of; -1: none.
func (t *workItem) runOf(block int) int {
	for i, r := range t.runs {
		if r.last == block {
			return i
		}
	}
	return -1
}

// close gives the engine's buffers back.
func (t *workItem) close() {
	t.over.Store(true)
	t.gate.Lock()
	defer t.gate.Unlock()
}

var hashSeed = maphash.MakeSeed()

// param is a parameter as the interval has pinned it, and a name of its content. The name
// is one process's: nobody compares it with another's.
func (t *workItem) param(ctx context.Context, p int) (*kernels.Mat, uint64, error) {
	t.mu.Lock()
	w := t.mu.weights
	t.mu.Unlock()
	if w.Mats == nil {
		var err error
		if w, err = t.Pinned(ctx); err != nil { // it may wait
			return nil, 0, fmt.Errorf("get the weights of interval %d: %w", t.Interval, err)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.weights = w
	m := w.Mats[p]
	h, ok := t.mu.hashes[p]
	if !ok {
		var sum maphash.Hash
		sum.SetSeed(hashSeed)
		for r := range m.Rows {
			row := m.Row(r)
			if len(row) > 0 {
				sum.Write(unsafe.Slice((*byte)(unsafe.Pointer(&row[0])), 4*len(row)))
			}
		}
		h = sum.Sum64()
		t.mu.hashes[p] = h
	}
	return m, h, nil
}

// result is what an attempt has brought, in memory of its own: ships by block, grads by run.
type result struct {
	blocks map[int][]*kernels.Mat
	sums   map[int][]*kernels.Mat
	loss   map[int]float64
	lent   []*[]float32
}

// memories are what results are read into.
var memories = sync.Pool{New: func() any { return new([]float32) }}

// mat is memory for a matrix, of undefined contents.
func (r *result) mat(rows, cols int) *kernels.Mat {
	m := memories.Get().(*[]float32)
	*m = slices.Grow((*m)[:0], rows*cols)[:rows*cols]
	r.lent = append(r.lent, m)
	return kernels.FromSlice(rows, cols, *m)
}

// free gives the memory back: nobody may look into the result any more.
func (r *result) free() {
	for _, m := range r.lent {
		memories.Put(m)
	}
	r.lent, r.blocks, r.sums = nil, nil, nil
}

func newResult(blocks int) *result {
	return &result{blocks: make(map[int][]*kernels.Mat, blocks), sums: map[int][]*kernels.Mat{}, loss: make(map[int]float64, blocks)}
}

// read takes one block's results from a message.
func (t *workItem) read(res *result, m *wire.Message) error {
	r, want := m.Result, len(t.ships)
	at := t.runOf(r.Block)
	if at >= 0 {
		want += len(t.grads)
	}
	if r.Block >= len(t.all) || len(m.Parts) != want {
		return fmt.Errorf("block %d of %d has %d results, want %d", r.Block, len(t.all), len(m.Parts), want)
	}
	prog, c, parts := t.f.program(), t.all[r.Block], m.Parts
	take := func(rows, cols int) (*kernels.Mat, error) {
		dst := res.mat(rows, cols)
		if err := codec.Decode(parts[0], dst); err != nil {
			return nil, fmt.Errorf("read result %d of block %d: %w", len(m.Parts)-len(parts), r.Block, err)
		}
		parts = parts[1:]
		return dst, nil
	}
	rows := make([]*kernels.Mat, len(t.ships))
	for i, b := range t.ships {
		var err error
		if rows[i], err = take(c.Span(b).Len(), prog.Bufs[b].Cols); err != nil {
			return err
		}
	}
	if at >= 0 {
		sums := make([]*kernels.Mat, len(t.grads))
		for i, p := range t.grads {
			var err error
			if sums[i], err = take(prog.Params[p].Rows, prog.Params[p].Cols); err != nil {
				return err
			}
		}
		res.sums[at] = sums
	}
	res.blocks[r.Block], res.loss[r.Block] = rows, r.Loss
	return nil
}

// commit puts a result where the engine wants it. Nothing is touched unless all of it is
// there.
func (t *workItem) commit(res *result) error {
	first := t.all[0].Block
	for _, c := range t.Blocks {
		if _, ok := res.blocks[c.Block-first]; !ok {
			return fmt.Errorf("lambda fleet: %v: the result has no block %d", t.Task, c.Block)
		}
	}
	for _, c := range t.Blocks {
		mats := res.blocks[c.Block-first]
		for i, b := range t.ships {
			copyRows(c.Mat(b), mats[i])
		}
		c.Loss[0] = res.loss[c.Block-first]
	}
	for i, r := range t.runs { // the sum of one with rows came with its last block
		for k, p := range t.grads {
			if r.to != nil {
				copyRows(r.to.Grads[p], res.sums[i][k])
			}
		}
	}
	return nil
}

func copyRows(dst, src *kernels.Mat) {
	for r := range src.Rows {
		copy(dst.Row(r), src.Row(r))
	}
}

package fleet

import (
	"context"
	"fmt"
	"hash/maphash"
	"unsafe"

	"dorylus/engine"
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

// workItem is a task on its way.
type workItem struct {
	*engine.Work
	key  roomKey
	plan *plan.Plan
	step int
	// weights are those that the interval has pinned; got once they are needed.
	weights engine.Weights
	hashes  map[int]uint64 // of the parameters, as they are asked for
}

func (f *Fleet) newTask(w *engine.Work) *workItem {
	return &workItem{
		Work: w, key: roomKey{w.Pass, w.Interval}, plan: f.plans[w.Pass], step: w.Task.Step, hashes: map[int]uint64{},
	}
}

var hashSeed = maphash.MakeSeed()

// hash names the content of a parameter. It is one process's: nobody compares it with
// another's.
func (t *workItem) hash(p int) uint64 {
	if h, ok := t.hashes[p]; ok {
		return h
	}
	var h maphash.Hash
	h.SetSeed(hashSeed)
	m := t.weights.Mats[p]
	for r := range m.Rows {
		row := m.Row(r)
		if len(row) > 0 {
			h.Write(unsafe.Slice((*byte)(unsafe.Pointer(&row[0])), 4*len(row)))
		}
	}
	t.hashes[p] = h.Sum64()
	return t.hashes[p]
}

// result is what an attempt has brought: the frames of each block, not looked into.
type result struct {
	blocks map[int][][]byte
	loss   map[int]float64
}

// commit puts a result where the engine wants it. Nothing is touched unless all of it
// can be read.
func (f *Fleet) commit(w *engine.Work, res *result) error {
	ships, grads := f.wanted(w)
	first := f.job.Blocks(w.Pass, w.Interval)[0].Block
	for _, c := range w.Blocks {
		parts := res.blocks[c.Block-first]
		if len(parts) != len(ships)+len(grads) {
			return fmt.Errorf("lambda fleet: %v: block %d has %d results, want %d", w.Task, c.Block, len(parts), len(ships)+len(grads))
		}
	}
	for _, c := range w.Blocks {
		parts := res.blocks[c.Block-first]
		for i, b := range ships {
			if err := codec.Decode(parts[i], c.Mat(b)); err != nil {
				return fmt.Errorf("lambda fleet: %v: %w", w.Task, err)
			}
		}
		for i, p := range grads {
			if err := codec.Decode(parts[len(ships)+i], c.Grads[p]); err != nil {
				return fmt.Errorf("lambda fleet: %v: %w", w.Task, err)
			}
		}
		c.Loss[0] = res.loss[c.Block-first]
	}
	return nil
}

// wanted are the buffers and gradients that a task's results have.
func (f *Fleet) wanted(w *engine.Work) (ships, grads []int) {
	ships = f.plans[w.Pass].Steps[w.Task.Step].Ships
	if w.Pass == engine.Training {
		grads = w.Step.Grads
	}
	return ships, grads
}

// content names what wrote rows, and when; the zero value is nothing.
type content struct {
	epochs int // epochs that had begun: the epoch plus 1
	writer int
}

func written(epoch, step int) content { return content{epoch + 1, step} }

// script is the messages of a task for a worker that holds these contents, and what it
// holds afterwards. replayed counts the steps that run again.
func (f *Fleet) script(ctx context.Context, t *workItem, id int64, held map[int]content, enc *codec.Encoder) (msgs []*wire.Message, after map[int]content, replayed int, err error) {
	prog, epoch := f.program(), t.Epoch
	has := func(v plan.Version) bool { return held[v.Buf] == written(epoch, v.Step) }
	steps := t.plan.Replay(t.step, has)
	if len(steps) > 0 {
		steps = t.plan.Replay(t.step, func(plan.Version) bool { return false })
	}
	replayed = len(steps)
	steps = append(steps, t.step)
	after = map[int]content{}
	for b, c := range held {
		after[b] = c
	}
	all := f.job.Blocks(t.Pass, t.Interval)
	head := &wire.Task{ID: id, Pass: t.Pass, Interval: t.Interval, Epoch: epoch}
	msgs = append(msgs, &wire.Message{Task: head})
	made := map[plan.Version]bool{} // by a step of this task, or sent for one
	seen := map[int]bool{}
	for n, s := range steps {
		step := &prog.Steps[s]
		st := wire.Step{Step: s}
		var send []wire.Found
		for _, v := range t.plan.Steps[s].Needs {
			switch {
			case v.Step < 0 || made[v] && after[v.Buf] == written(epoch, v.Step):
			case after[v.Buf] == written(epoch, v.Step):
				st.Found = append(st.Found, wire.Found{Buf: v.Buf, Writer: v.Step})
			default:
				send = append(send, wire.Found{Buf: v.Buf, Writer: v.Step})
				after[v.Buf] = written(epoch, v.Step)
				made[v] = true
			}
		}
		for _, b := range step.Out {
			after[b] = written(epoch, s)
			made[plan.Version{Buf: b, Step: s}] = true
		}
		for _, p := range step.Params {
			if !seen[p] {
				seen[p] = true
				if t.weights.Mats == nil {
					if t.weights, err = t.Pinned(ctx); err != nil {
						return nil, nil, 0, err
					}
				}
				head.Params = append(head.Params, wire.Weight{Param: p, Hash: t.hash(p)})
			}
		}
		if n == len(steps)-1 {
			st.Ships, st.Grads = f.wanted(t.Work)
		}
		for i, c := range all {
			if idle(c.Span, step.In, step.Out) {
				continue
			}
			st.Blocks = append(st.Blocks, i)
			m := &wire.Message{Block: &wire.Block{ID: id, Step: s, Block: i, Bufs: send}}
			for _, v := range send {
				m.Parts = append(m.Parts, enc.Append(nil, codec.Key(v.Buf), c.Mat(v.Buf)))
			}
			msgs = append(msgs, m)
		}
		head.Steps = append(head.Steps, st)
	}
	return msgs, after, replayed, nil
}

// idle says that a block has no rows in any of the buffers.
func idle(span func(buf int) kernels.Span, lists ...[]int) bool {
	for _, list := range lists {
		for _, b := range list {
			if span(b).Len() > 0 {
				return false
			}
		}
	}
	return true
}

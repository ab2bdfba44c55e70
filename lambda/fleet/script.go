package fleet

import (
	"context"
	"maps"

	"dorylus/kernels"
	"dorylus/lambda/codec"
	"dorylus/lambda/plan"
	"dorylus/lambda/wire"
)

// content names what wrote rows, and in which walk; the zero value is nothing.
type content struct {
	walk   int64
	writer int
}

// prepared are the messages of an attempt, and what they come to.
type prepared struct {
	id       int64
	job      *wire.Message // opens the stream; nil: it is open
	shard    *bringer      // nil: the worker holds the shard
	msgs     []*wire.Message
	bytes    int64 // of all messages but the shard's
	weights  int64
	blocks   []int           // that results will come of
	after    map[int]content // what the worker's buffers hold then
	replayed int             // steps that run again
}

// prepare writes the messages of a task for a worker, by what that is thought to hold. It
// is all that reads the engine's buffers: it says errOver once the task is over.
func (t *workItem) prepare(ctx context.Context, l *link) (p *prepared, err error) {
	t.gate.RLock()
	defer t.gate.RUnlock()
	if t.over.Load() {
		return nil, errOver
	}
	p = &prepared{id: t.f.nextAttempt()}
	if !l.opened {
		p.job = t.f.opening()
		p.bytes += int64(p.job.Size())
	}
	held := l.rooms[t.key]
	if held == nil {
		p.shard = t.bring(l.enc)
		defer func() {
			if err != nil {
				p.shard.stop()
			}
		}()
	}
	script, err := t.script(ctx, p, held, l.enc)
	if err != nil {
		return nil, err
	}
	for _, w := range script[0].Task.Params {
		if l.params[w.Param] == w.Hash {
			continue
		}
		m, _, err := t.param(ctx, w.Param)
		if err != nil {
			return nil, err
		}
		p.msgs = append(p.msgs, &wire.Message{Weight: &w, Parts: [][]byte{t.f.weights.frame(w, m)}})
		l.params[w.Param] = w.Hash
	}
	p.msgs = append(p.msgs, script...)
	for _, m := range p.msgs {
		n := int64(m.Size())
		p.bytes += n
		if m.Weight != nil {
			p.weights += n
		}
	}
	return p, nil
}

// script is the messages of a task proper, for a worker that holds these contents.
func (t *workItem) script(ctx context.Context, p *prepared, held map[int]content, enc *codec.Encoder) ([]*wire.Message, error) {
	prog := t.f.program()
	made := func(v plan.Version) content { return content{t.walk, v.Step} }
	steps := t.plan.Replay(t.step, func(v plan.Version) bool { return held[v.Buf] == made(v) })
	if len(steps) > 0 { // of what it holds, nothing is left as a replayed step needs it
		steps = t.plan.Replay(t.step, func(plan.Version) bool { return false })
	}
	p.replayed = len(steps)
	steps = append(steps, t.step)
	p.after = maps.Clone(held)
	if p.after == nil {
		p.after = map[int]content{}
	}
	head := &wire.Task{ID: p.id, Pass: t.Pass, Interval: t.Interval, Epoch: t.Epoch, Walk: t.walk}
	msgs := []*wire.Message{{Task: head}}
	fresh := map[plan.Version]bool{} // made by a step of this task, or sent for one
	seen := map[int]bool{}
	for n, s := range steps {
		step := &prog.Steps[s]
		st := wire.Step{Step: s}
		var send []wire.Found
		for _, v := range t.plan.Steps[s].Needs {
			switch {
			case v.Step < 0 || fresh[v] && p.after[v.Buf] == made(v):
			case p.after[v.Buf] == made(v):
				st.Found = append(st.Found, wire.Found{Buf: v.Buf, Writer: v.Step})
			default:
				send = append(send, wire.Found{Buf: v.Buf, Writer: v.Step})
				p.after[v.Buf] = made(v)
				fresh[v] = true
			}
		}
		for _, b := range step.Out {
			v := plan.Version{Buf: b, Step: s}
			p.after[b], fresh[v] = made(v), true
		}
		for _, k := range step.Params {
			if seen[k] {
				continue
			}
			seen[k] = true
			_, hash, err := t.param(ctx, k)
			if err != nil {
				return nil, err
			}
			head.Params = append(head.Params, wire.Weight{Param: k, Hash: hash})
		}
		if n == len(steps)-1 {
			st.Ships, st.Grads, st.Sums = t.ships, t.grads, t.ends
		}
		for i, c := range t.all {
			if idle(c.Span, step.In, step.Out) {
				continue
			}
			if t.over.Load() {
				return nil, errOver
			}
			st.Blocks = append(st.Blocks, i)
			m := &wire.Message{Block: &wire.Block{ID: p.id, Step: s, Block: i, Bufs: send}}
			for _, v := range send {
				m.Parts = append(m.Parts, enc.Append(nil, codec.Key(v.Buf), c.Mat(v.Buf)))
			}
			msgs = append(msgs, m)
		}
		head.Steps = append(head.Steps, st)
		p.blocks = st.Blocks
	}
	return msgs, nil
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

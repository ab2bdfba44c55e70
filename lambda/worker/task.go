package worker

import (
	"context"
	"fmt"

	"dorylus/engine"
	"dorylus/engine/model"
	"dorylus/engine/task"
	"dorylus/kernels"
	"dorylus/lambda/codec"
	"dorylus/lambda/shard"
	"dorylus/lambda/wire"
)

// running is the task that the blocks of a session belong to.
type running struct {
	*wire.Task
	room    *room
	weights []*kernels.Mat
	step    int // index into Steps of the next block
	block   int // index into its Blocks
}

// begin starts a task, or says that it cannot.
func (s *session) begin(t *wire.Task) error {
	s.task = nil
	run := &running{Task: t, weights: make([]*kernels.Mat, len(s.w.prog.Params))}
	if run.room = s.w.store.room(t.Pass, t.Interval); run.room == nil {
		return s.lost(t.ID, "the shard of interval %d is not here", t.Interval)
	}
	for _, p := range t.Params {
		if p.Param < 0 || p.Param >= len(run.weights) {
			return s.fail(t.ID, fmt.Errorf("parameter %d of %d", p.Param, len(run.weights)))
		}
		w := &s.w.store.weights[p.Param]
		if w.m == nil || w.hash != p.Hash {
			return s.lost(t.ID, "parameter %d is not here as it should be", p.Param)
		}
		run.weights[p.Param] = w.m
	}
	if err := s.check(run); err != nil {
		return s.fail(t.ID, err)
	}
	s.task = run
	return s.ended()
}

// block takes a block's rows, runs the step on it, and sends what is wanted of it.
func (s *session) block(ctx context.Context, m *wire.Message) error {
	b, run := m.Block, s.task
	if run == nil || b.ID != run.ID {
		return nil // of a task that has failed already
	}
	st := &run.Steps[run.step]
	if b.Step != st.Step || b.Block != st.Blocks[run.block] {
		return s.fail(run.ID, fmt.Errorf("step %d, block %d came instead of %d, %d", b.Step, b.Block, st.Step, st.Blocks[run.block]))
	}
	if len(m.Parts) != len(b.Bufs) {
		return s.fail(run.ID, fmt.Errorf("%d buffers in %d parts", len(b.Bufs), len(m.Parts)))
	}
	c := run.room.Contexts[b.Block]
	for i, f := range b.Bufs {
		if err := s.known(st.Step, f); err != nil {
			return s.fail(run.ID, err)
		}
		if s.w.prog.Bufs[f.Buf].Edges {
			return s.fail(run.ID, fmt.Errorf("buffer %d has no rows to bring: step %d sets it", f.Buf, f.Writer))
		}
		run.room.held[f.Buf][b.Block] = nothing // until it is whole
		if err := codec.Decode(m.Parts[i], c.Mat(f.Buf)); err != nil {
			return s.fail(run.ID, err)
		}
		run.room.held[f.Buf][b.Block] = content{run.Walk, f.Writer}
	}
	for _, f := range st.Found {
		if got := run.room.held[f.Buf][b.Block]; got != (content{run.Walk, f.Writer}) {
			return s.lost(run.ID, "buffer %d is of walk %d, step %d, not of walk %d, step %d", f.Buf, got.walk, got.writer, run.Walk, f.Writer)
		}
	}
	if err := s.compute(ctx, run, c, st, b.Block); err != nil {
		return s.fail(run.ID, err)
	}
	if run.step == len(run.Steps)-1 {
		if err := s.reply(run, c, st, b.Block); err != nil {
			return err
		}
	}
	run.block++
	return s.ended()
}

// compute runs a step's ops on a block.
func (s *session) compute(ctx context.Context, run *running, c *model.Ctx, st *wire.Step, block int) error {
	step := &s.w.prog.Steps[st.Step]
	ops := step.Ops
	if run.Pass == engine.Evaluation && st.Step == s.w.prog.Forward-1 {
		ops = ops[:s.w.prog.ForwardOps]
	}
	c.Weights, c.Epoch, c.Loss[0] = run.weights, run.Epoch, 0
	if c.Train {
		for _, p := range step.Grads {
			var err error
			if c.Grads[p], err = s.w.store.grad(p); err != nil {
				return err
			}
		}
	}
	for _, b := range step.Out {
		run.room.held[b][block] = nothing // until it is done
	}
	id := task.Task{ID: task.ID{Epoch: run.Epoch, Interval: run.Interval, Step: st.Step}, Kind: step.Kind, Dir: step.Dir, Layer: step.Layer}
	if err := s.runOps(ctx, &engine.Work{Task: id, Pass: run.Pass, Step: step, Ops: ops, Blocks: []*model.Ctx{c}}); err != nil {
		return err
	}
	for _, b := range step.Out {
		run.room.held[b][block] = content{run.Walk, st.Step}
	}
	return nil
}

// runOps runs a step's ops. What they refuse is the task's failure, not the worker's.
func (s *session) runOps(ctx context.Context, w *engine.Work) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *kernels.ShapeError:
			err = fmt.Errorf("run %v: %w", w.Task, p)
		default:
			panic(p)
		}
	}()
	return s.w.store.local.Run(ctx, w)
}

// reply sends what the graph server wants of a block.
func (s *session) reply(run *running, c *model.Ctx, st *wire.Step, block int) error {
	out := &wire.Message{Result: &wire.Result{ID: run.ID, Block: block, Loss: c.Loss[0], Last: run.block == len(st.Blocks)-1}}
	for _, b := range st.Ships {
		out.Parts = append(out.Parts, s.w.store.enc.Append(nil, shard.Key(b, false), c.Mat(b)))
	}
	for _, p := range st.Grads {
		out.Parts = append(out.Parts, s.w.store.enc.Append(nil, shard.Key(p, true), c.Grads[p]))
	}
	return s.conn.Send(out)
}

// ended goes on to the next step that has blocks, and ends the task behind the last.
func (s *session) ended() error {
	run := s.task
	for run.step < len(run.Steps) && run.block == len(run.Steps[run.step].Blocks) {
		run.step, run.block = run.step+1, 0
	}
	if run.step < len(run.Steps) {
		return nil
	}
	s.task = nil
	s.tasks++
	if len(run.Steps[len(run.Steps)-1].Blocks) == 0 {
		return s.conn.Send(&wire.Message{Result: &wire.Result{ID: run.ID, Block: -1, Last: true}})
	}
	return nil
}

func (s *session) fail(id int64, err error) error {
	s.task = nil
	return s.conn.Send(&wire.Message{Fail: &wire.Fail{ID: id, Text: err.Error()}})
}

func (s *session) lost(id int64, format string, args ...any) error {
	s.task = nil
	return s.conn.Send(&wire.Message{Fail: &wire.Fail{ID: id, Text: fmt.Sprintf(format, args...), Lost: true}})
}

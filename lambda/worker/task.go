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
	run     int // index into the last step's Sums of the run that the next block is in
}

// begin starts a task, or says that it cannot.
func (s *session) begin(t *wire.Task) error {
	s.end()
	if t.ID == s.off.Load() {
		return nil // called off already: the message that says so is on its way
	}
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
	if b.ID == s.off.Load() {
		s.end()
		return nil
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
	defer s.giveBack(c, &s.w.prog.Steps[st.Step])
	if err := s.compute(ctx, run, c, st, b.Block); err != nil {
		return s.fail(run.ID, err)
	}
	if run.step == len(run.Steps)-1 {
		sums, err := s.add(run, c, st, b.Block)
		if err != nil {
			return s.fail(run.ID, err)
		}
		if err := s.reply(run, c, st, b.Block, sums); err != nil {
			return err
		}
	}
	run.block++
	return s.ended()
}

// giveBack takes a step's gradients that are in no sum.
func (s *session) giveBack(c *model.Ctx, step *model.Step) {
	for _, p := range step.Grads {
		s.w.store.sums.give(p, c.Grads[p])
		c.Grads[p] = nil
	}
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

// add adds a block's gradients to those of its run, and gives the frames of the run's sums
// where the block is the last of it.
func (s *session) add(run *running, c *model.Ctx, st *wire.Step, block int) ([][]byte, error) {
	if len(st.Grads) == 0 {
		return nil, nil
	}
	for st.Sums[run.run] <= block {
		run.run++
	}
	first, sums := 0, &s.w.store.sums
	if run.run > 0 {
		first = st.Sums[run.run-1]
	}
	mats := make([]*kernels.Mat, len(st.Grads))
	for i, p := range st.Grads {
		mats[i], c.Grads[p] = c.Grads[p], nil
	}
	if err := sums.add(block-first, st.Grads, mats); err != nil {
		return nil, err
	}
	if next := run.block + 1; next < len(st.Blocks) && st.Blocks[next] < st.Sums[run.run] {
		return nil, nil
	}
	defer sums.drop()
	all, err := sums.total()
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for i, p := range st.Grads {
		out = append(out, s.w.store.enc.Append(nil, shard.Key(p, true), all[i]))
	}
	return out, nil
}

// reply sends what the graph server wants of a block.
func (s *session) reply(run *running, c *model.Ctx, st *wire.Step, block int, sums [][]byte) error {
	out := &wire.Message{Result: &wire.Result{ID: run.ID, Block: block, Loss: c.Loss[0], Last: run.block == len(st.Blocks)-1}}
	for _, b := range st.Ships {
		out.Parts = append(out.Parts, s.w.store.enc.Append(nil, shard.Key(b, false), c.Mat(b)))
	}
	out.Parts = append(out.Parts, sums...)
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
	s.end()
	s.tasks++
	if len(run.Steps[len(run.Steps)-1].Blocks) == 0 {
		return s.conn.Send(&wire.Message{Result: &wire.Result{ID: run.ID, Block: -1, Last: true}})
	}
	return nil
}

// end leaves the task, if there is one.
func (s *session) end() {
	s.task = nil
	if s.w.store != nil {
		s.w.store.sums.drop()
	}
}

// cancel calls a task off. Its blocks that come yet are of no task.
func (s *session) cancel(c *wire.Cancel) error {
	s.w.store.forgo()
	if s.task != nil && s.task.ID == c.ID {
		s.end()
	}
	return s.conn.Send(&wire.Message{Fail: &wire.Fail{ID: c.ID, Text: "it was called off", Off: true}})
}

func (s *session) fail(id int64, err error) error {
	s.end()
	return s.conn.Send(&wire.Message{Fail: &wire.Fail{ID: id, Text: err.Error()}})
}

func (s *session) lost(id int64, format string, args ...any) error {
	s.end()
	return s.conn.Send(&wire.Message{Fail: &wire.Fail{ID: id, Text: fmt.Sprintf(format, args...), Lost: true}})
}

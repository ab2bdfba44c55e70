package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dorylus/engine"
	"dorylus/engine/graph"
	"dorylus/engine/model"
	"dorylus/engine/task"
	"dorylus/kernels"
)

// job is one task of one pass.
type job struct {
	p       *pass
	t       task.Task
	turn    int             // the epoch whose work this is; an evaluation's is that of the next one
	weights *engine.Weights // what an evaluation uses; nil: the interval's own
}

// outcome is what became of a job.
type outcome struct {
	job
	worker      int
	start, took time.Duration
	age         engine.Ages // what a gather has read; see published.read
	err         error
}

// errLeft says that a job is not done: a publication was left with those who read, and
// its outcome will come.
var errLeft = errors.New("left with the readers")

// lostWork is an error of a backend, which leaves everything as it was. What fails after
// it, such as a push, cannot be helped by doing the work again.
type lostWork struct{ error }

func (l lostWork) Unwrap() error { return l.error }

// exec runs a job to completion, its pushes included.
func (t *trainer) exec(ctx context.Context, s kernels.Stream, j *job) (age engine.Ages, err error) {
	step := &j.p.steps[j.t.Step]
	switch {
	case step.Gather != nil:
		age, err = t.gather(ctx, s, j, step)
	case step.Publish != model.NoBuf:
		if err = t.scatter(s, j, step); err == errLeft {
			return nil, err
		}
	default:
		err = t.apply(ctx, j, step)
	}
	if err != nil {
		return nil, fmt.Errorf("%v: %w", j.t, err)
	}
	if j.t.Step == len(j.p.steps)-1 {
		if j.p.train {
			t.params.Release(j.t.Interval, j.t.Epoch)
		} else {
			err = t.eval.score(s, j.p, j.t.Interval)
		}
		if err == nil {
			err = t.finish(j)
		} else {
			err = fmt.Errorf("%v: %w", j.t, err)
		}
	}
	return age, err
}

// pinned are the weights a job computes with.
func (t *trainer) pinned(ctx context.Context, j *job, step *model.Step) (engine.Weights, error) {
	if j.weights != nil {
		return *j.weights, nil
	}
	if len(step.Params) == 0 {
		return engine.Weights{}, nil
	}
	return t.params.Fetch(ctx, j.t.Interval, j.t.Epoch)
}

// pinnedForAny are the weights of a job's interval, whether its step reads any or not.
func (t *trainer) pinnedForAny(j *job) func(context.Context) (engine.Weights, error) {
	return func(ctx context.Context) (engine.Weights, error) {
		if j.weights != nil {
			return *j.weights, nil
		}
		return t.params.Fetch(ctx, j.t.Interval, j.t.Epoch)
	}
}

func (t *trainer) gather(ctx context.Context, s kernels.Stream, j *job, step *model.Step) (engine.Ages, error) {
	w, err := t.pinned(ctx, j, step)
	if err != nil {
		return nil, err
	}
	p, g := j.p, step.Gather
	args := &p.gathers[j.t.Step]
	c := p.ctxs[j.t.Interval-p.own.Lo][0]
	c.S, c.Weights, c.Epoch = s, w.Mats, j.t.Epoch
	pub := &p.pub[g.Src]
	rows := p.rows(j.t.Interval, args.level)
	run := func() error {
		if g.Reduce != nil {
			return p.reduce(s, j.t.Step, pub.rows, w.Mats, rows)
		}
		if g.Run != nil {
			g.Run(c, &model.GatherArgs{G: args.g, Src: pub.rows, Args: args.ga, Rows: rows})
			return s.Wait()
		}
		ga := args.ga
		if g.Ep != nil {
			ga.Ep = g.Ep(c)
		}
		s.SpMM(p.full[g.Dst], args.g, pub.rows, ga, rows)
		return s.Wait()
	}
	sources := args.sources[j.t.Interval-p.own.Lo]
	if pub.latch == nil {
		return engine.Ages{{int64(len(sources))}}, run()
	}
	age := pub.read(s, sources, j.t.Epoch, func() { err = run() })
	return age, err
}

func (t *trainer) scatter(s kernels.Stream, j *job, step *model.Step) error {
	p, i := j.p, j.t.Interval
	pub, own := &p.pub[step.Publish], p.full[step.Publish]
	if err := t.sendRows(s, j, step); err != nil || pub.latch == nil {
		return err
	}
	start := time.Now()
	fate, err := pub.write(s, i, publication{
		epoch: j.t.Epoch,
		set: func(s kernels.Stream) error {
			span := pub.spans[i]
			if pub.rows == own || span.Len() == 0 {
				return nil
			}
			s.Copy(pub.rows.Sub(span), own.Sub(span))
			return s.Wait()
		},
		made: func(err error) {
			if err != nil {
				err = fmt.Errorf("%v: %w", j.t, err)
			}
			t.results <- outcome{job: *j, worker: len(t.workers.streams), start: start.Sub(t.cfg.Start), err: err}
		},
	})
	if fate == left {
		return errLeft
	}
	return err
}

// sendRows sends the rows that a step publishes to the partitions that gather them.
func (t *trainer) sendRows(s kernels.Stream, j *job, step *model.Step) (err error) {
	p, i := j.p, j.t.Interval
	if p.routes == nil {
		return nil
	}
	own, spec := p.full[step.Publish], &p.prog.Bufs[step.Publish]
	for _, r := range p.routes[j.t.Step].send[i-p.own.Lo] {
		m := &engine.RowMsg{From: t.cfg.Partition, To: r.to, Pass: p.kind(), Interval: i, Step: j.t.Step, Epoch: j.t.Epoch, Cols: own.Cols}
		// References to rows are translated by the host.
		if f, ok := t.exchange.(engine.Ferry); ok && own.Host == nil && spec.RefHi == 0 && f.Ferries(r.to) {
			err = t.ferry(s, f, m, own, r.rows)
		} else {
			if m.Data, err = t.pick(s, own, r.rows); err != nil {
				return err
			}
			m.Exact = spec.PerBlock || spec.RefHi > 0
			p.refs(spec, m.Data, func(l *graph.Level, v int32) int32 { return l.Store(int(v)) })
			err = t.exchange.Send(t.away, m)
		}
		if err != nil {
			return fmt.Errorf("send rows to server %d: %w", r.to, err)
		}
	}
	return nil
}

// ferry sends rows of m that stay on devices.
func (t *trainer) ferry(s kernels.Stream, f engine.Ferry, m *engine.RowMsg, own *kernels.Mat, rows []int32) (err error) {
	if m.Mat, err = f.Room(len(rows), own.Cols); err != nil {
		return err
	}
	room := m.Mat
	defer f.Free(room)
	s.GatherRows(room, own, rows)
	if err := s.Wait(); err != nil {
		return err
	}
	return t.exchange.Send(t.away, m)
}

// pick copies rows of m to host memory, without padding.
func (t *trainer) pick(s kernels.Stream, m *kernels.Mat, rows []int32) ([]float32, error) {
	data := make([]float32, len(rows)*m.Cols)
	if m.Host != nil {
		for i, r := range rows {
			copy(data[i*m.Cols:(i+1)*m.Cols], m.Row(int(r)))
		}
		return data, nil
	}
	some, err := t.eval.pass.dev.Alloc(len(rows), m.Cols)
	if err != nil {
		return nil, err
	}
	defer t.eval.pass.dev.Free(some)
	s.GatherRows(some, m, rows)
	s.Get(data, some)
	return data, s.Wait()
}

// finish tells the other partitions that an interval has finished an epoch of a pass.
func (t *trainer) finish(j *job) error {
	if j.p.routes == nil {
		return nil
	}
	for to := range t.cfg.Partitions {
		if to == t.cfg.Partition {
			continue
		}
		m := &engine.RowMsg{From: t.cfg.Partition, To: to, Pass: j.p.kind(), Interval: j.t.Interval, Epoch: j.t.Epoch, Finished: true}
		if err := t.exchange.Send(t.away, m); err != nil {
			return fmt.Errorf("tell server %d of a finished interval: %w", to, err)
		}
	}
	return nil
}

// apply runs a tensor step and pushes its gradients and losses.
func (t *trainer) apply(ctx context.Context, j *job, step *model.Step) error {
	w, err := t.pinned(ctx, j, step)
	if err != nil {
		return err
	}
	p := j.p
	work := &engine.Work{Task: j.t, Pass: p.kind(), Step: step, Ops: p.ops(j.t.Step), Params: w, Pinned: t.pinnedForAny(j)}
	all := p.ctxs[j.t.Interval-p.own.Lo]
	work.Blocks = make([]*model.Ctx, 0, len(all))
	for _, c := range all {
		c.Weights, c.Epoch, c.Loss[0] = w.Mats, j.t.Epoch, 0
		if !p.idle(c, step) {
			work.Blocks = append(work.Blocks, c)
		}
	}
	var shares []share
	if p.train && len(step.Grads) > 0 {
		if shares, err = t.shares(ctx, work, all, p.plan.Blocks); err != nil {
			return err
		}
	}
	if err := t.backend.Run(ctx, work); err != nil {
		return lostWork{err}
	}
	push := &engine.Push{ID: j.t.ID, Grads: taken(shares, step)}
	if p.train && step.Loss {
		for _, c := range all {
			push.Losses = append(push.Losses, engine.BlockLoss{Block: c.Block, Loss: c.Loss[0]})
		}
	}
	if len(push.Grads)+len(push.Losses) == 0 {
		return nil
	}
	return t.params.Push(ctx, push)
}

// idle says that a block has no rows that the step would read or set.
func (p *pass) idle(c *model.Ctx, step *model.Step) bool {
	for _, list := range [][]int{step.In, step.Out} {
		for _, b := range list {
			if c.Span(b).Len() > 0 {
				return false
			}
		}
	}
	return true
}

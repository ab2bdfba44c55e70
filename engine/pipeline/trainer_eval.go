package pipeline

import (
	"fmt"
	"time"

	"dorylus/engine"
	"dorylus/engine/sched"
)

func (t *trainer) evalDueAfter(epoch int) bool {
	return t.eval != nil && t.cfg.EvalEvery > 0 && ((epoch+1)%t.cfg.EvalEvery == 0 || epoch+1 == t.cfg.Epochs)
}

// allow lets epochs start up to the next evaluation that is not done. In a sync
// run nothing goes past it, so that stopping there is exact; an async run may go
// as far past it as its staleness lets intervals drift apart.
func (t *trainer) allow() {
	limit := t.evaluated
	for limit < t.cfg.Epochs && !t.evalDueAfter(limit) {
		limit++
	}
	limit++
	if !t.cfg.Sync {
		limit += t.cfg.Staleness + 1
	}
	limit = min(limit, t.cfg.Epochs)
	t.feed(t.machine.Step(sched.Input{Allow: &limit}))
}

// nextEval starts the next evaluation that waits, if none runs.
func (t *trainer) nextEval() {
	if t.current != nil || len(t.evalQueue) == 0 || t.stopping {
		return
	}
	due := t.evalQueue[0]
	t.evalQueue = t.evalQueue[1:]
	due.started = time.Now()
	t.current = &due
	t.eval.runs++
	if t.eval.runs == 1 {
		t.feedEval(t.eval.machine.Start())
		for _, n := range t.early {
			t.remoteEval(n)
		}
		t.early = nil
	} else {
		version, limit := t.eval.runs-1, t.eval.runs
		t.feedEval(t.eval.machine.Step(sched.Input{Weights: &version}))
		t.feedEval(t.eval.machine.Step(sched.Input{Allow: &limit}))
	}
	t.endEval() // a partition of no intervals has done its part
}

// remoteArrived tells the scheduler of another partition's progress.
func (t *trainer) remoteArrived(n note) {
	switch {
	case n.err != nil:
		t.fail(n.err)
	case n.m.Pass == engine.Evaluation && t.eval.runs == 0:
		t.early = append(t.early, n)
	case n.m.Pass == engine.Evaluation:
		t.remoteEval(n)
		t.endEval()
	default:
		if in, ok := n.input(); ok {
			t.feed(t.machine.Step(in))
		}
	}
}

func (t *trainer) remoteEval(n note) {
	if in, ok := n.input(); ok {
		tasks := t.eval.machine.Step(in)
		if len(tasks) > 0 && t.current != nil {
			t.feedEval(tasks)
		}
	}
}

// input is what the scheduler has to know of a message.
func (n note) input() (sched.Input, bool) {
	if n.m.Finished {
		return sched.Input{Finished: &sched.Finish{Interval: n.m.Interval, Epoch: n.m.Epoch}}, true
	}
	return sched.Input{Rows: &sched.Rows{Interval: n.m.Interval, Step: n.m.Step, Epoch: n.m.Epoch}}, n.news
}

// verdict is what an evaluation has found, the same on all servers.
type verdict struct {
	result engine.Evaluated
	told   string
	bills  [][]byte // what all have spent, by rank; at server 0
	err    error
}

// endEval ends the current evaluation once all partitions have computed it: its result is
// known at once, or when all have heard it.
func (t *trainer) endEval() {
	if t.current == nil || t.judging || t.eval.machine.MinFinished() != t.eval.runs || t.stopping {
		return
	}
	if t.current.alone {
		t.current = nil
		return
	}
	t.judging = true
	epoch := t.current.epoch
	if t.cluster == nil {
		e, err := t.eval.result(epoch)
		t.judged(verdict{e, t.ask(epoch), nil, err})
		return
	}
	told := ""
	if t.cluster.leads() { // here, where no event is under way: the answer depends on them
		told = t.ask(epoch)
	}
	var spent []byte
	if t.cluster.Spent != nil {
		var err error
		if spent, err = t.cluster.Spent(); err != nil {
			t.fail(err)
			return
		}
	}
	t.flying++ // the loop waits for it
	go func() { t.verdict <- t.eval.agree(t.away, t.cluster, epoch, told, spent) }()
}

// heard takes what the others have spent, at server 0.
func (t *trainer) heard(bills [][]byte) error {
	for rank, bill := range bills {
		if len(bill) > 0 && rank != t.cfg.Partition {
			if err := t.cluster.Hear(rank, bill); err != nil {
				return fmt.Errorf("what server %d has spent: %w", rank, err)
			}
		}
	}
	return nil
}

// judged reports an evaluation and starts the next one.
func (t *trainer) judged(v verdict) {
	if t.cluster != nil {
		t.flying--
	}
	t.judging = false
	if err := t.heard(v.bills); err != nil {
		t.fail(err)
	}
	if t.stopping {
		return // its weights are released, and whoever stopped does not want to know
	}
	due := t.current
	t.current = nil
	took := time.Since(due.started)
	if t.cfg.Sync {
		t.evalTime += took // in an async run the next epoch goes on meanwhile
	}
	t.evaluated = due.epoch + 1
	stop, err := false, v.err
	if err == nil {
		v.result.Took, v.result.At = took.Seconds(), time.Since(t.cfg.Start).Seconds()
		stop, err = t.onEval(v.result, due.weights, v.told)
	}
	t.params.Release(evalInterval, due.epoch)
	switch {
	case err != nil:
		t.fail(err)
	case stop:
		t.stop()
	}
	t.nextEval()
	if !t.stopping {
		t.allow()
	}
}

package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"dorylus/engine"
	"dorylus/engine/sched"
	"dorylus/engine/task"
	"dorylus/kernels"
)

// attempts is how often a failing tensor task is run on a backend that may lose
// work. Graph tasks and local tensor tasks do not fail for a reason that another
// try would change.
const attempts = 3

// trainerConfig is what a trainer is told besides its parts.
type trainerConfig struct {
	First, Epochs int
	Sync          bool
	Staleness     int
	EvalEvery     int // 0: never
	Partition     int // of this trainer, when there are several
	Start         time.Time
}

// trainer drives one partition's intervals through the epochs. One goroutine,
// run, owns the scheduler and all decisions; the workers only execute. Everything
// that happens reaches run as a message, so that nothing here is locked.
type trainer struct {
	cfg      trainerConfig
	workers  *workers
	backend  engine.Backend
	params   engine.Params
	exchange engine.Exchanger // nil: one partition
	listener engine.Listener

	train   *pass
	eval    *evaluator // nil: never evaluated here
	machine *sched.Machine

	jobs    chan job
	results chan outcome
	remote  chan remoteRows

	// Owned by run.
	flying   int // jobs with the workers or the backend
	waiting  []job
	remoteOn int // tensor jobs with a backend that is not local
	// Those that have ended, and their time.
	tensorDone int64
	tensorBusy time.Duration
	tries      map[try]int
	stopping   bool
	recall     context.CancelFunc // ends the ctx of the tasks of a backend that is not local
	err        error
	epochs     int // epochs whose update has been seen
	evalQueue  []evalDue
	evaluated  int // epochs below this one need no evaluation any more
	current    *evalDue
	lastEpoch  time.Time
	evalTime   time.Duration // since lastEpoch

	// onEpoch and onEval are called by run when an epoch's update has been made
	// and when an evaluation is complete; an error fails the run. Both may say stop.
	onEpoch func(engine.Update) (stop bool, err error)
	onEval  func(engine.Evaluated, engine.Weights) (stop bool, err error)
}

// try counts the attempts at a task of a pass.
type try struct {
	p  *pass
	id task.ID
}

// evalDue is an evaluation that waits or runs: the pinned weights after an epoch.
type evalDue struct {
	epoch   int
	weights engine.Weights
	started time.Time
}

// remoteRows is a message from another partition, already published.
type remoteRows struct {
	m    *engine.RowMsg
	news bool
	err  error
}

// evalInterval is the interval number under which an evaluation pins weights.
const evalInterval = -1

// run trains until the epochs are done, onEval says stop, ctx ends or something
// fails. When it returns no task is under way: local ones are waited for, those of
// another backend are called off, for they may be with a worker that hangs. A ctx
// that ends is not an error of run.
func (t *trainer) run(ctx context.Context) error {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	away, recall := context.WithCancel(inner)
	t.recall = recall
	defer recall()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	// An interval has one task under way at most, so neither channel ever blocks.
	room := len(t.train.intervals)
	if t.eval != nil {
		room += len(t.eval.pass.intervals)
	}
	t.jobs, t.results = make(chan job, room), make(chan outcome, room)
	t.tries = map[try]int{}
	t.epochs, t.evaluated = t.cfg.First, t.cfg.First
	t.lastEpoch = time.Now()
	for i, s := range t.workers.streams {
		wg.Go(func() { t.work(inner, i, s) })
	}
	if t.exchange != nil {
		s, err := t.train.dev.NewStream()
		if err != nil {
			return err
		}
		defer s.Close()
		t.remote = make(chan remoteRows)
		wg.Go(func() { t.listen(inner, s) })
		defer wg.Wait()
		defer cancel()
	}
	var reports <-chan struct{}
	if r, ok := t.backend.(engine.Reporter); ok {
		reports = r.Reports()
	}
	updates := t.params.Updates()
	t.feed(t.machine.Start())
	t.allow()
	for !t.finished() {
		t.pump(away)
		t.watch()
		select {
		case o := <-t.results:
			t.handle(o)
		case u, ok := <-updates:
			if !ok {
				t.fail(errors.New("the parameter server closed while the run was on"))
				updates = nil
				break
			}
			t.update(inner, u)
		case r := <-t.remote:
			t.remoteArrived(r)
		case <-reports:
			t.tell()
		case <-ctx.Done():
			t.stop()
			ctx = inner // seen once
		}
	}
	return t.err
}

// watch lets the backend see the queues, if it wants to.
func (t *trainer) watch() {
	w, ok := t.backend.(engine.Watcher)
	if !ok {
		return
	}
	queued := len(t.jobs)
	w.Observe(engine.Load{
		At: time.Since(t.cfg.Start), GraphWaiting: queued, GraphRunning: t.flying - t.remoteOn - queued,
		TensorWaiting: len(t.waiting), TensorRunning: t.remoteOn, Done: t.tensorDone, Busy: t.tensorBusy,
	})
}

// tell passes on what a backend reports by itself. It is called by run, and before and
// after it by who calls the listener then.
func (t *trainer) tell() {
	if r, ok := t.backend.(engine.Reporter); ok {
		for _, e := range r.Take() {
			t.listener.Event(e)
		}
	}
}

// finished says that nothing is under way and nothing more is to come.
func (t *trainer) finished() bool {
	if t.flying > 0 {
		return false
	}
	if t.stopping {
		return true
	}
	return t.machine.Finished() && t.epochs == t.cfg.Epochs && t.current == nil && len(t.evalQueue) == 0
}

// work is one worker: a core of the graph server.
func (t *trainer) work(ctx context.Context, id int, s kernels.Stream) {
	for {
		select {
		case j := <-t.jobs:
			t.results <- t.execute(ctx, s, id, j)
		case <-ctx.Done():
			return
		}
	}
}

func (t *trainer) execute(ctx context.Context, s kernels.Stream, id int, j job) outcome {
	start := time.Now()
	age, err := t.exec(ctx, s, &j)
	return outcome{job: j, worker: id, start: start.Sub(t.cfg.Start), took: time.Since(start), age: age, err: err}
}

// feed queues training tasks that may run now.
func (t *trainer) feed(tasks []task.Task) {
	for _, x := range tasks {
		t.waiting = append(t.waiting, job{p: t.train, t: x})
	}
}

func (t *trainer) feedEval(tasks []task.Task) {
	for _, x := range tasks {
		t.waiting = append(t.waiting, job{p: t.eval.pass, t: x, weights: &t.current.weights})
	}
}

// pump hands waiting jobs out: graph tasks and local tensor tasks to the cores'
// queue, other tensor tasks, under ctx, to the backend while it has slots.
// Publications that are a mere note to the scheduler are done on the spot.
func (t *trainer) pump(ctx context.Context) {
	for i := 0; i < len(t.waiting); i++ { // grows while notes free other tasks
		j := t.waiting[i]
		switch {
		case t.isNote(j):
			t.complete(outcome{job: j})
			if t.stopping {
				return // nothing waits any more
			}
		case j.t.Kind.Tensor() && !t.backend.Local():
			if t.remoteOn >= t.backend.Slots() {
				continue
			}
			t.remoteOn++
			t.flying++
			go func() { t.results <- t.execute(ctx, nil, len(t.workers.streams), j) }()
		default:
			t.flying++
			t.jobs <- j
		}
		t.waiting[i].p = nil
	}
	kept := t.waiting[:0]
	for _, j := range t.waiting {
		if j.p != nil {
			kept = append(kept, j)
		}
	}
	t.waiting = kept
}

// isNote says that a publication moves no rows.
func (t *trainer) isNote(j job) bool {
	b := j.p.steps[j.t.Step].Publish
	return b >= 0 && j.p.pub[b].latch == nil && (t.exchange == nil || !j.p.train)
}

func (t *trainer) handle(o outcome) {
	t.flying--
	if o.t.Kind.Tensor() && !t.backend.Local() {
		t.remoteOn--
		t.tensorDone++
		t.tensorBusy += o.took
	}
	if o.err == nil {
		t.complete(o)
		return
	}
	if t.stopping && t.calledOff(o) {
		return
	}
	key := try{o.p, o.t.ID}
	t.tries[key]++
	n := t.tries[key]
	if t.stopping || !t.mayRetry(o.t, o.err, n) {
		t.fail(o.err)
		return
	}
	t.listener.Event(engine.Retried{Task: o.t, Attempt: n + 1, Cause: o.err.Error()})
	if o.p.train {
		t.feed(t.machine.Step(sched.Input{Failed: &o.t.ID}))
	} else {
		t.feedEval(t.eval.machine.Step(sched.Input{Failed: &o.t.ID}))
	}
}

// calledOff says that a task, which has failed while the run stops, has done so because it
// was called off, or in a way that would have had it run again.
func (t *trainer) calledOff(o outcome) bool {
	if !o.t.Kind.Tensor() || t.backend.Local() {
		return false
	}
	var lost lostWork
	return errors.As(o.err, &lost) || errors.Is(o.err, context.Canceled)
}

// mayRetry says whether a task that has failed n times, now with err, is run again.
func (t *trainer) mayRetry(x task.Task, err error, n int) bool {
	var lost lostWork
	return !t.backend.Local() && x.Kind.Tensor() && n < attempts && errors.As(err, &lost)
}

// complete tells the scheduler and the listener of a finished task.
func (t *trainer) complete(o outcome) {
	if len(t.tries) > 0 {
		delete(t.tries, try{o.p, o.t.ID})
	}
	step := &o.p.steps[o.t.Step]
	e := engine.TaskDone{Task: o.t, Name: step.Name, Worker: o.worker, Start: o.start, Took: o.took}
	if !o.p.train {
		e.Name = "eval " + e.Name
		t.listener.Event(e)
		t.feedEval(t.eval.machine.Step(sched.Input{Done: &o.t.ID}))
		if t.eval.machine.MinFinished() == t.eval.runs {
			t.endEval()
		}
		return
	}
	e.Age = o.age
	t.listener.Event(e)
	t.feed(t.machine.Step(sched.Input{Done: &o.t.ID}))
}

// note tells the listener of an epoch's end.
func (t *trainer) note(u engine.Update) {
	now := time.Now()
	t.epochs = u.Version
	t.listener.Event(engine.EpochDone{
		Epoch: u.Epoch, Loss: u.Loss, LR: u.LR, GradNorm: u.GradNorm, Update: u.Seconds, Took: (now.Sub(t.lastEpoch) - t.evalTime).Seconds(),
		At: now.Sub(t.cfg.Start).Seconds(),
	})
	t.lastEpoch, t.evalTime = now, 0
}

func (t *trainer) update(ctx context.Context, u engine.Update) {
	t.note(u)
	stop, err := t.onEpoch(u)
	if err != nil {
		t.fail(err)
		return
	}
	if stop {
		t.stop()
		return
	}
	if t.evalDueAfter(u.Epoch) && !t.stopping {
		w, err := t.params.Fetch(ctx, evalInterval, u.Epoch)
		if err != nil {
			t.fail(err)
			return
		}
		t.evalQueue = append(t.evalQueue, evalDue{epoch: u.Epoch, weights: w})
		t.nextEval()
	}
	t.feed(t.machine.Step(sched.Input{Weights: &u.Version}))
	t.allow()
}

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
		return
	}
	version, limit := t.eval.runs-1, t.eval.runs
	t.feedEval(t.eval.machine.Step(sched.Input{Weights: &version}))
	t.feedEval(t.eval.machine.Step(sched.Input{Allow: &limit}))
}

// endEval reports a complete evaluation and starts the next one.
func (t *trainer) endEval() {
	due := t.current
	t.current = nil
	took := time.Since(due.started)
	if t.cfg.Sync {
		t.evalTime += took // in an async run the next epoch goes on meanwhile
	}
	t.evaluated = due.epoch + 1
	e, err := t.eval.result(due.epoch)
	stop := false
	if err == nil {
		e.Took, e.At = took.Seconds(), time.Since(t.cfg.Start).Seconds()
		stop, err = t.onEval(e, due.weights)
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

// remoteArrived tells the scheduler of another partition's progress.
func (t *trainer) remoteArrived(r remoteRows) {
	switch {
	case r.err != nil:
		t.fail(r.err)
	case r.m.Finished:
		t.feed(t.machine.Step(sched.Input{Finished: &sched.Finish{Interval: r.m.Interval, Epoch: r.m.Epoch}}))
	case r.news:
		t.feed(t.machine.Step(sched.Input{Rows: &sched.Rows{Interval: r.m.Interval, Step: r.m.Step, Epoch: r.m.Epoch}}))
	}
}

// listen publishes the rows that other partitions send.
func (t *trainer) listen(ctx context.Context, s kernels.Stream) {
	for {
		m, err := t.exchange.Recv(ctx)
		r := remoteRows{m: m, err: err}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			r.err = fmt.Errorf("receive rows from another partition: %w", err)
		} else if !m.Finished {
			r.news, r.err = t.receive(s, m)
		}
		select {
		case t.remote <- r:
		case <-ctx.Done():
			return
		}
		if r.err != nil {
			return
		}
	}
}

// stop issues nothing more. What runs on this server's cores is waited for; nobody needs
// any more what other backends would bring.
func (t *trainer) stop() {
	if t.stopping {
		return
	}
	t.stopping = true
	t.recall()
	t.machine.Step(sched.Input{Stop: true})
	t.waiting = nil
	if t.current != nil {
		t.params.Release(evalInterval, t.current.epoch)
	}
	for _, due := range t.evalQueue {
		t.params.Release(evalInterval, due.epoch)
	}
	t.evalQueue = nil
}

func (t *trainer) fail(err error) {
	if t.err == nil {
		t.err = err
	}
	t.stop()
}

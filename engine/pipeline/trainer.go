package pipeline

import (
	"cmp"
	"context"
	"errors"
	"slices"
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
	Wait          float64 // engine.Config.AsyncWait
	EvalEvery     int     // 0: never
	// Partition is which of Partitions this trainer has.
	Partition, Partitions int
	Start                 time.Time
}

// trainer drives one partition's intervals through the epochs. One goroutine,
// run, owns the scheduler and all decisions; the workers only execute. Everything
// that happens reaches run as a message, so that nothing here is locked.
type trainer struct {
	cfg      trainerConfig
	workers  *workers
	backend  engine.Backend
	params   engine.Params
	cluster  *Cluster         // nil: one partition
	exchange engine.Exchanger // of the cluster
	inbox    *inbox           // what it has brought
	listener engine.Listener
	hosted   bool // the host can address the device's memory

	train   *pass
	eval    *evaluator // nil: never evaluated here
	machine *sched.Machine

	jobs    *queue
	results chan outcome
	verdict chan verdict

	// Owned by run.
	flying   int // jobs with the workers or the backend
	waiting  []job
	remoteOn int // tensor jobs with a backend that is not local
	// Those that have ended, and their time.
	tensorDone int64
	tensorBusy time.Duration
	tries      map[try]int
	stopping   bool
	// patience of an async run, and when it ends.
	patience *sched.Patience
	enough   *time.Timer
	// away is the ctx of what waits for others: tasks of a backend that is not local,
	// messages to other partitions. recall ends it.
	away      context.Context
	recall    context.CancelFunc
	err       error
	epochs    int // epochs whose update has been seen
	evalQueue []evalDue
	evaluated int // epochs below this one need no evaluation any more
	current   *evalDue
	judging   bool   // the current evaluation is computed, its verdict is awaited
	early     []note // of an evaluation, before the first one has begun here
	lastEpoch time.Time
	evalTime  time.Duration // since lastEpoch

	// onEpoch and onEval are called by run when an epoch's update has been made
	// and when an evaluation is complete; an error fails the run. Both may say stop. ask
	// gives a reason to stop after an epoch that comes from outside, "" for none; onEval
	// is told what ask has said, at server 0. stopped hears why the group ends the run; nil:
	// it goes on to its end.
	onEpoch func(engine.Update) (stop bool, err error)
	onEval  func(e engine.Evaluated, w engine.Weights, told string) (stop bool, err error)
	ask     func(epoch int) string
	stopped func(reason string)
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
	// alone: outside of training, for the rows alone: nobody is told.
	alone bool
}

// evalInterval is the interval number under which an evaluation pins weights.
const evalInterval = -1

// run trains until the epochs are done, onEval says stop, ctx ends or something
// fails. When it returns no task is under way: local ones are waited for, those of
// another backend are called off, for they may be with a worker that hangs. A ctx
// that ends is not an error of run.
func (t *trainer) run(ctx context.Context) error {
	t.epochs, t.evaluated = t.cfg.First, t.cfg.First
	t.lastEpoch = time.Now()
	return t.loop(ctx, t.params.Updates(), func() {
		t.feed(t.machine.Start())
		t.allow()
	}, func() bool {
		return t.machine.Finished() && t.epochs == t.cfg.Epochs && t.current == nil && len(t.evalQueue) == 0
	})
}

// forward runs the evaluation pass once with the given weights, which are no version of
// the parameter server, after or instead of training.
func (t *trainer) forward(ctx context.Context, w engine.Weights) error {
	t.stopping, t.current, t.judging = false, nil, false // the training has stopped, this is something else
	if err := t.eval.rest(); err != nil {
		return err
	}
	err := t.loop(ctx, nil, func() {
		t.evalQueue = append(t.evalQueue, evalDue{weights: w, alone: true})
		t.nextEval()
	}, func() bool { return t.current == nil })
	if err == nil && t.current != nil {
		if err = context.Cause(ctx); err == nil {
			err = errors.New("the run was stopped while it predicted")
		}
	}
	return err
}

// loop is the life of the scheduler's goroutine, from start until done says that nothing
// more is to come, or until something stops it.
func (t *trainer) loop(ctx context.Context, updates <-chan engine.Update, start func(), done func() bool) error {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	t.away, t.recall = context.WithCancel(inner)
	defer t.recall()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	// An interval has one task under way at most, so neither channel ever blocks.
	room := t.eval.pass.own.Len()
	if t.train != nil {
		room += t.train.own.Len()
	}
	t.jobs, t.results, t.verdict = newQueue(room), make(chan outcome, room), make(chan verdict, 1)
	t.tries = map[try]int{}
	t.patience, t.enough = sched.NewPatience(t.cfg.Wait), time.NewTimer(time.Hour)
	t.enough.Stop()
	for i, s := range t.workers.streams {
		wg.Go(func() { t.work(inner, i, s) })
	}
	var reports <-chan struct{}
	if r, ok := t.backend.(engine.Reporter); ok {
		reports = r.Reports()
	}
	var mail <-chan struct{}
	var stopped <-chan string
	if t.cluster != nil {
		mail = t.inbox.some
		if t.stopped != nil {
			stopped = t.cluster.Group.Stopped()
		}
	}
	start()
	for t.flying > 0 || !t.stopping && !done() {
		t.pump()
		t.watch()
		if t.goOn() {
			continue
		}
		select {
		case <-t.enough.C:
		case o := <-t.results:
			t.handle(o)
		case u, ok := <-updates:
			if !ok {
				err := errors.New("the parameter server closed while the run was on")
				if s, ok := t.params.(interface{ Err() error }); ok && s.Err() != nil {
					err = s.Err()
				}
				t.fail(err)
				updates = nil
				break
			}
			t.update(inner, u)
		case <-mail:
			for _, n := range t.inbox.take() {
				t.remoteArrived(n)
			}
		case v := <-t.verdict:
			t.judged(v)
		case reason := <-stopped:
			t.stopped(reason)
			t.stop()
		case <-reports:
			t.tell()
		case <-ctx.Done():
			if t.cluster != nil {
				t.cluster.Group.Stop("interrupted")
			}
			t.stop()
			ctx = inner // seen once
		}
	}
	return t.err
}

// goOn gives cores of an async run, which have waited long enough for rows and weights of
// their own epoch, what can be done with older ones.
func (t *trainer) goOn() bool {
	if t.train == nil || t.stopping || t.cfg.Sync {
		return false
	}
	late := 0
	if idle := t.workers.n - (t.flying - t.remoteOn); idle > 0 {
		late = min(idle, t.machine.Late())
	}
	enough, longer := t.patience.Ask(time.Since(t.cfg.Start).Seconds(), late)
	t.enough.Stop()
	if enough {
		t.feed(t.machine.Step(sched.Input{Idle: late}))
	} else if longer > 0 {
		t.enough.Reset(time.Duration(longer*1e9) + 1)
	}
	return enough
}

// watch lets the backend see the queues, if it wants to.
func (t *trainer) watch() {
	w, ok := t.backend.(engine.Watcher)
	if !ok {
		return
	}
	queued := t.jobs.len()
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

// work is one worker: a core of the graph server.
func (t *trainer) work(ctx context.Context, id int, s kernels.Stream) {
	for {
		j, ok := t.jobs.take(ctx)
		if !ok {
			return
		}
		if o := t.execute(ctx, s, id, j); o.err != errLeft {
			t.results <- o
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
		t.waiting = append(t.waiting, job{p: t.train, t: x, turn: x.Epoch})
	}
}

func (t *trainer) feedEval(tasks []task.Task) {
	for _, x := range tasks {
		t.waiting = append(t.waiting, job{p: t.eval.pass, t: x, turn: t.current.epoch + 1, weights: &t.current.weights})
	}
}

// pump hands waiting jobs out: graph tasks and local tensor tasks to the cores'
// queue, other tensor tasks to the backend while it has slots, the oldest epoch first.
// Publications that are a mere note to the scheduler are done on the spot.
func (t *trainer) pump() {
	slices.SortStableFunc(t.waiting, func(a, b job) int { return cmp.Compare(a.turn, b.turn) })
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
			go func() { t.results <- t.execute(t.away, nil, len(t.workers.streams), j) }()
		default:
			t.flying++
			t.jobs.put(j)
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
	return b >= 0 && j.p.pub[b].latch == nil
}

func (t *trainer) handle(o outcome) {
	t.flying--
	if o.t.Kind.Tensor() && !t.backend.Local() {
		t.remoteOn--
		if o.p.train || !t.current.alone {
			t.tensorDone++
			t.tensorBusy += o.took
		}
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
	var lost lostWork
	return errors.Is(o.err, context.Canceled) || errors.As(o.err, &lost) && o.t.Kind.Tensor() && !t.backend.Local()
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
		if !t.current.alone {
			e.Name = "eval " + e.Name
			t.listener.Event(e)
		}
		t.feedEval(t.eval.machine.Step(sched.Input{Done: &o.t.ID}))
		t.endEval()
		return
	}
	if e.Age = o.age.Total(); t.cfg.Partitions > 1 {
		e.AgeFrom = o.age
	}
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
	t.patience.Epoch(now.Sub(t.lastEpoch).Seconds())
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

// stop issues nothing more. What runs on this server's cores is waited for; nobody needs
// any more what other backends would bring.
func (t *trainer) stop() {
	if t.stopping {
		return
	}
	t.stopping = true
	t.recall()
	if t.machine != nil {
		t.machine.Step(sched.Input{Stop: true})
	}
	t.waiting = nil
	if t.current != nil {
		t.evalQueue = append(t.evalQueue, *t.current)
	}
	for _, due := range t.evalQueue {
		if !due.alone {
			t.params.Release(evalInterval, due.epoch)
		}
	}
	t.evalQueue = nil
}

func (t *trainer) fail(err error) {
	if t.err == nil {
		t.err = err
	}
	t.stop()
}

// Package fleet is the graph server's side of Lambda mode: an engine.Backend whose
// tensor tasks run on workers that come over a stream.
//
// Run takes the first result of a task that any worker gives; others are dropped.
// Workers may be lost, hang, repeat themselves or answer late: race.go has the rules,
// pool.go who gets which task, crew.go how workers are sent for, own.go what becomes of
// a task that no worker can do. Whatever happens without being asked for is an event
// that Take gives.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"dorylus/engine"
	"dorylus/engine/model"
	"dorylus/kernels"
	"dorylus/lambda/codec"
	"dorylus/lambda/plan"
	"dorylus/lambda/wire"
	"dorylus/lambda/worker"
)

// Launcher brings workers into being.
type Launcher interface {
	// Launch invokes one worker, which will come with this invitation, and returns when
	// its invocation has ended: nil if it left in good order. It has to return soon
	// once ctx is done. An error that no other call will change wraps ErrNever.
	Launch(ctx context.Context, in worker.Invitation) error
}

// Options configure a fleet.
type Options struct {
	// Workers is how many are wanted; at least 1. Resize changes it.
	Workers  int
	Launcher Launcher
	// Device is the graph server's own: what runs tasks that no worker can.
	Device kernels.Device
	// Precision of floats on the wire: "fp32" (default), "bf16", "fp16".
	Precision string
	// Codec of all frames on the wire: "auto" (default), "none", "s2", "zstd".
	Codec string
	// Attempts is how often a task is tried on workers, hedges included, before the
	// graph server does it; default 4.
	Attempts int
	// Patience is how long a task may take before it is started on a second worker,
	// until there is experience; default 30 s. Afterwards it is eight times the usual
	// time, at least Floor (default 1 s). A worker that takes twice as long is cut off.
	Patience, Floor time.Duration
	// BackOff is the pause before a failed task is tried again, for the first time;
	// default 50 ms.
	BackOff time.Duration
	// GiveUp is how long a task waits where there is no worker at all, how long a worker
	// may take to come, and for how long workers may all die before they have done a
	// task; default 30 s.
	GiveUp time.Duration
	// OnNoWorkers says what becomes of tasks then: "local" (default), the graph server's
	// own cores do them until a worker comes; "fail", Run fails with ErrNoWorkers.
	OnNoWorkers string
	// Held is what invocations under way have used so far, for the live bill; nil: it is
	// not known.
	Held func() engine.LambdaHeld
	// Leave is how long workers may take to leave when the fleet is closed; default 5 s.
	Leave time.Duration
}

// Fleet implements engine.Backend, engine.Binder and engine.Reporter.
type Fleet struct {
	opt     Options
	run     string // a token: what environments keep of other runs does not count
	job     *engine.Job
	plans   [engine.Passes]*plan.Plan
	enc     *codec.Encoder
	weights *weightFrames
	times   *times
	reports *reports
	// frameBytes and chunkBytes are how shards are cut.
	frameBytes, chunkBytes int
	// nextBill is when Held is told again; only Observe looks at it.
	nextBill time.Duration

	ctx    context.Context // of invocations and attempts
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	mu struct {
		sync.Mutex
		closed  bool
		crew    pool              // workers
		own     pool              // the graph server's own cores
		invited map[string]*guest // by token: workers that have not come yet
		next    int               // number of the last worker that was sent for
		away    int               // invocations under way
		slow    int               // links whose task is beyond its limit
		leaving int               // links that have been asked to leave
		workers int               // that are wanted
		// fails counts rounds of launches in a row that came to nothing (failedLocked),
		// the last of them at failed and because of lastErr. All since vain, when the
		// first came to nothing or a worker last did a task, has been in vain.
		fails   int
		failed  time.Time
		vain    time.Time
		lastErr error
		alone   bool // tasks do not wait for workers: none has been of use for long

		attempt    int64
		walks      map[roomKey]*walk
		lastWalk   int64
		shardBytes map[roomKey]int64 // as it was last sent
		stats      Stats
		lastOwn    engine.OwnCores
		ownTold    bool // lastOwn is among the reports
	}
}

// walk is where an interval is in its walk through the program.
type walk struct {
	id   int64
	step int
}

// Stats counts what a fleet has done.
type Stats struct {
	// Tasks are those that workers have done, Late of which, or whose messages, were
	// too late, or repeats; Own those of the graph server; Off attempts that a worker has
	// dropped when it was told.
	Tasks, Retries, Hedges, Late, Own, Off int64
	// Shards were sent; Replayed are steps that workers had to run again.
	Shards, Replayed         int64
	SentBytes, ReceivedBytes int64
	// Of SentBytes: shards, and weights.
	ShardBytes, WeightBytes int64
	Workers                 int // that have come
}

// New is a fleet without workers: they are called when there is work.
func New(o Options) (*Fleet, error) {
	if o.Workers < 1 {
		return nil, fmt.Errorf("lambda fleet: %d workers: at least 1 is needed", o.Workers)
	}
	if o.Precision == "" {
		o.Precision = "fp32"
	}
	if o.Codec == "" {
		o.Codec = "auto"
	}
	if o.OnNoWorkers == "" {
		o.OnNoWorkers = "local"
	}
	if o.OnNoWorkers != "local" && o.OnNoWorkers != "fail" {
		return nil, fmt.Errorf("lambda fleet: without workers %q: want local or fail", o.OnNoWorkers)
	}
	if o.Attempts == 0 {
		o.Attempts = 4
	}
	for d, standard := range map[*time.Duration]time.Duration{
		&o.Patience: 30 * time.Second, &o.Floor: time.Second, &o.BackOff: 50 * time.Millisecond,
		&o.GiveUp: 30 * time.Second, &o.Leave: 5 * time.Second,
	} {
		if *d == 0 {
			*d = standard
		}
	}
	enc, err := (&wire.Job{Precision: o.Precision, Codec: o.Codec}).Encoder()
	if err != nil {
		return nil, fmt.Errorf("lambda fleet: %w", err)
	}
	f := &Fleet{opt: o, run: token(), enc: enc, weights: &weightFrames{enc: enc, of: map[int][]*weightFrame{}}, times: newTimes(), reports: newReports(),
		frameBytes: frameBytes, chunkBytes: chunkBytes}
	f.ctx, f.cancel = context.WithCancelCause(context.Background())
	f.mu.crew, f.mu.own, f.mu.workers = newPool(), newPool(), o.Workers
	f.mu.invited, f.mu.walks, f.mu.shardBytes = map[string]*guest{}, map[roomKey]*walk{}, map[roomKey]int64{}
	return f, nil
}

// Name implements engine.Backend.
func (f *Fleet) Name() string { return "lambda" }

// Local implements engine.Backend.
func (f *Fleet) Local() bool { return false }

// Slots implements engine.Backend: as many tasks as workers, and as many that wait, of
// which a worker that has become idle is given one whose shard it holds.
func (f *Fleet) Slots() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return 2 * f.mu.workers
}

// Sums implements engine.Summer: gradients are most of what small rows leave to send.
func (f *Fleet) Sums() bool { return true }

// Tails implements engine.Summer.
func (f *Fleet) Tails() bool { return false }

// Bind implements engine.Binder.
func (f *Fleet) Bind(_ context.Context, j *engine.Job) error {
	f.job = j
	f.plans[engine.Training] = plan.New(j.Program, len(j.Program.Steps))
	f.plans[engine.Evaluation] = plan.New(j.Program, j.Program.Forward)
	return nil
}

// Stats is what has happened so far.
func (f *Fleet) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.stats
}

func (f *Fleet) count(change func(s *Stats)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.mu.stats)
}

func (f *Fleet) nextAttempt() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.attempt++
	return f.mu.attempt
}

// enter counts a goroutine among those that Close waits for, unless it is too late.
func (f *Fleet) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.mu.closed {
		f.wg.Add(1)
	}
	return !f.mu.closed
}

// Run implements engine.Backend.
func (f *Fleet) Run(ctx context.Context, w *engine.Work) error {
	if f.job == nil {
		return errors.New("lambda fleet: it was given work before the job")
	}
	walk := f.walk(w)
	if len(w.Blocks) == 0 {
		return nil
	}
	t := f.newTask(w, walk)
	defer t.close()
	res, err := f.race(ctx, t)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		if res, err = f.alone(ctx, t, err); err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return err
		}
	}
	t.close()
	err = t.commit(res)
	res.free()
	return err
}

// walk numbers the interval's walk that a task belongs to. A walk takes the steps in
// their order: one that is not beyond the last begins another, or is run again.
func (f *Fleet) walk(w *engine.Work) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := roomKey{w.Pass, w.Interval}
	at := f.mu.walks[k]
	if at == nil {
		at = &walk{step: w.Task.Step}
		f.mu.walks[k] = at
	}
	if w.Task.Step <= at.step {
		f.mu.lastWalk++
		at.id = f.mu.lastWalk
	}
	at.step = w.Task.Step
	return at.id
}

// opening is the message that opens a stream.
func (f *Fleet) opening() *wire.Message {
	return &wire.Message{Job: &wire.Job{Run: f.run, Model: f.job.Model, Steps: len(f.job.Program.Steps), Precision: f.opt.Precision, Codec: f.opt.Codec}}
}

// program is the job's.
func (f *Fleet) program() *model.Program { return f.job.Program }

var errClosed = errors.New("the run is over")

// Close has all workers leave and waits until their invocations have ended, which it
// makes them do after Options.Leave. No Run may be under way.
func (f *Fleet) Close() error {
	late := time.AfterFunc(f.opt.Leave, func() { f.cancel(errClosed) })
	defer late.Stop()
	f.mu.Lock()
	f.mu.closed = true
	if f.mu.stats.Own > 0 && !f.mu.ownTold {
		f.reports.add(f.mu.lastOwn)
		f.mu.ownTold = true
	}
	for _, g := range f.mu.invited { // they would wait for a stream that nobody takes
		g.cancel()
	}
	var leaving sync.WaitGroup
	for _, p := range []*pool{&f.mu.crew, &f.mu.own} {
		p.dismiss()
		for l, idle := range p.links {
			leaving.Go(func() { l.leave(idle, "the run is over", f.opt.Leave) })
		}
	}
	f.mu.Unlock()
	leaving.Wait()
	f.wg.Wait()
	f.cancel(errClosed)
	if f.opt.Held != nil {
		f.Tell(engine.LambdaHeld{}) // all have been billed
	}
	f.tellTraffic()
	return nil
}

// Observe implements engine.Watcher: it keeps the bill of invocations under way up to
// date.
func (f *Fleet) Observe(l engine.Load) {
	if f.opt.Held == nil || l.At < f.nextBill {
		return
	}
	f.nextBill = l.At + billEvery
	f.Tell(f.opt.Held())
}

// billEvery is how often what invocations have used so far is told.
const billEvery = time.Second

// tellTraffic reports the bytes of the run.
func (f *Fleet) tellTraffic() {
	s := f.Stats()
	if f.job == nil || s.SentBytes == 0 {
		return
	}
	v := f.Savings()
	f.Tell(engine.Wired{
		Sent: s.SentBytes, Received: s.ReceivedBytes, Shards: s.ShardBytes, Weights: s.WeightBytes,
		Naive: v.Naive, Planned: v.Planned, Fusion: v.Fusion, Residency: v.Residency, Remade: v.Remade, Order: v.Order, Merged: v.Merged,
	})
}

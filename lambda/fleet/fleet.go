// Package fleet is the graph server's side of Lambda mode: an engine.Backend whose
// tensor tasks run on workers that come over a stream.
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
	// its invocation has ended: nil if it left in good order.
	Launch(ctx context.Context, in worker.Invitation) error
}

// Options configure a fleet.
type Options struct {
	// Workers is how many are wanted; at least 1.
	Workers  int
	Launcher Launcher
	// Device is the graph server's own: what runs tasks that no worker can.
	Device kernels.Device
	// Precision of floats on the wire: "fp32" (default), "bf16", "fp16".
	Precision string
	// Attempts is how often a task is tried on workers before the graph server does it;
	// default 4.
	Attempts int
	// Patience is how long a task may take before it is tried elsewhere, until there is
	// experience; default 30 s. Afterwards it is eight times the usual time, at least
	// Floor (default 1 s).
	Patience, Floor time.Duration
	// Listener hears what happens.
	Listener engine.Listener
}

// Fleet implements engine.Backend and engine.Binder.
type Fleet struct {
	opt   Options
	job   *engine.Job
	plans [engine.Passes]*plan.Plan
	enc   *codec.Encoder
	times *times

	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	mu struct {
		sync.Mutex
		links   map[*link]bool
		invited map[string]int // tokens of workers that have not come yet
		next    int            // number of the next worker
		away    int            // invocations under way
		fails   int            // launches in a row that came to nothing
		waiters []chan *link
		own     *link
		attempt int64
		closing bool
		stats   Stats
	}
}

// Stats counts what a fleet has done.
type Stats struct {
	Tasks, Retries, Hedges, Late, Own int64
	Shards, Replayed                  int64
	SentBytes, ReceivedBytes          int64
	Workers                           int
}

// New is a fleet without workers: they are called when there is work.
func New(o Options) (*Fleet, error) {
	if o.Workers < 1 {
		return nil, fmt.Errorf("lambda fleet: %d workers: at least 1 is needed", o.Workers)
	}
	if o.Precision == "" {
		o.Precision = "fp32"
	}
	precision, err := codec.ParseWire(o.Precision)
	if err != nil {
		return nil, err
	}
	if o.Attempts == 0 {
		o.Attempts = 4
	}
	if o.Patience == 0 {
		o.Patience = 30 * time.Second
	}
	if o.Floor == 0 {
		o.Floor = time.Second
	}
	f := &Fleet{opt: o, times: newTimes()}
	if f.enc, err = codec.NewEncoder(codec.Options{Wire: precision}); err != nil {
		return nil, err
	}
	f.ctx, f.cancel = context.WithCancelCause(context.Background())
	f.mu.links, f.mu.invited = map[*link]bool{}, map[string]int{}
	return f, nil
}

// Name implements engine.Backend.
func (f *Fleet) Name() string { return "lambda" }

// Local implements engine.Backend.
func (f *Fleet) Local() bool { return false }

// Slots implements engine.Backend.
func (f *Fleet) Slots() int { return f.opt.Workers }

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

// Run implements engine.Backend. It takes results from whoever is first, and does the
// work itself where workers cannot.
func (f *Fleet) Run(ctx context.Context, w *engine.Work) error {
	if f.job == nil {
		return errors.New("lambda fleet: it was given work before the job")
	}
	if len(w.Blocks) == 0 {
		return nil
	}
	t := f.newTask(w)
	for n := 0; n < f.opt.Attempts; n++ {
		l := f.acquire(ctx, t.key)
		if l == nil {
			break
		}
		if n > 0 {
			f.count(func(s *Stats) { s.Retries++ })
		}
		res, err := f.attempt(ctx, t, l)
		if err == nil {
			return f.commit(w, res)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f.event(w, n+1, err)
	}
	own, err := f.takeOwn(ctx)
	if err != nil {
		return fmt.Errorf("lambda fleet: do %v on the graph server's own cores: %w", w.Task, err)
	}
	defer f.release(own)
	f.count(func(s *Stats) { s.Own++ })
	f.event(w, f.opt.Attempts, errors.New("no worker could do it: the graph server's own cores do"))
	res, err := own.do(ctx, t)
	if err != nil {
		return fmt.Errorf("lambda fleet: do %v on the graph server's own cores: %w", w.Task, err)
	}
	return f.commit(w, res)
}

func (f *Fleet) event(w *engine.Work, n int, err error) {
	if f.opt.Listener != nil {
		f.opt.Listener.Event(engine.Retried{Task: w.Task, Attempt: n, Cause: err.Error()})
	}
}

// opening is the message that opens a stream.
func (f *Fleet) opening() *wire.Message {
	return &wire.Message{Job: &wire.Job{Model: f.job.Model, Steps: len(f.job.Program.Steps), Precision: f.opt.Precision}}
}

// program is the job's.
func (f *Fleet) program() *model.Program { return f.job.Program }

// farewell is how long workers have to leave in good order at the end.
const farewell = 5 * time.Second

// Close asks all workers to leave and waits for their invocations, whose bills come with
// their ends; those that do not leave are cut off.
func (f *Fleet) Close() error {
	f.mu.Lock()
	links := make([]*link, 0, len(f.mu.links)+1)
	for l := range f.mu.links {
		links = append(links, l)
	}
	if f.mu.own != nil {
		links = append(links, f.mu.own)
	}
	f.mu.closing = true
	f.mu.Unlock()
	const why = "the run is over"
	timer := time.AfterFunc(farewell, func() {
		f.cancel(errors.New(why))
		for _, l := range links {
			l.stop()
		}
	})
	for _, l := range links {
		l.conn.Send(&wire.Message{Stop: &wire.Stop{Why: why}})
	}
	f.wg.Wait()
	timer.Stop()
	f.cancel(errors.New(why))
	return nil
}

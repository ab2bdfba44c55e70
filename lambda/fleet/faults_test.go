package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dorylus/engine"
	"dorylus/engine/pipeline"
	"dorylus/engine/store"
	"dorylus/lambda/wire"
	"dorylus/lambda/worker"
)

// tap is the graph server's side of a stream that a test looks into. heard is asked for
// each message from the worker, after that is told of the last task that was sent: it
// says what becomes of it.
type tap struct {
	*wire.PipeConn
	heard func(last *wire.Task, m *wire.Message) fate
	last  struct {
		sync.Mutex
		task *wire.Task
	}
}

type fate int

const (
	arrives fate = iota
	vanishes
	breaks // the stream, and the message with it
)

func (c *tap) Send(m *wire.Message) error {
	if m.Task != nil {
		c.last.Lock()
		c.last.task = m.Task
		c.last.Unlock()
	}
	return c.PipeConn.Send(m)
}

func (c *tap) Recv() (*wire.Message, error) {
	for {
		m, err := c.PipeConn.Recv()
		if err != nil || m.Hello != nil {
			return m, err
		}
		c.last.Lock()
		task := c.last.task
		c.last.Unlock()
		switch c.heard(task, m) {
		case arrives:
			return m, nil
		case breaks:
			c.Close()
			return nil, io.EOF
		}
	}
}

// quick are options in virtual time.
func quick(workers int) Options {
	return Options{Workers: workers, Codec: "none", Patience: time.Second, Floor: 100 * time.Millisecond, GiveUp: 3 * time.Second}
}

// outcome is what a run under a test's eyes has come to.
type outcome struct {
	res   *pipeline.Result
	err   error
	s     Stats
	d     *diary
	took  time.Duration // virtual
	fleet *Fleet
}

// scripted trains in virtual time on workers whose messages pass through heard.
func scripted(t *testing.T, st *store.Store, o Options, p *inProcess, set func(c *engine.Config), heard func(f *Fleet, worker int, last *wire.Task, m *wire.Message) fate) (out outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if heard != nil {
			p.wrap = func(in worker.Invitation, c *wire.PipeConn) conn {
				return &tap{PipeConn: c, heard: func(last *wire.Task, m *wire.Message) fate { return heard(p.f, in.Worker, last, m) }}
			}
		}
		f := p.start(t, o)
		run := options(t, st, p.dev, set)
		start := time.Now()
		res, err := tryTrain(run, f)
		out = outcome{res, err, f.Stats(), run.Listener.(*diary), time.Since(start), f}
	})
	return out
}

func gat(c *engine.Config) {
	*c = engine.DefaultConfig("gat")
	c.Epochs, c.Intervals, c.Hidden, c.Heads, c.EvalEvery, c.Threads = 2, 1, 2, 2, 1, 1
}

func TestAWorkerIsKilledInTheMiddleOfEachKindOfTask(t *testing.T) {
	st, dev := tiny(t), device(t)
	want := train(t, options(t, st, dev, gat), nil)
	var names []string
	scripted(t, st, quick(2), &inProcess{dev: dev}, gat, func(f *Fleet, _ int, last *wire.Task, _ *wire.Message) fate {
		name := stepName(f, last)
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
		return arrives
	})
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "AE1 AE2 AV1 AV2 loss+∇AV2 ∇AE1 ∇AE2 ∇AV1 ∇AV2" {
		t.Errorf("the kinds of tasks are %s", got)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			var once sync.Once
			out := scripted(t, st, quick(2), &inProcess{dev: dev}, gat, func(f *Fleet, _ int, last *wire.Task, m *wire.Message) fate {
				what := arrives
				// The second block's result: the first one has come.
				if stepName(f, last) == name && m.Result != nil && m.Result.Block == 1 {
					once.Do(func() { what = breaks })
				}
				return what
			})
			if out.err != nil {
				t.Fatal(out.err)
			}
			sameBits(t, name, want, out.res)
			if out.s.Retries != 1 || out.s.Own != 0 {
				t.Errorf("%d retries, %d tasks on own cores, want 1 and 0", out.s.Retries, out.s.Own)
			}
			if told := all[engine.Retried](out.d); len(told) != 1 || !strings.Contains(told[0].Cause, "its stream has ended") {
				t.Errorf("events tell of %v", told)
			}
		})
	}
}

// stepName is what a task's last step is called, with its layer.
func stepName(f *Fleet, x *wire.Task) string {
	if x == nil {
		return ""
	}
	s := f.program().Steps[x.Steps[len(x.Steps)-1].Step]
	return fmt.Sprintf("%s%d", s.Name, s.Layer)
}

func TestAllWorkersAreKilledAtOnce(t *testing.T) {
	st, dev := tiny(t), device(t)
	set := func(c *engine.Config) { gat(c); c.Intervals = 3 }
	want := train(t, options(t, st, dev, set), nil)
	var mu sync.Mutex
	heard := map[int]int{}
	dead := map[int]bool{}
	out := scripted(t, st, quick(3), &inProcess{dev: dev}, set, func(_ *Fleet, worker int, _ *wire.Task, m *wire.Message) fate {
		mu.Lock()
		defer mu.Unlock()
		if heard[worker]++; len(dead) == 0 && heard[worker] > 8 {
			for w := 1; w <= 3; w++ {
				dead[w] = true
			}
		}
		if dead[worker] {
			return breaks
		}
		return arrives
	})
	if out.err != nil {
		t.Fatal(out.err)
	}
	sameBits(t, "all killed", want, out.res)
	left := 0
	for _, e := range all[engine.WorkerLeft](out.d) {
		if e.Worker <= 3 && strings.Contains(e.Why, "its stream has ended") {
			left++
		}
	}
	if left != 3 || out.s.Workers < 4 || out.s.Own > 0 {
		t.Errorf("%d workers were lost, %d came in all, %d tasks on own cores: want 3, more than 3, 0", left, out.s.Workers, out.s.Own)
	}
}

func TestAWorkerHangs(t *testing.T) {
	st, dev := tiny(t), device(t)
	set := func(c *engine.Config) { gat(c); c.Intervals, c.Epochs = 3, 6 }
	want := train(t, options(t, st, dev, set), nil)
	for _, workers := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d workers", workers), func(t *testing.T) {
			var mu sync.Mutex
			heard := 0
			out := scripted(t, st, quick(workers), &inProcess{dev: dev}, set, func(_ *Fleet, worker int, _ *wire.Task, m *wire.Message) fate {
				wait(20*time.Millisecond, nil) // so that the run goes on for some time
				mu.Lock()
				defer mu.Unlock()
				if worker == 1 && heard >= 10 {
					return vanishes
				} else if worker == 1 {
					heard++
				}
				return arrives
			})
			if out.err != nil {
				t.Fatal(out.err)
			}
			sameBits(t, "hung", want, out.res)
			if n := len(all[engine.Hedged](out.d)); n == 0 || int64(n) != out.s.Hedges {
				t.Errorf("%d hedges, events tell of %d, want some", out.s.Hedges, n)
			}
			cut := 0
			for _, e := range all[engine.WorkerLeft](out.d) {
				if e.Worker == 1 && e.Why == errSlow.Error() {
					cut++
				}
			}
			if cut != 1 || out.s.Own > 0 {
				t.Errorf("worker 1 was cut off %d times, want once; %d tasks on own cores: %+v", cut, out.s.Own, all[engine.WorkerLeft](out.d))
			}
			if out.took > 30*time.Second {
				t.Errorf("it took %v", out.took)
			}
		})
	}
}

func TestWorkersNeverCome(t *testing.T) {
	st, dev := tiny(t), device(t)
	want := train(t, options(t, st, dev, gat), nil)
	busy := func(context.Context, worker.Invitation) error { return errors.New("the service is busy") }
	absent := func(ctx context.Context, _ worker.Invitation) error { <-ctx.Done(); return ctx.Err() }
	never := func(context.Context, worker.Invitation) error { return fmt.Errorf("no such function: %w", ErrNever) }
	for _, c := range []struct {
		name   string
		arrive func(context.Context, worker.Invitation) error
		within time.Duration
		says   string
	}{{"busy", busy, 4 * time.Second, "the service is busy"}, {"absent", absent, 4 * time.Second, "within 3s"}, {"never", never, time.Millisecond, "no such function"}} {
		t.Run(c.name, func(t *testing.T) {
			out := scripted(t, st, quick(2), &inProcess{dev: dev, arrive: c.arrive}, gat, nil)
			if out.err != nil {
				t.Fatal(out.err)
			}
			sameBits(t, c.name, want, out.res)
			if out.took > c.within {
				t.Errorf("it took %v, want at most %v", out.took, c.within)
			}
			own := all[engine.OwnCores](out.d)
			if len(own) == 0 || own[len(own)-1].Tasks != out.s.Own || !strings.Contains(own[0].Cause, c.says) {
				t.Errorf("%d tasks on own cores, of which is told %+v, want a cause with %q", out.s.Own, own, c.says)
			}
			if w := all[engine.Warned](out.d); len(w) != 1 || !strings.Contains(w[0].Message, c.says) {
				t.Errorf("warnings %+v, want one with %q", w, c.says)
			}
		})
		t.Run(c.name+", fail", func(t *testing.T) {
			o := quick(2)
			o.OnNoWorkers = "fail"
			out := scripted(t, st, o, &inProcess{dev: dev, arrive: c.arrive}, gat, nil)
			if !errors.Is(out.err, ErrNoWorkers) || !strings.Contains(fmt.Sprint(out.err), c.says) {
				t.Errorf("the run ended with %v", out.err)
			}
			if out.took > c.within || out.s.Own > 0 {
				t.Errorf("it took %v, want at most %v; %d tasks on own cores", out.took, c.within, out.s.Own)
			}
		})
	}
}

// A service that is busy for a while costs time, and nothing else.
func TestServiceIsBusyFor10Seconds(t *testing.T) {
	st, dev := tiny(t), device(t)
	want := train(t, options(t, st, dev, gat), nil)
	var start time.Time
	var once sync.Once
	o := quick(2)
	o.GiveUp = 30 * time.Second
	out := scripted(t, st, o, &inProcess{dev: dev, arrive: func(context.Context, worker.Invitation) error {
		once.Do(func() { start = time.Now() })
		if time.Since(start) < 10*time.Second {
			return errors.New("the service is busy")
		}
		return nil
	}}, gat, nil)
	if out.err != nil {
		t.Fatal(out.err)
	}
	sameBits(t, "busy", want, out.res)
	if out.s.Own > 0 || out.took < 10*time.Second || out.took > 10*time.Second+maxPause+100*time.Millisecond {
		t.Errorf("it took %v, %d tasks on own cores; want 10 to 12 s, none", out.took, out.s.Own)
	}
	if n := len(all[engine.WorkerLeft](out.d)); n > 2*15 {
		t.Errorf("%d workers were sent for in vain, want at most 30", n)
	}
}

// Workers that come after the fleet has gone on without them are used again.
func TestWorkersComeBack(t *testing.T) {
	st, dev := tiny(t), device(t)
	set := func(c *engine.Config) { gat(c); c.Epochs = 4 }
	want := train(t, options(t, st, dev, set), nil)
	var calls, mu = 0, sync.Mutex{}
	out := scripted(t, st, quick(1), &inProcess{dev: dev, arrive: func(context.Context, worker.Invitation) error {
		mu.Lock()
		defer mu.Unlock()
		if calls++; calls == 1 {
			return fmt.Errorf("no such function: %w", ErrNever)
		}
		return nil
	}}, set, nil)
	if out.err != nil {
		t.Fatal(out.err)
	}
	sameBits(t, "come back", want, out.res)
	if out.s.Own == 0 {
		t.Errorf("no task on own cores: %+v", out.s)
	}
}

func TestAsyncUnderFaults(t *testing.T) {
	st, dev := tiny(t), device(t)
	set := func(c *engine.Config) {
		gat(c)
		c.Pipeline, c.Staleness, c.AsyncWait, c.Intervals, c.Epochs = "async", 1, 0, 3, 4
	}
	seeds := uint64(40)
	if testing.Short() || raceEnabled {
		seeds = 8
	}
	for seed := range seeds {
		var d *diary
		res, _, what := underFaults(t, st, dev, seed, func(c *engine.Config) { set(c) }, func(x *diary) { d = x })
		done := all[engine.EpochDone](d)
		if len(done) != 4 || res.Epochs != 4 {
			t.Errorf("%s: %d epochs, %d told, want 4", what, res.Epochs, len(done))
		}
		for _, e := range done {
			if math.IsNaN(e.Loss) || math.IsInf(e.Loss, 0) || e.Loss <= 0 {
				t.Errorf("%s: the loss of epoch %d is %v", what, e.Epoch, e.Loss)
			}
		}
	}
}

// The number of workers may change at any time.
func TestResizeInTheMiddleOfARun(t *testing.T) {
	st, dev := tiny(t), device(t)
	set := func(c *engine.Config) { gat(c); c.Intervals, c.Epochs = 3, 6 }
	want := train(t, options(t, st, dev, set), nil)
	var mu sync.Mutex
	heard := 0
	sizes := map[int]int{20: 3, 120: 1, 220: 2}
	out := scripted(t, st, quick(1), &inProcess{dev: dev}, set, func(f *Fleet, _ int, _ *wire.Task, _ *wire.Message) fate {
		wait(time.Millisecond, nil)
		mu.Lock()
		defer mu.Unlock()
		heard++
		if n := sizes[heard]; n > 0 {
			f.Resize(n)
		}
		return arrives
	})
	if out.err != nil {
		t.Fatal(out.err)
	}
	sameBits(t, "resized", want, out.res)
	most, told := 0, 0
	for _, e := range all[engine.WorkerCame](out.d) {
		most = max(most, e.Workers)
	}
	for _, e := range all[engine.WorkerLeft](out.d) {
		if strings.Contains(e.Why, "more workers than needed") {
			told++
		}
	}
	if most != 3 || told != 2 || out.s.Workers != 4 || out.s.Own > 0 || out.s.Retries > 0 {
		t.Errorf("at most %d workers, %d were sent away, %d came in all, %d retries, %d tasks on own cores; want 3, 2, 4, 0, 0",
			most, told, out.s.Workers, out.s.Retries, out.s.Own)
	}
}

package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"dorylus/engine"
	"dorylus/engine/backend"
	"dorylus/engine/model"
	"dorylus/engine/params"
	"dorylus/engine/sched"
	"dorylus/engine/task"
	"dorylus/kernels"
)

// flaky runs tensor tasks like a fleet of remote workers that loses some of
// them, before the work or with the answer.
type flaky struct {
	engine.Backend
	slots int

	mu   sync.Mutex
	rng  *rand.Rand
	lost int
	of   map[string]int // losses by task: never more than two, or the run would rightly end
}

func (f *flaky) Local() bool { return false }
func (f *flaky) Slots() int  { return f.slots }

func (f *flaky) Run(ctx context.Context, w *engine.Work) error {
	f.mu.Lock()
	x, name := f.rng.IntN(12), fmt.Sprintf("%v %d", w.Task, len(w.Ops))
	if f.of[name] >= 2 {
		x = 11
	}
	if x < 2 {
		f.lost++
		f.of[name]++
	}
	f.mu.Unlock()
	if x == 0 {
		return fmt.Errorf("the worker of %v is gone", w.Task)
	}
	before := snapshot(w)
	err := f.Backend.Run(ctx, w)
	if err == nil && x == 1 {
		restore(w, before)
		return fmt.Errorf("the answer of %v is lost", w.Task)
	}
	return err
}

func snapshot(w *engine.Work) [][]float32 {
	var out [][]float32
	for _, c := range w.Blocks {
		for _, b := range w.Step.Out {
			if m := c.Full[b]; m.Stride > 1 { // not one value per non-zero feature
				out = append(out, slices.Clone(c.Mat(b).Host))
			} else {
				out = append(out, nil)
			}
		}
	}
	return out
}

func restore(w *engine.Work, before [][]float32) {
	i := 0
	for _, c := range w.Blocks {
		for _, b := range w.Step.Out {
			if before[i] != nil {
				copy(c.Mat(b).Host, before[i])
			}
			i++
		}
	}
}

func TestRemoteBackendThatLosesTasksGivesTheSameBits(t *testing.T) {
	want := mustTrain(t, options(t))
	for seed := range uint64(4) {
		var f *flaky
		o := options(t, func(o *Options) {
			local := backend.NewLocal(o.Device)
			t.Cleanup(func() { local.Close() })
			f = &flaky{Backend: local, slots: 1 + int(seed), rng: rand.New(rand.NewPCG(seed, 4)), of: map[string]int{}}
			o.Backend = f
		})
		got := mustTrain(t, o)
		if f.lost == 0 {
			t.Errorf("seed %d: nothing was lost, the test shows nothing", seed)
		}
		if got.WeightsSHA256 != want.WeightsSHA256 {
			t.Errorf("seed %d, %d losses: weights %.12s, want %.12s", seed, f.lost, got.WeightsSHA256, want.WeightsSHA256)
		}
		retried := 0
		for _, e := range events(o).events {
			if _, ok := e.(engine.Retried); ok {
				retried++
			}
		}
		if retried != f.lost {
			t.Errorf("seed %d: %d losses, %d retries reported", seed, f.lost, retried)
		}
	}
}

// mesh delivers row messages between partitions of one process, some twice, in an
// order shuffled by seed.
type mesh struct {
	mu    sync.Mutex
	rng   *rand.Rand
	boxes []*box
}

type box struct {
	mu    sync.Mutex
	queue []*engine.RowMsg
	some  chan struct{} // capacity 1: the queue may have something
}

type port struct {
	m    *mesh
	self int
}

func newMesh(n int, seed uint64) *mesh {
	m := &mesh{rng: rand.New(rand.NewPCG(seed, 5))}
	for range n {
		m.boxes = append(m.boxes, &box{some: make(chan struct{}, 1)})
	}
	return m
}

func (p port) Send(_ context.Context, msg *engine.RowMsg) error {
	for to, b := range p.m.boxes {
		if to == p.self {
			continue
		}
		p.m.mu.Lock()
		copies, at := 1+p.m.rng.IntN(2), p.m.rng.Float64()
		p.m.mu.Unlock()
		b.mu.Lock()
		for range copies {
			b.queue = slices.Insert(b.queue, int(at*float64(len(b.queue)+1)), msg)
		}
		b.mu.Unlock()
		b.wake()
	}
	return nil
}

func (b *box) wake() {
	select {
	case b.some <- struct{}{}:
	default:
	}
}

func (p port) Recv(ctx context.Context) (*engine.RowMsg, error) {
	b := p.m.boxes[p.self]
	for {
		b.mu.Lock()
		if len(b.queue) > 0 {
			m := b.queue[0]
			b.queue = b.queue[1:]
			b.mu.Unlock()
			b.wake()
			return m, nil
		}
		b.mu.Unlock()
		select {
		case <-b.some:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// tap is the shared parameter server as one partition sees it: its own channel
// of updates.
type tap struct {
	engine.Params
	updates chan engine.Update
}

func (t tap) Updates() <-chan engine.Update { return t.updates }

func TestPartitionsOverAnExchangerGiveTheSameBits(t *testing.T) {
	want := mustTrain(t, options(t)).WeightsSHA256
	for _, sync := range []bool{true, false} {
		for _, parts := range []int{1, 2, 3} {
			for seed := range uint64(3) {
				got := trainPartitioned(t, options(t), partitioned{parts: parts, sync: sync, seed: seed})
				if sum := params.SHA256(got.specs, got.weights); sync && sum != want {
					t.Errorf("%d partitions, seed %d: weights %.12s, one process %.12s", parts, seed, sum, want)
				}
			}
		}
	}
}

// partitioned says how trainPartitioned runs.
type partitioned struct {
	parts   int
	sync    bool
	seed    uint64 // of the order of messages
	allRows bool   // also rows that the loss cannot see
}

// joint is what the partitions have made together.
type joint struct {
	specs   []model.ParamSpec
	weights []*kernels.Mat
	losses  []float64
	rows    int // of all levels
}

// trainPartitioned runs one trainer per partition, as a cluster would, in one
// process.
func trainPartitioned(t *testing.T, o Options, how partitioned) joint {
	t.Helper()
	cfg, err := ModelConfig(&o.Config, o.Store)
	check(t, err)
	prog, err := cfg.Build()
	check(t, err)
	loss, err := lossOf(&o.Config, o.Store, o.Split)
	check(t, err)
	seeds := o.Split.Train
	if how.allRows {
		seeds = nil
	}
	net, out := newMesh(how.parts, how.seed), joint{specs: prog.Params}
	var trainers []*trainer
	var server *params.Server
	var taps []tap
	for k := range how.parts {
		w, err := newWorkers(o.Device, 2)
		check(t, err)
		in := newInputs(o.Device, o.Store)
		p, err := newPass(in, w, passConfig{
			prog: prog, sparse: cfg.Sparse, seeds: seeds, train: true, intervals: 7, seed: o.Seed, shared: !how.sync, latched: true,
			own:    func(n int) task.Range { return task.Range{Lo: k * n / how.parts, Hi: (k + 1) * n / how.parts} },
			labels: trainLabels(o.Store, o.Split), multi: o.Store.Multi, classW: loss.classW, lossScale: loss.scale,
		})
		check(t, err)
		t.Cleanup(func() { p.close(); in.close(); w.close() })
		if server == nil {
			server, err = params.New(params.Config{
				Specs: prog.Params, Optim: optimConfig(&o.Config), Blocks: p.plan.Blocks, Intervals: len(p.intervals), Device: o.Device,
				Init: params.InitParams(prog.Params, o.Seed),
			})
			check(t, err)
			for _, l := range p.plan.Levels {
				out.rows += l.N
			}
		}
		m, err := sched.New(sched.Config{
			Intervals: len(p.intervals), Own: p.own, Steps: p.schedule(), Epochs: o.Config.Epochs, Sync: how.sync,
		})
		check(t, err)
		ta := tap{Params: server, updates: make(chan engine.Update, o.Config.Epochs)}
		taps = append(taps, ta)
		local := backend.NewLocal(o.Device)
		t.Cleanup(func() { local.Close() })
		trainers = append(trainers, &trainer{
			cfg:     trainerConfig{Epochs: o.Config.Epochs, Sync: how.sync, Partition: k},
			workers: w, backend: local, params: ta, exchange: port{net, k}, listener: &log{},
			train: p, machine: m, onEpoch: func(engine.Update) (bool, error) { return false, nil },
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var wg sync.WaitGroup
	for _, tr := range trainers {
		wg.Go(func() {
			if err := tr.run(ctx); err != nil {
				t.Errorf("partition %d: %v", tr.cfg.Partition, err)
				cancel()
			}
		})
	}
	for range o.Config.Epochs {
		select {
		case u := <-server.Updates():
			out.losses = append(out.losses, u.Loss)
			for _, ta := range taps {
				ta.updates <- u
			}
		case <-ctx.Done():
		}
	}
	wg.Wait()
	final, err := server.Snapshot()
	check(t, err)
	out.weights = final.Weights
	check(t, server.Close())
	return out
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A gather in an async run never sees half of a publication: rows that are
// published whole, all values alike, are read whole.
func TestPublishedRowsAreNotTorn(t *testing.T) {
	o := options(t)
	rows, err := o.Device.Alloc(64, 32)
	check(t, err)
	pub := published{rows: rows, spans: []kernels.Span{{Lo: 0, Hi: 32}, {Lo: 32, Hi: 64}}, latch: make([]latch, 2)}
	for i := range pub.latch {
		pub.latch[i].epoch = -1
	}
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			for e := range 200 {
				pub.write(i, e, func(dst *kernels.Mat) {
					for r := range dst.Rows {
						for c := range dst.Row(r) {
							dst.Row(r)[c] = float32(e)
						}
					}
				})
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			for range 200 {
				pub.read([]int32{0, 1}, 200, nil, func() {
					for _, span := range pub.spans {
						first := pub.rows.Row(span.Lo)[0]
						for r := span.Lo; r < span.Hi; r++ {
							for _, x := range pub.rows.Row(r) {
								if x != first {
									t.Errorf("rows [%d,%d) hold both %v and %v", span.Lo, span.Hi, first, x)
									return
								}
							}
						}
					}
				})
			}
		})
	}
	wg.Wait()
	if !pub.write(0, 200, func(*kernels.Mat) {}) || pub.write(0, 200, func(*kernels.Mat) { t.Error("a repeat was written") }) {
		t.Error("newer rows must be published once, repeats not at all")
	}
}

// A task that is lost again and again ends the run with its name, and nothing is
// left running.
func TestBackendThatAlwaysFailsEndsTheRun(t *testing.T) {
	o := options(t, func(o *Options) {
		local := backend.NewLocal(o.Device)
		t.Cleanup(func() { local.Close() })
		o.Backend = dead{local}
	})
	if _, err := Train(context.Background(), o); err == nil || !strings.Contains(err.Error(), "AV1 e0/i") {
		t.Errorf("got %v, want an error that names the task", err)
	}
	if err := o.Device.Close(); err != nil {
		t.Errorf("the failed run left memory behind: %v", err)
	}
}

type dead struct{ engine.Backend }

func (dead) Local() bool                             { return false }
func (dead) Slots() int                              { return 2 }
func (dead) Run(context.Context, *engine.Work) error { return errors.New("no worker answers") }

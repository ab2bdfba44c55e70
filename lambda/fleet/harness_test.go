package fleet

import (
	"context"
	"sync"
	"testing"
	"time"

	"dorylus/engine"
	"dorylus/engine/dataset"
	"dorylus/engine/pipeline"
	"dorylus/engine/prepare"
	"dorylus/engine/store"
	"dorylus/kernels"
	"dorylus/kernels/devices"
	"dorylus/lambda/wire"
	"dorylus/lambda/worker"
)

// inProcess launches workers as goroutines.
type inProcess struct {
	f      *Fleet
	dev    kernels.Device
	memory int64
	// arrive is called before a worker comes; an error is the launch's.
	arrive func(ctx context.Context, in worker.Invitation) error
	// wrap puts faults into a worker's stream, on the graph server's side.
	wrap func(in worker.Invitation, c *wire.PipeConn) conn
}

// conn is a stream that can be ended.
type conn interface {
	wire.Conn
	Close()
}

func (p *inProcess) Launch(ctx context.Context, in worker.Invitation) error {
	if p.arrive != nil {
		if err := p.arrive(ctx, in); err != nil {
			return err
		}
	}
	here, there := wire.Pipe()
	var c conn = here
	if p.wrap != nil {
		c = p.wrap(in, here)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer there.Close()
	wg.Go(func() {
		p.f.Serve(c, c.Close)
		c.Close()
	})
	w := worker.New(worker.Config{Device: p.dev, Memory: p.memory})
	defer w.Close()
	_, err := w.Serve(ctx, there, in)
	return err
}

// start is a fleet of in-process workers.
func (p *inProcess) start(t testing.TB, o Options) *Fleet {
	t.Helper()
	if p.memory == 0 {
		p.memory = 1 << 30
	}
	o.Launcher, o.Device = p, p.dev
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	p.f = f
	return f
}

func device(t testing.TB) kernels.Device {
	t.Helper()
	dev, err := devices.Open("auto")
	if err != nil {
		t.Fatal(err)
	}
	return dev
}

func graph(t testing.TB, source string, o prepare.Options) *store.Store {
	t.Helper()
	raw, err := dataset.Open(context.Background(), source, dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o.Seed = 1
	st, err := prepare.Build(context.Background(), raw, o)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func cora(t testing.TB) *store.Store { return graph(t, "cora", prepare.Options{Order: "natural"}) }

// tiny has 24 vertices in 3 blocks.
func tiny(t testing.TB) *store.Store {
	st := graph(t, "synth:sbm,vertices=24,degree=4,classes=2,features=3", prepare.Options{Order: "natural"})
	st.Meta.BlockRows = 8
	return st
}

// diary keeps the events of a run. It fails the test if two come at once.
type diary struct {
	t      testing.TB
	mu     sync.Mutex
	events []engine.Event
}

func (d *diary) Event(e engine.Event) {
	if !d.mu.TryLock() {
		d.t.Errorf("the listener was called by two goroutines at once, the second time with %v", e)
		return
	}
	defer d.mu.Unlock()
	d.events = append(d.events, e)
}

// all are the events of a kind.
func all[E engine.Event](d *diary) []E {
	var out []E
	for _, e := range d.events {
		if x, ok := e.(E); ok {
			out = append(out, x)
		}
	}
	return out
}

// options are a run's settings.
func options(t testing.TB, st *store.Store, dev kernels.Device, set func(c *engine.Config)) pipeline.Options {
	o := pipeline.Options{
		Config: engine.DefaultConfig("gcn"), Seed: 1, Store: st, Split: st.Splits[0], Device: dev, Listener: &diary{t: t},
	}
	set(&o.Config)
	return o
}

// train runs to the end, on workers where there is a fleet, which is then closed.
func train(t testing.TB, o pipeline.Options, f *Fleet) *pipeline.Result {
	t.Helper()
	res, err := tryTrain(o, f)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func tryTrain(o pipeline.Options, f *Fleet) (*pipeline.Result, error) {
	if f != nil {
		o.Backend = f
	}
	res, err := pipeline.Train(context.Background(), o)
	if f != nil {
		f.Close()
		for _, e := range f.Take() {
			o.Listener.Event(e)
		}
	}
	return res, err
}

func sameBits(t testing.TB, what string, want, got *pipeline.Result) {
	t.Helper()
	if got.WeightsSHA256 != want.WeightsSHA256 || got.PredictionsSHA256 != want.PredictionsSHA256 {
		t.Errorf("%s: weights %.12s, predictions %.12s, want %.12s, %.12s", what,
			got.WeightsSHA256, got.PredictionsSHA256, want.WeightsSHA256, want.PredictionsSHA256)
	}
}

// wait ends after d, or when stop is closed, and says whether that was not so.
func wait(d time.Duration, stop <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-stop:
		return false
	}
}

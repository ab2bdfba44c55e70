package fleet

import (
	"context"
	"fmt"
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
}

func (p *inProcess) Launch(ctx context.Context, in worker.Invitation) error {
	here, there := wire.Pipe()
	go p.f.Serve(here, here.Close)
	w := worker.New(worker.Config{Device: p.dev, Memory: p.memory})
	defer w.Close()
	defer there.Close()
	_, err := w.Serve(ctx, there, in)
	return err
}

func cora(t testing.TB) *store.Store {
	t.Helper()
	raw, err := dataset.Open(context.Background(), "cora", dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	st, err := prepare.Build(context.Background(), raw, prepare.Options{Order: "natural", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

type quiet struct{}

func (quiet) Event(engine.Event) {}

func train(t testing.TB, st *store.Store, f *Fleet, set func(c *engine.Config)) *pipeline.Result {
	t.Helper()
	dev, err := devices.Open("auto")
	if err != nil {
		t.Fatal(err)
	}
	o := pipeline.Options{Config: engine.DefaultConfig("gcn"), Seed: 1, Store: st, Split: st.Splits[0], Device: dev, Listener: quiet{}}
	set(&o.Config)
	if f != nil {
		o.Backend = f
	}
	res, err := pipeline.Train(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestSameBitsAsTheCores(t *testing.T) {
	st := cora(t)
	dev, err := devices.Open("auto")
	if err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{"gcn", "gat", "sage", "gin"} {
		set := func(c *engine.Config) { *c = engine.DefaultConfig(model); c.Epochs, c.Intervals = 5, 4 }
		want := train(t, st, nil, set)
		for _, n := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s, %d workers", model, n), func(t *testing.T) {
				p := &inProcess{dev: dev, memory: 1 << 30}
				f, err := New(Options{Workers: n, Launcher: p, Device: dev})
				if err != nil {
					t.Fatal(err)
				}
				p.f = f
				start := time.Now()
				got := train(t, st, f, set)
				took := time.Since(start)
				s := f.Stats()
				f.Close()
				t.Logf("%v %+v", took, s)
				if got.WeightsSHA256 != want.WeightsSHA256 || got.PredictionsSHA256 != want.PredictionsSHA256 {
					t.Errorf("weights %.12s, predictions %.12s, want %.12s, %.12s", got.WeightsSHA256, got.PredictionsSHA256, want.WeightsSHA256, want.PredictionsSHA256)
				}
				if s.Own > 0 || s.Tasks == 0 {
					t.Errorf("%d tasks by workers, %d by the graph server", s.Tasks, s.Own)
				}
			})
		}
	}
}

package invoke

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"

	"dorylus/engine"
	"dorylus/engine/dataset"
	"dorylus/engine/pipeline"
	"dorylus/engine/prepare"
	"dorylus/kernels/devices"
	"dorylus/lambda/fleet"
	"dorylus/lambda/worker"
)

// Which environment takes an inline invocation is chance, and one may be warm from
// another run, whose walks and tasks had the same numbers.
func TestEnvironmentsOfAnotherRun(t *testing.T) {
	dev, err := devices.Open("auto")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := dataset.Open(t.Context(), "synth:sbm,vertices=24,degree=4,classes=2,features=3", dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	st, err := prepare.Build(t.Context(), raw, prepare.Options{Order: "natural", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	st.Meta.BlockRows = 8
	train := func(seed uint64, b engine.Backend) *pipeline.Result {
		o := pipeline.Options{Config: engine.DefaultConfig("gcn"), Seed: seed, Store: st, Split: st.Splits[0], Device: dev, Backend: b, Listener: listener{}}
		o.Config.Epochs, o.Config.Intervals, o.Config.Hidden, o.Config.EvalEvery = 3, 2, 4, 0
		res, err := pipeline.Train(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	var mu sync.Mutex
	environments := []*worker.Worker{worker.New(worker.Config{Device: dev, Memory: 1 << 30}), worker.New(worker.Config{Device: dev, Memory: 1 << 30})}
	calls, only := 0, 1
	l, _ := service(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		payload, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		calls++
		answer, err := environments[calls%only].Invoke(r.Context(), payload)
		if err != nil {
			t.Error(err)
		}
		w.Write(answer)
	})
	// The first run warms one environment; the second one's calls go to both in turn.
	for seed := uint64(1); seed <= 2; seed++ {
		only = int(seed)
		in := &Inline{Launcher: l}
		f, err := fleet.New(fleet.Options{Workers: 1, Launcher: in, Device: dev})
		if err != nil {
			t.Fatal(err)
		}
		in.Serve = f.Serve
		want, got := train(seed, nil), train(seed, f)
		f.Close()
		if want.WeightsSHA256 != got.WeightsSHA256 || want.PredictionsSHA256 != got.PredictionsSHA256 {
			t.Errorf("seed %d: weights %.12s, predictions %.12s, want %.12s, %.12s", seed,
				got.WeightsSHA256, got.PredictionsSHA256, want.WeightsSHA256, want.PredictionsSHA256)
		}
		t.Logf("seed %d: %+v", seed, f.Stats())
	}
	for _, e := range environments {
		e.Close()
	}
}

type listener struct{}

func (listener) Event(engine.Event) {}

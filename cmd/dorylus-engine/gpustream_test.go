//go:build cuda && cgo && linux && (amd64 || arm64)

package main

import (
	"context"
	"fmt"
	"math"
	"testing"

	"dorylus/csrc/cuemu"
	"dorylus/engine"
	"dorylus/engine/dataset"
	"dorylus/engine/pipeline"
	"dorylus/engine/prepare"
	"dorylus/kernels/cuda"
	"dorylus/kernels/spill"
)

// A streamWatch keeps the losses of a run, and what the device holds after each epoch.
type streamWatch struct {
	dev  *cuda.Device
	loss []float64
	held []cuda.Memory
}

// Event implements engine.Listener.
func (w *streamWatch) Event(e engine.Event) {
	if e, ok := e.(engine.EpochDone); ok {
		w.loss = append(w.loss, e.Loss)
		w.held = append(w.held, w.dev.Memory())
	}
}

const streamEpochs = 4

// streamCases are models whose ops cover what can be streamed.
var streamCases = map[string]func(c *engine.Config){
	"gcn":            func(*engine.Config) {},
	"gcn, intervals": func(c *engine.Config) { c.Intervals, c.Norm, c.Layers = 3, "layer", 3 },
	"gcn async":      func(c *engine.Config) { c.Intervals, c.Pipeline, c.Threads = 3, "async", 1 },
	"gat":            func(c *engine.Config) { c.Model, c.Heads, c.AttentionDropout = "gat", 2, 0.3 },
	"sage max":       func(c *engine.Config) { c.Model, c.Aggregator = "sage", "max" },
	"gin":            func(c *engine.Config) { c.Model, c.Norm = "gin", "batch" },
}

// TestGPUStreamedTrainsAsResident: with every matrix in host memory the losses are those
// of a run whose matrices lie on the device; once all has been done, evaluation too,
// neither device nor pinned memory is allocated; the limit holds; a second run has the same
// bits.
func TestGPUStreamedTrainsAsResident(t *testing.T) {
	driver := cuemu.Driver(t)
	raw, err := dataset.Synth(t.Context(), "synth:sbm,vertices=150,degree=6,classes=3,features=50,seed=3")
	if err != nil {
		t.Fatal(err)
	}
	st, err := prepare.Build(t.Context(), raw, prepare.Options{Seed: 1, BlockRows: 16, Split: "random:60/20/20"})
	if err != nil {
		t.Fatal(err)
	}
	const limit = 16 << 20
	train := func(t *testing.T, set func(*engine.Config), plan *spill.Plan) (*streamWatch, *pipeline.Result) {
		dev, err := cuda.Open(cuda.Options{Driver: driver, Memory: limit})
		if err != nil {
			t.Fatal(err)
		}
		if plan != nil {
			if err := dev.Apply(plan); err != nil {
				t.Fatal(err)
			}
		}
		w := &streamWatch{dev: dev}
		o := pipeline.Options{Config: engine.DefaultConfig("gcn"), Seed: 5, Store: st, Split: st.Splits[0], Device: dev, Listener: w}
		c := &o.Config
		c.Mode, c.Epochs, c.Hidden, c.Layers, c.Threads, c.Intervals, c.EvalEvery = "gpu", streamEpochs, 12, 2, 2, 1, 2
		set(c)
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		res, err := pipeline.Train(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		if m := dev.Memory(); m.Peak > limit {
			t.Errorf("%d bytes of the device were in use, the limit is %d", m.Peak, limit)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
		return w, res
	}
	for name, set := range streamCases {
		t.Run(name, func(t *testing.T) {
			want, _ := train(t, set, nil)
			got, res := train(t, set, spill.Everything(512<<10, 16))
			if len(got.loss) != len(want.loss) || len(got.loss) != streamEpochs {
				t.Fatalf("%d epochs streamed, %d resident", len(got.loss), len(want.loss))
			}
			for e := range want.loss {
				if d := math.Abs(got.loss[e] - want.loss[e]); !(d <= 1e-4*math.Max(1, want.loss[e])) {
					t.Errorf("loss of epoch %d is %v streamed and %v resident", e+1, got.loss[e], want.loss[e])
				}
			}
			second, last := got.held[2], got.held[streamEpochs-1]
			if second.Spilled == 0 || second.Taken != last.Taken || second.Pinned != last.Pinned {
				t.Errorf("memory grew: %+v after epoch 3, %+v after the last", second, last)
			}
			if name != "gat" {
				return
			}
			again, sameAs := train(t, set, spill.Everything(512<<10, 16))
			if fmt.Sprint(again.loss) != fmt.Sprint(got.loss) || res.WeightsSHA256 != sameAs.WeightsSHA256 {
				t.Errorf("two streamed runs: losses %v and %v, weights %.12s and %.12s", got.loss, again.loss, res.WeightsSHA256, sameAs.WeightsSHA256)
			}
		})
	}
}

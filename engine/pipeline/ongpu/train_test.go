//go:build cuda && cgo && linux && (amd64 || arm64)

package ongpu

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"

	"dorylus/csrc/cuemu"
	"dorylus/engine"
	"dorylus/engine/dataset"
	"dorylus/engine/pipeline"
	"dorylus/engine/prepare"
	"dorylus/engine/store"
	"dorylus/kernels"
	"dorylus/kernels/cuda"
	"dorylus/kernels/devices"
)

// network is a model with options.
type network struct {
	name, model, data string
	set               func(*engine.Config)
}

const dense, sparse, several = "dense", "sparse", "several labels"

var networks = []network{
	{"gcn", "gcn", dense, func(c *engine.Config) { c.InputDropout = 0 }},
	// Without biases: batch normalisation takes them away again, so that their gradients are
	// rounding alone, and Adam makes steps of them.
	{"gcn sparse, batch norm", "gcn", sparse, func(c *engine.Config) { c.Norm, c.ClassWeights, c.Bias = "batch", "balanced", false }},
	{"gat", "gat", dense, func(c *engine.Config) { c.Heads = 2 }},
	{"gat residual, averaged heads", "gat", sparse, func(c *engine.Config) { c.Heads, c.OutHeads, c.Residual, c.Layers = 2, 2, true, 3 }},
	{"sage mean", "sage", dense, func(c *engine.Config) { c.InputDropout = 0 }},
	{"sage max, layer norm", "sage", several, func(c *engine.Config) { c.Aggregator, c.Norm, c.Layers = "max", "layer", 3 }},
	{"gin", "gin", dense, func(*engine.Config) {}},
	{"gin several labels", "gin", several, func(c *engine.Config) { c.InputDropout, c.Optimizer, c.LR, c.Momentum = 0, "sgd", 0.01, 0.9 }},
}

const vertices, classes = 90, 4

// some are networks by their numbers; a short run takes only the first two.
func some(numbers ...int) []network {
	if testing.Short() {
		numbers = numbers[:2]
	}
	var list []network
	for _, i := range numbers {
		list = append(list, networks[i])
	}
	return list
}

// graph is a small graph with classes that can be learnt.
var graph = func() func(t testing.TB, data string) *store.Store {
	var mu sync.Mutex
	made := map[string]*store.Store{}
	return func(t testing.TB, data string) *store.Store {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if made[data] != nil {
			return made[data]
		}
		raw, err := dataset.Synth(context.Background(), fmt.Sprintf("synth:sbm,vertices=%d,degree=6,classes=%d,features=10,seed=3", vertices, classes))
		if err != nil {
			t.Fatal(err)
		}
		switch data {
		case sparse:
			raw.Sparse = &kernels.CSR{Cols: raw.Dense.Cols, RowPtr: []int64{0}}
			for v := range raw.N {
				for c, x := range raw.Dense.Row(v) {
					if x > 1 {
						raw.Sparse.Col, raw.Sparse.Val = append(raw.Sparse.Col, int32(c)), append(raw.Sparse.Val, x)
					}
				}
				raw.Sparse.RowPtr = append(raw.Sparse.RowPtr, int64(len(raw.Sparse.Col)))
			}
			raw.Dense = nil
		case several:
			raw.Multi = &kernels.CSR{Cols: classes, RowPtr: []int64{0}}
			for v, l := range raw.Labels {
				raw.Multi.Col = append(raw.Multi.Col, l)
				if other := (l + 1) % classes; v%3 == 0 {
					raw.Multi.Col = append(raw.Multi.Col[:len(raw.Multi.Col)-1], min(l, other), max(l, other))
				}
				raw.Multi.RowPtr = append(raw.Multi.RowPtr, int64(len(raw.Multi.Col)))
			}
			raw.Labels = nil
		}
		st, err := prepare.Build(context.Background(), raw, prepare.Options{Order: "degree"})
		if err != nil {
			t.Fatal(err)
		}
		made[data] = st
		return st
	}
}()

// log keeps the losses.
type log struct{ losses []float64 }

func (l *log) Event(e engine.Event) {
	if d, ok := e.(engine.EpochDone); ok {
		l.losses = append(l.losses, d.Loss)
	}
}

// train runs a network on a device.
func (n network) train(t *testing.T, dev kernels.Device, set ...func(*engine.Config)) (*pipeline.Result, []float64) {
	t.Helper()
	st, l := graph(t, n.data), &log{}
	o := pipeline.Options{Config: engine.DefaultConfig(n.model), Store: st, Split: st.Splits[0], Device: dev, Listener: l}
	c := &o.Config
	c.Epochs, c.EvalEvery, c.Hidden = 20, 20, 6
	n.set(c)
	for _, f := range set {
		f(c)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	res, err := pipeline.Train(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return res, l.losses
}

// gpu is the device under test; what a test leaves on it fails the test.
func gpu(t *testing.T) kernels.Device {
	t.Helper()
	d, err := cuda.Open(cuda.Options{Driver: cuemu.Driver(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("left on the GPU: %v", err)
		}
	})
	return d
}

func onGPU(c *engine.Config) { c.Mode = "gpu" }

// The loss curve of each model is that of the processor, and so are its predictions, but
// where two classes are close.
func TestModelsTrainAsOnTheProcessor(t *testing.T) {
	for _, n := range some(1, 5, 0, 2, 3, 4, 6, 7) {
		t.Run(n.name, func(t *testing.T) {
			host, err := devices.Open("auto")
			if err != nil {
				t.Fatal(err)
			}
			defer host.Close()
			want, losses := n.train(t, host)
			got, here := n.train(t, gpu(t), onGPU)
			if len(losses) != len(here) {
				t.Fatalf("%d epochs, want %d", len(here), len(losses))
			}
			for e := range losses {
				if d := math.Abs(here[e]-losses[e]) / math.Abs(losses[e]); !(d <= 1e-4) {
					t.Fatalf("epoch %d: the loss is %v, on the processor %v: %.2g apart", e, here[e], losses[e], d)
				}
			}
			for v := range want.Logits.Rows {
				a, b := want.Logits.Row(v), got.Logits.Row(v)
				for c := range a {
					if d := math.Abs(float64(a[c] - b[c])); !(d <= 1e-3*(1+math.Abs(float64(a[c])))) {
						t.Fatalf("vertex %d, class %d: the logit is %v, on the processor %v", v, c, b[c], a[c])
					}
				}
			}
		})
	}
}

// A sync run has the same bits twice, and for another number of intervals and threads.
func TestModelsGiveTheSameBits(t *testing.T) {
	for _, n := range some(0, 3, 5, 6) {
		t.Run(n.name, func(t *testing.T) {
			short := func(c *engine.Config) { c.Epochs, c.EvalEvery = 3, 3 }
			want, _ := n.train(t, gpu(t), onGPU, short, func(c *engine.Config) { c.Intervals = 2 })
			for _, intervals := range []int{1, 4} {
				got, _ := n.train(t, gpu(t), onGPU, short, func(c *engine.Config) { c.Intervals = intervals })
				if got.WeightsSHA256 != want.WeightsSHA256 || got.PredictionsSHA256 != want.PredictionsSHA256 {
					t.Errorf("%d intervals: weights %.12s, predictions %.12s; want %.12s, %.12s", intervals,
						got.WeightsSHA256, got.PredictionsSHA256, want.WeightsSHA256, want.PredictionsSHA256)
				}
			}
		})
	}
}

// An async run ends, with losses that fall.
func TestModelsRunAsync(t *testing.T) {
	for _, n := range some(0, 2, 4, 6) {
		t.Run(n.name, func(t *testing.T) {
			_, losses := n.train(t, gpu(t), onGPU, func(c *engine.Config) {
				c.Pipeline, c.Staleness, c.Epochs, c.LR = "async", 1, 10, 0.01
				c.Dropout, c.InputDropout, c.AttentionDropout = 0, 0, 0
			})
			if k := len(losses); k != 10 || !(losses[k-1] < losses[0]) {
				t.Errorf("losses %v", losses)
			}
		})
	}
}

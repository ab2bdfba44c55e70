// Package golden holds a device to the reference runs of golden/, through the whole
// pipeline: the processor's kernels in engine/pipeline, GPUs in engine/pipeline/ongpu. The
// tests are skipped where the reference data is not there.
package golden

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"dorylus/engine"
	"dorylus/engine/dataset"
	"dorylus/engine/optim"
	"dorylus/engine/params"
	"dorylus/engine/pipeline"
	"dorylus/engine/prepare"
	"dorylus/engine/testkit"
	"dorylus/kernels"
	"dorylus/kernels/tensorbridge"
)

// events keeps what a run says of losses and accuracies.
type events struct {
	losses []float64
	evals  []engine.Evaluated
}

// Event implements engine.Listener.
func (l *events) Event(e engine.Event) {
	switch e := e.(type) {
	case engine.EpochDone:
		l.losses = append(l.losses, e.Loss)
	case engine.Evaluated:
		l.evals = append(l.evals, e)
	}
}

// Steps is how many steps of the reference's training there are.
const Steps = 30

// Trajectory trains a GCN on Cora with Adam, without dropout, for one step and for some
// more, up to Steps: losses, accuracies and, after 1 and Steps steps, all parameters are
// the reference's, to 1e-4. set may change what does not change results, such as the mode.
func Trajectory(t *testing.T, dev kernels.Device, steps int, set func(*engine.Config)) {
	dir := testkit.Shared(t, "golden", "cora_gcn2")
	raw, err := dataset.Cora()
	check(t, err)
	st, err := prepare.Build(context.Background(), raw, prepare.Options{Features: prepare.RowNormalize, Order: "natural"})
	check(t, err)
	losses, accuracies := read(t, dir, "traj_loss"), read(t, dir, "traj_test_acc")
	for _, epochs := range []int{1, steps} {
		l := &events{}
		o := pipeline.Options{Config: engine.DefaultConfig("gcn"), Store: st, Split: st.Splits[0], Device: dev, Listener: l}
		o.Config.Dropout, o.Config.InputDropout = 0, 0
		set(&o.Config)
		o.Config.Epochs = epochs
		check(t, o.Config.Validate())
		o.From = start(t, dir, o)
		res, err := pipeline.Train(context.Background(), o)
		check(t, err)
		if len(l.losses) != epochs || len(l.evals) == 0 {
			t.Fatalf("%d losses and %d evaluations in %d epochs", len(l.losses), len(l.evals), epochs)
		}
		for k, got := range l.losses {
			if !(math.Abs(got-losses[k]) <= 1e-4*losses[k]) {
				t.Errorf("loss before step %d is %.8f, want %.8f", k+1, got, losses[k])
			}
		}
		for _, e := range l.evals {
			// The reference's accuracy k is before step k+1: after epoch k-1.
			if e.Epoch+1 < len(accuracies) {
				if want := accuracies[e.Epoch+1]; !(math.Abs(e.Test-want) <= 1.5e-3) {
					t.Errorf("test accuracy after epoch %d is %.4f, want %.4f", e.Epoch, e.Test, want)
				}
			}
		}
		if epochs != 1 && epochs != Steps {
			continue
		}
		for i, spec := range res.Specs {
			want := read(t, dir, fmt.Sprintf("after%d_%s", epochs, names[spec.Name]))
			worst, largest := 0.0, 0.0
			for k, x := range res.State.Params.Weights[i].Host {
				if d := math.Abs(float64(x) - want[k]); d > worst || d != d {
					worst = d
				}
				largest = max(largest, math.Abs(want[k]))
			}
			if !(worst <= 1e-4*largest) {
				t.Errorf("%s after %d steps: off by %g of %g", spec.Name, epochs, worst, largest)
			}
		}
	}
}

// names are the reference's of our parameters.
var names = map[string]string{"conv1.lin.weight": "W0", "conv1.bias": "b0", "conv2.lin.weight": "W1", "conv2.bias": "b1"}

// start is the reference's initial state.
func start(t *testing.T, dir string, o pipeline.Options) *pipeline.State {
	t.Helper()
	cfg, err := pipeline.ModelConfig(&o.Config, o.Store)
	check(t, err)
	prog, err := cfg.Build()
	check(t, err)
	s := &pipeline.State{Model: cfg, Best: pipeline.Best{Epoch: -1}, Params: &params.State{Optim: &optim.State{}}}
	for range (optim.Config{Name: o.Config.Optimizer}).WithDefaults().Slots() {
		var zero []*kernels.Mat
		for _, spec := range prog.Params {
			zero = append(zero, kernels.FromSlice(spec.Rows, spec.Cols, make([]float32, spec.Rows*spec.Cols)))
		}
		s.Params.Optim.Slots = append(s.Params.Optim.Slots, zero)
	}
	for _, spec := range prog.Params {
		_, x, err := tensorbridge.ReadNpy[float32](filepath.Join(dir, "param_"+names[spec.Name]+".npy"))
		check(t, err)
		s.Params.Weights = append(s.Params.Weights, kernels.FromSlice(spec.Rows, spec.Cols, x))
	}
	return s
}

// read is an array of float64.
func read(t *testing.T, dir, name string) []float64 {
	t.Helper()
	_, x, err := tensorbridge.ReadNpy[float64](filepath.Join(dir, name+".npy"))
	check(t, err)
	return x
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

package pipeline

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"dorylus/engine"
	"dorylus/engine/dataset"
	"dorylus/engine/optim"
	"dorylus/engine/params"
	"dorylus/engine/prepare"
	"dorylus/engine/testkit"
	"dorylus/kernels"
	"dorylus/kernels/devices"
	"dorylus/kernels/tensorbridge"
)

// everyDevice runs f on each device that this host has.
func everyDevice(t *testing.T, f func(t *testing.T, dev kernels.Device)) {
	for _, info := range devices.Available() {
		t.Run(info.Name, func(t *testing.T) {
			if !info.OK {
				t.Skipf("SKIPPED: %s: %s", info.Name, info.Why)
			}
			dev, err := devices.Open(info.Name)
			check(t, err)
			f(t, dev)
			check(t, dev.Close())
		})
	}
}

// Thirty steps of Adam on Cora without dropout follow the reference's losses,
// accuracies and parameters, through the whole pipeline.
func TestCoraTrajectory(t *testing.T) {
	dir := testkit.Shared(t, "golden", "cora_gcn2")
	read := func(name string) []float64 {
		_, x, err := tensorbridge.ReadNpy[float64](filepath.Join(dir, name+".npy"))
		check(t, err)
		return x
	}
	raw, err := dataset.Cora()
	check(t, err)
	st, err := prepare.Build(context.Background(), raw, prepare.Options{Features: prepare.RowNormalize, Order: "natural"})
	check(t, err)
	losses, accuracies := read("traj_loss"), read("traj_test_acc")
	everyDevice(t, func(t *testing.T, dev kernels.Device) {
		for _, epochs := range []int{1, 30} {
			o := options(t, func(o *Options) {
				o.Store, o.Split, o.Device = st, st.Splits[0], dev
				o.Config.Epochs, o.Config.Dropout, o.Config.InputDropout = epochs, 0, 0
			})
			o.From = goldenStart(t, dir, o)
			res := mustTrain(t, o)
			for k, got := range events(o).losses() {
				if math.Abs(got-losses[k]) > 1e-4*losses[k] {
					t.Errorf("loss before step %d is %.8f, want %.8f", k+1, got, losses[k])
				}
			}
			for _, e := range events(o).events {
				// The reference's accuracy k is before step k+1: after epoch k-1.
				if ev, ok := e.(engine.Evaluated); ok && ev.Epoch+1 < len(accuracies) {
					if want := accuracies[ev.Epoch+1]; math.Abs(ev.Test-want) > 1.5e-3 {
						t.Errorf("test accuracy after epoch %d is %.4f, want %.4f", ev.Epoch, ev.Test, want)
					}
				}
			}
			for i, spec := range res.Specs {
				want := read(map[int]string{1: "after1_", 30: "after30_"}[epochs] + goldenNames[spec.Name])
				worst, largest := 0.0, 0.0
				for k, x := range res.State.Params.Weights[i].Host {
					worst, largest = max(worst, math.Abs(float64(x)-want[k])), max(largest, math.Abs(want[k]))
				}
				if worst > 1e-4*largest {
					t.Errorf("%s after %d steps: off by %g of %g", spec.Name, epochs, worst, largest)
				}
			}
		}
	})
}

var goldenNames = map[string]string{"conv1.lin.weight": "W0", "conv1.bias": "b0", "conv2.lin.weight": "W1", "conv2.bias": "b1"}

// goldenStart is the reference's initial state.
func goldenStart(t *testing.T, dir string, o Options) *State {
	t.Helper()
	cfg, err := ModelConfig(&o.Config, o.Store)
	check(t, err)
	prog, err := cfg.Build()
	check(t, err)
	s := &State{Model: cfg, Best: Best{Epoch: -1}, Params: &params.State{Optim: &optim.State{}}}
	for range optimConfig(&o.Config).WithDefaults().Slots() {
		var zero []*kernels.Mat
		for _, spec := range prog.Params {
			zero = append(zero, kernels.FromSlice(spec.Rows, spec.Cols, make([]float32, spec.Rows*spec.Cols)))
		}
		s.Params.Optim.Slots = append(s.Params.Optim.Slots, zero)
	}
	for _, spec := range prog.Params {
		_, x, err := tensorbridge.ReadNpy[float32](filepath.Join(dir, "param_"+goldenNames[spec.Name]+".npy"))
		check(t, err)
		s.Params.Weights = append(s.Params.Weights, kernels.FromSlice(spec.Rows, spec.Cols, x))
	}
	return s
}

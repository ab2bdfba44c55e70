package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"dorylus/engine"
	"dorylus/engine/testkit"
	"dorylus/engine/testkit/opaque"
	"dorylus/kernels"
	"dorylus/kernels/ref"
)

// refDevice is plain Go.
func refDevice(t testing.TB) kernels.Device {
	t.Helper()
	d, err := ref.Open()
	check(t, err)
	return d
}

// farDevice is a device whose memory the host cannot address. What a test leaves on it fails
// the test.
func farDevice(t testing.TB) *opaque.Device {
	t.Helper()
	d := opaque.New(refDevice(t))
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("left on the device: %v", err)
		}
	})
	return d
}

// A sync run of every model on a device whose memory the host cannot address has the bits
// of the host, for any number of intervals, gives everything back, and moves nothing in
// the epochs after the first but losses, and what an evaluation needs.
func TestEveryModelOnADeviceOfItsOwnMemory(t *testing.T) {
	everyModel(t, func(t *testing.T, m modelCase, seed uint64) {
		base := m.options(t, seed, func(o *Options) { o.Device = refDevice(t) })
		want := mustTrain(t, base)
		for _, cut := range []int{1, 3} {
			dev := farDevice(t)
			o := m.options(t, seed, func(o *Options) {
				o.Device, o.Config.Mode, o.Config.Intervals = dev, "gpu", cut
			})
			moved := map[int]map[string]int64{}
			o.Listener = &each{log: &log{}, f: func(e engine.Event) {
				if d, ok := e.(engine.EpochDone); ok {
					moved[d.Epoch] = dev.Moved()
					dev.Reset()
				}
			}}
			got := mustTrain(t, o)
			what := fmt.Sprintf("%d intervals, seed %d", cut, seed)
			l := o.Listener.(*each).log
			sameBits(t, what, want, got, events(base).losses(), l.losses())
			sameEvaluations(t, what, events(base), l)
			if want.PredictionsSHA256 != got.PredictionsSHA256 {
				t.Errorf("%s: other predictions", what)
			}
			o.steady(t, what, moved[1])
			o.steady(t, what, moved[2])
		}
	})
}

// steady checks what has moved in an epoch and the evaluation of the one before: the loss
// of each block, the sum of each gradient's squares, all logits, where they are the best
// the weights too, and where statistics are of all rows those of each block.
func (o *Options) steady(t *testing.T, what string, moved map[string]int64) {
	t.Helper()
	const blocks = 16
	for kind, n := range moved {
		limit := int64(0)
		switch kind {
		case "loss":
			limit = 8 * blocks
		case "rows down":
			limit = int64(4 * o.Store.Meta.Vertices * o.Store.Meta.Classes)
		case "targets": // offsets of all rows
			limit = int64(8 * (o.Store.Meta.Vertices + blocks))
		case "get":
			limit = 4*64 + 4*4000 // sums, weights
			if o.Config.Norm == "batch" {
				limit += 1 << 20
			}
		case "put":
			if o.Config.Norm == "batch" {
				limit = 1 << 20
			}
		}
		if n > limit {
			t.Errorf("%s: %d bytes of %q have moved in an epoch, want at most %d (of %v)", what, n, kind, limit, moved)
		}
	}
}

// each calls f for every event.
type each struct {
	*log
	f func(engine.Event)
}

func (l *each) Event(e engine.Event) {
	l.log.Event(e)
	l.f(e)
}

// An async run reads no rows that are too old and gives everything back.
func TestEveryModelRunsAsyncOnADeviceOfItsOwnMemory(t *testing.T) {
	everyModel(t, func(t *testing.T, m modelCase, seed uint64) {
		for s := range 2 {
			o := m.options(t, seed, func(o *Options) {
				o.Device, o.Config.Mode = farDevice(t), "gpu"
				o.Config.Pipeline, o.Config.Staleness, o.Config.AsyncWait = "async", s, 0
				if m.model == "gat" {
					o.Config.Dropout, o.Config.InputDropout, o.Config.AttentionDropout, o.Config.LR = 0, 0, 0, 0.001
				}
			})
			mustTrain(t, o)
			if ages := events(o).ages(); len(ages) > s+2 {
				t.Errorf("S=%d, seed %d: rows %d epochs old were read", s, seed, len(ages)-1)
			}
			if n := len(events(o).losses()); n != o.Config.Epochs {
				t.Errorf("S=%d, seed %d: %d epochs, want %d", s, seed, n, o.Config.Epochs)
			}
		}
	})
}

// A run goes on from a checkpoint on another kind of device.
func TestResumeOnADeviceOfItsOwnMemory(t *testing.T) {
	m := modelCases[17] // with running statistics
	straight := m.options(t, 3, func(o *Options) { o.Device, o.Config.Epochs = refDevice(t), 6 })
	want := mustTrain(t, straight)
	half := mustTrain(t, m.options(t, 3, func(o *Options) { o.Device, o.Config.Epochs = farDevice(t), 3 }))
	for _, dev := range []kernels.Device{refDevice(t), farDevice(t)} {
		o := m.options(t, 3, func(o *Options) { o.Device, o.Config.Epochs, o.From = dev, 6, half.State })
		got := mustTrain(t, o)
		sameBits(t, "resumed on "+dev.Name(), want, got, events(straight).losses()[3:], events(o).losses())
	}
}

// Logits and embeddings are those of the host.
func TestEveryModelPredictsOnADeviceOfItsOwnMemory(t *testing.T) {
	everyModel(t, func(t *testing.T, m modelCase, seed uint64) {
		base := m.options(t, seed, func(o *Options) { o.Device, o.Config.Epochs = refDevice(t), 2 })
		res := mustTrain(t, base)
		outputs := func(dev kernels.Device) (logits, hidden *kernels.Mat) {
			o := PredictOptions{Model: res.State.Model, Weights: res.State.BestWeights(false), Store: base.Store, Device: dev, Threads: 2}
			logits, err := Predict(context.Background(), o)
			check(t, err)
			hidden, err = Embed(context.Background(), o)
			check(t, err)
			return logits, hidden
		}
		dev := farDevice(t)
		wantL, wantH := outputs(base.Device)
		gotL, gotH := outputs(dev)
		for what, x := range map[string][2]*kernels.Mat{"logits": {wantL, gotL}, "embeddings": {wantH, gotH}} {
			if d := testkit.Far(x[0], x[1], 0); d != "" {
				t.Errorf("seed %d: %s%s", seed, what, d)
			}
		}
	})
}

// An op that fails in mid-epoch ends the run with its name and shapes and the interval,
// and leaves nothing behind; so does memory that is not to be had.
func TestFailuresOnADeviceOfItsOwnMemory(t *testing.T) {
	bad := errors.New("the device is lost")
	for _, model := range []string{"gcn", "gat", "sage", "gin"} {
		m := modelCases[slices.IndexFunc(modelCases, func(m modelCase) bool { return m.model == model })]
		whole := farDevice(t)
		mustTrain(t, m.options(t, 1, func(o *Options) { o.Device = whole }))
		ops, _ := whole.Ops()
		for op, n := range ops {
			for _, after := range slices.Compact([]int{0, n / 2, n - 1}) {
				_, err := Train(context.Background(), m.options(t, 1, func(o *Options) {
					dev := farDevice(t)
					o.Device = dev
					dev.Fail(op, after, bad)
				}))
				switch {
				case !errors.Is(err, bad):
					t.Errorf("%s: call %d of %s failed, the run ended with %v", model, after+1, op, err)
				case !strings.Contains(err.Error(), op+" ("):
					t.Errorf("%s: call %d of %s failed, which the run does not name: %v", model, after+1, op, err)
				case (op == "SpMM" || op == "GEMM") && after == n/2 && !strings.Contains(err.Error(), " e2/i"):
					t.Errorf("%s: call %d of %s failed, and no epoch and interval is named: %v", model, after+1, op, err)
				}
			}
		}
		for _, op := range []string{"Alloc", "Load", "Keep", "NewStream"} {
			for after := 0; ; after += 1 + after/3 {
				dev := farDevice(t)
				dev.Fail(op, after, bad)
				_, err := Train(context.Background(), m.options(t, 1, func(o *Options) { o.Device, o.Config.Epochs = dev, 2 }))
				if err == nil {
					if after < 2 {
						t.Errorf("%s: the run has made %d calls of %s", model, after, op)
					}
					break
				}
				if !errors.Is(err, bad) {
					t.Errorf("%s: call %d of %s failed, the run ended with %v", model, after+1, op, err)
				}
			}
		}
	}
}

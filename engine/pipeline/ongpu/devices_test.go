//go:build cuda && cgo && linux && (amd64 || arm64)

package ongpu

import (
	"context"
	"math"
	"testing"

	"dorylus/csrc/cuemu"
	"dorylus/engine"
	"dorylus/engine/pipeline"
	"dorylus/kernels"
	"dorylus/kernels/cuda"
)

// shares keeps losses, and what the devices say of each other's rows.
type shares struct {
	log
	rows, peer int64
	devices    int
}

func (s *shares) Event(e engine.Event) {
	s.log.Event(e)
	if d, ok := e.(engine.ServerDone); ok {
		s.rows, s.peer, s.devices = s.rows+d.RowValues, s.peer+d.RowPeer, s.devices+1
	}
}

// emulated opens n emulated devices, which must hold nothing in the end.
func emulated(t *testing.T, n int, spec string) (*cuemu.Control, []kernels.Device) {
	t.Helper()
	lib := cuemu.Build(t)
	cuda.Probe(cuda.Options{Driver: lib}) // which loads it
	emu, err := cuemu.Loaded(lib)
	if err == nil {
		err = emu.Restart("devices=2;" + spec)
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []kernels.Device
	for i := range n {
		d, err := cuda.Open(cuda.Options{Driver: lib, Ordinal: i})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	t.Cleanup(func() {
		for _, d := range all {
			if err := d.Close(); err != nil {
				t.Errorf("left on the device: %v", err)
			}
		}
		for _, name := range []string{"memory_live", "pinned_live", "streams_live", "events_live", "contexts_live", "work_pending"} {
			if v := emu.Counter(name); v != 0 {
				t.Errorf("%s is %d in the end", name, v)
			}
		}
	})
	return emu, all
}

// trainOn is train on n emulated devices.
func (n network) trainOn(t *testing.T, devs []kernels.Device, set ...func(*engine.Config)) (*pipeline.Result, *shares) {
	t.Helper()
	st, l := graph(t, n.data), &shares{}
	o := pipeline.Options{Config: engine.DefaultConfig(n.model), Store: st, Split: st.Splits[0], Listener: l}
	c := &o.Config
	c.Mode, c.Epochs, c.EvalEvery, c.Hidden, c.Intervals = "gpu", 20, 20, 6, 1
	n.set(c)
	for _, f := range set {
		f(c)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	res, err := pipeline.TrainOn(context.Background(), o, devs)
	if err != nil {
		t.Fatal(err)
	}
	return res, l
}

// Two devices train as one does, bit by bit, and between them go the rows of ghosts and nothing else;
// devices that do not reach each other give them by the host.
func TestEmulatedPairTrainsAsOne(t *testing.T) {
	for _, n := range some(0, 2, 4, 6) {
		t.Run(n.name, func(t *testing.T) {
			var want *pipeline.Result
			var one *shares
			t.Run("one", func(t *testing.T) {
				_, devs := emulated(t, 1, "")
				want, one = n.trainOn(t, devs)
			})
			for _, spec := range []string{"peer=1;seed=5", "peer=0;seed=6"} {
				t.Run(spec, func(t *testing.T) {
					emu, devs := emulated(t, 2, spec)
					got, two := n.trainOn(t, devs)
					for e := range one.losses {
						if d := math.Abs(two.losses[e]-one.losses[e]) / math.Abs(one.losses[e]); !(d <= 1e-4) {
							t.Fatalf("epoch %d: the loss is %v, on one device %v: %.2g apart", e, two.losses[e], one.losses[e], d)
						}
					}
					if got.WeightsSHA256 != want.WeightsSHA256 || got.PredictionsSHA256 != want.PredictionsSHA256 {
						t.Errorf("weights %.12s, predictions %.12s; one device made %.12s, %.12s", got.WeightsSHA256, got.PredictionsSHA256, want.WeightsSHA256, want.PredictionsSHA256)
					}
					between := emu.Counter("bytes_between_devices")
					if two.devices != 2 || two.rows == 0 || between != two.peer || spec[5] == '1' && two.peer != two.rows || spec[5] == '0' && two.peer != 0 {
						t.Errorf("%d devices; %d bytes of rows, %d straight, %d between the devices", two.devices, two.rows, two.peer, between)
					}
				})
			}
		})
	}
}

// An async pair ends, with losses that fall.
func TestEmulatedPairRunsAsync(t *testing.T) {
	_, devs := emulated(t, 2, "seed=9;early=20")
	_, l := networks[0].trainOn(t, devs, func(c *engine.Config) {
		c.Pipeline, c.Staleness, c.Epochs, c.LR = "async", 1, 10, 0.01
		c.Dropout, c.InputDropout = 0, 0
	})
	if k := len(l.losses); k != 10 || !(l.losses[k-1] < l.losses[0]) {
		t.Errorf("losses %v", l.losses)
	}
}

package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"dorylus/engine"
	"dorylus/engine/testkit/opaque"
	"dorylus/kernels"
	"dorylus/kernels/devices"
)

// several opens n devices, which the test closes: what they still hold then is an error.
func several(t *testing.T, n int, open func() (kernels.Device, error)) []kernels.Device {
	t.Helper()
	var all []kernels.Device
	for range n {
		d, err := open()
		check(t, err)
		all = append(all, d)
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Errorf("close %s: %v", d.Name(), err)
			}
		})
	}
	return all
}

func hosts() (kernels.Device, error) { return devices.Open("auto") }

// without takes the device out of options that are made for one.
func without(o Options) Options {
	o.Device = nil
	return o
}

// Two and three devices make the bits of one, in a sync run of every model, and one set of
// events; with odd seeds nothing is kept and no row left out.
func TestEveryModelSameBitsOnSeveralDevices(t *testing.T) {
	everyModel(t, func(t *testing.T, m modelCase, seed uint64) {
		work := func(o *Options) { o.Config.PruneRows, o.Config.CacheGather = seed%2 == 0, seed%2 == 0 }
		base := m.options(t, seed, work)
		want := mustTrain(t, base)
		counts := []int{2, 3}
		if testing.Short() {
			counts = counts[int(seed)%2:][:1]
		}
		for _, n := range counts {
			o := without(m.options(t, seed, work))
			got, err := TrainOn(context.Background(), o, several(t, n, hosts))
			check(t, err)
			what := fmt.Sprintf("%d devices, seed %d", n, seed)
			sameBits(t, what, want, got, events(base).losses(), events(o).losses())
			sameEvaluations(t, what, events(base), events(o))
			sameProgress(t, what, want, got)
			if s, d := count[engine.RunStart](events(o)), count[engine.RunDone](events(o)); s != 1 || d != 1 {
				t.Errorf("%s: %d runs start and %d end", what, s, d)
			}
			ends := count[engine.ServerDone](events(o))
			if ends != n {
				t.Errorf("%s: %d have reported", what, ends)
			}
		}
	})
}

// A run goes on from another number of devices' checkpoint as if nothing had happened.
func TestDevicesResumeAnotherNumber(t *testing.T) {
	fresh := func() Options {
		return options(t, func(o *Options) { o.Config.ClipNorm, o.Config.LRSchedule = 0.5, "cosine" })
	}
	straight := fresh()
	var at *State
	straight.Config.CheckpointEvery = 3
	straight.Save = func(s *State) error {
		if s.Params.Version == 3 {
			at = s
		}
		return nil
	}
	want := mustTrain(t, straight)
	for _, n := range []int{1, 2, 3} {
		o := without(fresh())
		o.From = at
		got, err := TrainOn(context.Background(), o, several(t, n, hosts))
		check(t, err)
		sameBits(t, fmt.Sprintf("resumed on %d devices", n), want, got, events(straight).losses()[3:], events(o).losses())
	}
	// And the other way round.
	o := without(fresh())
	o.Config.CheckpointEvery, o.Save = 3, straight.Save
	at = nil
	_, err := TrainOn(context.Background(), o, several(t, 3, hosts))
	check(t, err)
	back := fresh()
	back.From = at
	sameBits(t, "resumed on one of three", want, mustTrain(t, back), events(straight).losses()[3:], events(back).losses())
}

// An end of ctx ends all, with a checkpoint.
func TestDevicesAreInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	var saved []int
	o := without(options(t, func(o *Options) {
		o.Config.Epochs = 500
		o.Save = func(s *State) error { saved = append(saved, s.Params.Version); return nil }
	}))
	o.Listener = on5(o.Listener, stop)
	got, err := TrainOn(ctx, o, several(t, 2, hosts))
	check(t, err)
	if got.Reason != "interrupted" || len(saved) != 1 || saved[0] != got.Epochs || got.Epochs < 5 || got.Epochs >= 500 {
		t.Errorf("ended %q after %d epochs with checkpoints after %v", got.Reason, got.Epochs, saved)
	}
}

// after calls a function after epoch 5.
type after struct {
	engine.Listener
	call func()
}

func on5(l engine.Listener, call func()) engine.Listener { return after{l, call} }

func (a after) Event(e engine.Event) {
	a.Listener.Event(e)
	if d, ok := e.(engine.EpochDone); ok && d.Epoch == 5 {
		a.call()
	}
}

// An async run on several devices learns and keeps the bound.
func TestDevicesRunAsync(t *testing.T) {
	const epochs = 20
	for _, name := range []string{"gcn", "gat", "sage", "gin"} {
		for s := range 2 {
			o := without(modelCase{name, name, toyGraph{directed: true}, func(*engine.Config) {}}.options(t, 3, func(o *Options) {
				c := &o.Config
				c.Pipeline, c.Staleness, c.Epochs, c.EvalEvery, c.AsyncWait = "async", s, epochs, 5, 0
				c.Intervals, c.Hidden, c.LR, c.Dropout, c.InputDropout, c.AttentionDropout = 4, 16, 0.01, 0, 0, 0
			}))
			_, err := TrainOn(context.Background(), o, several(t, 2, hosts))
			check(t, err)
			losses := events(o).losses()
			if len(losses) != epochs || !(mean(losses[epochs-4:]) < 0.95*mean(losses[:2])) {
				t.Errorf("%s, S=%d: losses %.4f", name, s, losses)
			}
			readers := 0
			for _, e := range events(o).events {
				d, ok := e.(engine.ServerDone)
				if !ok {
					continue
				}
				readers++
				for source, ages := range d.RowAgeFrom {
					if len(ages) > s+2 {
						t.Errorf("%s, S=%d: device %d has read rows of %d that were %d epochs old", name, s, d.Rank, source, len(ages)-1)
					}
				}
			}
			if readers != 2 {
				t.Errorf("%s, S=%d: %d devices have said what they have read", name, s, readers)
			}
		}
	}
}

// broken fails at an op of its streams.
type broken struct {
	kernels.Device
	after atomic.Int64
}

type brokenStream struct {
	kernels.Stream
	d *broken
}

var errBroken = errors.New("the memory has an uncorrectable error")

func (d *broken) Name() string { return "gpu:7" }

func (d *broken) NewStream() (kernels.Stream, error) {
	s, err := d.Device.NewStream()
	return &brokenStream{s, d}, err
}

func (s *brokenStream) SpMM(dst *kernels.Mat, g kernels.Graph, x *kernels.Mat, ga kernels.Gather, rows kernels.Span) {
	s.d.after.Add(-1)
	s.Stream.SpMM(dst, g, x, ga, rows)
}

func (s *brokenStream) Wait() error {
	if err := s.Stream.Wait(); err != nil || s.d.after.Load() > 0 {
		return err
	}
	return errBroken
}

// What one session fails by ends all, by the name of its device, at once and at any time.
func TestADeviceThatFailsEndsAll(t *testing.T) {
	for _, rank := range []int{0, 1} {
		for _, after := range []int64{0, 1, 3, 20, 60} {
			o := without(options(t, func(o *Options) { o.Config.Epochs, o.Config.Threads = 400, 1 }))
			all := several(t, 2, hosts)
			d := &broken{Device: all[rank]}
			d.after.Store(after)
			all[rank] = d
			_, err := TrainOn(context.Background(), o, all)
			if !errors.Is(err, errBroken) || !strings.HasPrefix(err.Error(), "gpu:7: ") {
				t.Errorf("device %d broken after %d gathers: %v", rank, after, err)
			}
		}
	}
}

func TestDevicesThatAreNone(t *testing.T) {
	d := several(t, 1, hosts)[0]
	for says, list := range map[string][]kernels.Device{
		"there are none":                {},
		"device 1 of 2 is nil":          {d, nil},
		"is both device 0 and device 1": {d, d},
	} {
		if _, err := TrainOn(context.Background(), without(options(t)), list); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want an error with %q", err, says)
		}
	}
}

func opaques() (kernels.Device, error) {
	d, err := hosts()
	if err != nil {
		return nil, err
	}
	return opaque.New(d), nil
}

// Devices whose memory the host cannot address make the same bits, and rows of ghosts go
// between them without the host, or by it where they do not reach each other.
func TestDevicesOfTheirOwnMemory(t *testing.T) {
	for i, name := range []string{"gcn", "gat", "sage", "gin"} {
		for _, apart := range []bool{false, true} {
			m := modelCase{name, name, toyGraph{directed: true}, func(*engine.Config) {}}
			base := m.options(t, uint64(i))
			want := mustTrain(t, base)
			o := without(m.options(t, uint64(i)))
			all := several(t, 2, opaques)
			if apart {
				for _, d := range all {
					d.(*opaque.Device).Apart()
				}
			}
			got, err := TrainOn(context.Background(), o, all)
			check(t, err)
			what := fmt.Sprintf("%s, apart %v", name, apart)
			sameBits(t, what, want, got, events(base).losses(), events(o).losses())
			sameEvaluations(t, what, events(base), events(o))
			var values, peer int64
			for _, e := range events(o).events {
				if d, ok := e.(engine.ServerDone); ok {
					values, peer = values+d.RowValues, peer+d.RowPeer
				}
			}
			counted := all[0].(*opaque.Device).Moved()["peer"] + all[1].(*opaque.Device).Moved()["peer"]
			if direct := map[bool]int64{false: values}[apart]; values == 0 || peer != direct || counted != peer {
				t.Errorf("%s: of %d bytes of rows %d went straight by what is told, %d by what the devices say, want %d", what, values, peer, counted, direct)
			}
		}
	}
}

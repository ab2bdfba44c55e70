package pipeline

import (
	"context"
	"testing"

	"dorylus/engine/testkit/opaque"
	"dorylus/kernels"
)

// The plan of every model is what a run then holds at its peak, to the byte.
func TestEveryModelHoldsWhatWasPlanned(t *testing.T) {
	everyModel(t, func(t *testing.T, m modelCase, seed uint64) {
		dev := farDevice(t)
		o := m.options(t, seed, func(o *Options) {
			o.Device, o.Config.Mode, o.Config.Intervals, o.Config.Threads = dev, "gpu", 1, 0
		})
		plan, err := PlanMemory(context.Background(), o, Sharing{Devices: 1})
		check(t, err)
		mustTrain(t, o)
		_, peak := dev.Memory()
		sum, gathered := most(plan[0]), false
		needs := plan[0].Needs
		var bytes, up, down [kernels.Edges + 1]float64
		for _, n := range needs {
			gathered = gathered || n.Gathered
			bytes[n.Purpose] += float64(n.Bytes)
			up[n.Purpose] += n.Up * float64(n.Bytes)
			down[n.Purpose] += n.Down * float64(n.Bytes)
		}
		for _, p := range []kernels.Purpose{kernels.Activations, kernels.Gradients} {
			if n := bytes[p]; n > 0 && !(up[p] > 0.05*n && up[p] < 10*n && down[p] > 0.05*n && down[p] < 10*n) {
				t.Errorf("seed %d: an epoch reads %s %.3g times and sets them %.3g times", seed, p, up[p]/n, down[p]/n)
			}
		}
		if sum != peak {
			t.Errorf("seed %d: planned %d bytes, held %d: %+v", seed, sum, peak, needs)
		}
		if !gathered && m.model != "mlp" && m.model != "sgc" {
			t.Errorf("seed %d: nothing is gathered: %+v", seed, needs)
		}
	})
}

// most is the largest moment of a plan.
func most(m Memory) (bytes int64) {
	for _, at := range m.Moments {
		sum := int64(0)
		for _, n := range at {
			sum += n
		}
		bytes = max(bytes, sum)
	}
	return bytes
}

// With several intervals, at which tasks run beside each other, and on several devices, the
// plan is what a run may hold at most; it is over by no more than a few gradients and
// messages, whatever was held at once.
func TestPlanOfSeveralIntervals(t *testing.T) {
	for _, c := range []struct {
		model, intervals, devices int
		pipeline                  string
	}{{0, 4, 1, "sync"}, {0, 4, 1, "async"}, {0, 1, 2, "sync"}, {5, 2, 2, "sync"}, {12, 3, 2, "async"}, {17, 1, 2, "sync"}} {
		m := modelCases[c.model]
		var list []kernels.Device
		var devs []*opaque.Device
		for range c.devices {
			d := farDevice(t)
			list, devs = append(list, d), append(devs, d)
		}
		o := m.options(t, 1, func(o *Options) {
			o.Config.Mode, o.Config.Intervals, o.Config.Threads, o.Config.Pipeline, o.Device = "gpu", c.intervals, 0, c.pipeline, nil
		})
		plan, err := PlanMemory(context.Background(), o, Sharing{Devices: c.devices})
		check(t, err)
		again, err := PlanMemory(context.Background(), o, Sharing{Devices: c.devices})
		check(t, err)
		_, err = TrainOn(context.Background(), o, list)
		check(t, err)
		for k, d := range devs {
			_, peak := d.Memory()
			planned, slack := most(plan[k]), int64(0)
			for _, n := range plan[k].Needs {
				if n.Purpose == kernels.Weights || n.Name == underWay {
					slack += n.Bytes
				}
			}
			if planned != most(again[k]) {
				t.Errorf("%v: device %d: planned %d and %d bytes", c, k, planned, most(again[k]))
			}
			if planned < peak || planned > peak+slack {
				t.Errorf("%v: device %d: planned %d bytes, held %d: %+v", c, k, planned, peak, plan[k].Needs)
			}
		}
	}
}

// A plan needs a single device.
func TestPlanRefusesACluster(t *testing.T) {
	o := options(t, func(o *Options) { o.Cluster = &Cluster{} })
	if _, err := PlanMemory(context.Background(), o, Sharing{Devices: 1}); err == nil {
		t.Error("a plan was made for a cluster")
	}
}

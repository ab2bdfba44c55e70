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
		needs, err := PlanMemory(context.Background(), o)
		check(t, err)
		mustTrain(t, o)
		_, peak := dev.Memory()
		sum, gathered := int64(0), false
		for _, n := range needs {
			sum += n.Bytes
			gathered = gathered || n.Gathered
			if (n.Purpose == kernels.Activations || n.Purpose == kernels.Gradients) && !(n.Up > 0.05 && n.Up < 10 && n.Down > 0.05 && n.Down < 10) {
				t.Errorf("seed %d: an epoch reads %s %.3g times and sets them %.3g times", seed, n.Name, n.Up, n.Down)
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

// With several intervals the plan is close.
func TestPlanOfSeveralIntervals(t *testing.T) {
	for _, pipeline := range []string{"sync", "async"} {
		dev := farDevice(t)
		o := options(t, func(o *Options) {
			o.Device, o.Config.Mode, o.Config.Intervals, o.Config.Pipeline = dev, "gpu", 4, pipeline
		})
		needs, err := PlanMemory(context.Background(), o)
		check(t, err)
		mustTrain(t, o)
		sum := int64(0)
		for _, n := range needs {
			sum += n.Bytes
		}
		_, peak := dev.Memory()
		weights := int64(0) // of which more gradients may wait for each other than on paper
		for _, n := range needs {
			if n.Purpose == kernels.Weights {
				weights += n.Bytes
			}
		}
		if d := float64(sum-peak) / float64(peak); d > 0.05 || float64(peak-sum) > 0.05*float64(peak)+float64(weights) {
			t.Errorf("%s: planned %d bytes, held %d: %+v", pipeline, sum, peak, needs)
		}
	}
}

// A plan needs a single device.
func TestPlanRefusesACluster(t *testing.T) {
	o := options(t, func(o *Options) { o.Cluster = &Cluster{} })
	if _, err := PlanMemory(context.Background(), o); err == nil {
		t.Error("a plan was made for a cluster")
	}
}

// Each of several devices holds about what was planned for it.
func TestPlanOfSeveralDevices(t *testing.T) {
	for _, i := range []int{0, 5, 12, 17} {
		m := modelCases[i]
		a, b := farDevice(t), farDevice(t)
		o := m.options(t, 1, func(o *Options) { o.Config.Mode, o.Config.Intervals, o.Config.Threads = "gpu", 1, 0 })
		o.Device = nil
		needs, err := PlanMemoryOn(context.Background(), o, 2)
		check(t, err)
		_, err = TrainOn(context.Background(), o, []kernels.Device{a, b})
		check(t, err)
		for k, d := range []*opaque.Device{a, b} {
			sum := int64(0)
			for _, n := range needs[k] {
				sum += n.Bytes
			}
			_, peak := d.Memory()
			if off := float64(sum)/float64(peak) - 1; off > 0.05 || off < -0.05 {
				t.Errorf("%s: device %d: planned %d bytes, held %d: %+v", m.name, k, sum, peak, needs[k])
			}
		}
	}
}

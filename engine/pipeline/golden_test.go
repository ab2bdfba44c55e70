package pipeline_test

import (
	"testing"

	"dorylus/engine"
	"dorylus/engine/testkit/golden"
	"dorylus/kernels"
	"dorylus/kernels/devices"
)

// onEveryDevice runs f on each device that this host has.
func onEveryDevice(t *testing.T, f func(t *testing.T, dev kernels.Device)) {
	for _, info := range devices.Available() {
		t.Run(info.Name, func(t *testing.T) {
			if !info.OK {
				t.Skipf("SKIPPED: %s: %s", info.Name, info.Why)
			}
			dev, err := devices.Open(info.Name)
			if err != nil {
				t.Fatal(err)
			}
			f(t, dev)
			if err := dev.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestGoldenTrajectory(t *testing.T) {
	onEveryDevice(t, func(t *testing.T, dev kernels.Device) {
		golden.Trajectory(t, dev, golden.Steps, func(c *engine.Config) { c.Threads, c.Intervals = 2, 4 })
	})
}

func TestGoldenLayers(t *testing.T) { onEveryDevice(t, golden.Layers) }

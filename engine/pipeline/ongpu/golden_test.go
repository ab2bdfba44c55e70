//go:build cuda && cgo && linux && (amd64 || arm64)

package ongpu

import (
	"os"
	"testing"

	"dorylus/csrc/cuemu"
	"dorylus/engine/testkit/golden"
)

// Training on Cora follows the reference's losses, accuracies and parameters; an emulated
// device, which is slow, goes only part of the way.
func TestGoldenTrajectory(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: Cora takes the emulated device long; run without -short")
	}
	steps := 3
	if os.Getenv(cuemu.GPUEnv) == "1" {
		steps = golden.Steps
	}
	golden.Trajectory(t, gpu(t), steps, onGPU)
}

// Layers of every model have the reference's outputs.
func TestGoldenLayers(t *testing.T) { golden.Layers(t, gpu(t)) }

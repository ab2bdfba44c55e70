//go:build cuda && cgo && linux && (amd64 || arm64)

package conform

import (
	"testing"

	"dorylus/csrc/cuemu"
	"dorylus/kernels"
	"dorylus/kernels/cuda"
	"dorylus/kernels/kerneltest"
)

// TestConformance runs the conformance suite on the emulated device.
func TestConformance(t *testing.T) {
	lib := cuemu.Build(t)
	kerneltest.Run(t, func() (kernels.Device, error) { return cuda.Open(cuda.Options{Driver: lib}) })
}

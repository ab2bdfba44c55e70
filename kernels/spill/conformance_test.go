package spill

import (
	"testing"

	"dorylus/kernels"
	"dorylus/kernels/kerneltest"
)

// TestConformance: every op with every operand spilled.
func TestConformance(t *testing.T) {
	kerneltest.Run(t, func() (kernels.Device, error) {
		return openFake(12<<20, 0, 1, func(int, int) bool { return true })
	})
}

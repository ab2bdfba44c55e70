//go:build cgo && amd64 && linux

package cpu

import (
	"testing"

	"dorylus/kernels"
	"dorylus/kernels/kerneltest"
)

// Every instruction set that runs here gives what the ops' comments say.
func TestConformance(t *testing.T) {
	for _, isa := range []string{"scalar", "avx2", "avx512"} {
		t.Run(isa, func(t *testing.T) {
			if err := Why(isa); err != nil {
				t.Skipf("SKIPPED: %v", err)
			}
			kerneltest.Run(t, func() (kernels.Device, error) { return Open(isa) })
		})
	}
}

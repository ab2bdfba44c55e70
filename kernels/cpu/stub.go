//go:build !cgo || !amd64 || !linux

package cpu

import (
	"errors"
	"fmt"
	"runtime"

	"dorylus/kernels"
)

// Options choose how a device computes.
type Options struct {
	ISA       string
	TileBytes int
}

// Memory is what a device holds, by purpose, in bytes.
type Memory struct {
	Matrices      int
	MatrixBytes   int64
	Graphs        int
	TileBytes     int64
	ScratchBytes  int64
	ReservedBytes int64
	PeakBytes     int64
}

// MemoryOf knows no device in this build.
func MemoryOf(kernels.Device) (Memory, bool) { return Memory{}, false }

// Open says why there is no native device in this build.
func Open(isa string) (kernels.Device, error) { return OpenWith(Options{ISA: isa}) }

// OpenWith says why there is no native device in this build.
func OpenWith(Options) (kernels.Device, error) {
	return nil, fmt.Errorf("open cpu: %w", Why(""))
}

// ISAs lists the instruction sets that run here: none.
func ISAs() []string { return nil }

// Why says why an instruction set cannot be used here.
func Why(string) error {
	if runtime.GOARCH != "amd64" || runtime.GOOS != "linux" {
		return fmt.Errorf("native kernels exist for linux on amd64, this is %s on %s; use the device ref", runtime.GOOS, runtime.GOARCH)
	}
	return errors.New("this program was built without cgo; build with CGO_ENABLED=1 and gcc, or use the device ref")
}

// Describe says that there are no native kernels.
func Describe() string { return Why("").Error() }

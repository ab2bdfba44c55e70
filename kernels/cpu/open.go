//go:build cgo && amd64 && linux

package cpu

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	native "dorylus/csrc/cpu"
	"dorylus/kernels"
)

// Options choose how a device computes. The zero value is the best for this host.
type Options struct {
	// ISA is the instruction set: scalar, avx2 or avx512. "", the default, means
	// what the environment variable DORYLUS_ISA says or else the best that runs
	// here.
	ISA string
	// TileBytes is how much cache a tile of source rows fills in SpMM. 0 means
	// DORYLUS_TILE_KIB, in KiB, or else DefaultTileBytes; below 0 gathers are
	// never tiled. It changes no bit of any result.
	TileBytes int
}

// Open is the device "cpu/ISA"; "" means DORYLUS_ISA or else the best that runs
// here. A set that is unknown or cannot run is an error: there is no fall-back.
func Open(isa string) (kernels.Device, error) { return OpenWith(Options{ISA: isa}) }

// OpenWith is Open with options.
func OpenWith(o Options) (kernels.Device, error) {
	isa, err := choose(o.ISA)
	if err != nil {
		return nil, err
	}
	tile, err := tileBytes(o.TileBytes)
	if err != nil {
		return nil, err
	}
	return newDevice(isa, tile), nil
}

// choose finds the instruction set for a name.
func choose(name string) (native.ISA, error) {
	origin := ""
	if name == "" {
		if name = os.Getenv("DORYLUS_ISA"); name != "" {
			origin = "DORYLUS_ISA: "
		}
	}
	if name == "" {
		best := native.Scalar
		for _, i := range native.All {
			if native.Probe(i) {
				best = i
			}
		}
		return best, nil
	}
	if err := Why(name); err != nil {
		return 0, fmt.Errorf("open cpu: %s%w", origin, err)
	}
	isa, _ := parse(name)
	return isa, nil
}

func parse(name string) (native.ISA, bool) {
	for _, i := range native.All {
		if i.String() == name {
			return i, true
		}
	}
	return 0, false
}

// tileBytes is the option, the environment's word, or the default; 0: never tile.
func tileBytes(option int) (int, error) {
	switch {
	case option < 0:
		return 0, nil
	case option > 0:
		return option, nil
	}
	text := os.Getenv("DORYLUS_TILE_KIB")
	if text == "" {
		return DefaultTileBytes, nil
	}
	kib, err := strconv.Atoi(text)
	if err != nil || kib < 0 || kib > 1<<20 {
		return 0, fmt.Errorf("open cpu: DORYLUS_TILE_KIB is %q, want a number of KiB from 0 (never tile) to 1048576", text)
	}
	return kib << 10, nil
}

// ISAs lists the instruction sets that run here, best last.
func ISAs() []string {
	var names []string
	for _, i := range native.All {
		if native.Probe(i) {
			names = append(names, i.String())
		}
	}
	return names
}

// Why says why an instruction set cannot be used here; nil if it can.
func Why(isa string) error {
	i, ok := parse(isa)
	switch {
	case !ok:
		return fmt.Errorf("unknown instruction set %q, want scalar, avx2 or avx512", isa)
	case !native.Probe(i):
		return fmt.Errorf("%s cannot run here: the processor (%s) lacks it, or the operating system does not save its registers; this host runs %s",
			isa, cpuName(), strings.Join(ISAs(), ", "))
	}
	return nil
}

// Describe names the processor, what it runs, and the library behind the matrix
// products: what decides speed and last bits.
func Describe() string {
	isa, err := choose("")
	use := isa.String()
	if err != nil {
		use = err.Error()
	}
	return fmt.Sprintf("%s; instruction sets %s; in use %s; %s", cpuName(), strings.Join(ISAs(), ", "), use, products())
}

func cpuName() string {
	if n := strings.TrimSpace(native.CPUName()); n != "" {
		return n
	}
	return "processor without a name"
}

var errNotOurs = errors.New("not a device of this package")

// table is d's functions, for the probes.
func table(d kernels.Device) (*native.Table, error) {
	c, ok := d.(*device)
	if !ok {
		return nil, fmt.Errorf("%s: %w", d.Name(), errNotOurs)
	}
	return c.table, nil
}

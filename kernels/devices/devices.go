// Package devices opens a device by its name and says which ones this program can
// use on this host, and why it cannot use the others.
package devices

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"dorylus/kernels"
	"dorylus/kernels/cpu"
	"dorylus/kernels/ref"
)

// Info is one device as the devices command shows it.
type Info struct {
	Name    string // as Open takes it
	OK      bool   // Open would succeed
	Why     string // why not; empty if OK
	Detail  string // what it is; empty if there is nothing to add
	Default bool   // what Open("auto") opens
}

// gpuPrefix begins the names of GPUs.
const gpuPrefix = "cuda:"

// isas are the instruction sets that kernels exist for, best last.
var isas = []string{"scalar", "avx2", "avx512"}

// A family is devices of a kind that this package knows by Register alone.
type family struct {
	prefix string
	open   func(name string) (kernels.Device, error)
	list   func() []Info
}

var families struct {
	mu  sync.Mutex
	all []family
}

// Register makes Open hand names that begin with prefix ("cuda:") to open, and Available
// ask list for the devices that have such names. So this package links nothing that only
// some programs need. Of two with the same prefix the later one counts.
func Register(prefix string, open func(name string) (kernels.Device, error), list func() []Info) {
	families.mu.Lock()
	defer families.mu.Unlock()
	families.all = slices.DeleteFunc(families.all, func(f family) bool { return f.prefix == prefix })
	families.all = append(families.all, family{prefix, open, list})
}

// registered are the families, which nobody changes any more.
func registered() []family {
	families.mu.Lock()
	defer families.mu.Unlock()
	return slices.Clone(families.all)
}

// errNoGPU is why there is no cuda device where none is registered.
var errNoGPU = errors.New("built without GPU support")

// Names lists what Open takes: auto, the best of the others that computes on the
// processor; cpu, the best instruction set, or the one that DORYLUS_ISA names; and
// each device by its own name.
func Names() []string {
	names := []string{"auto", "ref", "cpu"}
	for _, isa := range isas {
		names = append(names, "cpu/"+isa)
	}
	return append(names, "cuda:0")
}

// Open opens a device by name; "" is auto. A device that cannot be used is an
// error with the reason, never replaced by another. Only auto chooses: the native
// kernels, or ref where this program holds none.
func Open(name string) (kernels.Device, error) {
	dev, err := open(name)
	if err != nil {
		return nil, fmt.Errorf("open device %s: %w", name, err)
	}
	return dev, nil
}

func open(name string) (kernels.Device, error) {
	switch name {
	case "", "auto":
		if len(cpu.ISAs()) == 0 {
			return ref.Open()
		}
		return cpu.Open("")
	case "ref":
		return ref.Open()
	case "cpu":
		return cpu.Open("")
	}
	if isa, ok := strings.CutPrefix(name, "cpu/"); ok && known(isa) {
		if err := cpu.Why(isa); err != nil {
			return nil, err
		}
		return cpu.Open(isa)
	}
	for _, f := range registered() {
		if strings.HasPrefix(name, f.prefix) {
			return f.open(name)
		}
	}
	if ordinal, ok := strings.CutPrefix(name, gpuPrefix); ok {
		if n, err := strconv.Atoi(ordinal); err == nil && n >= 0 {
			return nil, errNoGPU
		}
	}
	return nil, fmt.Errorf("unknown name, want one of %s", strings.Join(Names(), ", "))
}

func known(isa string) bool {
	for _, i := range isas {
		if i == isa {
			return true
		}
	}
	return false
}

// Available lists every device, usable or not, the plainest first.
func Available() []Info {
	all := Processors()
	families := registered()
	for _, f := range families {
		all = append(all, f.list()...)
	}
	if !slices.ContainsFunc(families, func(f family) bool { return f.prefix == gpuPrefix }) {
		all = append(all, Info{Name: gpuPrefix + "0", Why: errNoGPU.Error()})
	}
	return all
}

// Processors is Available without devices that were registered.
func Processors() []Info {
	native := len(cpu.ISAs()) > 0
	all := []Info{{Name: "ref", OK: true, Detail: "plain Go, sums in float64: the reference, for checks and small graphs"}}
	if !native {
		all[0].Default = true
		all[0].Detail += "; the default here, for want of native kernels"
	}
	auto := automatic()
	for _, isa := range isas {
		i := Info{Name: "cpu/" + isa, OK: true}
		if err := cpu.Why(isa); err != nil {
			i.OK, i.Why = false, err.Error()
		} else {
			i.Detail = cpu.Describe()
		}
		i.Default = i.Name == auto
		all = append(all, i)
	}
	return all
}

// automatic is the name of what auto opens, empty where it opens nothing (an
// environment that asks for what cannot run).
func automatic() string {
	dev, err := open("auto")
	if err != nil {
		return ""
	}
	name := dev.Name()
	if err := dev.Close(); err != nil {
		return ""
	}
	return name
}

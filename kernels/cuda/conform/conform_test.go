//go:build cuda && cgo && linux && (amd64 || arm64)

package conform

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"dorylus/csrc/cuemu"
	"dorylus/kernels"
	"dorylus/kernels/cuda"
	"dorylus/kernels/cuda/internal/watch"
	"dorylus/kernels/kerneltest"
)

// emulated is the emulated device, fresh and with the settings of spec, and its library.
func emulated(t *testing.T, spec string) (*cuemu.Control, string) {
	t.Helper()
	lib := cuemu.Build(t)
	cuda.Probe(cuda.Options{Driver: lib}) // which loads it
	d, err := cuemu.Loaded(lib)
	if err == nil {
		err = d.Restart(spec)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d, lib
}

// leaks are the counters that are 0 when all devices are closed.
var leaks = []string{"memory_live", "allocations_live", "pinned_live", "streams_live", "events_live", "modules_live", "contexts_live", "work_pending"}

func leaked(d *cuemu.Control) error {
	for _, name := range leaks {
		if n := d.Counter(name); n != 0 {
			return fmt.Errorf("%s is %d after the device is closed", name, n)
		}
	}
	return nil
}

// slow are cases that take the emulated device seconds, and launch nothing that others do
// not. With DORYLUS_CONFORMANCE=all they run there too; on a GPU they always do.
var slow = map[string]bool{"SpMM/crowd/width=602": true, "SpMM/large source": true}

// TestConformance runs the conformance suite, on a GPU where tests are to. On the
// emulated device every case has another order of blocks, warps and lanes; with -short
// it is two of the widths.
func TestConformance(t *testing.T) {
	driver := cuemu.Driver(t)
	var emu *cuemu.Control
	if !cuemu.OnGPU() {
		emu, _ = emulated(t, "")
		watch.Chunk = 64 << 10 // the device fills what it hands out
		launches := &signatures{emu: emu, seen: map[string]string{}}
		watch.Launch = launches.check
		defer func() { watch.Launch, watch.Chunk = nil, 0; launches.report(t); launches.missing(t) }()
	}
	for i, c := range kerneltest.Cases() {
		if testing.Short() && strings.Contains(c.Name, "width=") && !strings.HasSuffix(c.Name, "=9") && !strings.HasSuffix(c.Name, "=41") {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			if emu != nil && slow[c.Name] && os.Getenv("DORYLUS_CONFORMANCE") != "all" {
				t.Skip("NOT RUN: slow on the emulated device; set DORYLUS_CONFORMANCE=all")
			}
			detail := ""
			if emu != nil {
				if err := emu.Restart(fmt.Sprintf("seed=%d;early=%d", i+1, i%3*20)); err != nil {
					t.Fatal(err)
				}
			}
			err := c.Check(func() (kernels.Device, error) { return cuda.Open(cuda.Options{Driver: driver}) })
			if emu != nil {
				detail = fmt.Sprintf("; the emulated device with seed=%d;early=%d: %s", i+1, i%3*20, emu.Detail())
				if err := leaked(emu); err != nil {
					t.Error(err)
				}
			}
			if err != nil {
				t.Errorf("%v%s", err, detail)
			}
		})
	}
}

// signatures compares the arguments of launches with what the kernels take.
type signatures struct {
	emu *cuemu.Control
	mu  sync.Mutex
	// seen are the letters of each kernel that was launched; those that differ are wrong.
	seen  map[string]string
	wrong []string
}

func (s *signatures) check(kernel, letters string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[kernel] == letters {
		return
	}
	s.seen[kernel] = letters
	if want := s.emu.Signature(kernel); letters != want {
		s.wrong = append(s.wrong, fmt.Sprintf("%s is launched with %s, it takes %s", kernel, letters, want))
	}
}

// report tells what was wrong.
func (s *signatures) report(t *testing.T) {
	for _, w := range s.wrong {
		t.Error(w)
	}
}

// missing tells which kernels nobody has launched.
func (s *signatures) missing(t *testing.T) {
	var missing []string
	for _, k := range s.emu.Kernels() {
		if s.seen[k] == "" {
			missing = append(missing, k)
		}
	}
	t.Logf("the suite does not launch %v", missing)
}

// TestBlocksInGroups: sums over more blocks than scratch memory takes at a time have the
// same bits.
func TestBlocksInGroups(t *testing.T) {
	if cuemu.OnGPU() {
		t.Skip("NOT RUN: the groups of the emulated device alone are made small")
	}
	emu, lib := emulated(t, "seed=3")
	defer func() { watch.Parts = 0 }()
	for _, c := range kerneltest.Cases() {
		if !strings.HasPrefix(c.Name, "Blocks/sums/width=9") && c.Name != "Blocks/many" {
			continue
		}
		launched := []int64{}
		for _, watch.Parts = range []int64{0, 1, 4 << 10} {
			emu.Reset()
			if err := c.Check(func() (kernels.Device, error) { return cuda.Open(cuda.Options{Driver: lib}) }); err != nil {
				t.Errorf("%s, %d bytes at a time: %v", c.Name, watch.Parts, err)
			}
			launched = append(launched, emu.Counter("launches/dk_gemm_blocks_v1")+emu.Counter("launches/dk_gemm_blocks_v4"))
		}
		if !(launched[0] < launched[2] && launched[2] < launched[1]) {
			t.Errorf("%s: %v products by all the memory, none and some", c.Name, launched)
		}
	}
}

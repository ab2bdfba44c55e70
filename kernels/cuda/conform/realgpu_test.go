//go:build cuda && cgo && linux && (amd64 || arm64)

package conform

import (
	"os"
	"testing"

	"dorylus/csrc/cuemu"
	"dorylus/kernels"
	"dorylus/kernels/cuda"
)

// TestRealGPU: where tests are to run on a GPU there is one, and it is no emulated device,
// unless that was asked for. It tells what the others run on.
func TestRealGPU(t *testing.T) {
	if !cuemu.OnGPU() {
		t.Skipf("SKIPPED: %s is not set, as make test-gpu does", cuemu.GPUEnv)
	}
	d, err := cuda.Open(cuda.Options{Driver: cuemu.Driver(t)})
	if err != nil {
		t.Fatalf("no GPU can be used: %v", err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	t.Log(d.Describe())
	if d.Emulated() && os.Getenv(cuemu.GPUEnv) != "emulated" {
		t.Fatalf("%s answers: an emulated device is no GPU", d.Describe())
	}
}

// TestTiming: events around ops give a time, rates are numbers, and nothing is left
// behind. What the numbers are on the emulated device means nothing.
func TestTiming(t *testing.T) {
	b := open(t, cuda.Options{Driver: cuemu.Driver(t)})
	defer b.close()
	x, y := b.put(40, 8, make([]float32, 40*8)), b.put(40, 8, nil)
	ms, err := cuda.Time(b.s, func() { b.s.Add(y, x, x) })
	if err != nil || ms < 0 {
		t.Errorf("an addition took %v ms, %v", ms, err)
	}
	if _, err := cuda.Time(nil, func() {}); err == nil {
		t.Error("a stream of nobody: no error")
	}
	r, err := b.d.Rates(64<<10, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]float64{"copy": r.Copy, "L2 copy": r.L2Copy, "add": r.Add, "pinned up": r.PinnedUp, "pinned down": r.PinnedDown,
		"pageable up": r.PageableUp, "pageable down": r.PageableDown, "launch": r.Launch, "queue": r.Queue, "task": r.Task} {
		if !(v > 0) {
			t.Errorf("the rate of %s is %v", name, v)
		}
	}
	if m := b.d.Memory(); m.Live > m.Limit {
		t.Errorf("memory after the rates: %+v", m)
	}
	for _, m := range []*kernels.Mat{x, y} {
		b.d.Free(m)
	}
}

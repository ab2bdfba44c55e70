//go:build cuda && cgo && linux && (amd64 || arm64)

package conform

import (
	"fmt"
	"strings"
	"testing"

	"dorylus/csrc/cuemu"
	"dorylus/kernels"
	"dorylus/kernels/cuda"
	"dorylus/kernels/kerneltest"
	"dorylus/kernels/spill"
	"dorylus/kernels/spill/spilltest"
)

// spilling opens a device that keeps every matrix in host memory.
func spilling(driver string, memory, arena int64, tile int) (*cuda.Device, error) {
	return spillingOn(cuda.Options{Driver: driver, Memory: memory}, arena, tile)
}

func spillingOn(o cuda.Options, arena int64, tile int) (*cuda.Device, error) {
	d, err := cuda.Open(o)
	if err != nil {
		return nil, err
	}
	if err := d.Apply(spill.Everything(arena, tile)); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// TestSpilledConformance runs a part of the conformance suite with every operand in host
// memory: one width of each op, and what has no widths.
func TestSpilledConformance(t *testing.T) {
	driver := cuemu.Driver(t)
	var emu *cuemu.Control
	if !cuemu.OnGPU() {
		emu, _ = emulated(t, "")
	}
	for i, c := range kerneltest.Cases() {
		if _, width, cut := strings.Cut(c.Name, "width="); cut && width != "9" || strings.Contains(c.Name, "large") || strings.Contains(c.Name, "x602") || strings.Contains(c.Name, "x41") {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			detail := ""
			if emu != nil {
				if err := emu.Restart(fmt.Sprintf("seed=%d;early=%d", i+1, i%3*20)); err != nil {
					t.Fatal(err)
				}
			}
			err := c.Check(func() (kernels.Device, error) { return spilling(driver, 0, 4<<20, 0) })
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

// TestSpilledEqualsResident: every op on matrices of many tiles in many pieces gives what
// it gives on resident ones, twice the same bits, whatever order copies and kernels run in.
func TestSpilledEqualsResident(t *testing.T) {
	driver := cuemu.Driver(t)
	var emu *cuemu.Control
	if !cuemu.OnGPU() {
		emu, _ = emulated(t, "")
	}
	restart := func(t *testing.T, spec string) {
		if emu != nil {
			if err := emu.Restart(spec); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, o := range spilltest.Ops {
		t.Run(o.Name, func(t *testing.T) {
			restart(t, "")
			d, err := cuda.Open(cuda.Options{Driver: driver})
			if err != nil {
				t.Fatal(err)
			}
			want := spilltest.Outcome(t, d, o)
			defer func() {
				if emu != nil && t.Failed() {
					t.Logf("the emulated device says: %s", emu.Detail())
				}
			}()
			var first [][]float32
			for seed := range 2 {
				restart(t, fmt.Sprintf("seed=%d;early=%d", seed+1, seed*40))
				d, err := spilling(driver, 0, o.Arena(), 8)
				if err != nil {
					t.Fatal(err)
				}
				got := spilltest.Outcome(t, d, o)
				if first == nil {
					first = got
				}
				for i := range want {
					if err := spilltest.Same(want[i], got[i], false); err != nil {
						t.Errorf("operand %d of %v, seed %d: streamed and resident: %v", i, o.Shapes, seed, err)
					}
					if err := spilltest.Same(first[i], got[i], true); err != nil {
						t.Errorf("operand %d of %v, seed %d: two streamed runs: %v", i, o.Shapes, seed, err)
					}
				}
				if emu == nil {
					continue
				}
				if err := leaked(emu); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// streamed opens a device that spills, adds matrices on it, and closes it.
func streamed(lib string) (err, closed error) {
	d, err := spilling(lib, 32<<20, 128<<10, 8)
	if err != nil {
		return err, nil
	}
	defer func() { closed = d.Close() }()
	s, err := d.NewStream()
	if err != nil {
		return err, nil
	}
	a, err := d.Alloc(500, 64)
	if err == nil {
		s.Add(a, a, a)
		s.ScatterRows(a, a.Sub(kernels.Span{Lo: 20, Hi: 22}), []int32{7, 3})
		err = s.Wait()
		if m := d.Memory(); err == nil && (m.Peak > m.Limit || m.Spilled < 500*64*4) {
			err = fmt.Errorf("memory %+v", m)
		}
	}
	d.Free(a)
	s.Close()
	return err, nil
}

// TestEmulatedSpillFaults: where a call fails in the middle of streaming, the error says so
// and nothing is left behind.
func TestEmulatedSpillFaults(t *testing.T) {
	emu, lib := emulated(t, "")
	if err, closed := streamed(lib); err != nil || closed != nil {
		t.Fatalf("without a fault: %v, %v", err, closed)
	}
	for _, fault := range []string{"cuMemHostAlloc@4:2", "cuMemHostAlloc@5:2", "cuMemAlloc@4:2", "cuMemcpyHtoDAsync@3:1", "cuMemcpyDtoHAsync@2:1", "cuEventCreate@14:2", "cuEventRecord@5:1", "cuStreamWaitEvent@3:1", "cuStreamSynchronize@3:1", "memory"} {
		t.Run(fault, func(t *testing.T) {
			spec := "fault=" + fault
			if fault == "memory" {
				spec = fmt.Sprint("memory=", 12<<20)
			}
			if err := emu.Restart(spec); err != nil {
				t.Fatal(err)
			}
			err, closed := streamed(lib)
			if err == nil {
				t.Errorf("%s gave no error", spec)
			} else if closed != nil {
				t.Errorf("%s: %v, then close: %v", spec, err, closed)
			}
			if err := leaked(emu); err != nil {
				t.Errorf("%s: %v", spec, err)
			}
		})
	}
}

package devices

import (
	"strings"
	"testing"

	"dorylus/kernels"
	"dorylus/kernels/kerneltest"
)

// TestConformance holds every device that this host can use to the suite. (ref has
// it in its own package.)
func TestConformance(t *testing.T) {
	for _, i := range Available() {
		if i.Name == "ref" {
			continue
		}
		t.Run(i.Name, func(t *testing.T) {
			if !i.OK {
				t.Skipf("SKIPPED: %s: %s", i.Name, i.Why)
			}
			kerneltest.Run(t, func() (kernels.Device, error) { return Open(i.Name) })
		})
	}
}

// TestConformanceInTiles repeats what gathers do, with sources cut into tiles of
// four rows: the sums go from tile to tile.
func TestConformanceInTiles(t *testing.T) {
	t.Setenv("DORYLUS_TILE_KIB", "1")
	for _, i := range Available() {
		if !i.OK || i.Name == "ref" {
			continue
		}
		for _, c := range kerneltest.Cases() {
			if !strings.HasPrefix(c.Name, "SpMM/crowd") && !strings.HasPrefix(c.Name, "SpMM/spans") {
				continue // too few edges to cut, or too many sources for tiles this small
			}
			t.Run(i.Name+"/"+c.Name, func(t *testing.T) {
				if err := c.Check(func() (kernels.Device, error) { return Open(i.Name) }); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestNames: every listed device opens under its own name if it says so, and
// gives its reason if not.
func TestNames(t *testing.T) {
	defaults := 0
	for _, i := range Available() {
		dev, err := Open(i.Name)
		if (err == nil) != i.OK {
			t.Errorf("%+v, but Open gives %v", i, err)
		}
		if i.OK == (i.Why != "") {
			t.Errorf("%+v: usable devices have no reason, others have one", i)
		}
		if i.Default {
			defaults++
		}
		if err != nil {
			if !strings.Contains(err.Error(), i.Why) || !strings.Contains(err.Error(), i.Name) {
				t.Errorf("Open(%q): %v, want its name and %q", i.Name, err, i.Why)
			}
			continue
		}
		if dev.Name() != i.Name {
			t.Errorf("Open(%q) is %s", i.Name, dev.Name())
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
	if defaults != 1 {
		t.Errorf("%d devices are the default, want 1", defaults)
	}
}

// TestAuto: the default opens, and is the device that Available marks.
func TestAuto(t *testing.T) {
	for _, name := range []string{"", "auto"} {
		dev, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range Available() {
			if i.Default != (i.Name == dev.Name()) {
				t.Errorf("Open(%q) is %s, Available says %+v", name, dev.Name(), i)
			}
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestForcedISA: DORYLUS_ISA decides for auto and cpu; a wrong one is an error, not
// another device.
func TestForcedISA(t *testing.T) {
	if i := Available()[1]; !i.OK {
		t.Skipf("SKIPPED: %s: %s", i.Name, i.Why)
	}
	t.Setenv("DORYLUS_ISA", "scalar")
	for _, name := range []string{"auto", "cpu"} {
		dev, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if dev.Name() != "cpu/scalar" {
			t.Errorf("DORYLUS_ISA=scalar: %s is %s", name, dev.Name())
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Setenv("DORYLUS_ISA", "avx9000")
	if _, err := Open("auto"); err == nil || !strings.Contains(err.Error(), "avx9000") {
		t.Errorf("DORYLUS_ISA=avx9000: %v, want an error that names it", err)
	}
}

func TestUnknown(t *testing.T) {
	for _, name := range []string{"gpu", "cpu/avx9000", "cpu/", "cuda", "cuda:x", "cuda:-1", "AUTO"} {
		_, err := Open(name)
		if err == nil || !strings.Contains(err.Error(), "want one of auto, ref, cpu, cpu/scalar, cpu/avx2, cpu/avx512, cuda:0") {
			t.Errorf("Open(%q): %v, want the known names", name, err)
		}
	}
	if _, err := Open("cuda:1"); err == nil || !strings.Contains(err.Error(), "built without GPU support") {
		t.Errorf("Open(cuda:1): %v", err)
	}
}

func BenchmarkDevices(b *testing.B) {
	for _, i := range Available() {
		if i.OK {
			b.Run(i.Name, func(b *testing.B) {
				kerneltest.Benchmark(b, func() (kernels.Device, error) { return Open(i.Name) })
			})
		}
	}
}

//go:build cuda && cgo && linux && (amd64 || arm64)

package conform

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"dorylus/csrc/cuemu"
	"dorylus/kernels"
	"dorylus/kernels/cuda"
)

// two opens both devices of the emulator, which must hold nothing in the end.
func two(t *testing.T, spec string) (*cuemu.Control, [2]*cuda.Device) {
	t.Helper()
	emu, lib := emulated(t, "devices=2;"+spec)
	var devs [2]*cuda.Device
	for i := range devs {
		d, err := cuda.Open(cuda.Options{Driver: lib, Ordinal: i, Memory: 64 << 20})
		if err != nil {
			t.Fatal(err)
		}
		devs[i] = d
	}
	t.Cleanup(func() {
		for _, d := range devs {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := leaked(emu); err != nil {
			t.Error(err)
		}
	})
	return emu, devs
}

// put is a matrix with values, f apart of each other, on a device.
func put(t *testing.T, d *cuda.Device, rows, cols int, packed bool, first float32) (*kernels.Mat, []float32) {
	t.Helper()
	whole, err := d.Alloc(rows, cols)
	if packed {
		d.Free(whole)
		whole, err = d.Alloc(rows*cols, 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Free(whole) })
	m := whole
	if packed {
		m = kernels.Unpadded(whole, rows, cols)
	}
	values := make([]float32, rows*cols)
	for i := range values {
		values[i] = first + float32(i)
	}
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	s.Put(m, values)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return m, values
}

func read(t *testing.T, d *cuda.Device, m *kernels.Mat) []float32 {
	t.Helper()
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	values := make([]float32, m.Rows*m.Cols)
	s.Get(values, m)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return values
}

// Rows go from one device to the other whole, in any shape and order of the device's
// work, and no byte of them by the host.
func TestEmulatedPeersCopy(t *testing.T) {
	for seed := range 4 {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { copyAll(t, seed) })
	}
}

func copyAll(t *testing.T, seed int) {
	emu, devs := two(t, fmt.Sprintf("seed=%d;early=%d", seed+1, seed%3*40))
	if !devs[1].Reaches(devs[0]) || !devs[0].Reaches(devs[1]) || devs[0].Reaches(devs[0]) {
		t.Fatal("each reaches the other, and not itself")
	}
	for _, c := range []struct {
		rows, cols int
		packed     bool
	}{{1, 1, false}, {3, 41, true}, {5, 7, false}, {4, 16, false}, {200, 3, true}, {0, 4, true}} {
		from, want := put(t, devs[0], c.rows, c.cols, c.packed, 1)
		to, _ := put(t, devs[1], c.rows, c.cols, c.packed, -1000)
		between, up, down := emu.Counter("bytes_between_devices"), emu.Counter("bytes_to_device"), emu.Counter("bytes_to_host")
		if err := devs[1].CopyFrom(to, devs[0], from); err != nil {
			t.Fatal(err)
		}
		if n := emu.Counter("bytes_between_devices") - between; n != int64(4*c.rows*c.cols) || emu.Counter("bytes_to_device") != up || emu.Counter("bytes_to_host") != down {
			t.Errorf("%+v: %d bytes between the devices, want %d, and none by the host", c, n, 4*c.rows*c.cols)
		}
		if got := read(t, devs[1], to); !slices.Equal(got, want) {
			t.Errorf("seed %d, %+v: got %v, want %v", seed, c, got, want)
		}
	}
	// Over what Alloc may still be zeroing.
	from, want := put(t, devs[0], 100, 1, false, 5)
	for range 10 {
		fresh, err := devs[1].Alloc(100, 1)
		if err == nil {
			err = devs[1].CopyFrom(fresh, devs[0], from)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, devs[1], fresh); !slices.Equal(got, want) {
			t.Errorf("seed %d: got %v, want %v", seed, got, want)
		}
		devs[1].Free(fresh)
	}
}

// Copies of several goroutines both ways, beside ops, are whole.
func TestEmulatedPeersCopyAtOnce(t *testing.T) {
	_, devs := two(t, "seed=3;early=30")
	var froms, tos [2][4]*kernels.Mat
	var wants [2][4][]float32
	for d := range 2 {
		for i := range 4 {
			froms[d][i], wants[d][i] = put(t, devs[d], 30, 9, true, float32(1000*d+100*i))
			tos[d][i], _ = put(t, devs[d], 30, 9, true, -1)
		}
	}
	var wg sync.WaitGroup
	for d := range 2 {
		for i := range 4 {
			wg.Go(func() {
				for range 5 {
					if err := devs[1-d].CopyFrom(tos[1-d][i], devs[d], froms[d][i]); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	for d := range 2 {
		for i := range 4 {
			if got := read(t, devs[1-d], tos[1-d][i]); !slices.Equal(got, wants[d][i]) {
				t.Errorf("matrix %d of device %d: got %v, want %v", i, d, got, wants[d][i])
			}
		}
	}
}

func TestEmulatedDevicesApart(t *testing.T) {
	_, devs := two(t, "peer=0")
	from, _ := put(t, devs[0], 2, 2, true, 1)
	to, _ := put(t, devs[1], 2, 2, true, 1)
	if devs[1].Reaches(devs[0]) {
		t.Error("a device reaches another that the driver says it does not")
	}
	if err := devs[1].CopyFrom(to, devs[0], from); err == nil || !strings.HasPrefix(err.Error(), "cuda:1: copy 2 x 2 from cuda:0: ") {
		t.Errorf("%v", err)
	}
}

// A copy that fails says between which devices, and the next one works.
func TestEmulatedPeersFail(t *testing.T) {
	emu, devs := two(t, "")
	from, want := put(t, devs[0], 2, 2, true, 1)
	to, _ := put(t, devs[1], 2, 2, true, 7)
	if !devs[1].Reaches(devs[0]) {
		t.Fatal("they are apart")
	}
	if err := emu.Configure("fault=cuMemcpyPeerAsync:1"); err != nil {
		t.Fatal(err)
	}
	if err := devs[1].CopyFrom(to, devs[0], from); err == nil || !strings.HasPrefix(err.Error(), "cuda:1: copy 2 x 2 from cuda:0: ") {
		t.Errorf("%v", err)
	}
	if err := devs[1].CopyFrom(to, devs[0], from); err != nil {
		t.Error(err)
	}
	if got := read(t, devs[1], to); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

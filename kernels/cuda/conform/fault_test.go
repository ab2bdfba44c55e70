//go:build cuda && cgo && linux && (amd64 || arm64)

package conform

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"dorylus/kernels"
	"dorylus/kernels/cuda"
	"dorylus/kernels/cuda/internal/watch"
)

func contains(err error, text string) bool { return strings.Contains(err.Error(), text) }

// session takes one of everything from a device, works with it, gives all back and
// closes the device; it does not stop at errors, but what it could not get it does not
// use.
func session(lib string) (err, closed error) {
	d, err := cuda.Open(cuda.Options{Driver: lib})
	if err != nil {
		return err, nil
	}
	var errs []error
	say := func(err error) bool {
		if err != nil {
			errs = append(errs, err)
		}
		return err == nil
	}
	ids := []int32{4, 0, 2}
	kept := say(d.Keep(ids))
	g, err := d.Load(&kernels.CSR{Cols: 5, RowPtr: []int64{0, 2, 2, 3, 5, 5}, Col: []int32{0, 3, 1, 1, 4}, Val: []float32{1, 2, 3, 4, 5}})
	loaded := say(err)
	s, err := d.NewStream()
	say(err)
	var mats []*kernels.Mat
	for range 3 {
		m, err := d.Alloc(5, 9)
		if say(err) {
			mats = append(mats, m)
		}
	}
	if loaded && len(mats) == 3 {
		out := make([]float32, 45)
		all := kernels.Span{Hi: 5}
		for range 2 {
			s.Put(mats[0], make([]float32, 45))
			s.SpMM(mats[1], g, mats[0], kernels.Gather{}, all)
			s.GatherRows(mats[2].Sub(kernels.Span{Hi: 3}), mats[1], ids)
			s.AddRows(mats[1], mats[2].Sub(kernels.Span{Hi: 2}), []int32{1, 1})
			s.SpMMT(mats[2], g, nil, mats[1], all)
			s.Get(out, mats[2])
			say(s.Wait())
		}
	}
	say(s.Close())
	for _, m := range mats {
		d.Free(m)
	}
	if loaded {
		d.Unload(g)
	}
	if kept {
		d.Drop(ids)
	}
	return errors.Join(errs...), d.Close()
}

// entries are the driver's calls that a session makes, and whether they give something
// back: then what failed to go is not a leak of ours.
var entries = map[string]bool{
	"cuDeviceGetCount": false, "cuDeviceGet": false, "cuDeviceGetName": false, "cuDeviceTotalMem": false, "cuDeviceGetAttribute": false,
	"cuDevicePrimaryCtxRetain": false, "cuDevicePrimaryCtxRelease": true, "cuCtxSetCurrent": false, "cuModuleLoadDataEx": false, "cuModuleUnload": true,
	"cuModuleGetFunction": false, "cuLaunchKernel": false, "cuMemGetInfo": false, "cuMemAlloc": false, "cuMemFree": true, "cuMemHostAlloc": false,
	"cuMemFreeHost": true, "cuMemcpyHtoDAsync": false, "cuMemcpyDtoHAsync": false, "cuMemsetD8Async": false, "cuStreamCreate": false,
	"cuStreamDestroy": true, "cuStreamSynchronize": false, "cuStreamWaitEvent": false, "cuEventCreate": false, "cuEventDestroy": true, "cuEventRecord": false,
	"kernel": false, "copy": false, "memset": false,
}

// TestEmulatedFaults lets each call of the driver fail, one time after the other: the
// error of the session is the driver's, it says what was being done, and nothing stays
// behind.
func TestEmulatedFaults(t *testing.T) {
	watch.Chunk = 4 << 10
	defer func() { watch.Chunk = 0 }()
	emu, lib := emulated(t, "")
	emu.Reset()
	if err, closed := session(lib); err != nil || closed != nil {
		t.Fatalf("without faults: %v, %v", err, closed)
	}
	if err := leaked(emu); err != nil {
		t.Fatalf("without faults: %v", err)
	}
	tried := 0
	for _, entry := range slices.Sorted(func(yield func(string) bool) {
		for e := range entries {
			if !yield(e) {
				return
			}
		}
	}) {
		emu, lib := emulated(t, "")
		emu.Reset()
		session(lib)
		calls := emu.Counter("calls/" + entry)
		switch entry {
		case "kernel":
			calls = emu.Counter("launches")
		case "copy", "memset":
			calls = 2
		}
		if calls <= 0 {
			t.Errorf("a session does not call %s", entry)
		}
		for _, n := range []int64{1, 2, 3, calls / 2, calls} {
			if n < 1 || n > calls || n > 1 && testing.Short() {
				continue
			}
			statuses := []int{1, 700}
			if n == 1 {
				statuses = []int{1, 700, 2, 999}
			}
			for _, status := range statuses {
				tried++
				emu, lib := emulated(t, fmt.Sprintf("seed=%d;fault=%s@%d:%d", tried, entry, n, status))
				what := fmt.Sprintf("call %d of %d of %s ends in %d", n, calls, entry, status)
				err, closed := session(lib)
				lost := status == 999 || status == 700
				all := errors.Join(err, closed)
				var e *cuda.Error
				switch {
				case all == nil && !(entries[entry] && lost):
					t.Errorf("%s: no error", what)
				case all != nil && (!errors.As(all, &e) || e.Code != status):
					t.Errorf("%s: %v, want the driver's code", what, all)
				case all != nil && !contains(all, "cuda:0"):
					t.Errorf("%s: the error does not name the device: %v", what, all)
				}
				if !lost && !entries[entry] && entry != "kernel" && entry != "copy" && entry != "memset" {
					if err := leaked(emu); err != nil {
						t.Errorf("%s: %v", what, err)
					}
				}
			}
		}
	}
}

// TestEmulatedOps: the error of an op names it and its shapes, later ops of the queue do
// nothing, and after Wait the stream works again. A lost context is everybody's error.
func TestEmulatedOps(t *testing.T) {
	_, lib := emulated(t, "fault=cuLaunchKernel@2:1")
	b := open(t, cuda.Options{Driver: lib})
	x, y := b.put(3, 4, make([]float32, 12)), b.put(3, 4, nil)
	b.s.Add(y, x, x) // the second launch
	b.s.Zero(x)
	err := b.s.Wait()
	if want := "cuda:0: Add (3 x 4, 3 x 4, 3 x 4): launch kernel dk_add: "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("an op that fails: %v, want %q", err, want)
	}
	b.s.Put(x, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
	b.s.Add(y, x, x)
	if got := b.get(y); got[11] != 24 {
		t.Errorf("after an op that failed: %v", got)
	}
	b.d.Free(x)
	b.d.Free(y)
	b.close()

	_, lib = emulated(t, "fault=dk_add:700")
	b = open(t, cuda.Options{Driver: lib})
	x, y = b.put(3, 4, make([]float32, 12)), b.put(3, 4, nil)
	b.wait()
	b.s.Zero(y)
	b.s.Add(y, x, x)
	err = b.s.Wait()
	if want := "cuda:0: one of 2 ops, from Zero (3 x 4) to Add (3 x 4, 3 x 4, 3 x 4): "; err == nil || !contains(err, want) || !contains(err, "CUDA error 700") {
		t.Errorf("a kernel that fails: %v, want %q and code 700", err, want)
	}
	b.s.Zero(y)
	_, err1 := b.d.Alloc(2, 2)
	_, err2 := b.d.Load(&kernels.CSR{Cols: 2, RowPtr: []int64{0, 1}, Col: []int32{1}})
	for i, err := range []error{b.s.Wait(), err1, err2, b.d.Keep([]int32{1})} {
		if err == nil || !contains(err, "CUDA error 700") {
			t.Errorf("call %d after a lost context: %v, want the error that lost it", i, err)
		}
	}
	b.d.Free(x)
	b.d.Free(y)
	if err := errors.Join(b.s.Close(), b.d.Close()); err != nil {
		t.Errorf("close after a lost context: %v", err)
	}
}

// TestEmulatedCause: where an op fails, and waiting for those before it shows that the
// context is lost, the loss comes first.
func TestEmulatedCause(t *testing.T) {
	_, lib := emulated(t, "fault=dk_add:700;fault=cuMemcpyHtoDAsync@2:1")
	b := open(t, cuda.Options{Driver: lib})
	x := b.put(3, 4, make([]float32, 12))
	b.wait()
	b.s.Add(x, x, x)
	b.s.Put(x, make([]float32, 12))
	err := b.s.Wait()
	var e *cuda.Error
	if !errors.As(err, &e) || e.Code != 700 || !contains(err, "waiting for what comes before Put (3 x 4): ") || !contains(err, "CUDA error 1:") {
		t.Errorf("%v, want code 700 before code 1", err)
	}
	if _, again := b.d.Alloc(1, 1); again == nil || again.Error() != err.Error() {
		t.Errorf("then: %v, want the same error", again)
	}
	b.d.Free(x)
	b.close()
}

// TestEmulatedMemory: the limit is kept, what does not fit is an error that says what
// was asked for, and memory that comes back is used again.
func TestEmulatedMemory(t *testing.T) {
	for _, c := range []struct{ spec, want string }{
		{"", "of at most 32.0 MiB are taken"},
		{"memory=33554432", "the driver says: "},
	} {
		emu, lib := emulated(t, c.spec)
		o := cuda.Options{Driver: lib, Memory: 32 << 20}
		if c.spec != "" {
			o.Memory = 64 << 20
		}
		b := open(t, o)
		base := b.d.Memory()
		var mats []*kernels.Mat
		var err error
		for err == nil {
			var m *kernels.Mat
			if m, err = b.d.Alloc(16384, 64); err == nil {
				mats = append(mats, m)
			}
		}
		for _, want := range []string{"allocate 4.0 MiB for a matrix of 16384 x 64 on cuda:0: the device's memory is used up (CUDA error 2: ", c.want, " free of ", "--gpu-memory"} {
			if !contains(err, want) {
				t.Errorf("%q: %v, want %q", c.spec, err, want)
			}
		}
		m := b.d.Memory()
		if m.Live != base.Live+int64(len(mats))*4<<20 || m.Peak != m.Live || m.Taken > o.Memory || len(mats) < 4 {
			t.Errorf("%q: %d matrices, %+v, at first %+v", c.spec, len(mats), m, base)
		}
		for _, m := range mats {
			b.d.Free(m)
		}
		if m := b.d.Memory(); m.Live != base.Live {
			t.Errorf("%q: %d bytes live after all was freed, at first %d", c.spec, m.Live, base.Live)
		}
		big, err := b.d.Alloc(16384, 128) // another class: what is kept goes back first
		if err != nil {
			t.Errorf("%q: 8 MiB after all was freed: %v", c.spec, err)
		}
		b.d.Free(big)
		b.close()
		if err := leaked(emu); err != nil {
			t.Error(err)
		}
	}
}

// TestEmulatedResident: work that repeats itself allocates nothing, and moves nothing
// but what it is given.
func TestEmulatedResident(t *testing.T) {
	emu, lib := emulated(t, "early=30")
	b := open(t, cuda.Options{Driver: lib})
	g, err := b.d.Load(&kernels.CSR{Cols: 40, RowPtr: []int64{0, 2, 2, 3, 5, 5}, Col: []int32{0, 3, 1, 1, 4}})
	if err != nil {
		t.Fatal(err)
	}
	ids, others := []int32{3, 3, 1, 0, 39}, []int32{9, 1, 2}
	if err := b.d.Keep(ids); err != nil {
		t.Fatal(err)
	}
	x, y, w, z := b.put(40, 600, nil), b.put(5, 600, nil), b.put(600, 7, nil), b.put(5, 7, nil)
	ep := &kernels.Epilogue{Act: kernels.ReLU, Drop: kernels.Dropout{P: 0.5, IDs: ids}}
	step := func() {
		b.s.SpMM(y, g, x, kernels.Gather{Self: kernels.Self{On: true, Col: ids}, Ep: ep}, kernels.Span{Hi: 5})
		b.s.GEMM(z, y, w, kernels.NN, nil)
		b.s.AddGEMM(w, y, z, kernels.TN, nil)
		b.s.AddRows(x, y, ids)
		b.s.SpMMT(x, g, nil, y, kernels.Span{Hi: 5})
		b.s.GatherRows(y.Sub(kernels.Span{Hi: 3}), x, others)
		m := b.put(9, 41, nil)
		b.wait()
		b.d.Free(m)
	}
	step()
	step()
	emu.Reset()
	for range 3 {
		step()
	}
	for name, want := range map[string]int64{
		"calls/cuMemAlloc": 0, "calls/cuMemFree": 0, "calls/cuMemHostAlloc": 0, "calls/cuStreamCreate": 0, "calls/cuEventCreate": 0,
		"bytes_to_device": 3 * 3 * 4, "bytes_to_host": 0, "pageable_copies": 0,
	} {
		if n := emu.Counter(name); n != want {
			t.Errorf("three more rounds: %s is %d, want %d", name, n, want)
		}
	}
	for _, m := range []*kernels.Mat{x, y, w, z} {
		b.d.Free(m)
	}
	b.d.Unload(g)
	b.d.Drop(ids)
	b.close()
}

// TestEmulatedSlowLoad: kernels that take long to load are announced.
func TestEmulatedSlowLoad(t *testing.T) {
	for spec, want := range map[string]int{"fault=cuModuleLoadDataEx:slow/1300": 1, "": 0} {
		_, lib := emulated(t, spec)
		said := make(chan string, 2)
		b := open(t, cuda.Options{Driver: lib, Announce: func(text string) { said <- text }})
		b.close()
		if len(said) != want {
			t.Errorf("%q: %d announcements, want %d", spec, len(said), want)
		} else if want == 1 {
			if text := <-said; !strings.HasPrefix(text, "cuda:0: the driver compiles the kernels for ") {
				t.Errorf("it announces %q", text)
			}
		}
	}
}

//go:build cuda && cgo && linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
	"unsafe"

	"gorgonia.org/cu"

	"dorylus/csrc/cudashim/fakedriver"
)

func code(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// TestThroughCU drives a made-up driver through cu and the shim: arguments arrive, and
// codes come back.
func TestThroughCU(t *testing.T) {
	if _, err := (cuDriver{}).Devices(); code(err) != 100 {
		t.Errorf("before it is opened: %v, want code 100", err)
	}
	d, err := openDriver(fakedriver.Build(t, fakedriver.Options{Devices: []fakedriver.Device{fakedriver.H200, fakedriver.P100}}))
	if err != nil {
		t.Fatal(err)
	}
	_, err = cu.Limits(0)
	if err := wrap("ask for limits", err); code(err) != 500 {
		t.Errorf("a function that the driver lacks: %v, want code 500", err)
	}
	if n, err := d.Devices(); n != 2 || err != nil {
		t.Errorf("%d devices, %v", n, err)
	}
	info, err := d.Device(0)
	if want := (deviceInfo{"NVIDIA H200", 9, 0, fakedriver.H200.Bytes, 50 << 20, 132, 227 << 10}); info != want || err != nil {
		t.Errorf("%+v, %v; want %+v", info, err, want)
	}
	if _, err := d.Device(2); code(err) != 101 {
		t.Errorf("device 2 of 2: %v, want code 101", err)
	}
	if _, err := d.Retain(2); code(err) != 101 {
		t.Errorf("context of device 2 of 2: %v, want code 101", err)
	}
	w, err := newWorker(d, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []func(*testing.T, driver, context) error{memory, launches, events} {
		if err := w.do(func(c context) error { return part(t, d, c) }); err != nil {
			t.Error(err)
		}
	}
	if err := w.close(); err != nil {
		t.Error(err)
	}
}

func memory(t *testing.T, d driver, c context) error {
	if _, err := c.Alloc(2 << 30); code(err) != 2 || !strings.Contains(err.Error(), "CUDA error 2: out of memory") {
		t.Errorf("an allocation that is too large: %v", err)
	}
	if free, total, err := c.Memory(); total != fakedriver.H200.Bytes || free != total/4*3 || err != nil {
		t.Errorf("memory: %d of %d free, %v", free, total, err)
	}
	const n = 16
	a, err := c.Alloc(n)
	b, err2 := c.Alloc(n)
	pinned, err3 := d.HostAlloc(n)
	s, err4 := c.NewStream()
	if err := errors.Join(err, err2, err3, err4); err != nil {
		return err
	}
	host := unsafe.Slice((*byte)(pinned), n)
	copy(host, "to the device...")
	back := make([]byte, n)
	err = errors.Join(s.Upload(a, pinned, n), s.Copy(b, a, n), s.Fill(a, 7, 4), c.Download(back, b))
	if !bytes.Equal(back, host) {
		t.Errorf("went as %q, came back as %q", host, back)
	}
	err = errors.Join(err, s.Download(pinned, a, n))
	if want := "\a\a\a\ahe device..."; string(host) != want {
		t.Errorf("filled and copied: %q, want %q", host, want)
	}
	err = errors.Join(err, c.Upload(a, []byte("0123456789abcdef")), c.Download(back, a))
	if string(back) != "0123456789abcdef" {
		t.Errorf("came back as %q", back)
	}
	done, doneErr := s.Done()
	if !done {
		t.Error("the stream is not done")
	}
	return errors.Join(err, doneErr, s.Synchronize(), s.Destroy(), d.HostFree(pinned), c.Free(a), c.Free(b), c.Synchronize())
}

func launches(t *testing.T, _ driver, c context) error {
	_, err := c.LoadModule([]byte("bad"))
	if want := "load the kernels: the driver rejects the kernels (CUDA error 218: ptxas: line 7: unknown opcode)"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a bad module: %v, want %q", err, want)
	}
	m, err := c.LoadModule([]byte("good"))
	if err != nil {
		return err
	}
	if _, err := m.Function("other"); code(err) != 500 || !strings.Contains(err.Error(), "find kernel other") {
		t.Errorf("no such kernel: %v", err)
	}
	f, err := m.Function("dk_sum")
	s, err2 := c.NewStream()
	to, err3 := c.Alloc(8)
	if err := errors.Join(err, err2, err3); err != nil {
		return err
	}
	if err := f.AllowShared(1 << 20); code(err) != 1 {
		t.Errorf("a MiB of shared memory: %v, want code 1", err)
	}
	if err := f.Launch(s, 1, 2000, 0, []uint64{uint64(to), 0, 0}); code(err) != 1 || !strings.Contains(err.Error(), "launch kernel dk_sum") {
		t.Errorf("2000 threads: %v, want code 1", err)
	}
	err = errors.Join(f.AllowShared(100<<10), f.Launch(s, 3, 256, 100<<10, []uint64{uint64(to), 1 << 40, 2}))
	back := make([]byte, 8)
	err = errors.Join(err, c.Download(back, to))
	if got := *(*uint64)(unsafe.Pointer(&back[0])); got != 1<<40+2 {
		t.Errorf("the kernel's sum is %d, want %d", got, 1<<40+2)
	}
	return errors.Join(err, s.Destroy(), c.Free(to), m.Unload())
}

func events(_ *testing.T, _ driver, c context) error {
	s, err := c.NewStream()
	if err != nil {
		return err
	}
	start, err := c.NewEvent(true)
	end, err2 := c.NewEvent(true)
	mark, err3 := c.NewEvent(false)
	if err := errors.Join(err, err2, err3); err != nil {
		return err
	}
	err = errors.Join(start.Record(s), mark.Record(s), s.Wait(mark), end.Record(s), end.Synchronize())
	ms, err2 := end.Since(start)
	done, err3 := end.Done()
	if ms != 1.5 || !done {
		err = errors.Join(err, errors.New("an event's time or state did not arrive"))
	}
	return errors.Join(err, err2, err3, start.Destroy(), end.Destroy(), mark.Destroy(), s.Destroy())
}

// TestProbeDrivers asks whole drivers in children.
func TestProbeDrivers(t *testing.T) {
	h := []fakedriver.Device{fakedriver.H200}
	for _, c := range []struct {
		name string
		o    fakedriver.Options
		want string // in the refusal; "" if there is none
	}{
		{"usable", fakedriver.Options{Devices: h}, ""},
		{"emulated", fakedriver.Options{Devices: h, Emulated: true}, ""},
		{"none", fakedriver.Options{}, "a driver, but no device (CUDA error 100)"},
		{"old", fakedriver.Options{Devices: []fakedriver.Device{fakedriver.P100}}, "cuda:0 (Tesla P100-PCIE-16GB) cannot be used: compute capability 6.0, 7.0 needed"},
		{"taken", fakedriver.Options{Devices: h, Retain: 46}, "another process has taken the device"},
		{"mismatch", fakedriver.Options{Devices: h, Init: 803}, "the driver in the kernel and its library differ (CUDA error 803); reboot"},
		{"incomplete", fakedriver.Options{Omit: []string{"cuMemAlloc_v2"}}, "lacks cuMemAlloc_v2"},
		{"crash", fakedriver.Options{Crash: true}, "the driver ended the process that asked it: exit status 2 (SIGABRT: abort)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Ask(ask(t, "probe", DriverEnv+"="+fakedriver.Build(t, c.o)), time.Minute)
			err := r.Refusal()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("refusal %v, want %q", err, c.want)
			}
			if r.Emulated != c.o.Emulated || !r.Built {
				t.Errorf("emulated: %v, built: %v", r.Emulated, r.Built)
			}
		})
	}
	r := Ask(ask(t, "probe", DriverEnv+"=/nowhere/libcuda.so.1"), time.Minute)
	if err := r.Refusal(); err == nil || !strings.Contains(err.Error(), "(CUDA error 303: /nowhere/libcuda.so.1: cannot open shared object file") {
		t.Errorf("no library: %v", err)
	}
	r = Ask(ask(t, "probe", DriverEnv+"="+fakedriver.Build(t, fakedriver.Options{Hang: true})), time.Second)
	if err := r.Refusal(); err == nil || !strings.Contains(err.Error(), "did not answer within 1s") {
		t.Errorf("a driver that hangs: %v", err)
	}
}

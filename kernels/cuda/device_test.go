package cuda

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"dorylus/kernels"
)

// tour opens a device on a fake driver, moves rows through its small chunks and back,
// and gives everything back.
func tour(d *deviceDriver) (err, closed error) {
	o := Options{}
	if err := o.check(); err != nil {
		return err, nil
	}
	dev, err := open(d, o, func(target string) []byte { return []byte(target) }, 512)
	if err != nil {
		return err, nil
	}
	s, err := dev.NewStream()
	if err != nil {
		return err, dev.Close()
	}
	m, err := dev.Alloc(9, 41)
	if err == nil {
		in, out := make([]float32, 9*41), make([]float32, 9*41)
		for i := range in {
			in[i] = float32(i + 1)
		}
		host := kernels.FromSlice(9, 41, make([]float32, 9*41))
		s.Put(m, in)
		s.Copy(host, m)
		s.Zero(m.Sub(kernels.Span{Lo: 2, Hi: 3}))
		s.Get(out, m)
		if err = s.Wait(); err == nil {
			for i, v := range in {
				if host.Host[i] != v {
					return errors.New("Copy to the host is wrong"), dev.Close()
				}
				if i/41 == 2 {
					v = 0
				}
				if out[i] != v {
					return fmt.Errorf("Get: value %d is %v, want %v", i, out[i], v), dev.Close()
				}
			}
		}
		dev.Free(m)
	}
	return errors.Join(err, s.Close()), dev.Close()
}

// TestEveryCallFails: each call of the driver fails, every time that it is made; the
// error is the driver's, and nothing stays behind.
func TestEveryCallFails(t *testing.T) {
	whole := newDeviceDriver("", 0)
	if err, closed := tour(whole); err != nil || closed != nil {
		t.Fatalf("without faults: %v, %v", err, closed)
	}
	for _, name := range []string{"HostAlloc", "HostFree", "Memory", "Alloc", "Free", "LoadModule", "Unload", "NewStream", "NewEvent", "Function", "Launch",
		"Upload", "Download", "Fill", "StreamWait", "StreamSynchronize", "DestroyStream", "Record", "EventSynchronize", "DestroyEvent"} {
		if whole.calls[name] == 0 {
			t.Errorf("the tour does not call %s", name)
		}
		for n := 1; n <= whole.calls[name]; n++ {
			d := newDeviceDriver(name, n)
			err, closed := tour(d)
			if all := errors.Join(err, closed); codeOf(all) != 1 || !strings.Contains(all.Error(), name) {
				t.Errorf("%s fails the %d. time of %d: %v", name, n, whole.calls[name], all)
			}
			for what, n := range d.live {
				if n != 0 {
					t.Errorf("%s fails the %d. time: %d %s are left", name, n, n, what)
				}
			}
			if d.held != 0 {
				t.Errorf("%s fails the %d. time: the context is held", name, n)
			}
		}
	}
}

// TestOpenRefuses: what is wrong is said before anything is made.
func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		change func(*deviceDriver, *Options)
		want   string
	}{
		{func(d *deviceDriver, _ *Options) { d.gpus = nil }, "open cuda:0: count the devices: there is a driver, but no device (CUDA error 100)"},
		{func(_ *deviceDriver, o *Options) { o.Ordinal = 1 }, "open cuda:1: the driver shows 1 devices, numbered from 0"},
		{func(d *deviceDriver, _ *Options) { d.gpus[0].Major = 6 }, "open cuda:0 (NVIDIA H200): compute capability 6.0, 7.0 needed; use a newer GPU"},
		{func(d *deviceDriver, o *Options) { d.gpus[0].Major, o.Precision = 7, "bf16" }, "precision bf16 needs capability 8.0"},
		{func(d *deviceDriver, _ *Options) { d.info.Version = 8000 }, "the driver is of CUDA 8.0, 9.0 needed"},
		{func(_ *deviceDriver, o *Options) { o.Memory = 1000 }, "allocate 512 bytes for staging on cuda:0: the device's memory is used up (CUDA error 2: 512 bytes of at most 1000 bytes are taken; the device has "},
	} {
		d, o := newDeviceDriver("", 0), Options{Precision: "fp32", Announce: func(string) {}}
		c.change(d, &o)
		_, err := open(d, o, func(string) []byte { return nil }, 512)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
		for what, n := range d.live {
			if n != 0 {
				t.Errorf("%s: %d %s are left", c.want, n, what)
			}
		}
	}
	for _, o := range []Options{{Precision: "half"}, {Memory: -1}} {
		if err := o.check(); err == nil || !strings.Contains(err.Error(), "open cuda:0: ") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if !Built {
		if _, err := Open(Options{}); err == nil || !strings.Contains(err.Error(), NotBuilt) {
			t.Errorf("without GPU support: %v", err)
		}
	}
}

// TestClosedStream: ops after Close do nothing, and Wait says so, once.
func TestClosedStream(t *testing.T) {
	d := newDeviceDriver("", 0)
	dev, err := open(d, Options{Precision: "fp32", Announce: func(string) {}}, func(string) []byte { return nil }, 512)
	if err != nil {
		t.Fatal(err)
	}
	m, err := dev.Alloc(3, 4)
	s, err2 := dev.NewStream()
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	s.Zero(m)
	s.Zero(m)
	if err := s.Wait(); err == nil || err.Error() != "cuda:0: Zero: the stream is closed" {
		t.Errorf("an op on a closed stream: %v", err)
	}
	if err := s.Wait(); err != nil || d.calls["Launch"] != 0 {
		t.Errorf("and then: %v, %d launches", err, d.calls["Launch"])
	}
	dev.Free(m)
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
	if _, err := dev.NewStream(); !errors.Is(err, errClosed) {
		t.Errorf("a stream of a closed device: %v", err)
	}
	if err := dev.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
}

package cuda

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

var (
	h200 = deviceInfo{Name: "NVIDIA H200", Major: 9, Bytes: 150 << 30}
	v100 = deviceInfo{Name: "Tesla V100", Major: 7, Bytes: 16 << 30}
	p100 = deviceInfo{Name: "Tesla P100", Major: 6, Bytes: 16 << 30}
)

func TestProbe(t *testing.T) {
	t.Setenv(visibleName, "2,1")
	d := &fakeDriver{info: driverInfo{Library: "libcuda.so.1", Version: 12080}, gpus: []deviceInfo{h200, p100, v100}, loads: map[string]bool{"libcublas.so.12": true, "libcusparse.so.11": true}}
	r := probe(d, nil, Options{})
	two := "2,1"
	want := Report{
		Built: Built, Library: "libcuda.so.1", Driver: "12.8", Visible: &two, Optional: map[string]bool{"cublas": true, "cusparse": true, "nccl": false},
		CUBLAS: &Library{File: "libcublas.so.12", Version: "1.2.3"},
		Devices: []GPU{
			{Name: "cuda:0", Model: "NVIDIA H200", Capability: "9.0", Bytes: 150 << 30, Free: 75 << 30, PTX: "sm_80", Usable: true},
			{Name: "cuda:1", Model: "Tesla P100", Capability: "6.0", Bytes: 16 << 30, Problem: &Problem{Code: 209, Reason: "compute capability 6.0, 7.0 needed", Next: "use a newer GPU"}},
			{Name: "cuda:2", Model: "Tesla V100", Capability: "7.0", Bytes: 16 << 30, Free: 8 << 30, PTX: "sm_70", Usable: true},
		},
	}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("got  %+v\nwant %+v", r, want)
	}
	if d.held != 0 {
		t.Errorf("%d contexts are still held", d.held)
	}
	if len(r.Usable()) != 2 || r.Refusal() != nil {
		t.Errorf("usable %v, refusal %v", r.Usable(), r.Refusal())
	}
}

func TestProbeProblems(t *testing.T) {
	one := []deviceInfo{h200}
	for _, c := range []struct {
		name   string
		err    error
		driver *fakeDriver
		code   int
		want   string
	}{
		{"not built", errors.New(NotBuilt), &fakeDriver{}, 0, "built without GPU support: tag cuda; build with ./build.sh build"},
		{"no library", &Error{Op: "open", Code: 303, Detail: "not there"}, &fakeDriver{}, 303, "not there); install NVIDIA's driver"},
		{"no devices", nil, &fakeDriver{}, 100, "a driver, but no device"},
		{"count fails", nil, &fakeDriver{fail: map[string]int{"Devices": 999}}, 999, "for reasons of its own"},
		{"old driver", nil, &fakeDriver{info: driverInfo{Version: 8000}, gpus: one}, 0, "cuda:0 (NVIDIA H200) cannot be used: the driver is of CUDA 8.0, 9.0 needed; update"},
		{"device is silent", nil, &fakeDriver{info: driverInfo{Version: 12000}, gpus: one, fail: map[string]int{"Device0": 46}}, 0, "another process has taken the device"},
		{"device is taken", nil, &fakeDriver{info: driverInfo{Version: 12000}, gpus: one, fail: map[string]int{"Retain0": 46}}, 0, "cuda:0 (NVIDIA H200) cannot be used: another process has taken the device"},
		{"context is not set", nil, &fakeDriver{info: driverInfo{Version: 12000}, gpus: one, fail: map[string]int{"SetCurrent": 201}}, 0, "CUDA error 201"},
		{"memory is faulty", nil, &fakeDriver{info: driverInfo{Version: 12000}, gpus: one, fail: map[string]int{"Memory": 214}}, 0, "uncorrectable ECC"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := probe(c.driver, c.err, Options{})
			err := r.Refusal()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("refusal %v, want %q", err, c.want)
			}
			if c.code != 0 && (r.Problem == nil || r.Problem.Code != c.code) {
				t.Errorf("problem %+v, want code %d", r.Problem, c.code)
			}
			lost := c.name == "memory is faulty" // then there is nothing to give up
			if c.driver.held != 0 && !lost {
				t.Errorf("%d contexts are still held", c.driver.held)
			}
		})
	}
}

// TestOneBadDevice: the others can be used.
func TestOneBadDevice(t *testing.T) {
	d := &fakeDriver{info: driverInfo{Version: 11040}, gpus: []deviceInfo{h200, v100}, fail: map[string]int{"Retain0": 2}}
	r := probe(d, nil, Options{})
	if u := r.Usable(); len(u) != 1 || u[0].Name != "cuda:1" || r.Refusal() != nil || r.Devices[0].Problem.Code != 2 {
		t.Errorf("%+v", r)
	}
}

func TestTarget(t *testing.T) {
	for _, c := range []struct {
		major, minor, version int
		ptx, reason           string
	}{
		{9, 0, 13000, "sm_80", ""}, {12, 0, 12080, "sm_80", ""}, {8, 6, 11000, "sm_80", ""}, {8, 0, 10020, "sm_70", ""},
		{7, 5, 12080, "sm_70", ""}, {7, 0, 9000, "sm_70", ""}, {7, 0, 8000, "", "CUDA 8.0, 9.0 needed"}, {6, 1, 12080, "", "compute capability 6.1, 7.0 needed"},
	} {
		ptx, p := target(c.major, c.minor, c.version)
		if ptx != c.ptx || (p == nil) != (c.reason == "") || p != nil && !strings.Contains(p.Reason, c.reason) {
			t.Errorf("capability %d.%d, driver %d: %q, %v; want %q, %q", c.major, c.minor, c.version, ptx, p, c.ptx, c.reason)
		}
	}
}

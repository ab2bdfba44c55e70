package main

import (
	"debug/elf"
	"slices"
	"strings"
	"testing"
	"time"

	"dorylus/csrc/cudashim/fakedriver"
	"dorylus/kernels/cuda"
)

// driverEnv names a driver that is not there, or a made-up one.
func driverEnv(path string) []string { return []string{cuda.DriverEnv + "=" + path} }

// TestGPUWithoutOne: devices says why there is none and is content; --mode=gpu says why,
// and what to do, and fails at once.
func TestGPUWithoutOne(t *testing.T) {
	want := "built without GPU support: tag cuda; build with ./build.sh build"
	if cuda.Built {
		want = "the driver's library is missing or cannot be loaded (CUDA error 303: /nowhere/libcuda.so.1: cannot open shared object file: No such file or directory); install NVIDIA's driver"
	}
	dir, env := t.TempDir(), driverEnv("/nowhere/libcuda.so.1")
	r := call(t, dir, env, "devices")
	if r.code != exitDone || !strings.Contains(r.out, want) {
		t.Errorf("devices: exit %d, want 0 and %q\n%s%s", r.code, want, r.out, r.err)
	}
	m := object(t, call(t, dir, env, "devices", "--json").out)["cuda"].(map[string]any)
	problem, _ := m["problem"].(map[string]any)
	if m["built"] != cuda.Built || problem == nil || problem["reason"] == "" || problem["next"] == "" {
		t.Errorf("devices --json: cuda is %v", m)
	}
	begun := time.Now()
	for _, args := range [][]string{{"--mode=gpu", "--json"}, {"launch", "local", "--servers=1", "--mode=gpu"}} {
		wantFailure(t, call(t, dir, env, args...), exitFailed, "--mode=gpu: no GPU can be used: ", want)
	}
	wantFailure(t, call(t, dir, env, "compare", "--modes=gpu"), exitFailed, "mode gpu: not run: no GPU can be used: ", want)
	r = call(t, dir, env, "devices", "--gpu=auto", "--only=Adam")
	r.out = "" // the list
	wantFailure(t, r, exitFailed, "--gpu=auto: no GPU was checked: ", want)
	if took := time.Since(begun); took > 20*time.Second { // each should take well below 1, but other tests run
		t.Errorf("four refusals took %v", took)
	}
	text := call(t, dir, env, "compare", "--modes=cpu,gpu", "--epochs=1", "--progress=none")
	if line := "gpu: not run: no GPU can be used: "; text.code != exitDone || !strings.Contains(text.out, line) || !strings.Contains(text.out, want) {
		t.Errorf("compare: exit %d, want 0 and %q\n%s%s", text.code, line+want, text.out, text.err)
	}
	modes := object(t, call(t, dir, env, "compare", "--modes=gpu,cpu", "--epochs=1", "--json").out)["modes"].([]any)
	if m := modes[0].(map[string]any); len(modes) != 2 || m["name"] != "gpu" || m["mode"] != "gpu" || !strings.Contains(m["not_run"].(string), want) || m["loss"] != nil {
		t.Errorf("compare --json: %v", modes)
	}
	if got := tree(t, dir); got != dir+"\n" {
		t.Errorf("refusals have left files:\n%s", got)
	}
}

func TestGPUDrivers(t *testing.T) {
	if !cuda.Built {
		t.Skip("SKIPPED: this build has no GPU support; run with -tags cuda, as make test does")
	}
	both := []fakedriver.Device{fakedriver.H200, fakedriver.P100}
	for _, c := range []struct {
		name    string
		o       fakedriver.Options
		devices []string // words of its lines
		refusal string
	}{
		{"usable", fakedriver.Options{Devices: both},
			[]string{"cuda:0 usable NVIDIA H200, compute capability 9.0, 139.8 GiB (104.9 free), PTX sm_80", "driver 12.8, ", "; optional: cublas no, cusparse no, nccl no",
				"cuda:1 no Tesla P100-PCIE-16GB, compute capability 6.0, 15.9 GiB: compute capability 6.0, 7.0 needed; use a newer GPU"},
			"--mode=gpu: open cuda:0: "}, // it has none of the kernels
		{"emulated", fakedriver.Options{Devices: both[:1], Emulated: true}, []string{"cuda usable EMULATED device, no GPU: "}, "--mode=gpu: open cuda:0: "},
		{"old", fakedriver.Options{Devices: both[1:]}, []string{"cuda:0 no Tesla P100"}, "--mode=gpu: no GPU can be used: cuda:0 (Tesla P100-PCIE-16GB) cannot be used: compute capability 6.0, 7.0 needed"},
		{"no device", fakedriver.Options{Init: 100}, []string{"cuda no there is a driver, but no device (CUDA error 100); give the container access"}, "there is a driver, but no device"},
		{"mismatch", fakedriver.Options{Init: 803}, []string{"cuda no the driver in the kernel and its library differ (CUDA error 803); reboot"}, "reboot"},
		{"crash", fakedriver.Options{Crash: true}, []string{"cuda no the driver ended the process that asked it: "}, "the driver ended the process"},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := driverEnv(fakedriver.Build(t, c.o))
			r := call(t, t.TempDir(), env, "devices")
			text := strings.Join(strings.Fields(r.out), " ")
			for _, line := range c.devices {
				if !strings.Contains(text, line) {
					t.Errorf("devices lacks %q:\n%s", line, r.out)
				}
			}
			if r.code != exitDone {
				t.Errorf("devices: exit %d\n%s", r.code, r.err)
			}
			wantFailure(t, call(t, t.TempDir(), env, "--mode=gpu"), exitFailed, c.refusal)
		})
	}
	env := driverEnv(fakedriver.Build(t, fakedriver.Options{Hang: true}))
	if r := call(t, t.TempDir(), env, "devices", "--timeout=1s"); r.code != exitDone || !strings.Contains(r.out, "the driver did not answer within 1s; see whether nvidia-smi answers") {
		t.Errorf("a driver that hangs: exit %d\n%s%s", r.code, r.out, r.err)
	}
	// Other commands do not ask it.
	if r := call(t, t.TempDir(), env, "--epochs=1", "--progress=none"); r.code != exitDone {
		t.Errorf("training on the processor beside a driver that hangs: exit %d\n%s", r.code, r.err)
	}
}

// TestDriverIsNotLinked: the program starts where there is no driver, and libraries
// that are opened later do not meet its stand-ins.
func TestDriverIsNotLinked(t *testing.T) {
	f, err := elf.Open(program)
	if err != nil {
		t.Skipf("SKIPPED: the program is no ELF file: %v", err)
	}
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(libraries, func(l string) bool { return strings.Contains(l, "cuda") }) {
		t.Errorf("the program needs %v", libraries)
	}
	symbols, err := f.DynamicSymbols()
	if err != nil && !strings.Contains(err.Error(), "no symbol section") {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if strings.HasPrefix(s.Name, "cu") || strings.HasPrefix(s.Name, "dorylus_") && strings.Contains(s.Name, "cuda") {
			t.Errorf("the program exports or wants %s", s.Name)
		}
	}
}

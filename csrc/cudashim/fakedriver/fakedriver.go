// Package fakedriver builds shared libraries that look like a CUDA driver, for tests of
// what is told of drivers: absent devices, failures, missing functions, hanging. They
// compute nothing.
package fakedriver

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// InitEnv is an environment variable that says what cuInit returns instead.
const InitEnv = "FAKE_DRIVER_INIT"

//go:embed testdata/fake.c
var source string

// Options say what a driver does. The zero value is a driver of CUDA 12.8 without a
// device.
type Options struct {
	Init     int      // what cuInit returns
	Hang     bool     // cuInit never returns
	Crash    bool     // cuInit ends the process
	Version  int      // 0: 12080
	Devices  []Device // at most a few
	Retain   int      // what cuDevicePrimaryCtxRetain returns
	Launch   int      // what cuLaunchKernel returns
	Emulated bool     // it has the emulated device's mark
	// Omit are functions that it lacks, of cuInit, cuDriverGetVersion, cuMemAlloc_v2
	// and cuGetErrorString. It has the functions that this program needs, and no others.
	Omit []string
}

// Device is a GPU of a driver.
type Device struct {
	Name         string
	Major, Minor int
	Bytes        int64
}

// H200 and P100 are devices that can and cannot be used.
var (
	H200 = Device{"NVIDIA H200", 9, 0, 150_110_011_392}
	P100 = Device{"Tesla P100-PCIE-16GB", 6, 0, 17_071_734_784}
)

// Build compiles a driver with gcc and returns its path.
func Build(t testing.TB, o Options) string {
	t.Helper()
	dir := t.TempDir()
	src, lib := filepath.Join(dir, "fake.c"), filepath.Join(dir, "libcuda.so.1")
	if err := os.WriteFile(src, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	if o.Version == 0 {
		o.Version = 12080
	}
	var devices strings.Builder
	for _, d := range o.Devices {
		fmt.Fprintf(&devices, "{%q, %d, %d, %dull},", d.Name, d.Major, d.Minor, d.Bytes)
	}
	args := []string{"-shared", "-fPIC", "-O1", "-o", lib, src,
		fmt.Sprintf("-DFAKE_INIT=%d", o.Init), fmt.Sprintf("-DFAKE_VERSION=%d", o.Version), fmt.Sprintf("-DFAKE_RETAIN=%d", o.Retain),
		fmt.Sprintf("-DFAKE_LAUNCH=%d", o.Launch), "-DFAKE_DEVICES=" + devices.String()}
	for name, on := range map[string]bool{"FAKE_HANG": o.Hang, "FAKE_CRASH": o.Crash, "FAKE_EMULATED": o.Emulated} {
		if on {
			args = append(args, "-D"+name)
		}
	}
	for _, name := range o.Omit {
		args = append(args, "-DOMIT_"+name)
	}
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("compile a driver: gcc %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return lib
}

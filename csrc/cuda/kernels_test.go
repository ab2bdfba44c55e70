package cuda

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// run runs a command and fails the test with its output.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// need skips the test where a tool is missing.
func need(t *testing.T, tool string) {
	t.Helper()
	if _, err := exec.LookPath(tool); err != nil {
		t.Skipf("NOT RUN: %s is not installed", tool)
	}
}

// TestKernels runs every kernel on the emulated device, or on the driver that
// DORYLUS_CUDA_DRIVER names, and compares it with its formula.
func TestKernels(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT RUN: -short, and compiling takes a minute")
	}
	need(t, "g++")
	dir := t.TempDir()
	driver := os.Getenv("DORYLUS_CUDA_DRIVER")
	if driver == "" {
		if _, err := os.Stat("../cuemu/build.sh"); err != nil {
			t.Skip("NOT RUN: no emulated device (csrc/cuemu), and DORYLUS_CUDA_DRIVER is not set")
		}
		driver = filepath.Join(dir, "libcuemu.so")
		run(t, "sh", "../cuemu/build.sh", driver)
	}
	check := filepath.Join(dir, "check")
	run(t, "g++", "-std=c++17", "-O1", "-o", check, "testdata/check.cc", "testdata/check_rest.cc", "-ldl")
	t.Log(run(t, check, driver, "sm_80.ptx", "1"))
}

// TestPTX compares the committed PTX with what the sources give.
func TestPTX(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT RUN: -short, and compiling takes half a minute")
	}
	need(t, "clang++-14")
	t.Log(run(t, "sh", "./ptx.sh", "--check"))
}

// TestNames: the modules have the kernels that the sources define, and sm_80 those by
// matrix units besides.
func TestNames(t *testing.T) {
	entries := func(file string) map[string]bool {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, line := range strings.Split(string(text), "\n") {
			if _, name, ok := strings.Cut(line, ".visible .entry "); ok {
				names[strings.TrimSuffix(name, "(")] = true
			}
		}
		return names
	}
	small, large := entries("sm_70.ptx"), entries("sm_80.ptx")
	for name := range small {
		if !large[name] {
			t.Errorf("sm_80.ptx lacks %s, which sm_70.ptx has", name)
		}
	}
	for name := range large {
		mma := strings.HasPrefix(name, "dk_gemm_tf32_") || strings.HasPrefix(name, "dk_gemm_bf16_")
		if !mma && !small[name] {
			t.Errorf("sm_70.ptx lacks %s, which sm_80.ptx has", name)
		}
	}
	if len(small) < 90 {
		t.Errorf("sm_70.ptx has %d kernels, of some 100", len(small))
	}
}

package cuda

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"dorylus/csrc/cuemu"
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

// cached is a file of the user's cache folder for what work makes of the given files and
// texts; it is made by work once for each state of them.
func cached(t *testing.T, name string, of []string, texts []string, work func(file string)) string {
	t.Helper()
	sum := sha256.New()
	for _, text := range texts {
		fmt.Fprintln(sum, text)
	}
	for _, pattern := range of {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no files %s: %v", pattern, err)
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(sum, f, len(data))
			sum.Write(data)
		}
	}
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir() // no home folder, as in some containers
	}
	dir := filepath.Join(base, "dorylus", "kernels")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, name+"-"+hex.EncodeToString(sum.Sum(nil))[:24])
	if _, err := os.Stat(file); err != nil {
		made := fmt.Sprintf("%s.%d", file, os.Getpid())
		work(made)
		if err := os.Rename(made, file); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

// TestKernels runs every kernel on the emulated device, or on the driver that
// DORYLUS_CUDA_DRIVER names, and compares it with its formula.
func TestKernels(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT RUN: -short, and compiling takes a minute")
	}
	t.Parallel()
	need(t, "g++")
	driver := os.Getenv("DORYLUS_CUDA_DRIVER")
	if driver == "" {
		driver = cuemu.Driver(t)
	}
	if driver == "" {
		driver = "libcuda.so.1"
	}
	check := cached(t, "check", []string{"testdata/*.cc", "testdata/*.h"}, []string{run(t, "g++", "--version")}, func(file string) {
		run(t, "g++", "-std=c++17", "-O1", "-o", file, "testdata/check.cc", "testdata/check_rest.cc", "-ldl")
	})
	t.Log(run(t, check, driver, "sm_80.ptx", "1"))
}

// TestPTX compares the committed PTX with what the sources give. What it has found for
// the same files and the same compiler it finds no second time.
func TestPTX(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT RUN: -short, and compiling takes half a minute")
	}
	t.Parallel()
	const clang = "clang++-14"
	need(t, clang)
	path, err := exec.LookPath(clang)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	compiler := fmt.Sprint(path, info.Size(), info.ModTime(), run(t, clang, "--version"))
	found := cached(t, "ptx", []string{"*.cu", "*.h", "*.ptx", "ptx.sh"}, []string{compiler}, func(file string) {
		if err := os.WriteFile(file, []byte(run(t, "sh", "./ptx.sh", "--check")), 0o644); err != nil {
			t.Fatal(err)
		}
	})
	text, err := os.ReadFile(found)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(string(text))
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

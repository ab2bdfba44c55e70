package cuemu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// library is the emulated device with the test kernels.
func library(t *testing.T) string {
	return BuildFrom(t, filepath.Join("testdata", "kernels.cu"))
}

var driver = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "cuemu")
	if err != nil {
		return "", err
	}
	exe := filepath.Join(dir, "driver")
	cxx := os.Getenv("CXX")
	if cxx == "" {
		cxx = "g++"
	}
	cmd := exec.Command(cxx, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-I../include", "-o", exe, "testdata/driver.cc", "-ldl")
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("build the test program: %w\n%s", err, out)
	}
	return exe, err
})

func TestMain(m *testing.M) {
	code := m.Run()
	if exe, err := driver(); err == nil {
		os.RemoveAll(filepath.Dir(exe))
	}
	os.Exit(code)
}

// run runs a case of the test program.
func run(ctx context.Context, t *testing.T, settings, name string, seed int) (string, error) {
	t.Helper()
	lib := library(t)
	exe, err := driver()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, exe, lib, name, fmt.Sprint(seed))
	cmd.Env = append(os.Environ(), "DORYLUS_CUEMU="+settings)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// forGo are the cases that other tests run, because they end in a way of their own.
var forGo = map[string]bool{"environment": true, "init_only": true, "hash": true, "own_fault": true}

func TestCases(t *testing.T) {
	list, err := run(t.Context(), t, "", "list", 0)
	if e := new(exec.ExitError); !errors.As(err, &e) || e.ExitCode() != 2 {
		t.Fatalf("list cases: %v\n%s", err, list)
	}
	seeds := 6
	if testing.Short() {
		seeds = 2
	}
	n := 0
	for _, name := range strings.Fields(list[strings.Index(list, "are:")+4:]) {
		if forGo[name] {
			continue
		}
		n++
		t.Run(name, func(t *testing.T) {
			for seed := 1; seed <= seeds; seed++ {
				if out, err := run(t.Context(), t, "", name, seed); err != nil {
					t.Errorf("seed %d: %v\n%s", seed, err, out)
				}
			}
		})
	}
	if n < 20 {
		t.Errorf("%d cases, want 20 or more", n)
	}
}

func TestSettingsFromEnvironment(t *testing.T) {
	if out, err := run(t.Context(), t, "devices=5; cc=7.0", "environment", 1); err != nil {
		t.Errorf("devices=5: %v\n%s", err, out)
	}
	for settings, want := range map[string]string{
		"speed=9":                      "cuInit: 1, DORYLUS_CUEMU: speed",
		"fault=cuInit:999":             "cuInit: 999, cuInit: injected",
		"devices=0":                    "cuInit: 100",
		"fault=cuInit@2:999;devices=2": "cuInit: 0",
	} {
		out, err := run(t.Context(), t, settings, "init_only", 1)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("DORYLUS_CUEMU=%s: %v, printed %q, want %q", settings, err, out, want)
		}
	}
}

func TestHangingInit(t *testing.T) {
	library(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	out, err := run(ctx, t, "fault=cuInit:hang", "init_only", 1)
	if err == nil || ctx.Err() == nil || out != "" {
		t.Errorf("cuInit came back: %v, printed %q", err, out)
	}
}

func TestKernelHash(t *testing.T) {
	want, err := KernelHash("testdata")
	if err != nil {
		t.Fatal(err)
	}
	out, err := run(t.Context(), t, "", "hash", 1)
	if err != nil || strings.TrimSpace(out) != want {
		t.Errorf("the library says %q (%v), its sources %q", out, err, want)
	}
}

// A C program's own bad access ends it, also after one of the device's.
func TestOtherFaultsAreLeftAlone(t *testing.T) {
	out, err := run(t.Context(), t, "", "own_fault", 1)
	if err == nil || !strings.Contains(err.Error(), "segmentation fault") || strings.Contains(out, "line") {
		t.Errorf("ended with %v, want a segmentation fault; printed %q", err, out)
	}
}

// In a Go process the runtime keeps its own faults: a nil pointer is a panic that can be
// recovered from, C code that goes wrong ends the process with the runtime's report.
func TestInGoProcess(t *testing.T) {
	lib := library(t)
	if os.Getenv("CGO_ENABLED") == "0" {
		t.Skip("SKIPPED: the program that opens the library needs cgo")
	}
	builds := [][]string{{"build"}, {"build", "-race"}}
	if testing.Short() {
		builds = builds[:1]
	}
	for _, build := range builds {
		t.Run(strings.Join(build, ""), func(t *testing.T) {
			exe := filepath.Join(t.TempDir(), "gohost")
			if out, err := exec.Command("go", append(build, "-o", exe, "./testdata/gohost")...).CombinedOutput(); err != nil {
				t.Fatalf("build the program: %v\n%s", err, out)
			}
			for seed := 1; seed <= 3; seed++ {
				if out, err := exec.Command(exe, lib, fmt.Sprint(seed)).CombinedOutput(); err != nil {
					t.Errorf("seed %d: %v\n%s", seed, err, out)
				}
			}
			out, err := exec.Command(exe, lib, "crash").CombinedOutput()
			if e := new(exec.ExitError); !errors.As(err, &e) || e.ExitCode() != 2 || !strings.Contains(string(out), "SIGSEGV") {
				t.Errorf("a bad access in C ended with %v, want the runtime's report and status 2\n%s", err, out)
			}
		})
	}
}

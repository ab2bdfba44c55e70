//go:build cgo && amd64 && linux

package native_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// The AVX-512 kernels give what the scalar ones give. Few machines that build
// this project have AVX-512, so they are compiled against SIMDe, which writes
// every vector operation in plain C, and run beside the scalar ones by
// testdata/avx512/main.c. Kernels that do run here are held to the reference by
// kernels/cpu's conformance suite.
func TestAVX512Emulated(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short; the test compiles the AVX-512 kernels against SIMDe, half a minute")
	}
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc"
	}
	if _, err := exec.LookPath(cc); err != nil {
		t.Skipf("SKIPPED: no C compiler %q; install gcc to check the AVX-512 kernels", cc)
	}
	probe := exec.Command(cc, "-E", "-x", "c", "-")
	probe.Stdin = strings.NewReader("#include <simde/x86/avx512.h>\n")
	if err := probe.Run(); err != nil {
		t.Skip("SKIPPED: no <simde/x86/avx512.h>; install SIMDe (package libsimde-dev) to check the AVX-512 kernels on a machine without AVX-512")
	}
	dir := t.TempDir()
	// The test cache knows the files of the package and those that the test itself
	// reads, not those that the compiler does.
	for _, name := range []string{"main.c", "simde.h"} {
		if _, err := os.ReadFile(filepath.Join("testdata", "avx512", name)); err != nil {
			t.Fatal(err)
		}
	}
	sources, err := filepath.Glob("*_avx512.c")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no *_avx512.c here (%v)", err)
	}
	scalar, _ := filepath.Glob("*_scalar.c")
	sources = append(append(sources, scalar...), filepath.Join("testdata", "avx512", "main.c"))
	objects, failed := make([]string, len(sources)), make([]error, len(sources))
	var wg sync.WaitGroup
	slot := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, source := range sources {
		objects[i] = filepath.Join(dir, filepath.Base(source)+".o")
		wg.Go(func() {
			slot <- struct{}{}
			failed[i] = compile(cc, "-c", source, "-o", objects[i])
			<-slot
		})
	}
	wg.Wait()
	program := filepath.Join(dir, "compare")
	if err := errors.Join(failed...); err != nil {
		t.Fatal(err)
	}
	if err := compile(cc, append(append([]string{"-o", program}, objects...), "-lm")...); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(program).CombinedOutput()
	if err != nil {
		t.Fatalf("emulated AVX-512 against scalar: %v\n%s", err, out)
	}
	t.Logf("%s", bytes.TrimSpace(out))
}

func compile(cc string, args ...string) error {
	args = append([]string{"-O1", "-std=c11", "-Wall", "-Wextra", "-Wno-psabi", "-I.", "-DDK_SIMDE"}, args...)
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", cc, strings.Join(args, " "), err, out)
	}
	return nil
}

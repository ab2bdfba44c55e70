// Package fakeblas builds shared libraries that look like cuBLAS and compute on the
// emulated device (csrc/cuemu), for tests of products by cuBLAS on machines without a GPU.
package fakeblas

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Version is what the libraries say of theirs.
const Version = "12.8.4"

//go:embed testdata/fake.c
var source string

// Options say what goes wrong. The zero value is a library without faults.
type Options struct {
	Create    int      // what cublasCreate returns
	Workspace int      // what cublasSetWorkspace returns
	GEMM      int      // what the third product of a handle returns, and those after it
	Omit      []string // functions that it lacks, of those that testdata/fake.c names
	Real      bool     // it lacks the mark of the emulated device
}

// Build compiles a library with gcc and returns its path.
func Build(t testing.TB, o Options) string {
	t.Helper()
	dir := t.TempDir()
	src, lib := filepath.Join(dir, "fake.c"), filepath.Join(dir, "libcublas.so.12")
	if err := os.WriteFile(src, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"-shared", "-fPIC", "-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-o", lib, src, "-ldl",
		fmt.Sprintf("-DFAKE_CREATE=%d", o.Create), fmt.Sprintf("-DFAKE_WORKSPACE=%d", o.Workspace), fmt.Sprintf("-DFAKE_GEMM=%d", o.GEMM)}
	if o.Real {
		args = append(args, "-DFAKE_REAL")
	}
	for _, name := range o.Omit {
		args = append(args, "-DOMIT_"+name)
	}
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("compile a library: gcc %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return lib
}

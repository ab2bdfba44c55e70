package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const ours = "../../../csrc/include/cuda.h"

// check compiles our assertions against a header and returns what header.sh says.
func check(t *testing.T, asserts, header string) (string, int) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cuda.h"), []byte(header), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "../header.sh", asserts, dir)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// TestDifferencesAreFound: our own header has no differences, and each kind of edit of
// it is one.
func TestDifferencesAreFound(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("SKIPPED: gcc is not installed")
	}
	text, err := assertions(ours)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "_Static_assert("); n < 550 {
		t.Errorf("%d assertions, of some 590", n)
	}
	file := filepath.Join(t.TempDir(), "asserts.c")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(ours)
	if err != nil {
		t.Fatal(err)
	}
	if out, code := check(t, file, string(source)); code != 0 || strings.Contains(out, ":") {
		t.Errorf("our own header: exit %d\n%s", code, out)
	}
	for _, c := range []struct {
		from, to, want string
		code           int
	}{
		{"CUDA_ERROR_NO_DEVICE = 100", "CUDA_ERROR_NO_DEVICE = 101", "different: CUDA_ERROR_NO_DEVICE is 100 in ours", 1},
		{"unsigned int gridDimX, gridDimY", "unsigned int gridDimX; size_t gridDimY", "different: CUDA_KERNEL_NODE_PARAMS.gridDimY is at 12 in ours", 1},
		{"cuMemAlloc(CUdeviceptr *ptr, size_t bytes)", "cuMemAlloc(CUdeviceptr *ptr, unsigned int bytes)", "different: cuMemAlloc_v2 takes (CUdeviceptr *ptr, size_t bytes) in ours", 1},
		{"CUresult cuEventQuery(CUevent event);", "", "not declared: cuEventQuery", 0},
		{"CUresult cuMemFree(CUdeviceptr ptr);", "CUresult cuMemFree(CUdevice ptr);", "different: cuMemFree_v2 takes", 1},
	} {
		edited := strings.Replace(string(source), c.from, c.to, 1)
		if edited == string(source) {
			t.Errorf("the header does not have %q", c.from)
			continue
		}
		if out, code := check(t, file, edited); code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("%q to %q: exit %d, want %d and %q:\n%s", c.from, c.to, code, c.code, c.want, out)
		}
	}
	if out, code := check(t, file, "#error no\n"); code != 2 {
		t.Errorf("a header that does not compile: exit %d\n%s", code, out)
	}
}

func TestParse(t *testing.T) {
	c := parse("typedef enum E_enum {\n  CU_A = 0, CU_B = 0x1f // CU_C = 3\n} CUe;\n#define CU_FLAG 0x01\n#define cuX cuX_v2\n" +
		"typedef struct S_st {\n  char bytes[16];\n  const void *a, **b;\n} CUs;\nCUresult cuX(int *a, CUs\n    *s);\nCUresult cuY(void);\n")
	if want := []string{"CU_A", "CU_B", "CU_FLAG"}; !slices.Equal(c.constants, want) {
		t.Errorf("constants %v, want %v", c.constants, want)
	}
	if len(c.structs) != 2 || c.structs[0].name != "CUe" || c.structs[1].name != "CUs" || !slices.Equal(c.structs[1].fields, []string{"bytes", "a", "b"}) {
		t.Errorf("structures %+v", c.structs)
	}
	if want := []function{{"cuX_v2", "int *a, CUs *s"}, {"cuY", "void"}}; !slices.Equal(c.functions, want) {
		t.Errorf("functions %+v, want %+v", c.functions, want)
	}
}

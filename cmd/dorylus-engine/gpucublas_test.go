//go:build cuda

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dorylus/csrc/cublas/fakeblas"
	"dorylus/kernels/cuda"
)

// withCUBLAS is the environment with the emulated device and a library for it.
func withCUBLAS(t *testing.T, o fakeblas.Options) (env []string, file string) {
	t.Helper()
	file = fakeblas.Build(t, o)
	return append(emulator(t, ""), cuda.CUBLASEnv+"="+file), file
}

// TestGPUProductsEmulated: a GCN on Cora trains with products by cuBLAS as it does with
// ours and as on processors; that is said everywhere, and where a run changes to them.
func TestGPUProductsEmulated(t *testing.T) {
	env, file := withCUBLAS(t, fakeblas.Options{})
	dir := t.TempDir()
	mustRun(t, dir, "prepare", "cora", "-o", "s", "--block-rows=512")
	const epochs = 4
	train := func(out string, more ...string) map[string]any {
		args := append([]string{"--data=s", "--epochs=" + itoa(epochs), "--eval-every=4", "--out=" + out, "--json", "--progress=none"}, more...)
		return object(t, must(t, dir, env, args...))
	}
	cublas := []string{"--mode=gpu", "--gpu-products=cublas"}
	train("cpu", "--mode=cpu")
	own := train("own", "--mode=gpu")
	lib := train("lib", cublas...)
	near(t, dir, "cpu", "lib", epochs)
	if lib["gpu_products"] != "cublas "+fakeblas.Version || own["gpu_products"] != "own" {
		t.Errorf("summaries: products %v, and %v", lib["gpu_products"], own["gpu_products"])
	}
	if what := lib["gpus"].([]any)[0].(map[string]any)["what"].(string); !strings.Contains(what, "products by cuBLAS "+fakeblas.Version) {
		t.Errorf("summary: the GPU is %s", what)
	}
	if lib["weights_sha256"] == own["weights_sha256"] {
		t.Error("products by the library have the bits of ours: it has not made them")
	}
	if again := train("again", append(cublas, "--intervals=3")...); again["weights_sha256"] != lib["weights_sha256"] {
		t.Errorf("another number of intervals has other bits: %v, %v", again["weights_sha256"], lib["weights_sha256"])
	}
	// A run that goes on with other products says so.
	r := call(t, dir, env, append([]string{"--resume=own", "--epochs=5", "--progress=plain"}, cublas...)...)
	if r.code != exitDone || !strings.Contains(r.err, "products by cuBLAS "+fakeblas.Version) || !strings.Contains(r.err, "within rounding, not to the bit") {
		t.Errorf("resumed with cuBLAS: exit %d\n%s%s", r.code, r.out, r.err)
	}
	if out := must(t, dir, env, append([]string{"--data=s", "--dry-run"}, cublas...)...); !strings.Contains(out, "workspace of cuBLAS") {
		t.Errorf("the memory plan does not name the workspace:\n%s", out)
	}
	if out := must(t, dir, env, "devices"); !strings.Contains(out, "optional: cublas "+fakeblas.Version+" ("+file+")") {
		t.Errorf("devices:\n%s", out)
	}
	out := must(t, dir, env, "devices", "--selftest", "--gpu=0", "--gpu-products=cublas", "--only=AddGEMM/epi")
	if !strings.Contains(out, "self-test: 1 of 1 checks passed") {
		t.Errorf("self-test:\n%s", out)
	}
	// Where the library has gone, the model predicts with our products.
	none := emulator(t, "")
	none = append(none, cuda.CUBLASEnv+"="+filepath.Join(dir, "gone.so"))
	wantFailure(t, call(t, dir, none, "predict", "--run=lib", "-o", "x.csv"), exitFailed, "--gpu-products=cublas: no cuBLAS can be used: searched "+filepath.Join(dir, "gone.so"), "--gpu-products=own")
	must(t, dir, none, "predict", "--run=lib", "--gpu-products=own", "--scores", "-o", "own.csv")
	must(t, dir, env, "predict", "--run=lib", "--scores", "-o", "lib.csv")
	sameClasses(t, filepath.Join(dir, "own.csv"), filepath.Join(dir, "lib.csv"))
}

// TestGPUProductsMissingEmulated: a library that is not there, lacks functions or fails
// ends the run with its reason, before anything is written where that can be.
func TestGPUProductsMissingEmulated(t *testing.T) {
	dir := tiny(t)
	train := []string{"--data=s", "--epochs=2", "--mode=gpu", "--gpu-products=cublas", "--out=R", "--progress=none"}
	for _, c := range []struct {
		fault   fakeblas.Options
		file    string
		want    []string
		started bool
	}{
		{fakeblas.Options{}, "/nowhere/libcublas.so.12", []string{"searched /nowhere/libcublas.so.12: /nowhere/libcublas.so.12: cannot open shared object file", "DORYLUS_CUBLAS", "nvidia-cublas-cu12"}, false},
		{fakeblas.Options{Omit: []string{"cublasSetWorkspace_v2"}}, "", []string{"lacks cublasSetWorkspace_v2"}, false},
		{fakeblas.Options{Create: 1}, "", []string{"--mode=gpu: open cuda:0: cublasCreate_v2: the library does not start (cuBLAS status 1"}, false},
		{fakeblas.Options{GEMM: 13}, "", []string{"cublasGemmEx: a product could not be run (cuBLAS status 13: the function failed to launch on the GPU)"}, true},
	} {
		env, file := withCUBLAS(t, c.fault)
		if c.file != "" {
			env, file = append(env, cuda.CUBLASEnv+"="+c.file), c.file
		}
		r := call(t, dir, env, train...)
		for _, want := range c.want {
			if r.code != exitFailed || !strings.Contains(r.err, want) {
				t.Errorf("%+v: exit %d, want %d and %q\n%s", c.fault, r.code, exitFailed, want, r.err)
			}
		}
		if _, err := os.Stat(filepath.Join(dir, "R")); (err == nil) != c.started {
			t.Errorf("%s, %+v: the folder of the run is there: %v, want %v", file, c.fault, err == nil, c.started)
		}
	}
	wantFailure(t, call(t, dir, nil, "devices", "--selftest", "--gpu-products=mkl"), exitUsage, "--gpu-products=mkl")
	wantFailure(t, call(t, dir, nil, "predict", "--run=R", "-o", "x.csv", "--gpu-products=mkl"), exitUsage, "--gpu-products=mkl: choose one of own, cublas")
}

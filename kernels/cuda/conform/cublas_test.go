//go:build cuda && cgo && linux && (amd64 || arm64)

package conform

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dorylus/csrc/cublas/fakeblas"
	"dorylus/csrc/cuemu"
	"dorylus/kernels"
	"dorylus/kernels/cuda"
	"dorylus/kernels/kerneltest"
)

// products is the driver, and the options of products by cuBLAS on it: the library of the
// tests on the emulated device, the machine's on a GPU.
func products(t *testing.T) (o cuda.Options, emu *cuemu.Control) {
	t.Helper()
	o = cuda.Options{Driver: cuemu.Driver(t), Products: cuda.CUBLASProducts}
	if cuemu.OnGPU() {
		o.CUBLAS = os.Getenv(cuda.CUBLASEnv)
		if l := cuda.Probe(cuda.Options{Driver: o.Driver, CUBLAS: o.CUBLAS}).CUBLAS; l == nil || l.Problem != "" {
			t.Skipf("SKIPPED: no cuBLAS on this machine: %+v", l)
		}
		return o, nil
	}
	emu, _ = emulated(t, "")
	o.CUBLAS = fakeblas.Build(t, fakeblas.Options{})
	return o, emu
}

// TestCUBLASConformance runs what the suite has of products, on matrices of the device and,
// of one width, of the host: by the library, and by no kernel of ours.
func TestCUBLASConformance(t *testing.T) {
	o, emu := products(t)
	n := 0
	for _, c := range kerneltest.Cases() {
		if !strings.HasPrefix(c.Name, "GEMM/") && !strings.HasPrefix(c.Name, "AddGEMM/") {
			continue
		}
		opens := map[string]func() (kernels.Device, error){"": func() (kernels.Device, error) { return cuda.Open(o) }}
		if strings.HasSuffix(c.Name, "=9") {
			opens["/spilled"] = func() (kernels.Device, error) { return spillingOn(o, 4<<20, 0) }
		}
		for where, open := range opens {
			t.Run(c.Name+where, func(t *testing.T) {
				n++
				if emu != nil {
					if err := emu.Restart(fmt.Sprintf("seed=%d;early=%d", n, n%3*20)); err != nil {
						t.Fatal(err)
					}
					emu.Reset()
				}
				err := c.Check(open)
				if err != nil {
					t.Error(err)
				}
				if emu == nil {
					return
				}
				if err := leaked(emu); err != nil {
					t.Error(err)
				}
				for _, k := range emu.Kernels() {
					if own := emu.Counter("launches/" + k); strings.HasPrefix(k, "dk_gemm") && own > 0 {
						t.Errorf("%s was launched %d times", k, own)
					}
				}
				if emu.Counter("calls/cuLaunchHostFunc") == 0 {
					t.Error("the library made no product")
				}
			})
		}
	}
	if n < 20 {
		t.Errorf("%d cases of products were run, want those of GEMM and AddGEMM", n)
	}
}

// TestCUBLASBits: the same bits again, and from another device that was opened anew.
func TestCUBLASBits(t *testing.T) {
	o, _ := products(t)
	var first []float32
	for range 2 {
		rng := rand.New(rand.NewPCG(5, 1))
		b := open(t, o)
		x, y, d := b.put(300, 70, values(rng, 300*70)), b.put(300, 33, values(rng, 300*33)), b.put(70, 33, nil)
		for range 2 {
			b.s.GEMM(d, x, y, kernels.TN, nil)
			got := b.get(d)
			if first == nil {
				first = got
			}
			for i := range got {
				if got[i] != first[i] {
					t.Fatalf("value %d is %v, the first time it was %v", i, got[i], first[i])
				}
			}
		}
		for _, m := range []*kernels.Mat{x, y, d} {
			b.d.Free(m)
		}
		b.close()
	}
}

// TestEmulatedCUBLASFaults: what fails of the library is said, with its status, and leaves
// nothing behind.
func TestEmulatedCUBLASFaults(t *testing.T) {
	_, driver := emulated(t, "")
	for _, c := range []struct {
		name   string
		fault  fakeblas.Options
		file   string // instead of a library
		memory int64
		want   []string
	}{
		{"does not start", fakeblas.Options{Create: 1}, "", 0, []string{"open cuda:0: cublasCreate_v2: the library does not start (cuBLAS status 1: the library was not initialized); see whether it is of the driver's CUDA version"}},
		{"no memory", fakeblas.Options{Create: 3}, "", 0, []string{"cublasCreate_v2: the library finds no memory for itself (cuBLAS status 3: the resource allocation failed); leave it some: --gpu-memory=70%"}},
		{"workspace refused", fakeblas.Options{Workspace: 7}, "", 0, []string{"cublasSetWorkspace_v2: the library reports an error (cuBLAS status 7: "}},
		{"no text", fakeblas.Options{Workspace: 7, Omit: []string{"cublasGetStatusString"}}, "", 0, []string{"cublasSetWorkspace_v2: the library reports an error (cuBLAS status 7); "}},
		{"symbol missing", fakeblas.Options{Omit: []string{"cublasSetWorkspace_v2"}}, "", 0, []string{"open cuda:0: products by cuBLAS: no cuBLAS can be used: searched ", "libcublas.so.12 lacks cublasSetWorkspace_v2; install cuBLAS"}},
		{"file missing", fakeblas.Options{}, "/nowhere/libcublas.so.12", 0, []string{"searched /nowhere/libcublas.so.12: /nowhere/libcublas.so.12: cannot open shared object file"}},
		{"real library", fakeblas.Options{Real: true}, "", 0, []string{"is for GPUs, the driver ", " is for the emulated device of the tests"}},
		{"no room for the workspace", fakeblas.Options{}, "", 40 << 20, []string{"allocate 32.0 MiB for the workspace of cuBLAS on cuda:0: the device's memory is used up"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			emu, _ := emulated(t, "")
			if c.file == "" {
				c.file = fakeblas.Build(t, c.fault)
			}
			d, err := cuda.Open(cuda.Options{Driver: driver, Products: cuda.CUBLASProducts, CUBLAS: c.file, Memory: c.memory})
			if err == nil {
				d.Close()
			}
			for _, want := range c.want {
				if err == nil || !contains(err, want) {
					t.Errorf("%v, want %q", err, want)
				}
			}
			if err := leaked(emu); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("product", func(t *testing.T) {
		emu, _ := emulated(t, "")
		b := open(t, cuda.Options{Driver: driver, Products: cuda.CUBLASProducts, CUBLAS: fakeblas.Build(t, fakeblas.Options{GEMM: 13})})
		x, y := b.put(3, 3, make([]float32, 9)), b.put(3, 3, nil)
		b.s.GEMM(y, x, x, kernels.NN, nil)
		b.s.GEMM(y, x, x, kernels.NN, nil)
		b.wait()
		b.s.GEMM(y, x, x, kernels.NN, nil)
		b.s.Zero(x)
		err := b.s.Wait()
		want := "cuda:0: GEMM (3 x 3, 3 x 3, 3 x 3): cublasGemmEx: a product could not be run (cuBLAS status 13: the function failed to launch on the GPU); run dorylus-engine devices --selftest"
		var e *cuda.LibraryError
		if err == nil || !strings.HasPrefix(err.Error(), want) || !errors.As(err, &e) || e.Status != 13 {
			t.Errorf("%v, want %q", err, want)
		}
		b.s.Zero(y)
		b.wait()
		b.d.Free(x)
		b.d.Free(y)
		b.close()
		if err := leaked(emu); err != nil {
			t.Error(err)
		}
	})
}

// TestEmulatedCUBLASMemory: the workspace is of the device's pool, and counted.
func TestEmulatedCUBLASMemory(t *testing.T) {
	_, driver := emulated(t, "")
	var live [2]int64
	for i, products := range []string{cuda.OwnProducts, cuda.CUBLASProducts} {
		b := open(t, cuda.Options{Driver: driver, Products: products, CUBLAS: fakeblas.Build(t, fakeblas.Options{})})
		live[i] = b.d.Memory().Live
		want := map[string]string{cuda.OwnProducts: "own", cuda.CUBLASProducts: "cublas " + fakeblas.Version}[products]
		if got := b.d.Products(); got != want {
			t.Errorf("products %q, want %q", got, want)
		}
		if said := strings.Contains(b.d.Describe(), "cuBLAS "+fakeblas.Version); said != (products == cuda.CUBLASProducts) {
			t.Errorf("%s: described as %s", products, b.d.Describe())
		}
		b.close()
	}
	if live[1]-live[0] != 32<<20 {
		t.Errorf("with the library %d bytes are taken, without %d, want 32 MiB more", live[1], live[0])
	}
	if r := cuda.Probe(cuda.Options{Driver: driver, CUBLAS: filepath.Join(t.TempDir(), "none")}); r.CUBLAS == nil || !strings.Contains(r.CUBLAS.Problem, "none: cannot open shared object file") || r.Optional["cublas"] {
		t.Errorf("the report of a library that is not there: %+v, %v", r.CUBLAS, r.Optional)
	}
}

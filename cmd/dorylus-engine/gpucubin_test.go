//go:build cuda

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dorylus/csrc/cuemu"
	"dorylus/kernels/cuda"
)

// TestGPUCubinEmulated: devices and runs say which image of the kernels is used; one of
// other kernels, or that the driver does not take, is named, and PTX used.
func TestGPUCubinEmulated(t *testing.T) {
	hash, err := cuemu.KernelHash(filepath.Join("..", "..", "csrc", "cuda"))
	if err != nil {
		t.Fatal(err)
	}
	dir := tiny(t)
	train := []string{"--data=s", "--hidden=4", "--epochs=1", "--mode=gpu", "--progress=plain"}
	ptx, err := os.ReadFile(filepath.Join("..", "..", "csrc", "cuda", "sm_80.ptx"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, hash    string
		image         []byte
		shows         string // devices
		warns, trains string // a run
	}{
		{"used", hash, ptx, "exact image DIR/sm_80-" + hash + ".cubin", "", "driver 12.8, cubin sm_80"},
		{"stale", "0123456789abcdef", ptx, "PTX sm_80; DIR/sm_80-0123456789abcdef.cubin is of other kernels than this program's (" + hash + ")", "is of other kernels", "driver 12.8, PTX sm_80"},
		{"refused", hash, []byte("\x7fELF"), "exact image DIR/", "is not used, but PTX sm_80: load the kernels: ", "driver 12.8, PTX sm_80"},
	} {
		t.Run(c.name, func(t *testing.T) {
			images := t.TempDir()
			if err := os.WriteFile(filepath.Join(images, "sm_80-"+c.hash+".cubin"), c.image, 0o644); err != nil {
				t.Fatal(err)
			}
			env := append(emulator(t, ""), cuda.CubinEnv+"="+images)
			if out, want := must(t, dir, env, "devices"), strings.ReplaceAll(c.shows, "DIR", images); !strings.Contains(out, want) {
				t.Errorf("devices, want %q:\n%s", want, out)
			}
			for _, args := range [][]string{append(train, "--out="+images+"/R"), {"predict", "--run=" + images + "/R", "-o", "x.csv"}} {
				r := call(t, dir, env, args...)
				if r.code != exitDone || !strings.Contains(r.out+r.err, c.trains) || !strings.Contains(r.err, c.warns) {
					t.Errorf("%s: exit %d, want %q and %q\n%s%s", args[0], r.code, c.trains, c.warns, r.out, r.err)
				}
			}
		})
	}
	gone := filepath.Join(t.TempDir(), "gone")
	out := must(t, dir, append(emulator(t, ""), cuda.CubinEnv+"="+gone, cuda.CUBLASEnv+"="+gone), "devices")
	for _, want := range []string{"PTX sm_80; no exact image of the kernels is looked for: open " + gone, "cublas no (no cuBLAS can be used: searched " + gone} {
		if !strings.Contains(out, want) {
			t.Errorf("files that are named and not there: want %q\n%s", want, out)
		}
	}
	if out := must(t, dir, emulator(t, ""), "devices"); strings.Contains(out, "exact image") || !strings.Contains(out, "optional: cublas no, ") {
		t.Errorf("nothing is named:\n%s", out)
	}
}

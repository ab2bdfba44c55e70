//go:build cuda && cgo && linux && (amd64 || arm64)

package conform

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	kernelcode "dorylus/csrc/cuda"
	"dorylus/kernels/cuda"
)

// TestEmulatedCubin: a device computes with the kernels of the image that is found for it.
// The emulated one reads of an image which kernels it has: PTX stands in for it here.
func TestEmulatedCubin(t *testing.T) {
	emu, lib := emulated(t, "")
	file := "sm_80-" + kernelcode.Hash() + ".cubin"
	for _, c := range []struct{ image, what, said, fails string }{
		{kernelcode.PTX80, "cubin sm_80", "", ""},
		{strings.ReplaceAll(kernelcode.PTX80, ".entry dk_add(", ".entry dk_other("), "cubin sm_80", "", "no kernel dk_add in the image"},
		{"\x7fELF, of another GPU", "PTX sm_80", file + " is not used, but PTX sm_80: load the kernels: the driver rejects the kernels (CUDA error 218", ""},
	} {
		dir, said := t.TempDir(), ""
		if err := os.WriteFile(filepath.Join(dir, file), []byte(c.image), 0o644); err != nil {
			t.Fatal(err)
		}
		b := open(t, cuda.Options{Driver: lib, Cubins: dir, Announce: func(text string) { said += text }})
		if what := b.d.Describe(); !strings.Contains(what, c.what) || !strings.Contains(said, c.said) || (said == "") != (c.said == "") {
			t.Errorf("the device is %s, said %q; want %q, %q", what, said, c.what, c.said)
		}
		x := b.put(2, 3, []float32{1, 2, 3, 4, 5, 6})
		b.wait()
		b.s.Add(x, x, x)
		err := b.s.Wait()
		if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error()+emu.Detail(), c.fails) {
			t.Errorf("%s: an op: %v, %s; want %q", c.what, err, emu.Detail(), c.fails)
		}
		b.d.Free(x)
		b.close()
		if err := leaked(emu); err != nil {
			t.Error(err)
		}
	}
}

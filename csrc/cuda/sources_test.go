package cuda

import (
	"os/exec"
	"strings"
	"testing"

	"dorylus/csrc/cuemu"
)

// TestHash: the program, the script that names images, and the emulated device agree on
// the hash of the kernels.
func TestHash(t *testing.T) {
	out, err := exec.Command("sh", "hash.sh").Output()
	if err != nil {
		t.Fatal(err)
	}
	emulated, err := cuemu.KernelHash(".")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(out)); got != Hash() || emulated != Hash() {
		t.Errorf("hash.sh says %s, the emulated device %s, the program %s", got, emulated, Hash())
	}
}

//go:build unix

package launch

import (
	"os"
	"testing"
)

// A folder is removed once its launcher is gone, not before; what has no mark is not ours.
func TestFoldersOfLaunchersThatAreGone(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	there := func(dir string) bool {
		_, err := os.Stat(dir)
		return err == nil
	}
	first, mark, err := openFolder()
	if err != nil {
		t.Fatal(err)
	}
	strange, err := os.MkdirTemp("", folderPattern)
	if err != nil {
		t.Fatal(err)
	}
	second, other, err := openFolder()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if !there(first) || !there(second) {
		t.Fatalf("a launcher lives: its folder is there %v, the next one's %v", there(first), there(second))
	}
	if err := mark.Close(); err != nil { // as the kernel does when it is killed
		t.Fatal(err)
	}
	sweepFolders()
	if there(first) || !there(second) || !there(strange) {
		t.Errorf("a launcher is gone: its folder is there %v; that of another %v, one without a mark %v", there(first), there(second), there(strange))
	}
}

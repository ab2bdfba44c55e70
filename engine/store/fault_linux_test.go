package store

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A real full disk: a tmpfs of a few pages.
func TestAFullDiskLeavesNothing(t *testing.T) {
	parent := t.TempDir()
	if err := unix.Mount("tmpfs", parent, "tmpfs", 0, "size=32k"); err != nil {
		t.Skipf("SKIPPED: mounting a small tmpfs needs root and mount permission: %v; TestAFailedWriteLeavesNothing injects the error instead", err)
	}
	defer unix.Unmount(parent, 0)
	dir := filepath.Join(parent, "store")
	err := Write(context.Background(), dir, toy(), WriteOptions{})
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), ".npy") {
		t.Errorf("write to a full disk: %v, want ENOSPC and the name of a file", err)
	}
	entries, err := os.ReadDir(parent)
	if err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// With this variable set the test binary is a writer that stops in the middle of
// the labels, says so, and waits to be killed.
const writerDir = "DORYLUS_TEST_STORE_WRITER"

func TestMain(m *testing.M) {
	dir := os.Getenv(writerDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	err := Write(context.Background(), dir, toy(), WriteOptions{Overwrite: true, wrap: func(name string, w io.Writer) io.Writer {
		if name == labelsFile {
			os.Stdout.WriteString("writing\n")
			io.Copy(io.Discard, os.Stdin)
		}
		return w
	}})
	if err != nil {
		os.Stdout.WriteString(err.Error())
	}
	os.Exit(3)
}

func TestAKilledWriterLeavesNoHalfStore(t *testing.T) {
	for _, before := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "store")
		if before {
			if err := Write(context.Background(), dir, symmetricToy(), WriteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), writerDir+"="+dir)
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer stdin.Close()
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(stdout).ReadString('\n')
		if line != "writing\n" {
			t.Errorf("the writer says %q, %v", line, err)
		}

		// A second writer must leave the files of one that is alive alone.
		other := filepath.Join(filepath.Dir(dir), "store")
		removeStale(filepath.Dir(dir), ".store.tmp-")
		if n := leftovers(t, dir); n != 1 {
			t.Errorf("%d temporary folders while the writer is alive, want 1", n)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()

		s, err := Open(dir, OpenOptions{Verify: true})
		if before {
			if err != nil {
				t.Fatalf("the store that was there: %v", err)
			}
			if d := same(s, symmetricToyWithFiles(s)); d != "" {
				t.Error(d)
			}
			s.Close()
		} else if err == nil {
			t.Error("a killed writer left a store")
		}
		if err := Write(context.Background(), other, toy(), WriteOptions{Overwrite: true}); err != nil {
			t.Fatal(err)
		}
		if n := leftovers(t, dir); n != 0 {
			t.Errorf("%d temporary folders after the next write, want 0", n)
		}
	}
}

func symmetricToyWithFiles(s *Store) *Store {
	want := symmetricToy()
	want.Meta.Files = s.Meta.Files
	return want
}

func leftovers(t *testing.T, dir string) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(filepath.Dir(dir), ".store.tmp-*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

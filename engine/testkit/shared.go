// Package testkit holds what tests of several packages share: finding reference
// data, checking for leaked goroutines, toy graphs.
package testkit

import (
	"os"
	"path/filepath"
	"testing"
)

// Root is the project's top folder, the one that holds go.mod.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatalf("find the project's top folder: %v", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("find the project's top folder: no go.mod above the test")
		}
		dir = up
	}
}

// Shared is a path below the folder of reference data beside the project. The
// test is skipped where it is absent.
func Shared(t testing.TB, elem ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{Root(t), "..", "shared"}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("SKIPPED: reference data %s is missing; put the shared folder beside the project to run this test", filepath.Join(elem...))
	}
	return path
}

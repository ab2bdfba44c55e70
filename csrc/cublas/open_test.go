//go:build cuda && cgo && linux && (amd64 || arm64)

package cublas

import (
	"errors"
	"strings"
	"testing"

	"dorylus/csrc/cublas/fakeblas"
)

// TestOpen: the first library that can be used is taken, and of those before it is told
// why they were not.
func TestOpen(t *testing.T) {
	poor := fakeblas.Build(t, fakeblas.Options{Omit: []string{"cublasSetWorkspace_v2"}})
	good := fakeblas.Build(t, fakeblas.Options{})
	l, err := Open([]string{"/nowhere/libcublas.so.13", poor, good})
	if err != nil || l.File() != good || l.Version() != fakeblas.Version || !l.Emulated() {
		t.Errorf("opened %+v, %v; want %s", l, err, good)
	}
	_, err = Open([]string{"/nowhere/libcublas.so.13", poor})
	var m *Missing
	if !errors.As(err, &m) || len(m.Tried) != 2 || len(m.Reasons) != 2 {
		t.Fatalf("none can be used: %v", err)
	}
	for _, want := range []string{"searched /nowhere/libcublas.so.13, " + poor, "/nowhere/libcublas.so.13: cannot open shared object file", poor + " lacks cublasSetWorkspace_v2"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

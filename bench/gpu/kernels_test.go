//go:build cuda && cgo && linux && (amd64 || arm64)

package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"dorylus/csrc/cuemu"
	"dorylus/engine/dataset"
	"dorylus/engine/prepare"
	"dorylus/engine/store"
)

// TestKernels: on the emulated device all is computed and compared, and nothing is timed.
func TestKernels(t *testing.T) {
	raw, err := dataset.Synth(context.Background(), "synth:sbm,vertices=120,degree=6,classes=4,features=5,seed=2")
	if err != nil {
		t.Fatal(err)
	}
	st, err := prepare.Build(context.Background(), raw, prepare.Options{Order: "natural"})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "store")
	if err := store.Write(context.Background(), dir, st, store.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	m, err := measure(config{store: dir, driver: cuemu.Driver(t), widths: []int{3, 16}, rounds: 1, check: 120, rateBytes: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if m.Emulated == cuemu.OnGPU() || len(m.Gathers) != 4 || len(m.Products) != 4 || m.Vertices != 120 || m.Edges == 0 {
		t.Errorf("measured %s", text)
	}
	if timed := strings.Contains(string(text), `"ms"`) || strings.Contains(string(text), `"rates"`); timed == m.Emulated {
		t.Errorf("emulated %v, but times %v:\n%s", m.Emulated, timed, text)
	}
	if _, err := measure(config{store: t.TempDir(), driver: cuemu.Driver(t)}); err == nil || !strings.Contains(err.Error(), "store") {
		t.Errorf("a folder that is no store: %v", err)
	}
}

//go:build cuda && cgo && linux && (amd64 || arm64)

package main

import (
	"context"
	"encoding/json"
	"os"
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
	m, err := measure(config{store: dir, driver: cuemu.Driver(t), widths: []int{3, 40}, rounds: 1, check: 120, rateBytes: 1 << 16, sweep: true})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	// Two widths along both directions, in bfloat16 along one, and one in panels; five
	// products in each precision.
	if len(m.Gathers) != 7 || len(m.Sweeps) != 2*len(cuts) || len(m.Ops) != 16 || len(m.Products) != 15 {
		t.Errorf("%d gathers, %d of sweeps, %d ops, %d products", len(m.Gathers), len(m.Sweeps), len(m.Ops), len(m.Products))
	}
	if m.Vertices != 120 || m.Edges == 0 || m.Device == "" {
		t.Errorf("measured %s", text)
	}
	for _, o := range m.Ops {
		if o.Bytes < o.Least/2 || o.Least <= 0 {
			t.Errorf("%s moves %d bytes, at least %d", o.Name, o.Bytes, o.Least)
		}
	}
	worst := map[string]float64{}
	for _, g := range m.Gathers {
		worst[g.Precision] = max(worst[g.Precision], g.Error)
	}
	if !(worst["fp32"] < 1e-6 && worst["bf16"] > 1e-5) {
		t.Errorf("the largest errors are %v: bf16 did not round, or fp32 did", worst)
	}
	if m.Emulated == (os.Getenv(cuemu.GPUEnv) == "1") {
		t.Errorf("emulated is %v", m.Emulated)
	}
	if timed := strings.Contains(string(text), `"ms"`) || strings.Contains(string(text), `"rates"`); timed == m.Emulated {
		t.Errorf("emulated %v, but times %v:\n%s", m.Emulated, timed, text)
	}
	if _, err := measure(config{store: t.TempDir(), driver: cuemu.Driver(t)}); err == nil || !strings.Contains(err.Error(), "store") {
		t.Errorf("a folder that is no store: %v", err)
	}
}

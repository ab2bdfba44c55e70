package rates

import (
	"math"
	"strings"
	"testing"

	"dorylus/engine/dataset"
	"dorylus/engine/prepare"
	"dorylus/engine/sim/workload"
	"dorylus/engine/store"
	"dorylus/engine/testkit/opaque"
	"dorylus/kernels"
	"dorylus/kernels/devices"
)

// Every kind of work gets a speed: measured, or that of what is like it. A product of
// four times the flops takes longer, and nothing of the device is left held.
func TestMeasure(t *testing.T) {
	raw, err := dataset.Open(t.Context(), "synth:sbm,vertices=3000,degree=8,classes=4,features=8,seed=1", dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	st, err := prepare.Build(t.Context(), raw, prepare.Options{Order: "natural"})
	if err != nil {
		t.Fatal(err)
	}
	open := func() kernels.Device {
		dev, err := devices.Open("auto")
		if err != nil {
			t.Fatal(err)
		}
		return dev
	}
	t.Run("host", func(t *testing.T) { measures(t, st, open()) })
	t.Run("memory of its own", func(t *testing.T) { measures(t, st, opaque.New(open())) })
}

func measures(t *testing.T, st *store.Store, dev kernels.Device) {
	keys := []workload.Key{
		{Op: workload.Product, Cols: 16, Inner: 16}, {Op: workload.Product, Cols: 64, Inner: 64},
		{Op: workload.ProductNT, Cols: 16, Inner: 8}, {Op: workload.ProductTN, Cols: 16, Inner: 8},
		{Op: workload.Gather, Cols: 8}, {Op: workload.MaxGather, Cols: 8}, {Op: workload.MaxBack, Cols: 8},
		{Op: workload.AttentionFwd, Cols: 16, Heads: 2, Drop: true}, {Op: workload.AttentionDst, Cols: 16, Heads: 2}, {Op: workload.AttentionSrc, Cols: 16, Heads: 2},
		{Op: workload.Sparse, Cols: 8}, {Op: workload.SparseBack, Cols: 8}, {Op: workload.EdgeDrop},
		{Op: workload.Epilogue, Act: kernels.ReLU, Drop: true}, {Op: workload.EpilogueBack, Act: kernels.ELU},
		{Op: workload.Loss, Cols: 4}, {Op: workload.MultiLoss, Cols: 4}, {Op: workload.Values},
		{Op: workload.Gather, Cols: 1 << 17}, // a matrix of all vertices would be too big
	}
	list, err := Measure(t.Context(), keys, Options{Device: dev, Store: st, Threads: 2, Rows: 500})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range list {
		if !(r.PerUnit > 0) || math.IsInf(r.PerUnit, 0) || r.Key != keys[i] || r.Text() == "" {
			t.Errorf("%v takes %v s", keys[i], r.PerUnit)
		}
		guess := strings.Contains(r.Key.Op, "sparse") || strings.HasPrefix(r.Key.Op, "edge") || r.Key.Op == workload.MaxBack || r.Key.Op == workload.MultiLoss || r.Key.Cols == 1<<17
		if r.Measured == guess {
			t.Errorf("%v is measured: %v", r.Key, r.Measured)
		}
	}
	if small, large := list[0].PerUnit, list[1].PerUnit; !(large > small) {
		t.Errorf("a row of 64x64 takes %v s, of 16x16 %v s", large, small)
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
}

func TestGivenSpeeds(t *testing.T) {
	s := Speeds{Gather: 10e9, Flops: 20e9, Values: 5e9}
	got := s.PerUnit([]workload.Key{{Op: workload.Gather, Cols: 100}, {Op: workload.Product, Cols: 10, Inner: 100}, {Op: workload.Values}})
	for i, want := range []float64{400 / 10e9, 2000 / 20e9, 4 / 5e9} {
		if math.Abs(got[i]-want) > 1e-18 {
			t.Errorf("unit %d takes %v s, want %v", i, got[i], want)
		}
	}
	if (Speeds{Gather: 1, Flops: 1}).Validate() == nil || s.Validate() != nil {
		t.Error("a speed of 0 is accepted, or those above 0 are not")
	}
}

package params

import (
	"slices"
	"strings"
	"testing"

	"dorylus/engine/ckpt"
	"dorylus/engine/optim"
	"dorylus/kernels"
)

// TestExportIsPyTorchs spells out names, shapes and orientation.
func TestExportIsPyTorchs(t *testing.T) {
	w := []*kernels.Mat{kernels.FromSlice(3, 2, []float32{1, 2, 3, 4, 5, 6}), kernels.FromSlice(1, 2, []float32{7, 8})}
	got := Export(small, w)
	want := []ckpt.Named{
		{Name: "conv1.lin.weight", Shape: []int{2, 3}, Data: []float32{1, 3, 5, 2, 4, 6}},
		{Name: "conv1.bias", Shape: []int{2}, Data: []float32{7, 8}},
	}
	for i := range want {
		if got[i].Name != want[i].Name || !slices.Equal(got[i].Shape, want[i].Shape) || !slices.Equal(got[i].Data, want[i].Data) {
			t.Errorf("exported %v, want %v", got[i], want[i])
		}
	}
	slices.Reverse(got)
	back, err := Import(small, got)
	if err != nil {
		t.Fatal(err)
	}
	for p := range w {
		if !slices.Equal(back[p].Host, w[p].Host) {
			t.Errorf("%s comes back as %v, was %v", small[p].Name, back[p].Host, w[p].Host)
		}
	}
}

// TestThroughACheckpoint saves to disk after two epochs and goes on: same bits.
func TestThroughACheckpoint(t *testing.T) {
	for _, cfg := range []optim.Config{{}, {Name: "adamw", WeightDecay: 0.1}, {Name: "sgd", Momentum: 0.9}, {Name: "sgd"}} {
		straight := open(t, Config{Blocks: 3, Optim: cfg})
		for e := range 4 {
			whole(t, straight, e)
		}
		first := open(t, Config{Blocks: 3, Optim: cfg})
		whole(t, first, 0)
		whole(t, first, 1)
		var c ckpt.Checkpoint
		snapshot(t, first).Save(&c, small, cfg)
		path, _, err := ckpt.Save(t.TempDir(), &c, 1)
		if err != nil {
			t.Fatal(err)
		}
		loaded, err := ckpt.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		st, err := FromCheckpoint(loaded, small, cfg)
		if err != nil {
			t.Fatal(err)
		}
		second := open(t, Config{Blocks: 3, Optim: cfg, From: st})
		whole(t, second, 2)
		whole(t, second, 3)
		if a, b := bits(snapshot(t, straight)), bits(snapshot(t, second)); a != b {
			t.Errorf("%s: straight and resumed differ:\n%s\n%s", cfg.Name, a, b)
		}
	}
}

func TestForeignCheckpoints(t *testing.T) {
	s := open(t, Config{Blocks: 1})
	var c ckpt.Checkpoint
	snapshot(t, s).Save(&c, small, optim.Config{})
	wider := slices.Clone(small)
	wider[0].Cols, wider[1].Cols = 4, 4
	renamed := slices.Clone(small)
	renamed[1].Name = "conv1.shift"
	for _, bad := range []struct {
		got  func() error
		want string
	}{
		{func() error { _, err := FromCheckpoint(&c, wider, optim.Config{}); return err }, "conv1.lin.weight is of shape [2 3], the model's of [4 3]"},
		{func() error { _, err := FromCheckpoint(&c, renamed, optim.Config{}); return err }, "no tensor conv1.shift"},
		{func() error { _, err := FromCheckpoint(&c, small[:1], optim.Config{}); return err }, "2 weight tensors, the model 1"},
		{func() error { _, err := FromCheckpoint(&c, small, optim.Config{Name: "sgd"}); return err }, "optimizer adam, this run has sgd"},
	} {
		if err := bad.got(); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%v, want %q", err, bad.want)
		}
	}
}

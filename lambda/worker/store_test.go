package worker

import (
	"slices"
	"strings"
	"testing"

	"dorylus/engine"
	"dorylus/engine/model"
	"dorylus/kernels"
	"dorylus/kernels/ref"
	"dorylus/lambda/wire"
)

// watch is a device that knows how much was allocated at most.
type watch struct {
	kernels.Device
	now, most int64
}

func (w *watch) Alloc(rows, cols int) (*kernels.Mat, error) {
	m, err := w.Device.Alloc(rows, cols)
	if err == nil {
		w.now += 4 * int64(m.Rows) * int64(m.Stride)
		w.most = max(w.most, w.now)
	}
	return m, err
}

func (w *watch) Free(m *kernels.Mat) {
	if m != nil {
		w.now -= 4 * int64(m.Rows) * int64(m.Stride)
	}
	w.Device.Free(m)
}

// The least recently used shard goes before the new one is opened.
func TestShardsMakeRoomForOthers(t *testing.T) {
	dev, err := ref.Open()
	if err != nil {
		t.Fatal(err)
	}
	d := &watch{Device: dev}
	f := newFixture(t, engine.Training)
	one := f.shard.Bytes(f.prog)
	var params int64
	for _, p := range f.prog.Params {
		params += 2 * 4 * int64(p.Rows) * int64(kernels.PadCols(p.Cols))
	}
	w := New(Config{Device: d, Memory: params + 2*one})
	if err := w.begin(f.job.Job); err != nil {
		t.Fatal(err)
	}
	put := func(interval int) {
		t.Helper()
		f.shard.Interval = interval
		if err := w.store.putShard(f.messages(t)[1]); err != nil {
			t.Fatal(err)
		}
	}
	here := func(want ...int) {
		t.Helper()
		var got []int
		for k := range w.store.rooms {
			got = append(got, k.interval)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("the shards %v are here, want %v", got, want)
		}
		if want := params + int64(len(want))*one; w.store.used != want {
			t.Errorf("%d bytes are used, want %d", w.store.used, want)
		}
	}
	here()
	put(0)
	put(1)
	here(0, 1)
	w.store.room(engine.Training, 0)
	two := d.most
	put(2)
	here(0, 2)
	put(0) // again: it takes its own place
	here(0, 2)
	put(3)
	here(0, 3)
	if d.most != two {
		t.Errorf("%d bytes were allocated at a time, want %d, those of two shards", d.most, two)
	}

	w.store.cfg.Memory = one - 1
	f.shard.Interval = 9
	if err := w.store.putShard(f.messages(t)[1]); err == nil || !strings.Contains(err.Error(), "use more --intervals") {
		t.Errorf("a shard that is too large: %v", err)
	}
	here() // its own rows have come
	w.Close()
	if d.now != 0 {
		t.Errorf("%d bytes were not given back", d.now)
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
}

// A shard for another model is refused by what differs.
func TestShardsOfAnotherModelAreRefused(t *testing.T) {
	f := newFixture(t, engine.Training)
	for says, change := range map[string]func(c *model.Config){
		"levels":       func(c *model.Config) { c.Layers = 3 },
		"it has":       func(c *model.Config) { c.Sparse = false },
		"features are": func(c *model.Config) { c.Features = 5 },
		"targets are":  func(c *model.Config) { c.Classes = 4 },
	} {
		cfg := large
		change(&cfg)
		prog, err := cfg.Build()
		if err != nil {
			t.Fatal(err)
		}
		msgs := f.messages(t)
		msgs[0] = &wire.Message{Job: &wire.Job{Model: cfg, Steps: len(prog.Steps), Precision: "fp32", Codec: "none"}}
		if _, err := answers(t, device(t), 1<<20, msgs[:2]); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want an error with %q", cfg, err, says)
		}
	}
}

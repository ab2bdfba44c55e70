package ckpt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dorylus/engine/optim"
)

// sample is a checkpoint with something in every field.
func sample(epoch int) *Checkpoint {
	return &Checkpoint{
		Epoch: epoch,
		Identity: Identity{
			Model: "gcn 2x16", Config: json.RawMessage(`{"dropout":0.5,"hidden":16,"layers":2}`),
			Dataset: "cora", Fingerprint: "0123456789abcdef", Seed: 1 << 63,
		},
		Optim: optim.Config{}.WithDefaults(), OptimStep: epoch,
		Weights: []Named{
			{Name: "conv1.bias", Shape: []int{2}, Data: []float32{float32(epoch), float32(math.Copysign(0, -1))}},
			{Name: "conv1.lin.weight", Shape: []int{2, 3}, Data: []float32{1, 2, 3, math.MaxFloat32, math.SmallestNonzeroFloat32, 0.1}},
		},
		Moments: []Named{{Name: "conv1.bias.exp_avg", Shape: []int{2}, Data: []float32{5, 6}}},
		Best:    &Best{Epoch: epoch / 2, Train: 1, Val: 0.79, Test: 0.815},
		BestWeights: []Named{
			{Name: "conv1.bias", Shape: []int{2}, Data: []float32{8, 9}},
			{Name: "empty", Shape: []int{0, 4}, Data: []float32{}},
		},
		Extra: map[string]json.RawMessage{"patience": json.RawMessage("3")},
	}
}

// same says whether two checkpoints are alike, whatever the white space in JSON.
func same(a, b *Checkpoint) error {
	plain := func(c *Checkpoint) Checkpoint {
		d := *c
		var buf bytes.Buffer
		if err := json.Compact(&buf, c.Config); err == nil {
			d.Config = buf.Bytes()
		}
		return d
	}
	x, y := plain(a), plain(b)
	if !reflect.DeepEqual(x, y) {
		return fmt.Errorf("got  %+v\nwant %+v", x, y)
	}
	return nil
}

func mustSave(t *testing.T, dir string, epoch, keep int) string {
	t.Helper()
	path, _, err := save(quickDisk{}, dir, sample(epoch), keep)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// quickDisk does not wait for the disk, which takes most of a test's time.
type quickDisk struct{ osDisk }

func (d quickDisk) create(path string) (file, error) {
	f, err := d.osDisk.create(path)
	return quickFile{f}, err
}

func (quickDisk) syncDir(string) error { return nil }

type quickFile struct{ file }

func (quickFile) Sync() error { return nil }

// names is what lies in a folder.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run", "ckpt")
	want := sample(90)
	path, size, err := Save(dir, want, 2)
	if err != nil {
		t.Fatal(err)
	}
	if path != filepath.Join(dir, "epoch-000090") {
		t.Errorf("saved to %s", path)
	}
	var onDisk int64
	for _, n := range names(t, path) {
		info, err := os.Stat(filepath.Join(path, n))
		if err != nil {
			t.Fatal(err)
		}
		onDisk += info.Size()
	}
	if size != onDisk {
		t.Errorf("Save says %d bytes, the folder has %d", size, onDisk)
	}
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := same(got, want); err != nil {
		t.Error(err)
	}
	if err := got.Matches(want.Identity); err != nil {
		t.Errorf("a checkpoint does not match its own run: %v", err)
	}
	// Before the first evaluation there is no best; plain sgd has no moments.
	want.Best, want.BestWeights, want.Moments, want.Extra = nil, nil, []Named{}, nil
	want.Epoch = 91
	if path, _, err = Save(dir, want, 2); err != nil {
		t.Fatal(err)
	}
	if got, err = Load(path); err != nil {
		t.Fatal(err)
	}
	if err := same(got, want); err != nil {
		t.Error(err)
	}
	if n := names(t, path); slices.Contains(n, bestFile) {
		t.Errorf("a checkpoint without a best has %v", n)
	}
}

// TestSameBytes: equal states give equal files.
func TestSameBytes(t *testing.T) {
	a, b := mustSave(t, t.TempDir(), 5, 1), mustSave(t, t.TempDir(), 5, 1)
	for _, n := range names(t, a) {
		x, err := os.ReadFile(filepath.Join(a, n))
		if err != nil {
			t.Fatal(err)
		}
		y, err := os.ReadFile(filepath.Join(b, n))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(x, y) {
			t.Errorf("%s differs between two saves of one state", n)
		}
	}
}

func TestKeepAndLatest(t *testing.T) {
	dir := t.TempDir()
	if _, err := Latest(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Latest of an empty folder: %v", err)
	}
	if _, err := Latest(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Latest of no folder: %v", err)
	}
	for _, other := range []string{"epoch-notes", "epoch-12", "mine"} {
		if err := os.Mkdir(filepath.Join(dir, other), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		epoch, keep int
		want        []string
	}{
		{10, 2, []string{"epoch-000010"}},
		{20, 2, []string{"epoch-000010", "epoch-000020"}},
		{30, 2, []string{"epoch-000020", "epoch-000030"}},
		{30, 2, []string{"epoch-000020", "epoch-000030"}},
		{25, 2, []string{"epoch-000025", "epoch-000030"}}, // what was just written stays
		{1000000, 0, []string{"epoch-1000000"}},
	} {
		mustSave(t, dir, c.epoch, c.keep)
		got := slices.DeleteFunc(names(t, dir), func(n string) bool { return n == "epoch-notes" || n == "epoch-12" || n == "mine" })
		if !slices.Equal(got, c.want) {
			t.Errorf("after epoch %d, keeping %d: %v, want %v", c.epoch, c.keep, got, c.want)
		}
	}
	if got, err := Latest(dir); err != nil || filepath.Base(got) != "epoch-1000000" {
		t.Errorf("Latest is %s, %v", got, err)
	}
	for _, kept := range []string{"epoch-notes", "epoch-12", "mine"} {
		if _, err := os.Stat(filepath.Join(dir, kept)); err != nil {
			t.Errorf("Save removed what is not its own: %v", err)
		}
	}
}

// A checkpoint of which it cannot be known whether it is one is neither passed over nor
// removed.
func TestUnknownCheckpoint(t *testing.T) {
	dir := t.TempDir()
	mustSave(t, dir, 10, 3)
	newer := filepath.Join(dir, "epoch-000020")
	if err := os.Mkdir(newer, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(manifestFile, filepath.Join(newer, manifestFile)); err != nil { // to itself: nobody can read it
		t.Fatal(err)
	}
	got, err := Latest(dir)
	if err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "epoch-000020: its manifest.json cannot be read") {
		t.Errorf("Latest is %q, %v, want an error about epoch-000020", got, err)
	}
	mustSave(t, dir, 30, 1)
	if want := []string{"epoch-000020", "epoch-000030"}; !slices.Equal(names(t, dir), want) {
		t.Errorf("after another one: %v, want %v", names(t, dir), want)
	}
	if got, err := Latest(dir); err != nil || filepath.Base(got) != "epoch-000030" {
		t.Errorf("Latest is %s, %v", got, err)
	}
}

// TestBadCheckpoints damages a checkpoint in each way and wants a line that says so.
func TestBadCheckpoints(t *testing.T) {
	edit := func(name string, change func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			data, err := os.ReadFile(filepath.Join(path, name))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(path, name), change(data), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	swap := func(old, new string) func([]byte) []byte {
		return func(b []byte) []byte { return bytes.Replace(b, []byte(old), []byte(new), 1) }
	}
	remove := func(name string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			if err := os.RemoveAll(filepath.Join(path, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name   string
		damage func(*testing.T, string)
		want   string
	}{
		{"truncated weights", edit(weightsFile, func(b []byte) []byte { return b[:len(b)-5] }), "weights.safetensors: has"},
		{"longer moments", edit(momentsFile, func(b []byte) []byte { return append(b, 0) }), "optimizer.safetensors: has"},
		{"flipped bit", edit(bestFile, func(b []byte) []byte { b[len(b)-1] ^= 1; return b }), "best.safetensors: checksum is"},
		{"no weights", remove(weightsFile), "weights.safetensors: missing; use an older checkpoint"},
		{"no manifest", remove(manifestFile), "no manifest.json: it was never completed"},
		{"no folder", remove(""), "no such file or directory"},
		{"empty manifest", edit(manifestFile, func([]byte) []byte { return nil }), "manifest.json: damaged"},
		{"half a manifest", edit(manifestFile, func(b []byte) []byte { return b[:len(b)/2] }), "manifest.json: damaged"},
		{"newer format", edit(manifestFile, swap(`"format": 1`, `"format": 2`)), "format 2 is newer than this program, which reads up to 1"},
		{"no format", edit(manifestFile, swap(`"format": 1,`, ``)), "it has no format"},
		{"format 0", edit(manifestFile, swap(`"format": 1`, `"format": 0`)), "format 0 is none"},
		{"unknown key", edit(manifestFile, swap(`"epoch"`, `"ephoc"`)), `unknown field "ephoc"`},
		{"negative epoch", edit(manifestFile, swap(`"epoch": 7`, `"epoch": -7`)), "epoch -7"},
		{"undescribed file", edit(manifestFile, swap(`"weights.safetensors"`, `"../weights.safetensors"`)), "does not describe weights.safetensors"},
		{"two objects", edit(manifestFile, func(b []byte) []byte { return append(b, '{', '}') }), "damaged"},
		{"a file", func(t *testing.T, path string) {
			remove("")(t, path)
			if err := os.WriteFile(path, []byte("x"), 0o666); err != nil {
				t.Fatal(err)
			}
		}, "it is a file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := mustSave(t, t.TempDir(), 7, 1)
			c.damage(t, path)
			_, err := Load(path)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v\nwant one line with %q and the path", err, c.want)
			}
		})
	}
}

func TestMatches(t *testing.T) {
	c := sample(7)
	for _, x := range []struct {
		change func(*Identity)
		want   string
	}{
		{func(*Identity) {}, ""},
		{func(r *Identity) { r.Config = json.RawMessage(` { "layers": 2, "hidden":16, "dropout": 0.50 }`) }, ""},
		{func(r *Identity) { r.Model = "gcn 3x64" }, "checkpoint is of gcn 2x16, this run is gcn 3x64: give the settings of the first run"},
		{func(r *Identity) { r.Dataset, r.Fingerprint = "citeseer", "77" }, "checkpoint is of data cora, this run has citeseer: give --data=cora"},
		{func(r *Identity) { r.Fingerprint = "fedcba9876543210" }, "other contents of data cora (fingerprint 0123456789ab, here fedcba987654)"},
		{func(r *Identity) { r.Seed = 3 }, "seed 9223372036854775808, this run has 3"},
		{func(r *Identity) { r.Config = json.RawMessage(`{"dropout":0.6,"layers":2,"lr":1}`) },
			"checkpoint has dropout 0.5, this run has 0.6; hidden 16, this run has none; no lr, this run has 1: give"},
		{func(r *Identity) { r.Config = json.RawMessage(`7`) }, "read this run's settings"},
	} {
		run := c.Identity
		x.change(&run)
		err := c.Matches(run)
		if (x.want == "") != (err == nil) || err != nil && (!strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%+v: %v, want %q", run, err, x.want)
		}
	}
}

func TestBadStates(t *testing.T) {
	dir := t.TempDir()
	mustSave(t, dir, 1, 1)
	for want, change := range map[string]func(*Checkpoint){
		"two tensors are named conv1.bias":                    func(c *Checkpoint) { c.Weights[1].Name = "conv1.bias" },
		"tensor conv1.bias of shape [3] has 2 values":         func(c *Checkpoint) { c.Weights[0].Shape = []int{3} },
		"manifest.json: json: unsupported value: NaN":         func(c *Checkpoint) { c.Best.Val = math.NaN() },
		"manifest.json: json: error calling MarshalJSON for ": func(c *Checkpoint) { c.Extra["x"] = json.RawMessage("{") },
	} {
		c := sample(2)
		change(c)
		if _, _, err := Save(dir, c, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if n := names(t, dir); !slices.Equal(n, []string{"epoch-000001"}) {
		t.Errorf("refused states left %v", n)
	}
}

// FuzzManifest reads arbitrary manifests: an error or a checkpoint, never a crash.
func FuzzManifest(f *testing.F) {
	files, _, err := encodeAll(sample(7))
	if err != nil {
		f.Fatal(err)
	}
	good := files[len(files)-1].data
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add([]byte(`{"format":1}`))
	f.Add([]byte(`{"format":1,"files":{"weights.safetensors":{"bytes":9223372036854775807}}}`))
	f.Add(bytes.Replace(good, []byte(`"bytes": `), []byte(`"bytes": 99999999`), 1))
	dir := f.TempDir()
	for _, x := range files {
		if err := os.WriteFile(filepath.Join(dir, x.name), x.data, 0o666); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, manifestFile), data, 0o666); err != nil {
			t.Fatal(err)
		}
		c, err := Load(dir)
		if (c == nil) == (err == nil) {
			t.Fatalf("Load gave %v and %v", c, err)
		}
		if err == nil && len(c.Weights) != 2 {
			t.Fatalf("a manifest that is accepted has %d weights", len(c.Weights))
		}
	})
}

// FuzzTensors reads arbitrary tensor files.
func FuzzTensors(f *testing.F) {
	good, err := encode(sample(7).Weights, 7)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:20])
	f.Fuzz(func(t *testing.T, data []byte) {
		tensors, err := decode(data)
		if err != nil {
			return
		}
		for _, x := range tensors {
			if 4*len(x.Data) > len(data) {
				t.Fatalf("tensor %s has %d values out of %d bytes", x.Name, len(x.Data), len(data))
			}
		}
	})
}

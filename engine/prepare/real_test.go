package prepare

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"dorylus/engine/dataset"
	"dorylus/engine/order"
	"dorylus/engine/store"
	"dorylus/engine/testkit"
)

// golden reads a .npy file of int32 or float32 values.
func golden[T int32 | float32](t *testing.T, name string) []T {
	t.Helper()
	b, err := os.ReadFile(testkit.Shared(t, "golden", "cora_inputs", name+".npy"))
	if err != nil {
		t.Fatal(err)
	}
	b = b[10+int(binary.LittleEndian.Uint16(b[8:])):]
	out := make([]T, len(b)/4)
	for i := range out {
		bits := binary.LittleEndian.Uint32(b[4*i:])
		switch p := any(&out[i]).(type) {
		case *int32:
			*p = int32(bits)
		case *float32:
			*p = math.Float32frombits(bits)
		}
	}
	return out
}

func TestCoraEqualsTheGoldenInputs(t *testing.T) {
	raw, err := dataset.Cora()
	if err != nil {
		t.Fatal(err)
	}
	s := mustBuild(t, raw, Options{Order: order.Natural, Features: RowNormalize})
	if s.Meta.Edges != 10556 || !s.Meta.Symmetric || s.Meta.Vertices != 2708 {
		t.Fatalf("%d vertices, %d edges, symmetric %v; want 2708, 10556, true", s.Meta.Vertices, s.Meta.Edges, s.Meta.Symmetric)
	}
	for v, p := range golden[int32](t, "adj_indptr") {
		if s.In.RowPtr[v] != int64(p) {
			t.Fatalf("row %d starts at %d, want %d", v, s.In.RowPtr[v], p)
		}
	}
	if want := golden[int32](t, "adj_indices"); !slices.Equal(s.In.Col, want) {
		t.Error("columns differ from adj_indices")
	}
	if s.Sparse == nil {
		t.Fatal("Cora's features are not sparse")
	}
	for v, p := range golden[int32](t, "x_indptr") {
		if s.Sparse.RowPtr[v] != int64(p) {
			t.Fatalf("feature row %d starts at %d, want %d", v, s.Sparse.RowPtr[v], p)
		}
	}
	if want := golden[int32](t, "x_indices"); !slices.Equal(s.Sparse.Col, want) {
		t.Error("feature columns differ from x_indices")
	}
	for e, want := range golden[float32](t, "x_data") {
		if s.Sparse.Val[e] != want {
			t.Fatalf("feature %d is %v, want %v, bit for bit", e, s.Sparse.Val[e], want)
		}
	}
	if want := golden[int32](t, "labels"); !slices.Equal(s.Labels, want) {
		t.Error("labels differ")
	}
	for role, name := range []string{"idx_train", "idx_val", "idx_test"} {
		sp := s.Splits[0]
		if want := golden[int32](t, name); !slices.Equal([][]int32{sp.Train, sp.Val, sp.Test}[role], want) {
			t.Errorf("split differs from %s", name)
		}
	}
}

// The counts of data/README.md, in any order, kept on disk and opened again.
func TestRealGraphs(t *testing.T) {
	for _, c := range []struct {
		path        string
		vertices    int
		simple      int64 // undirected edges without self-loops
		isolated    int
		undirectify bool
	}{
		{"planetoid-cora", 2708, 5278, 0, false},
		{"planetoid-citeseer", 3327, 4552, 48, false},
		{"gnnbench-npz/citeseer.npz", 3312, 4536, 48, true},
		{"ppnp-cora-ml/cora_ml.npz", 2995, 8158, 0, true},
		{"amazon-photo/amazon_electronics_photo.npz", 7650, 119081, 115, true},
		{"coauthor-cs/ms_academic_cs.npz", 18333, 81894, 0, false},
		{"heterophilous/texas.npz", 183, 279, 0, false},
		{"polblogs/polblogs.npz", 1490, 16715, 266, true},
	} {
		t.Run(c.path, func(t *testing.T) {
			raw, err := dataset.Open(context.Background(), testkit.Shared(t, "data", filepath.FromSlash(c.path)), dataset.Options{})
			if err != nil {
				t.Fatal(err)
			}
			opt := Options{SelfLoops: Remove, Order: order.LPA}
			if c.undirectify {
				opt.Direction = Undirected
			}
			s := mustBuild(t, raw, opt)
			isolated := 0
			for v := range s.Meta.Vertices {
				if s.In.RowPtr[v] == s.In.RowPtr[v+1] {
					isolated++
				}
			}
			if s.Meta.Vertices != c.vertices || s.Meta.Edges != 2*c.simple || isolated != c.isolated || !s.Meta.Symmetric {
				t.Errorf("%d vertices, %d edges, %d isolated, symmetric %v; want %d, %d, %d, true", s.Meta.Vertices, s.Meta.Edges, isolated, s.Meta.Symmetric, c.vertices, 2*c.simple, c.isolated)
			}
			t.Log(s.Meta.Changes)
			dir := filepath.Join(t.TempDir(), "store")
			if err := store.Write(context.Background(), dir, s, store.WriteOptions{}); err != nil {
				t.Fatal(err)
			}
			back, err := store.Open(dir, store.OpenOptions{Verify: true})
			if err != nil {
				t.Fatal(err)
			}
			defer back.Close()
			checkStore(t, back)
			if !slices.Equal(back.In.Col, s.In.Col) || !slices.Equal(back.Labels, s.Labels) || !slices.Equal(back.Order, s.Order) {
				t.Error("the store on disk differs from the one in memory")
			}
		})
	}
}

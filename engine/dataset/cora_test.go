package dataset

import (
	"context"
	"slices"
	"testing"

	"dorylus/engine/testkit"
)

func TestCoraIsThePublishedOne(t *testing.T) {
	raw, err := Open(context.Background(), "cora", Options{})
	if err != nil {
		t.Fatal(err)
	}
	realSets[0].compare(t, raw)
	file, err := Open(context.Background(), testkit.Shared(t, "data", "planetoid-cora"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(raw.Src, file.Src) || !slices.Equal(raw.Dst, file.Dst) || !slices.Equal(raw.Labels, file.Labels) || !slices.Equal(raw.Sparse.Col, file.Sparse.Col) {
		t.Error("the built-in Cora differs from the files in data/planetoid-cora")
	}
}

// goldenInt reads an integer array of the golden cases.
func goldenInt(t *testing.T, elem ...string) []int64 {
	t.Helper()
	v, err := goldenArray(t, elem...).int64s()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func goldenArray(t *testing.T, elem ...string) *numArray {
	t.Helper()
	b, err := openUser(nil, testkit.Shared(t, append([]string{"golden"}, elem...)...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	a, err := openNPY(b)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func widen(v []int32) []int64 {
	out := make([]int64, len(v))
	for i, x := range v {
		out[i] = int64(x)
	}
	return out
}

// The golden inputs were made from the same files by other code.
func TestCoraAgreesWithGoldenInputs(t *testing.T) {
	raw, err := Cora()
	if err != nil {
		t.Fatal(err)
	}
	s := raw.Splits[0]
	for _, c := range []struct {
		file string
		got  []int64
	}{
		{"labels.npy", widen(raw.Labels)}, {"idx_train.npy", widen(s.Train)}, {"idx_val.npy", widen(s.Val)}, {"idx_test.npy", widen(s.Test)},
		{"x_indptr.npy", raw.Sparse.RowPtr}, {"x_indices.npy", widen(raw.Sparse.Col)},
	} {
		if want := goldenInt(t, "cora_inputs", c.file); !slices.Equal(c.got, want) {
			t.Errorf("%s differs", c.file)
		}
	}
}

func BenchmarkCora(b *testing.B) {
	for b.Loop() {
		if _, err := Cora(); err != nil {
			b.Fatal(err)
		}
	}
}

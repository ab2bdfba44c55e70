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

func BenchmarkCora(b *testing.B) {
	for b.Loop() {
		if _, err := Cora(); err != nil {
			b.Fatal(err)
		}
	}
}

package store

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"dorylus/kernels"
)

// wide is a store of n vertices with degree in-edges and f features each.
func wide(n, degree, f int) *Store {
	g := &kernels.CSR{Cols: n, RowPtr: make([]int64, n+1), Col: make([]int32, 0, n*degree)}
	rng := rand.New(rand.NewPCG(1, 1))
	for v := range n {
		u := rng.IntN(n / degree)
		for range degree {
			g.Col = append(g.Col, int32(u))
			u += 1 + rng.IntN(n/degree-1)
		}
		g.RowPtr[v+1] = int64(len(g.Col))
	}
	order := make([]int32, n)
	for v := range order {
		order[v] = int32(v)
	}
	stride := kernels.PadCols(f)
	// The edges are not symmetric; two copies are as good for timing.
	return &Store{In: g, Out: g, Order: order, Rank: order,
		Dense: &kernels.Mat{Rows: n, Cols: f, Stride: stride, Host: make([]float32, n*stride)},
		Meta:  Meta{Version: Version, Vertices: n, Edges: int64(g.Edges()), Features: f, FeatureKind: DenseFeatures, BlockRows: 4096}}
}

func BenchmarkWriteAndOpen(b *testing.B) {
	s := wide(100_000, 100, 100)
	arrays, err := s.arrays()
	if err != nil {
		b.Fatal(err)
	}
	var total int64
	for i := range arrays {
		total += arrays[i].bytes()
	}
	dir := filepath.Join(b.TempDir(), "store")
	b.Run("write", func(b *testing.B) {
		b.SetBytes(total)
		for b.Loop() {
			if err := Write(context.Background(), dir, s, WriteOptions{Overwrite: true}); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, opt := range map[string]OpenOptions{"map": {}, "read": {Read: true}, "verify": {Verify: true}} {
		b.Run("open/"+name, func(b *testing.B) {
			b.SetBytes(total)
			for b.Loop() {
				got, err := Open(dir, opt)
				if err != nil {
					b.Fatal(err)
				}
				if err := got.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package store_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dorylus/engine/store"
	"dorylus/kernels"
)

// Rows that come in any order, in pieces, padded or not, lie where they belong.
func TestRowFile(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for _, shape := range [][2]int{{1, 1}, {7, 3}, {1000, 5}, {40, 70000}} {
		rows, cols := shape[0], shape[1]
		f, err := os.Create(filepath.Join(t.TempDir(), "rows"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		header := bytes.Repeat([]byte{'h'}, 64)
		r, err := store.NewRowFile(f, header, rows, 4*cols)
		if err != nil {
			t.Fatal(err)
		}
		value := func(v, c int) float32 { return float32(v)*1e5 + float32(c) }
		order := rng.Perm(rows)
		for lo := 0; lo < rows; {
			hi := min(rows, lo+1+rng.IntN(rows))
			m := &kernels.Mat{Rows: hi - lo, Cols: cols, Stride: cols + 3, Host: make([]float32, (hi-lo)*(cols+3))}
			var at []int32
			for i, v := range order[lo:hi] {
				at = append(at, int32(v))
				for c := range cols {
					m.Row(i)[c] = value(v, c)
				}
			}
			if err := r.PutFloats(at, m); err != nil {
				t.Fatal(err)
			}
			lo = hi
		}
		got, err := r.Floats()
		if err != nil {
			t.Fatal(err)
		}
		for v := range rows {
			for c := range cols {
				if got.Row(v)[c] != value(v, c) {
					t.Fatalf("%d x %d: row %d, value %d is %v, want %v", rows, cols, v, c, got.Row(v)[c], value(v, c))
				}
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(f.Name())
		if err != nil || !bytes.HasPrefix(data, header) || len(data) != 64+4*rows*cols {
			t.Errorf("%d x %d: the file has %d bytes (%v)", rows, cols, len(data), err)
		}
		for want, err := range map[string]error{
			"row -1 of": r.PutBytes([]int32{-1}, make([]byte, 4*cols)), "3 bytes for 1 rows": r.PutBytes([]int32{0}, make([]byte, 3)),
			"for 1 rows of": r.PutFloats([]int32{0}, kernels.FromSlice(1, cols+1, make([]float32, cols+1))),
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
	}
}

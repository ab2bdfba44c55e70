package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dorylus/engine/store"
)

// What prepare --as=distdgl writes, prepare reads back to the same store.
func TestDistDGLRoundTrip(t *testing.T) {
	dir := t.TempDir()
	ring(t, dir)
	write(t, dir, smallGraph("multi")...)
	write(t, filepath.Join(dir, "multi"), "labels.csv", "1,0,1\n0,0,0\n0,1,0\n1,1,1\n0,0,1\n1,0,0\n")
	for _, test := range []struct{ src, flags string }{
		{"cora", ""},
		{"g", "--direction=undirected --split=random:50/25/25 --seed=3"},
		{"g", "--direction=reverse --self-loops=remove --features=standardize"},
		{"multi", "--split=random:50/25/25"},
	} {
		t.Run(test.src+" "+test.flags, func(t *testing.T) {
			d := t.TempDir()
			src := test.src
			if src != "cora" {
				src = filepath.Join(dir, src)
			}
			direct, chunked, again := filepath.Join(d, "direct"), filepath.Join(d, "chunked"), filepath.Join(d, "again")
			flags := strings.Fields(test.flags)
			mustRun(t, d, append(flags, "prepare", src, "-o", direct, "--order=natural")...)
			out := mustRun(t, d, append(flags, "prepare", src, "-o", chunked, "--as=distdgl", "--chunks=3")...)
			if !strings.Contains(out, "in DistDGL's chunked format") {
				t.Errorf("it says\n%s", out)
			}
			mustRun(t, d, "prepare", chunked, "-o", again, "--order=natural")
			want, got := openStore(t, direct), openStore(t, again)
			if a, b := fmt.Sprint(got.In.RowPtr, got.In.Col, got.In.Val), fmt.Sprint(want.In.RowPtr, want.In.Col, want.In.Val); a != b {
				t.Errorf("edges: got %.200s\nwant %.200s", a, b)
			}
			if !slices.Equal(got.Labels, want.Labels) || !slices.Equal(got.IDs, want.IDs) || got.Meta.Classes != want.Meta.Classes || got.Meta.Name != want.Meta.Name {
				t.Errorf("labels %.100v, ids %.100q, %d classes, name %s\nwant %.100v, %.100q, %d, %s",
					fmt.Sprint(got.Labels), got.IDs, got.Meta.Classes, got.Meta.Name, fmt.Sprint(want.Labels), want.IDs, want.Meta.Classes, want.Meta.Name)
			}
			if (got.Multi == nil) != (want.Multi == nil) || want.Multi != nil && fmt.Sprint(*got.Multi) != fmt.Sprint(*want.Multi) {
				t.Errorf("classes: got %v, want %v", got.Multi, want.Multi)
			}
			if len(want.Splits) != len(got.Splits) || len(want.Splits) > 0 &&
				fmt.Sprint(got.Splits[0].Train, got.Splits[0].Val, got.Splits[0].Test) != fmt.Sprint(want.Splits[0].Train, want.Splits[0].Val, want.Splits[0].Test) {
				t.Errorf("splits: got %.300v\nwant %.300v", fmt.Sprint(got.Splits), fmt.Sprint(want.Splits))
			}
			for v := range want.Meta.Vertices {
				if a, b := features(got, v), features(want, v); !slices.Equal(a, b) {
					t.Fatalf("features of %d: got %v\nwant %v", v, a, b)
				}
			}
		})
	}
	for args, want := range map[string]string{
		"prepare cora -o x --as=dgl":                  "--as=dgl: choose one of store, distdgl",
		"prepare cora -o x --chunks=2":                "--chunks=2: a store is not cut into chunks",
		"prepare cora -o x --as=distdgl --chunks=0":   "--chunks=0: give 1 or more",
		"prepare cora -o x --as=distdgl --order=hash": "--order=hash: --as=distdgl keeps the source's order",
		"prepare cora -o x --as=distdgl --overwrite":  "--overwrite: only a store is replaced",
	} {
		wantFailure(t, call(t, dir, nil, strings.Fields(args)...), exitUsage, want)
	}
	wantFailure(t, call(t, dir, nil, "prepare", "cora", "-o", "g", "--as=distdgl"), exitFailed, "write g: it exists already")
}

func openStore(t *testing.T, dir string) *store.Store {
	t.Helper()
	st, err := store.Open(dir, store.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// features is a row of a store, spelt out.
func features(st *store.Store, v int) []float32 {
	row := make([]float32, st.Meta.Features)
	if st.Dense != nil {
		copy(row, st.Dense.Row(v))
	}
	if g := st.Sparse; g != nil {
		for e := g.RowPtr[v]; e < g.RowPtr[v+1]; e++ {
			row[g.Col[e]] = 1
			if g.Val != nil {
				row[g.Col[e]] = g.Val[e]
			}
		}
	}
	return row
}

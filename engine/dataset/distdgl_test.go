package dataset

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func distDGLFiles() map[string]string {
	return map[string]string{
		"metadata.json": `{"graph_name": "mini", "node_type": ["n"], "num_nodes_per_chunk": [[2, 1]], "edge_type": ["n:e:n", "n:f:n"], "num_edges_per_chunk": [[1, 1], [1]],
			"edges": {"n:e:n": {"format": {"name": "csv", "delimiter": " "}, "data": ["e/0.csv", "e/1.csv"]}, "n:f:n": {"format": {"name": "numpy"}, "data": ["f.npy"]}},
			"node_data": {"n": {"feat": {"format": {"name": "numpy"}, "data": ["x0.npy", "x1.npy"]}, "label": {"format": {"name": "numpy"}, "data": ["y.npy"]},
				"train_mask": {"format": {"name": "numpy"}, "data": ["m.npy"]}, "year": {"format": {"name": "numpy"}, "data": ["gone.npy"]}}},
			"edge_data": {"n:f:n": {"weight": {"format": {"name": "numpy"}, "data": ["w.npy"]}}}}`,
		"e/0.csv": "0 1\n", "e/1.csv": "2 0\n", "f.npy": npyBytes("<i8", "(1, 2)", []int64{1, 2}), "w.npy": vector("<f4", 1, []float32{0.5}),
		"x0.npy": npyBytes("<f4", "(2, 2)", []float32{1, 2, 3, 4}), "x1.npy": npyBytes("<f4", "(1, 2)", []float32{5, 6}),
		"y.npy": vector("<i8", 3, []int64{1, 0, -1}), "m.npy": vector("|b1", 3, []bool{true, false, false}),
	}
}

func TestDistDGL(t *testing.T) {
	raw, err := openFolder(distDGLFiles(), "d")
	if err != nil {
		t.Fatal(err)
	}
	if raw.Name != "mini" || raw.Undirected || !slices.Equal(raw.Src, []int32{0, 2, 1}) || !slices.Equal(raw.Dst, []int32{1, 0, 2}) || !slices.Equal(raw.Weight, []float32{1, 1, 0.5}) {
		t.Errorf("got %+v", raw)
	}
	if !slices.Equal(raw.Dense.Host, []float32{1, 2, 3, 4, 5, 6}) || !slices.Equal(raw.Labels, []int32{1, 0, -1}) || !slices.Equal(raw.Splits[0].Train, []int32{0}) {
		t.Errorf("features %v, labels %v, splits %v", raw.Dense.Host, raw.Labels, raw.Splits)
	}
	expectFinding(t, raw.Findings, "edge-kinds-merged", Info, 1, "n:e:n, n:f:n")
	expectFinding(t, raw.Findings, "array-unread", Info, 1, "year")
}

func TestDistDGLRefuses(t *testing.T) {
	meta := func(old, new string) string { return strings.Replace(distDGLFiles()["metadata.json"], old, new, 1) }
	for _, tc := range []struct{ name, file, text, want string }{
		{"json", "metadata.json", "{", "read metadata.json:"},
		{"kinds", "metadata.json", meta(`["n"]`, `["n", "m"]`), "2 kinds of vertices (n, m); one is read"},
		{"outside", "metadata.json", meta("e/0.csv", "../0.csv"), `"../0.csv" is not a file in the folder`},
		{"format", "metadata.json", meta(`"csv"`, `"orc"`), `format "orc" is not read`},
		{"counts", "metadata.json", meta("[1, 1]", "[1, 9]"), `10 edges of kind "n:e:n", but its pieces have 2`},
		{"negative", "metadata.json", meta("[2, 1]", "[2, -1]"), "a chunk of -1 vertices"},
		{"edge", "e/0.csv", "0 3\n", "edge record 0: vertex 3 is outside [0,3)"},
		{"edge text", "e/0.csv", "0 x\n", `e/0.csv: line 1: vertex "x" is not a number`},
		{"big edge", "e/0.csv", "0 99999999999\n", "vertex 99999999999 is outside [0,3)"},
		{"shape", "f.npy", npyBytes("<i8", "(2, 1)", []int64{1, 2}), "shape [2 1] is not edges x 2"},
		{"rows", "x1.npy", npyBytes("<f4", "(2, 2)", []float32{5, 6, 7, 8}), "hold 8 values, not 3 rows of 2"},
		{"columns", "x1.npy", npyBytes("<f4", "(1, 1)", []float32{5}), "1 columns, but the piece before it has 2"},
		{"ids", "ids.txt", "a\nb\n", "read ids.txt: 2 names, one a line, for 3 vertices"},
		{"label", "y.npy", vector("<f4", 3, []float32{1, 0.5, 0}), "record 1: label 0.5 is not a class number"},
		{"mask", "m.npy", vector("<i8", 3, []int64{1, 2, 0}), "mask value 2 is neither"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := openFolder(with(distDGLFiles(), tc.file, tc.text), "d")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v\nwant %q", err, tc.want)
			}
		})
	}
}

// What is written is what is read back, with both directions of undirected edges.
func TestWriteDistDGL(t *testing.T) {
	for _, tc := range []struct {
		name string
		raw  func() *Raw
	}{
		{"one class", path4},
		{"several", several},
		{"some unlabelled", func() *Raw { r := several(); r.Labelled = []bool{true, false, true, true}; return r }},
		{"directed, weighted, sparse, names", func() *Raw {
			r := path4()
			r.Undirected, r.Weight, r.IDs = false, []float32{0.5, 1, 2}, []string{"a", "b", "c", "d"}
			r.Dense, r.Sparse = nil, toSparse(r.Dense, 5)
			return r
		}},
		{"bare", func() *Raw { return &Raw{Name: "b", N: 2, Src: []int32{1, 0}, Dst: []int32{1, 1}, Undirected: true} }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for chunks := 1; chunks <= 2; chunks++ {
				want := tc.raw()
				dir := filepath.Join(t.TempDir(), "out")
				if err := WriteDistDGL(context.Background(), dir, want, chunks); err != nil {
					t.Fatal(err)
				}
				got, err := Open(context.Background(), dir, Options{})
				if err != nil {
					t.Fatal(err)
				}
				sameGraph(t, got, want)
				if want.IDs != nil {
					ids, err := os.ReadFile(filepath.Join(dir, "ids.txt"))
					if err != nil || string(ids) != "a\nb\nc\nd\n" {
						t.Errorf("ids %q, %v", ids, err)
					}
				}
			}
		})
	}
}

// sameGraph compares what DistDGL's format can hold.
func sameGraph(t *testing.T, got, want *Raw) {
	t.Helper()
	var src, dst []int32
	var weight []float32
	for i := range want.Src {
		src, dst = append(src, want.Src[i]), append(dst, want.Dst[i])
		if want.Weight != nil {
			weight = append(weight, want.Weight[i])
		}
		if want.Undirected && want.Src[i] != want.Dst[i] {
			src, dst = append(src, want.Dst[i]), append(dst, want.Src[i])
		}
	}
	if !slices.Equal(got.IDs, want.IDs) {
		t.Errorf("ids %q, want %q", got.IDs, want.IDs)
	}
	if got.N != want.N || !slices.Equal(got.Src, src) || !slices.Equal(got.Dst, dst) || !slices.Equal(got.Weight, weight) || got.Undirected {
		t.Errorf("got %d vertices, %v -> %v by %v; want %v -> %v by %v", got.N, got.Src, got.Dst, got.Weight, src, dst, weight)
	}
	row := func(r *Raw, v int) []float32 {
		x := make([]float32, r.featureCols())
		r.featureRow(v, x)
		return x
	}
	for v := range want.N {
		if a, b := row(got, v), row(want, v); !slices.Equal(a, b) {
			t.Errorf("features of %d: got %v, want %v", v, a, b)
		}
		if got.labelled(v) != want.labelled(v) || !slices.Equal(got.classesOf(v), want.classesOf(v)) {
			t.Errorf("classes of %d: got %v, want %v", v, got.classesOf(v), want.classesOf(v))
		}
	}
	if a, b := fmt.Sprint(got.Splits), fmt.Sprint(want.Splits); strings.ReplaceAll(a, "file", "s") != b {
		t.Errorf("splits: got %v, want %v", a, b)
	}
}

func TestWriteDistDGLRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := WriteDistDGL(context.Background(), dir, path4(), 1); err == nil || !strings.Contains(err.Error(), "it exists already") {
		t.Errorf("a folder that exists: %v", err)
	}
	if err := WriteDistDGL(context.Background(), filepath.Join(dir, "x"), path4(), 5); err == nil || !strings.Contains(err.Error(), "5 chunks for 4 vertices") {
		t.Errorf("too many chunks: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := WriteDistDGL(ctx, filepath.Join(dir, "x"), path4(), 2); err == nil {
		t.Error("a cancelled context wrote")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind %v, %v", left, err)
	}
}

func FuzzDistDGL(f *testing.F) {
	names := slices.Sorted(maps.Keys(distDGLFiles()))
	for i, name := range names {
		f.Add([]byte(distDGLFiles()[name]), byte(i))
	}
	f.Fuzz(func(t *testing.T, data []byte, which byte) {
		survive(t, with(distDGLFiles(), names[int(which)%len(names)], string(data)), "d", Options{})
	})
}

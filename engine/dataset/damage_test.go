package dataset

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
)

func openFolder(files map[string]string, src string) (*Raw, error) {
	return Open(context.Background(), src, Options{FS: folder(files)})
}

func TestCraftedFilesRead(t *testing.T) {
	raw, err := openFolder(tinyPlanetoid(), "d")
	if err != nil {
		t.Fatal(err)
	}
	if raw.N != 6 || !slices.Equal(raw.Labels, []int32{0, 1, 1, 0, 0, 1}) || !slices.Equal(raw.Sparse.Col, []int32{2, 0, 1, 2, 0, 1}) {
		t.Errorf("planetoid: n %d, labels %v, columns %v", raw.N, raw.Labels, raw.Sparse.Col)
	}
	if s := raw.Splits[0]; !slices.Equal(s.Train, []int32{0, 1}) || !slices.Equal(s.Val, []int32{2, 3}) || !slices.Equal(s.Test, []int32{4, 5}) {
		t.Errorf("planetoid: split %+v", s)
	}
	raw, err = openFolder(map[string]string{"b.npz": zipOf(tinyBench())}, "d/b.npz")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(raw.IDs, []string{"a", "b", "ç", "dd"}) || !slices.Equal(raw.Sparse.Col, []int32{0, 1, 1}) || !slices.Equal(raw.Sparse.Val, []float32{2, 1, 3}) {
		t.Errorf("gnn-benchmark: ids %q, features %+v", raw.IDs, raw.Sparse)
	}
	if !slices.Equal(raw.Weight, []float32{1, 2, 1}) || raw.Labels[3] != -1 || raw.Classes != nil {
		t.Errorf("gnn-benchmark: weights %v, labels %v, classes %v", raw.Weight, raw.Labels, raw.Classes)
	}
	raw, err = openFolder(map[string]string{"h.npz": zipOf(tinyHetero())}, "d/h.npz")
	if err != nil {
		t.Fatal(err)
	}
	if len(raw.Splits) != 2 || raw.Splits[1].Name != "1" || !slices.Equal(raw.Splits[1].Train, []int32{1}) || !raw.Undirected {
		t.Errorf("heterophilous: splits %+v, undirected %v", raw.Splits, raw.Undirected)
	}
	if raw, err = openFolder(map[string]string{"h_directed.npz": zipOf(tinyHetero())}, "d/h_directed.npz"); err != nil || raw.Undirected {
		t.Errorf("heterophilous directed: %v", err)
	}
}

func TestNPZRefuses(t *testing.T) {
	for _, tc := range []struct {
		name  string
		key   string
		value string // "" removes the member
		want  string
	}{
		{"missing", "adj_indices", "", "b.npz: adj_indices: it is missing; the file has adj_data"},
		{"column outside", "adj_indices", vector("<i4", 3, []int32{2, 4, 0}), "adj_indices: record 1: column 4 is outside [0,4)"},
		{"offsets back", "adj_indptr", vector("<i4", 5, []int32{0, 2, 1, 3, 3}), "adj_indptr: row 2 starts at 1, before row 1 at 2"},
		{"offsets short", "adj_indptr", vector("<i4", 4, []int32{0, 2, 2, 3}), "4 row offsets for 4 rows"},
		{"not square", "adj_shape", vector("<i8", 2, []int64{4, 5}), "4 x 5"},
		{"huge", "adj_shape", vector("<i8", 2, []int64{1 << 40, 1 << 40}), "is outside"},
		{"attribute rows", "attr_shape", vector("<i8", 2, []int64{3, 2}), "3 rows of attributes for 4 vertices"},
		{"labels", "labels", vector("|i1", 3, []int8{0, 1, 2}), "labels: 3 labels for 4 vertices"},
		{"label value", "labels", vector("<f4", 4, []float32{0, 0.5, 1, 1}), "record 1: label 0.5"},
		{"strings", "adj_indices", vector("<U1", 3, []uint32{'a', 'b', 'c'}), "it holds strings, not numbers"},
		{"objects", "adj_data", vector("|O", 3, []byte("...")), "never unpickled"},
		{"truncated", "adj_data", vector("<f4", 9, []float32{1, 2, 1}), "truncated"},
		{"no npy", "adj_data", "hello, this is text", "not with numpy's mark"},
		{"version", "adj_data", "\x93NUMPY\x09\x00\x10\x00\x00\x00\x00\x00", ".npy version 9"},
		{"type", "adj_data", vector("<c16", 3, []complex128{1, 2, 3}), `type "<c16" is not read`},
	} {
		members := maps.Clone(tinyBench())
		if members[tc.key] = tc.value; tc.value == "" {
			delete(members, tc.key)
		}
		_, err := openFolder(map[string]string{"b.npz": zipOf(members)}, "d/b.npz")
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "read b.npz") {
			t.Errorf("%s: got %v, want %q in it", tc.name, err, tc.want)
		}
	}
	whole := zipOf(tinyBench())
	if _, err := openFolder(map[string]string{"b.npz": whole[:len(whole)/2]}, "d/b.npz"); err == nil || !strings.Contains(err.Error(), "truncated") {
		t.Errorf("half a file: %v", err)
	}
	bomb := zipOf(map[string]string{"adj_indptr": "", "zeros": strings.Repeat("\x00", 1<<22)})
	if _, err := openFolder(map[string]string{"b.npz": bomb}, "d/b.npz"); err == nil {
		t.Error("no error for a file without a graph")
	}
}

// Every flipped byte of a stored or deflated member must be noticed by its checksum
// or by the reader, or change nothing but a name.
func TestNPZNoticesFlippedBytes(t *testing.T) {
	whole := []byte(zipOf(tinyHetero()))
	good, err := openFolder(map[string]string{"h.npz": string(whole)}, "d/h.npz")
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		bad := slices.Clone(whole)
		bad[i] ^= 0x10
		raw, err := openFolder(map[string]string{"h.npz": string(bad)}, "d/h.npz")
		if err == nil && raw.Dense != nil && (!slices.Equal(raw.Dense.Host, good.Dense.Host) || !slices.Equal(raw.Src, good.Src)) {
			t.Fatalf("byte %d flipped: other numbers and no error", i)
		}
	}
}

func TestPlanetoidRefuses(t *testing.T) {
	for _, tc := range []struct{ file, text, want string }{
		{"allx", "", "ends before the pickle does"},
		{"allx", pickledOneHot(2, 0, 1), "it holds a numpy array, not a scipy csr_matrix"},
		{"allx", pickledMatrix(4, 3, []int32{0, 1, 2, 2, 3}, []int32{2, 0, 3}), "indices: record 2: column 3 is outside [0,3)"},
		{"ally", pickledOneHot(2, 0, 1, 1), "ind.tiny.ally: 3 rows, but ind.tiny.allx has 4"},
		{"ally", pickledOneHot(3, 0, 1, 1, 0), "2 classes, but the files before it have 3"},
		{"y", pickledOneHot(2, 1, 1), "not the first of ind.tiny.ally"},
		{"ty", pickledOneHot(2, 1), "1 rows, but ind.tiny.tx has 2"},
		{"tx", pickledMatrix(2, 4, []int32{0, 0, 0}, nil), "4 columns, but ind.tiny.allx has 3"},
		{"test.index", "5\n", "1 ids, but ind.tiny.tx has 2 rows"},
		{"test.index", "5\nx\n", `line 2: "x" is not a vertex`},
		{"test.index", "5\n1\n", "line 2: vertex 1 has a row in ind.tiny.allx"},
		{"test.index", "5\n5\n", "line 2: vertex 5 is in line 1 already"},
		{"test.index", "5\n2000000000\n", "largest id is 2000000000"},
		{"graph", pickledGraph([][]int{{1, 9}}), "key 0: neighbour 9 is not a vertex; ids are in [0,6)"},
		{"graph", pickled(func(p *pickler) { p.int(3) }), "not a dictionary"},
		{"graph", "\x80\x02cos\nsystem\nU\x04date\x85R.", "class os.system is not one that a data set needs; nothing was executed"},
		{"graph", "\x80\x02T\xff\xff\xff\x7fabc.", "2147483647 bytes announced, 4 left"},
		{"graph", "\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.", "bytes announced"},
		{"graph", "\x80\x02" + strings.Repeat("(", 2000) + ".", "nested more than"},
		{"graph", "\x80\x02}(K\x01u.", "malformed pickle"},
	} {
		files := tinyPlanetoid()
		files["ind.tiny."+tc.file] = tc.text
		_, err := openFolder(files, "d")
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "read ind.tiny.") {
			t.Errorf("%s: got %v, want %q in it", tc.file, err, tc.want)
		}
	}
	files := tinyPlanetoid()
	delete(files, "ind.tiny.ty")
	if _, err := openFolder(files, "d"); err == nil || !strings.Contains(err.Error(), "incomplete without it") {
		t.Errorf("a missing file: %v", err)
	}
}

func TestPlanetoidFolderOfSeveral(t *testing.T) {
	files := tinyPlanetoid()
	for name, text := range tinyPlanetoid() {
		files[strings.Replace(name, "tiny", "other", 1)] = text
	}
	if _, err := openFolder(files, "d"); err == nil || !strings.Contains(err.Error(), "other and tiny; name one by its file, such as d/ind.other.graph") {
		t.Errorf("got %v", err)
	}
	raw, err := openFolder(files, "d/ind.tiny.graph")
	if err != nil || raw.Name != "tiny" || raw.N != 6 {
		t.Errorf("got %+v, %v", raw, err)
	}
}

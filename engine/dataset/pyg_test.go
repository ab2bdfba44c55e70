package dataset

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// pygFixture is a file that testdata/pyg/make.py wrote.
func pygFixture(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "pyg", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func openPT(data []byte) (*Raw, error) {
	return Open(context.Background(), "g.pt", Options{FS: fstest.MapFS{"g.pt": {Data: data}}})
}

func TestPyG(t *testing.T) {
	for _, name := range []string{"data.pt", "legacy.pt", "dict.pt", "collated.pt", "processed.pt"} {
		t.Run(name, func(t *testing.T) {
			raw, err := openPT(pygFixture(t, name))
			if err != nil {
				t.Fatal(err)
			}
			if raw.Format != "pyg" || raw.N != 5 || raw.Undirected || !slices.Equal(raw.Src, []int32{0, 1, 2, 3, 4, 0}) || !slices.Equal(raw.Dst, []int32{1, 0, 3, 2, 0, 4}) {
				t.Errorf("got %+v", raw)
			}
			if !slices.Equal(raw.Weight, []float32{0.5, 1, 2, 4, 0.25, 8}) || !slices.Equal(raw.Labels, []int32{0, 1, 2, 1, -1}) {
				t.Errorf("weights %v, labels %v", raw.Weight, raw.Labels)
			}
			if !slices.Equal(raw.Dense.Host, []float32{1, 0.5, 0, 2, -1, 0, 3, 0.25, 0, 1}) || raw.Dense.Cols != 2 {
				t.Errorf("features %+v", raw.Dense)
			}
			if len(raw.Splits) != 1 || !slices.Equal(raw.Splits[0].Train, []int32{0, 1}) || !slices.Equal(raw.Splits[0].Val, []int32{2}) || !slices.Equal(raw.Splits[0].Test, []int32{3}) {
				t.Errorf("splits %+v", raw.Splits)
			}
			if err := Fatal(Check(raw)); err != nil {
				t.Error(err)
			}
		})
	}
}

// Views with strides, doubles, bfloat16, two splits and several labels per vertex.
func TestPyGViews(t *testing.T) {
	raw, err := openPT(pygFixture(t, "multi.pt"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(raw.Src, []int32{0, 1, 2, 3, 4, 0}) || !slices.Equal(raw.Dst, []int32{1, 0, 3, 2, 0, 4}) || !slices.Equal(raw.Weight, []float32{0, 2, 4, 6, 8, 10}) {
		t.Errorf("edges %v -> %v by %v", raw.Src, raw.Dst, raw.Weight)
	}
	if !slices.Equal(raw.Dense.Host, []float32{0.5, 1, 2, 0, 0, -1, 0.25, 3, 1, 0}) {
		t.Errorf("features %v", raw.Dense.Host)
	}
	if raw.Labels != nil || !slices.Equal(raw.Multi.Col, []int32{0, 2, 1, 0, 1, 2, 2}) || !slices.Equal(raw.Multi.RowPtr, []int64{0, 2, 2, 3, 6, 7}) {
		t.Errorf("labels %+v", raw.Multi)
	}
	if len(raw.Splits) != 2 || !slices.Equal(raw.Splits[1].Train, []int32{2}) || !slices.Equal(raw.Splits[1].Val, []int32{0, 1}) || !slices.Equal(raw.Splits[1].Test, []int32{3}) {
		t.Errorf("splits %+v", raw.Splits)
	}
}

func TestPyGFolder(t *testing.T) {
	m := fstest.MapFS{"Cora/processed/data.pt": {Data: pygFixture(t, "processed.pt")}}
	raw, err := Open(context.Background(), "Cora", Options{FS: m})
	if err != nil || raw.Name != "Cora" || raw.N != 5 {
		t.Errorf("got %+v, %v", raw, err)
	}
}

func TestPyGRefuses(t *testing.T) {
	swap := func(name, old, new string) []byte {
		data := pygFixture(t, name)
		if !bytes.Contains(data, []byte(old)) {
			t.Fatalf("%s has no %q", name, old)
		}
		return bytes.Replace(data, []byte(old), []byte(new), 1)
	}
	for _, tc := range []struct {
		name string
		data []byte
		want string
	}{
		{"two graphs", pygFixture(t, "two.pt"), "it holds 2 graphs"},
		{"hetero", pygFixture(t, "hetero.pt"), "it is a torch_geometric.data.hetero_data.HeteroData"},
		{"sparse", pygFixture(t, "sparse.pt"), "x is a torch.sparse; save it as a dense tensor"},
		{"weights", pygFixture(t, "model.pt"), "a dictionary of weight; it must be a torch_geometric Data"},
		{"a class", swap("legacy.pt", "ctorch_geometric.data.data\nData\n", "cos\nsystem\nmetric.data\nData\n"), "class os.system is not one that a data set needs; nothing was executed"},
		{"truncated zip", pygFixture(t, "data.pt")[:1500], "it is truncated"},
		{"truncated", pygFixture(t, "legacy.pt")[:1300], "legacy.pt"},
		{"vertex", swap("legacy.pt", "\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01", "\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"), "vertex 5 is outside [0,5)"},
		{"empty", nil, "byte 0: the file is too short"},
		{"text", []byte("not a pickle at all, sorry"), "it is no file of torch.save"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := openPT(tc.data)
			if err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(tc.want, "legacy.pt", "g.pt")) {
				t.Errorf("got %v\nwant %q", err, tc.want)
			}
		})
	}
}

// A tensor that claims more than its storage has is refused before it is laid out.
func TestTorchTensorBounds(t *testing.T) {
	s := &torchStorage{typ: torchTypes["FloatStorage"], n: 4, data: make([]byte, 16)}
	for _, tc := range []struct {
		offset        int
		shape, stride []int
		want          string
	}{
		{1, []int{2, 2}, []int{2, 1}, "ends at element 4 of a storage of 4"},
		{0, []int{1 << 40}, []int{0}, "larger than its file"},
		{0, []int{1 << 20}, []int{0}, "repeats the 4 values"},
		{0, []int{3, 3}, []int{1 << 61, 1}, "larger than its file"},
	} {
		v := torchTensor{storage: s, offset: tc.offset, shape: tc.shape, stride: tc.stride}
		if _, err := v.array("a"); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("shape %v, stride %v: got %v, want %q", tc.shape, tc.stride, err, tc.want)
		}
	}
}

func FuzzPyG(f *testing.F) {
	for _, name := range []string{"data.pt", "legacy.pt", "dict.pt", "multi.pt", "processed.pt", "hetero.pt", "sparse.pt"} {
		f.Add(pygFixture(f, name))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		survive(t, map[string]string{"g.pt": string(data)}, "d/g.pt", Options{})
	})
}

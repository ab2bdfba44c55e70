package dataset

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

func parquetFixture(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "parquet", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// parquetOf writes rows of a struct.
func parquetOf[T any](t testing.TB, rows ...T) string {
	t.Helper()
	var b bytes.Buffer
	if err := parquet.Write(&b, rows); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func parquetFolder(t testing.TB) map[string]string {
	return map[string]string{"edges.parquet": parquetFixture(t, "edges.parquet"), "nodes.parquet": parquetFixture(t, "nodes.parquet")}
}

func TestParquet(t *testing.T) {
	raw, err := openFolder(parquetFolder(t), "d")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(raw.IDs, []string{"a", "b", "c", "d"}) || !slices.Equal(raw.Src, []int32{1, 0, 2}) || !slices.Equal(raw.Dst, []int32{0, 2, 1}) || !slices.Equal(raw.Weight, []float32{0.5, 1, 2}) {
		t.Errorf("got %+v", raw)
	}
	if !slices.Equal(raw.Labels, []int32{1, 0, -1, 2}) || raw.Dense.Cols != 3 || !slices.Equal(raw.Dense.Row(2), []float32{5, 6, 30}) {
		t.Errorf("labels %v, features %+v", raw.Labels, raw.Dense)
	}
	if s := raw.Splits[0]; !slices.Equal(s.Train, []int32{0}) || !slices.Equal(s.Val, []int32{1}) || !slices.Equal(s.Test, []int32{3}) {
		t.Errorf("split %+v", s)
	}
	expectFinding(t, raw.Findings, "column-unread", Info, 1, "comment")

	raw, err = openFolder(map[string]string{"ids.parquet": parquetFixture(t, "ids.parquet")}, "d/ids.parquet")
	if err != nil || !slices.Equal(raw.IDs, []string{"0", "3", "7"}) || !slices.Equal(raw.Src, []int32{0, 2, 2}) || !slices.Equal(raw.Dst, []int32{2, 1, 0}) || raw.Weight != nil {
		t.Errorf("got %+v, %v", raw, err)
	}
}

func TestParquetPartsAndMasks(t *testing.T) {
	type edge struct{ Source, Target int32 }
	type node struct {
		Label   []int32   `parquet:"label,list"`
		F       []float64 `parquet:"f,list"`
		Mask    bool      `parquet:"train_mask"`
		Testing bool      `parquet:"test_mask"`
	}
	raw, err := openFolder(map[string]string{
		"edges/part-0.parquet": parquetOf(t, edge{0, 1}, edge{1, 2}), "edges/part-1.parquet": parquetOf(t, edge{2, 0}), "edges/_SUCCESS": "",
		"nodes/part-0.parquet": parquetOf(t, node{[]int32{1, 1}, []float64{1, 2}, true, false}),
		"nodes/part-1.parquet": parquetOf(t, node{[]int32{0, 1}, []float64{3, 4}, false, true}, node{[]int32{0, 0}, []float64{5, 6}, false, false}),
	}, "d")
	if err != nil {
		t.Fatal(err)
	}
	if raw.N != 3 || raw.IDs != nil || !slices.Equal(raw.Src, []int32{0, 1, 2}) || !slices.Equal(raw.Dense.Host, []float32{1, 2, 3, 4, 5, 6}) || !slices.Equal(raw.Multi.Col, []int32{0, 1, 1}) {
		t.Errorf("got %+v, %+v", raw, raw.Multi)
	}
	if s := raw.Splits[0]; !slices.Equal(s.Train, []int32{0}) || s.Val != nil && len(s.Val) > 0 || !slices.Equal(s.Test, []int32{1}) {
		t.Errorf("split %+v", s)
	}
}

func TestParquetRefuses(t *testing.T) {
	type named struct {
		Src string `parquet:"src"`
		Dst string `parquet:"dst"`
	}
	type one struct{ Src int32 }
	type signed struct{ Src, Dst int64 }
	type keyed struct {
		ID string `parquet:"id"`
	}
	type split struct {
		ID    string `parquet:"id"`
		Split string `parquet:"split"`
	}
	type lists struct {
		F []float32 `parquet:"f,list"`
	}
	good := parquetFixture(t, "edges.parquet")
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"columns", map[string]string{"edges.parquet": parquetOf(t, one{1})}, "columns are src; an edge has a source and a target"},
		{"negative", map[string]string{"edges.parquet": parquetOf(t, signed{1, -2})}, "column dst: row 0: vertex -2 is negative"},
		{"names without ids", map[string]string{"edges.parquet": good, "nodes.parquet": parquetOf(t, lists{[]float32{1}})}, "ids are names, but nodes.parquet has no column of ids"},
		{"twice", map[string]string{"edges.parquet": good, "nodes.parquet": parquetOf(t, split{"a", ""}, split{"a", "test"})}, `record 1: vertex "a" has a row already`},
		{"word", map[string]string{"edges.parquet": good, "nodes.parquet": parquetOf(t, split{"a", "tset"})}, `"tset" is neither train, val nor test`},
		{"ragged", map[string]string{"edges.parquet": parquetOf(t, signed{0, 1}), "nodes.parquet": parquetOf(t, lists{[]float32{1}}, lists{[]float32{1, 2}})}, "has a list of 2, but the first has 1"},
		{"rows", map[string]string{"edges.parquet": parquetOf(t, signed{0, 5}), "nodes.parquet": parquetOf(t, lists{[]float32{1}})}, "vertex 5 is outside [0,1)"},
		{"kinds", map[string]string{"edges/1.parquet": parquetOf(t, named{"a", "b"}), "edges/2.parquet": parquetOf(t, signed{0, 5})}, "of another kind than in edges/1.parquet"},
		{"truncated", map[string]string{"edges.parquet": good[:len(good)/2]}, "it is truncated or no Parquet file"},
		{"short", map[string]string{"edges.parquet": "PAR1"}, "4 bytes are too few"},
		{"footer", map[string]string{"edges.parquet": "PAR1" + strings.Repeat("x", 20) + string(binary.LittleEndian.AppendUint32(nil, 1<<30)) + "PAR1"}, "no Parquet footer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := openFolder(tc.files, "d")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v\nwant %q", err, tc.want)
			}
		})
	}
	raw, err := openFolder(map[string]string{"edges.parquet": good, "nodes.parquet": parquetOf(t, keyed{"z"})}, "d")
	if err != nil || !slices.Equal(raw.IDs, []string{"z", "b", "a", "c"}) || raw.Labels != nil {
		t.Errorf("ids alone: %+v, %v", raw, err)
	}
}

func FuzzParquet(f *testing.F) {
	for i, name := range []string{"edges.parquet", "nodes.parquet", "ids.parquet"} {
		f.Add([]byte(parquetFixture(f, name)), byte(i))
	}
	f.Fuzz(func(t *testing.T, data []byte, which byte) {
		files := parquetFolder(t)
		switch which % 3 {
		case 0:
			files["edges.parquet"] = string(data)
		case 1:
			files["nodes.parquet"] = string(data)
		default:
			files = map[string]string{"edges.parquet": string(data)}
		}
		survive(t, files, "d", Options{})
	})
}

func TestParquetFromDisk(t *testing.T) {
	raw, err := Open(context.Background(), filepath.Join("testdata", "parquet", "ids.parquet"), Options{Vertices: 0})
	if err != nil || raw.Name != "ids" || raw.N != 3 {
		t.Errorf("got %+v, %v", raw, err)
	}
}

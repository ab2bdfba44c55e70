package export

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"dorylus/kernels"
)

// padded is a matrix whose rows lie further apart than they are long.
func padded() *kernels.Mat {
	return &kernels.Mat{Rows: 3, Cols: 2, Stride: 4, Host: []float32{0.25, 0.75, 9, 9, 1e-7, 1, 9, 9, 0.5, 0.5, 9, 9}}
}

func classes() *Table {
	return &Table{Rows: 3, IDs: []string{"a,b", "ü", "c"}, Class: []int32{1, 1, 0}, ClassNames: []string{"cat", "dog"}, Scores: padded()}
}

func sets() *Table {
	return &Table{Rows: 3, Sets: &kernels.CSR{Cols: 3, RowPtr: []int64{0, 2, 2, 3}, Col: []int32{0, 2, 1}}, Embedding: padded()}
}

func write(t *testing.T, name string, table *Table) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, name, table); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestCSV(t *testing.T) {
	for _, tc := range []struct {
		table *Table
		want  string
	}{
		{classes(), "id,class,p_cat,p_dog\n\"a,b\",dog,0.25,0.75\nü,dog,1e-07,1\nc,cat,0.5,0.5\n"},
		{sets(), "id,classes,e_0,e_1\n0,0;2,0.25,0.75\n1,,1e-07,1\n2,1,0.5,0.5\n"},
	} {
		if got := string(write(t, "x.csv", tc.table)); got != tc.want {
			t.Errorf("got %q\nwant %q", got, tc.want)
		}
	}
}

func TestNPY(t *testing.T) {
	only := classes()
	only.Scores = nil
	bare := sets()
	bare.Embedding = nil
	for _, tc := range []struct {
		table        *Table
		descr, shape string
		data         []byte
	}{
		{classes(), "<f4", "(3,2,)", floats(0.25, 0.75, 1e-7, 1, 0.5, 0.5)},
		{sets(), "<f4", "(3,2,)", floats(0.25, 0.75, 1e-7, 1, 0.5, 0.5)},
		{only, "<i4", "(3,)", []byte{1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}},
		{bare, "|i1", "(3,3,)", []byte{1, 0, 1, 0, 0, 0, 0, 1, 0}},
	} {
		got := write(t, "x.NPY", tc.table)
		n := 10 + int(binary.LittleEndian.Uint16(got[8:]))
		head := string(got[10:n])
		if n%64 != 0 || !strings.Contains(head, "'descr': '"+tc.descr+"'") || !strings.Contains(head, "'shape': "+tc.shape) || !bytes.Equal(got[n:], tc.data) {
			t.Errorf("header %q, data %v, want %v", head, got[n:], tc.data)
		}
	}
}

func floats(x ...float32) []byte {
	var b []byte
	for _, f := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return b
}

func TestParquet(t *testing.T) {
	type classRow struct {
		ID      string    `parquet:"id"`
		Class   string    `parquet:"class"`
		ClassID int32     `parquet:"class_id"`
		Scores  []float32 `parquet:"scores,list"`
	}
	type setRow struct {
		ID        int64     `parquet:"id"`
		Classes   []string  `parquet:"classes,list"`
		Embedding []float32 `parquet:"embedding,list"`
	}
	data := write(t, "x.parquet", classes())
	got, err := parquet.Read[classRow](bytes.NewReader(data), int64(len(data)))
	want := []classRow{{"a,b", "dog", 1, []float32{0.25, 0.75}}, {"ü", "dog", 1, []float32{1e-7, 1}}, {"c", "cat", 0, []float32{0.5, 0.5}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	data = write(t, "x.parquet", sets())
	rows, err := parquet.Read[setRow](bytes.NewReader(data), int64(len(data)))
	if err != nil || len(rows) != 3 || !reflect.DeepEqual(rows[0], setRow{0, []string{"0", "2"}, []float32{0.25, 0.75}}) || len(rows[1].Classes) != 0 || rows[2].Classes[0] != "1" {
		t.Errorf("got %+v, %v", rows, err)
	}
	if again := write(t, "x.parquet", sets()); !bytes.Equal(again, data) {
		t.Error("the same table gave other bytes")
	}
}

// Several row groups hold all rows, in order.
func TestParquetGroups(t *testing.T) {
	n := 2*parquetRows + 5
	table := &Table{Rows: n, Class: make([]int32, n)}
	for v := range n {
		table.Class[v] = int32(v % 7)
	}
	data := write(t, "x.parquet", table)
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil || len(f.RowGroups()) != 3 {
		t.Fatalf("%d row groups, %v", len(f.RowGroups()), err)
	}
	type row struct {
		ID      int64 `parquet:"id"`
		ClassID int32 `parquet:"class_id"`
	}
	rows, err := parquet.Read[row](bytes.NewReader(data), int64(len(data)))
	if err != nil || len(rows) != n {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for v, r := range rows {
		if r.ID != int64(v) || r.ClassID != int32(v%7) {
			t.Fatalf("row %d is %+v", v, r)
		}
	}
}

func TestRefuses(t *testing.T) {
	for want, change := range map[string]func(*Table){
		"2 ids for 3 vertices":            func(t *Table) { t.IDs = t.IDs[:2] },
		"1 classes for 3":                 func(t *Table) { t.Class = t.Class[:1] },
		"3 rows of scores for 4 vertices": func(t *Table) { t.Rows, t.IDs, t.Class = 4, nil, nil },
		"nothing to write":                func(t *Table) { t.Class, t.Scores = nil, nil },
	} {
		table := classes()
		change(table)
		if err := Write(&bytes.Buffer{}, "x.csv", table); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := Write(&bytes.Buffer{}, "x.xlsx", classes()); err == nil || !strings.Contains(err.Error(), ".npy, .csv, .parquet") {
		t.Errorf("an unknown format: %v", err)
	}
}

// full is a disk without room after n bytes.
type full struct{ n int }

func (f *full) Write(p []byte) (int, error) {
	if f.n -= len(p); f.n < 0 {
		return 0, errors.New("no space left")
	}
	return len(p), nil
}

func TestFullDisk(t *testing.T) {
	for _, ext := range Extensions() {
		for _, n := range []int{0, 100} {
			if err := Write(&full{n}, "x"+ext, classes()); err == nil && (n == 0 || ext == ".parquet") {
				t.Errorf("%s: writing past %d bytes succeeded", ext, n)
			}
		}
	}
}

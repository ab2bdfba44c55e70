package tensorbridge

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestNpyThereAndBack(t *testing.T) {
	for _, shape := range [][]int{{}, {1}, {7}, {3, 4}, {2, 3, 4}, {1, 1}} {
		n := 1
		for _, d := range shape {
			n *= d
		}
		there(t, shape, count32(n))
		f, i, b := make([]float64, n), make([]int32, n), make([]bool, n)
		for k := range n {
			f[k], i[k], b[k] = float64(k)/3, int32(-k), k%3 == 0
		}
		there(t, shape, f)
		there(t, shape, i)
		there(t, shape, b)
	}
}

func there[T Value](t *testing.T, shape []int, data []T) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.npy")
	if err := WriteNpy(path, shape, data); err != nil {
		t.Fatal(err)
	}
	gotShape, got, err := ReadNpy[T](path)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(gotShape, shape) || !slices.Equal(got, data) {
		t.Errorf("%v of %T came back as %v %v, want %v", shape, data, gotShape, got, data)
	}
}

// file makes a .npy file by hand: a header and bytes.
func file(header string, data ...byte) []byte {
	header += "\n"
	return append(append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8)), append([]byte(header), data...)...)
}

// TestNpyFortran: an array in Fortran order comes back in C order.
func TestNpyFortran(t *testing.T) {
	raw := file("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", 1, 4, 2, 5, 3, 6)
	shape, got, err := parseNpy[uint8](raw)
	if want := []uint8{1, 2, 3, 4, 5, 6}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v %v %v, want %v", shape, got, err, want)
	}
	raw = file("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 1, 3), }", 1, 4, 2, 5, 3, 6)
	if _, got, err = parseNpy[uint8](raw); err != nil || !slices.Equal(got, []uint8{1, 2, 3, 4, 5, 6}) {
		t.Errorf("3 dimensions: %v %v", got, err)
	}
}

func TestNpyRefused(t *testing.T) {
	good := "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }"
	for says, raw := range map[string][]byte{
		"it holds <i4, want <f4":        file(good, 0, 0, 0, 0, 0, 0, 0, 0),
		"needs 8 bytes, the file has 7": file(strings.Replace(good, "i4", "f4", 1), 0, 0, 0, 0, 0, 0, 0),
		"needs 8 bytes, the file has 9": file(strings.Replace(good, "i4", "f4", 1), 0, 0, 0, 0, 0, 0, 0, 0, 0),
		"more elements than the file":   file("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 8), }", 0, 0, 0, 0),
		"shape [-1]":                    file("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"),
		"not a valid NumPy":             []byte("PK\x03\x04 something else that is long enough"),
		"EOF":                           []byte("\x93NUMPY\x01\x00"),
		"a header of 4294967295 bytes":  append([]byte("\x93NUMPY\x02\x00\xff\xff\xff\xff"), 1, 2),
		"corrupt header":                {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 3, 0, 'a', 'b', 'c'},
		"it holds <f8, want <f4":        file(strings.Replace(good, "<i4", "<f8", 1)),
		"could not":                     nil,
		"it holds |O, want <f4":         file(strings.Replace(good, "<i4", "|O", 1)),
		"it holds >f4, want <f4":        file(strings.Replace(good, "<i4", ">f4", 1), 0, 0, 0, 0, 0, 0, 0, 0),
	} {
		_, _, err := parseNpy[float32](raw)
		if err == nil || says != "could not" && says != "not a valid NumPy" && !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want an error that says %q", raw, err, says)
		}
	}
	if _, _, err := ReadNpy[float32](filepath.Join(t.TempDir(), "none.npy")); err == nil || !strings.Contains(err.Error(), "none.npy") {
		t.Errorf("a missing file: %v", err)
	}
	if err := WriteNpy(filepath.Join(t.TempDir(), "a.npy"), []int{2}, []float32{1}); err == nil {
		t.Error("WriteNpy of 1 value with shape [2] gave no error")
	}
	if err := WriteNpy(filepath.Join(t.TempDir(), "a.npy"), []int{0}, []float32{}); err == nil {
		t.Error("WriteNpy of an empty array gave no error")
	}
}

// FuzzNpy: no file makes the reader panic, or give values that do not fill the
// shape.
func FuzzNpy(f *testing.F) {
	f.Add(file("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 1), }", 0, 0, 0, 0, 0, 0, 0, 0))
	f.Add([]byte("\x93NUMPY\x02\x00\x01\x00\x00\x00{"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		shape, data, err := parseNpy[float32](raw)
		if err != nil {
			return
		}
		n := 1
		for _, d := range shape {
			n *= d
		}
		if n != len(data) {
			t.Errorf("shape %v with %d values", shape, len(data))
		}
	})
}

// TestNpyGoldens reads arrays that numpy wrote.
func TestNpyGoldens(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "shared", "golden")
	if _, err := os.Stat(filepath.Join(dir, "manifest.json")); err != nil {
		t.Skip("SKIPPED: reference data golden is missing; put the shared folder beside the project to run this test")
	}
	_, loss, err := ReadNpy[float64](filepath.Join(dir, "cora_gcn2", "loss.npy"))
	if err != nil || len(loss) != 1 || loss[0] < 1.948705688 || loss[0] > 1.948705689 {
		t.Errorf("cora_gcn2/loss.npy is %v %v, want one value, 1.948705688155", loss, err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*", "*.npy"))
	if err != nil || len(names) < 20 {
		t.Fatalf("%d golden arrays: %v", len(names), err)
	}
	for _, name := range names {
		_, _, asFloat64 := ReadNpy[float64](name)
		_, _, asFloat32 := ReadNpy[float32](name)
		_, _, asInt := ReadNpy[int32](name)
		if asFloat64 != nil && asFloat32 != nil && asInt != nil {
			t.Errorf("%s is none of float64, float32, int32: %v", name, asFloat64)
		}
	}
}

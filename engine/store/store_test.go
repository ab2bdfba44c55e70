package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dorylus/engine/dataset"
	"dorylus/kernels"
)

// toy is a store that has one of everything: a directed weighted graph of five
// vertices with dense features of width 3.
func toy() *Store {
	dense := &kernels.Mat{Rows: 5, Cols: 3, Stride: 4, Host: make([]float32, 20)}
	for v := range 5 {
		copy(dense.Row(v), []float32{float32(v), float32(v) / 2, -1})
	}
	return &Store{
		In:     &kernels.CSR{Cols: 5, RowPtr: []int64{0, 2, 2, 3, 5, 5}, Col: []int32{1, 3, 2, 0, 1}, Val: []float32{1, 2, 0.5, 4, 5}},
		Out:    &kernels.CSR{Cols: 5, RowPtr: []int64{0, 1, 3, 4, 5, 5}, Col: []int32{3, 0, 3, 2, 0}, Val: []float32{4, 1, 5, 0.5, 2}},
		Order:  []int32{4, 2, 0, 1, 3},
		Rank:   []int32{2, 3, 1, 4, 0},
		IDs:    []string{"a", "", "käse", "x y", "e"},
		Dense:  dense,
		Labels: []int32{0, -1, 2, 1, 0},
		Splits: []dataset.Split{
			{Name: "public", Train: []int32{0, 3}, Val: []int32{2}, Test: []int32{4}},
			{Name: "1", Train: []int32{}, Val: []int32{}, Test: []int32{1}},
		},
		Meta: Meta{
			Version: 1, Name: "toy", Source: "test: toy.txt", Vertices: 5, Edges: 5, Features: 3, Classes: 3,
			ClassNames: []string{"red", "green", "blue"}, Weighted: true, FeatureKind: DenseFeatures,
			Order:     OrderMeta{Asked: "auto", Used: "lpa", Reason: "for the test", Seed: 7, Clusters: 2, Seconds: 0.5, IntraFraction: 0.4},
			BlockRows: 16, Changes: []string{"merged 2 duplicate edges"},
			Findings:  []dataset.Finding{{Code: "self-loops", Severity: dataset.Warning, Count: 1, First: "2", Effect: "none", Remedy: "none"}},
			SplitSpec: "file", SplitNames: []string{"public", "1"},
		},
	}
}

// symmetricToy has CSR features, no weights, labels, splits or names.
func symmetricToy() *Store {
	g := &kernels.CSR{Cols: 3, RowPtr: []int64{0, 1, 3, 4}, Col: []int32{1, 0, 2, 1}}
	return &Store{
		In: g, Out: g, Order: []int32{0, 1, 2}, Rank: []int32{0, 1, 2},
		Sparse: &kernels.CSR{Cols: 9, RowPtr: []int64{0, 2, 2, 3}, Col: []int32{0, 8, 4}},
		Meta:   Meta{Version: 1, Name: "path", Vertices: 3, Edges: 4, Features: 9, Symmetric: true, FeatureKind: CSRFeatures, BlockRows: 16},
	}
}

func emptyStore() *Store {
	g := &kernels.CSR{RowPtr: []int64{0}}
	return &Store{In: g, Out: g, Meta: Meta{Version: 1, Symmetric: true, FeatureKind: NoFeatures, BlockRows: 16}}
}

func mustWrite(t testing.TB, s *Store) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	if err := Write(context.Background(), dir, s, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// same reports the first difference between what two stores hold.
func same(got, want *Store) string {
	for _, f := range []struct {
		what      string
		got, want any
	}{
		{"in", csrOf(got.In), csrOf(want.In)}, {"out", csrOf(got.Out), csrOf(want.Out)},
		{"order", got.Order, want.Order}, {"rank", got.Rank, want.Rank}, {"ids", got.IDs, want.IDs},
		{"dense", rowsOf(got.Dense), rowsOf(want.Dense)}, {"sparse", csrOf(got.Sparse), csrOf(want.Sparse)},
		{"labels", got.Labels, want.Labels}, {"splits", got.Splits, want.Splits}, {"meta", got.Meta, want.Meta},
	} {
		if g, w := fmt.Sprintf("%+v", f.got), fmt.Sprintf("%+v", f.want); g != w {
			return fmt.Sprintf("%s is %s, want %s", f.what, g, w)
		}
	}
	return ""
}

func csrOf(g *kernels.CSR) any {
	if g == nil {
		return nil
	}
	return fmt.Sprint(g.Cols, g.RowPtr, g.Col, g.Val)
}

func rowsOf(m *kernels.Mat) any {
	if m == nil {
		return nil
	}
	var rows [][]float32
	for r := range m.Rows {
		rows = append(rows, m.Row(r))
	}
	return rows
}

func TestWhatIsWrittenIsOpened(t *testing.T) {
	for name, s := range map[string]*Store{"toy": toy(), "symmetric": symmetricToy(), "empty": emptyStore()} {
		for _, opt := range []OpenOptions{{}, {Verify: true}, {Read: true, Verify: true}} {
			dir := mustWrite(t, s)
			got, err := Open(dir, opt)
			if err != nil {
				t.Fatalf("%s, %+v: %v", name, opt, err)
			}
			if d := same(got, s); d != "" {
				t.Errorf("%s, %+v: %s", name, opt, d)
			}
			if s.Meta.Symmetric != (got.In == got.Out) {
				t.Errorf("%s: symmetric %v, in == out %v", name, s.Meta.Symmetric, got.In == got.Out)
			}
			if got.Dense != nil {
				if got.Dense.Stride != 16 || address(bytesOf(got.Dense.Host))%64 != 0 {
					t.Errorf("%s, %+v: dense rows are %d apart and begin at %#x, want 16 and a multiple of 64", name, opt, got.Dense.Stride, address(bytesOf(got.Dense.Host)))
				}
			}
			if err := got.Close(); err != nil {
				t.Error(err)
			}
			if err := got.Close(); err != nil {
				t.Errorf("second close: %v", err)
			}
		}
	}
}

// A store that version 1 of the program wrote must open for ever.
func TestVersion1Opens(t *testing.T) {
	got, err := Open(filepath.Join("testdata", "v1"), OpenOptions{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	want := toy()
	want.Meta.Files = got.Meta.Files
	if d := same(got, want); d != "" {
		t.Error(d)
	}
}

func TestUnknownFilesAndKeysAreIgnored(t *testing.T) {
	dir := mustWrite(t, toy())
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	editMeta(t, dir, func(m map[string]any) { m["colour"] = "blue" })
	s, err := Open(dir, OpenOptions{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

func editMeta(t testing.TB, dir string, edit func(m map[string]any)) {
	t.Helper()
	path := filepath.Join(dir, MetaFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	edit(m)
	if text, err = json.Marshal(m); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// edit changes the bytes of one file in place.
func edit(t testing.TB, dir, name string, change func(b []byte) []byte) {
	t.Helper()
	path := filepath.Join(dir, name)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(b), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestDamageIsNamed(t *testing.T) {
	cut := func(b []byte) []byte { return b[:len(b)-1] }
	set := func(at int, v byte) func([]byte) []byte {
		return func(b []byte) []byte { b[128+at] = v; return b }
	}
	whole := mustWrite(t, toy())
	for _, c := range []struct {
		what   string
		damage func(dir string)
		verify bool
		want   []string
	}{
		{"truncated", func(d string) { edit(t, d, inColFile, cut) }, false, []string{inColFile, "147 bytes", "148"}},
		{"header only", func(d string) { edit(t, d, denseFile, func(b []byte) []byte { return b[:128] }) }, false, []string{denseFile, "128 bytes", "320"}},
		{"empty file", func(d string) { edit(t, d, labelsFile, func([]byte) []byte { return nil }) }, false, []string{labelsFile, "0 bytes", "20"}},
		{"longer", func(d string) { edit(t, d, labelsFile, func(b []byte) []byte { return append(b, 0) }) }, false, []string{labelsFile, "149 bytes", "148"}},
		{"missing", func(d string) { os.Remove(filepath.Join(d, orderFile)) }, false, []string{orderFile, "missing"}},
		{"swapped", func(d string) {
			edit(t, d, inColFile, func([]byte) []byte { b, _ := os.ReadFile(filepath.Join(d, inValFile)); return b })
		}, false, []string{inColFile, "<f4", "<i4"}},
		{"not npy", func(d string) { edit(t, d, orderFile, func(b []byte) []byte { b[0] = 'x'; return b }) }, false, []string{orderFile, ".npy"}},
		{"checksum", func(d string) { edit(t, d, inValFile, set(0, 9)) }, true, []string{inValFile, "SHA-256"}},
		{"column out of range", func(d string) { edit(t, d, inColFile, set(4, 77)) }, false, []string{inColFile, "row 0", "column 77", "0..4"}},
		{"columns fall", func(d string) { edit(t, d, inColFile, set(0, 4)) }, false, []string{inColFile, "column 3 after 4"}},
		{"offsets fall", func(d string) { edit(t, d, inPtrFile, set(8, 4)) }, false, []string{inPtrFile, "row 2 starts at 2, before row 1 at 4"}},
		{"first offset", func(d string) { edit(t, d, inPtrFile, set(0, 1)) }, false, []string{inPtrFile, "row 0 starts at 1"}},
		{"last offset", func(d string) { edit(t, d, outPtrFile, set(40, 9)) }, false, []string{outPtrFile, "ends at 9", "5 entries"}},
		{"no permutation", func(d string) { edit(t, d, orderFile, set(0, 2)) }, false, []string{orderFile, "vertex 2 is at row 0 and at row 1"}},
		{"label", func(d string) { edit(t, d, labelsFile, set(0, 3)) }, false, []string{labelsFile, "row 0 has label 3"}},
		{"role", func(d string) { edit(t, d, splitsFile, set(0, 9)) }, false, []string{splitsFile, "role 9"}},
		{"names", func(d string) { edit(t, d, idsStartFile, set(8, 99)) }, false, []string{idsStartFile, "vertex 0"}},
		{"no meta", func(d string) { os.Remove(filepath.Join(d, MetaFile)) }, false, []string{"no store", "prepare"}},
		{"meta is no json", func(d string) { edit(t, d, MetaFile, cut); edit(t, d, MetaFile, cut) }, false, []string{MetaFile}},
		{"newer", func(d string) {
			editMeta(t, d, func(m map[string]any) { m["version"] = 2; m["vertices"] = "many" })
		}, false, []string{"version 2", "up to 1"}},
		{"no version", func(d string) { editMeta(t, d, func(m map[string]any) { delete(m, "version") }) }, false, []string{"version 0"}},
		{"negative", func(d string) { editMeta(t, d, func(m map[string]any) { m["vertices"] = -1 }) }, false, []string{"vertices is -1"}},
		{"vertices", func(d string) { editMeta(t, d, func(m map[string]any) { m["vertices"] = 6 }) }, false, []string{orderFile, "[5]", "[6]"}},
		{"kind", func(d string) { editMeta(t, d, func(m map[string]any) { m["feature_kind"] = "audio" }) }, false, []string{`"audio"`}},
		{"false symmetry", func(d string) { editMeta(t, d, func(m map[string]any) { m["symmetric"] = true }) }, true, []string{inColFile, "not symmetric"}},
	} {
		dir := filepath.Join(t.TempDir(), "store")
		if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		c.damage(dir)
		for _, read := range []bool{false, true} {
			s, err := Open(dir, OpenOptions{Verify: c.verify, Read: read})
			if err == nil {
				s.Close()
				t.Errorf("%s: opened", c.what)
				continue
			}
			for _, w := range append(c.want, dir) {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%s: %q does not say %q", c.what, err, w)
				}
			}
		}
	}
}

func TestNothingIsReplacedUnasked(t *testing.T) {
	s := toy()
	dir := mustWrite(t, s)
	ctx := context.Background()
	if err := Write(ctx, dir, s, WriteOptions{}); !errors.Is(err, ErrExists) {
		t.Errorf("second write: %v", err)
	}
	other := symmetricToy()
	if err := Write(ctx, dir, other, WriteOptions{Overwrite: true}); err != nil {
		t.Fatal(err)
	}
	got, err := Open(dir, OpenOptions{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if d := same(got, other); d != "" {
		t.Error(d)
	}
	alone(t, dir)

	mine := filepath.Join(t.TempDir(), "mine")
	os.Mkdir(mine, 0o755)
	os.WriteFile(filepath.Join(mine, "thesis.tex"), nil, 0o644)
	if err := Write(ctx, mine, s, WriteOptions{Overwrite: true}); !errors.Is(err, ErrExists) || !strings.Contains(fmt.Sprint(err), "thesis.tex") {
		t.Errorf("over a folder that is no store: %v", err)
	}
	file := filepath.Join(mine, "thesis.tex")
	if err := Write(ctx, file, s, WriteOptions{Overwrite: true}); !errors.Is(err, ErrExists) {
		t.Errorf("over a file: %v", err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	os.Mkdir(empty, 0o755)
	if err := Write(ctx, empty, s, WriteOptions{}); err != nil {
		t.Errorf("into an empty folder: %v", err)
	}
	if err := Write(ctx, filepath.Join(mine, "no", "such"), s, WriteOptions{}); err == nil {
		t.Error("below a folder that is not there: no error")
	}
}

func TestFreeSaysWhatWriteWould(t *testing.T) {
	s := toy()
	full := mustWrite(t, s)
	place := t.TempDir()
	file := filepath.Join(place, "file")
	os.WriteFile(file, nil, 0o644)
	for _, dir := range []string{full, file, filepath.Join(file, "below"), filepath.Join(place, "no", "such"), filepath.Join(place, "new")} {
		for _, over := range []bool{false, true} {
			free := Free(dir, over)
			err := Write(context.Background(), dir, s, WriteOptions{Overwrite: over})
			if (free == nil) != (err == nil) || errors.Is(free, ErrExists) != errors.Is(err, ErrExists) {
				t.Errorf("%s, overwrite %v: Free says %v, Write %v", dir, over, free, err)
			}
			if err == nil && dir != full {
				os.RemoveAll(dir)
			}
		}
	}
}

// alone checks that nothing but dir is in its parent.
func alone(t testing.TB, dir string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != filepath.Base(dir) {
			t.Errorf("%s was left behind", e.Name())
		}
	}
}

type failing struct {
	w    io.Writer
	left int
	err  error
}

func (f *failing) Write(p []byte) (int, error) {
	if len(p) > f.left {
		n, _ := f.w.Write(p[:f.left])
		f.left = 0
		return n, f.err
	}
	f.left -= len(p)
	return f.w.Write(p)
}

func TestAFailedWriteLeavesNothing(t *testing.T) {
	full := errors.New("no space left on device")
	files := []string{MetaFile}
	arrays, err := toy().arrays()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range arrays {
		files = append(files, a.name)
	}
	for _, name := range files {
		for _, left := range []int{0, 130} {
			dir := filepath.Join(t.TempDir(), "store")
			err := Write(context.Background(), dir, toy(), WriteOptions{wrap: func(n string, w io.Writer) io.Writer {
				if n == name {
					return &failing{w, left, full}
				}
				return w
			}})
			if !errors.Is(err, full) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s full after %d bytes: %v", name, left, err)
			}
			if _, err := os.Stat(dir); err == nil {
				t.Errorf("%s full after %d bytes: the store is there", name, left)
			}
			alone(t, dir)
		}
	}
}

func TestACancelledWriteLeavesNothing(t *testing.T) {
	for _, name := range []string{orderFile, labelsFile, MetaFile} {
		ctx, cancel := context.WithCancel(context.Background())
		dir := filepath.Join(t.TempDir(), "store")
		err := Write(ctx, dir, toy(), WriteOptions{wrap: func(n string, w io.Writer) io.Writer {
			if n == name {
				cancel()
			}
			return w
		}})
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled at %s: %v", name, err)
		}
		alone(t, dir)
	}
}

func TestProgressEndsAtTheTotal(t *testing.T) {
	var done, total int64
	s := toy()
	err := Write(context.Background(), filepath.Join(t.TempDir(), "s"), s, WriteOptions{Progress: func(_ string, d, all int64) { done, total = d, all }})
	if err != nil || done != total || total == 0 {
		t.Errorf("last report: %d of %d bytes, error %v", done, total, err)
	}
}

func TestNpyHeaders(t *testing.T) {
	for _, shape := range [][]int{{0}, {5}, {3, 4}, {1, 2, 3}, {1 << 40, 16}} {
		h := npyHeader("<f4", shape)
		if len(h)%64 != 0 || h[len(h)-1] != '\n' {
			t.Errorf("%v: header of %d bytes", shape, len(h))
		}
		dtype, got, start, err := parseNpy(append(h, 1, 2, 3))
		if err != nil || dtype != "<f4" || !slices.Equal(got, shape) || start != len(h) {
			t.Errorf("%v: parsed as %q %v at %d: %v", shape, dtype, got, start, err)
		}
	}
	// As numpy writes them.
	for text, want := range map[string][]int{
		"{'descr': '<i8', 'fortran_order': False, 'shape': (12,), }": {12},
		"{'descr': '<i8', 'fortran_order': False, 'shape': (), }":    {},
		"{\"shape\":(1,2),\"fortran_order\":False,\"descr\":'<i8'}":  {1, 2},
	} {
		d := npyDict{rest: text}
		if _, shape, err := d.parse(); err != nil || !reflect.DeepEqual(shape, want) {
			t.Errorf("%s: shape %v, error %v", text, shape, err)
		}
	}
	for _, text := range []string{"", "{", "{'shape': (1,)}", "{'descr': '<i8', 'fortran_order': True, 'shape': (1,)}", "{'descr': '<i8', 'shape': (-1,)}", "{'descr': '<i8', 'shape': (1 2)}", "{'shape': (99999999999999999999,), 'descr': '<i8'}"} {
		d := npyDict{rest: text}
		if dtype, shape, err := d.parse(); err == nil {
			t.Errorf("%s: accepted as %q %v", text, dtype, shape)
		}
	}
	if n, ok := size([]int{1 << 40, 1 << 40}); ok {
		t.Errorf("2^80 values have size %d", n)
	}
}

// FuzzOpen hands Open a store whose meta.json, or the start of one file, is
// arbitrary: it must say no, or give arrays that are safe to walk.
func FuzzOpen(f *testing.F) {
	dir := mustWrite(f, toy())
	whole := map[string][]byte{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		f.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			f.Fatal(err)
		}
		whole[e.Name()] = b
		names = append(names, e.Name())
		f.Add(uint8(len(names)-1), b)
	}
	f.Add(uint8(0), []byte(`{"version":1,"vertices":2147483647,"edges":9223372036854775807,"block_rows":16}`))
	// One folder for all: writing a dozen files each time would be all the work.
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		name := names[int(which)%len(names)]
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := os.WriteFile(filepath.Join(dir, name), whole[name], 0o644); err != nil {
				t.Fatal(err)
			}
		}()
		s, err := Open(dir, OpenOptions{})
		if err != nil {
			return
		}
		defer s.Close()
		for _, g := range []*kernels.CSR{s.In, s.Out, s.Sparse} {
			if g == nil {
				continue
			}
			for v := range g.Rows() {
				for _, u := range g.Col[g.RowPtr[v]:g.RowPtr[v+1]] {
					if int(u) >= g.Cols || u < 0 {
						t.Fatalf("row %d has column %d of %d", v, u, g.Cols)
					}
				}
			}
		}
		if _, err := invert(s.Rank); err != nil {
			t.Fatal(err)
		}
		if s.Dense != nil {
			for v := range s.Dense.Rows {
				_ = s.Dense.Row(v)
			}
		}
		for _, sp := range s.Splits {
			for _, rows := range [][]int32{sp.Train, sp.Val, sp.Test} {
				for _, r := range rows {
					_ = s.Order[r]
				}
			}
		}
		var text bytes.Buffer
		if err := json.NewEncoder(&text).Encode(s.Meta); err != nil {
			t.Fatal(err)
		}
	})
}

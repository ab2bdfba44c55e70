package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dorylus/kernels"
)

func spans(n int) (list []kernels.Span) {
	for lo := range n + 1 {
		for hi := lo; hi <= n; hi++ {
			list = append(list, kernels.Span{Lo: lo, Hi: hi})
		}
	}
	return list
}

// A part has what the whole store has, but for the order's inverse and the names.
func TestPartOfAStore(t *testing.T) {
	for name, s := range map[string]*Store{"toy": toy(), "symmetric": symmetricToy(), "empty": emptyStore()} {
		dir := mustWrite(t, s)
		for _, opt := range []OpenOptions{{}, {Verify: true}} {
			for _, rows := range spans(s.Meta.Vertices) {
				p, err := OpenPart(dir, opt, rows)
				if err != nil {
					t.Fatalf("%s, rows %v: %v", name, rows, err)
				}
				want := *s
				want.Rank, want.IDs = nil, nil
				if d := same(p.Store, &want); d != "" {
					t.Errorf("%s, rows %v: %s", name, rows, d)
				}
				if (p.In == p.Out) != (s.In == s.Out) || p.Rows != rows {
					t.Errorf("%s: rows %v, want %v; in == out: %v", name, p.Rows, rows, p.In == p.Out)
				}
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func TestPartIsRefused(t *testing.T) {
	dir := mustWrite(t, toy())
	for _, c := range []struct {
		opt  OpenOptions
		rows kernels.Span
		want string
	}{
		{OpenOptions{}, kernels.Span{Lo: 0, Hi: 6}, "rows [0,6) of a store of 5"},
		{OpenOptions{}, kernels.Span{Lo: -1, Hi: 2}, "rows [-1,2)"},
		{OpenOptions{}, kernels.Span{Lo: 3, Hi: 2}, "rows [3,2)"},
		{OpenOptions{Read: true}, kernels.Span{}, "leave Read out"},
	} {
		p, err := OpenPart(dir, c.opt, c.rows)
		if err == nil {
			p.Close()
			t.Errorf("%+v, rows %v: opened", c.opt, c.rows)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v, rows %v: %q does not say %q", c.opt, c.rows, err, c.want)
		}
	}
}

// Damage is found by the parts that hold the damaged row, and by no others; that of
// offsets by all.
func TestPartChecksItsRows(t *testing.T) {
	set := func(at int, v byte) func([]byte) []byte {
		return func(b []byte) []byte { b[128+at] = v; return b }
	}
	multi := toy()
	multi.Meta.MultiLabel = true
	multi.Labels = make([]int32, 5)
	multi.Multi = &kernels.CSR{Cols: 3, RowPtr: []int64{0, 1, 2, 4, 4, 5}, Col: []int32{0, 1, 0, 2, 1}}
	for _, c := range []struct {
		file string
		make func([]byte) []byte
		bad  func(kernels.Span) bool
		want string
	}{
		{inColFile, set(4, 77), func(s kernels.Span) bool { return s.Lo <= 0 && s.Hi > 0 }, "row 0 has column 77"},
		{inColFile, set(4*3, 3), func(s kernels.Span) bool { return s.Lo <= 3 && s.Hi > 3 }, "row 3 has column 1 after 3"},
		{outColFile, set(0, 200), func(s kernels.Span) bool { return s.Lo <= 0 && s.Hi > 0 }, "row 0 has column 200"},
		{inPtrFile, set(8*2, 9), func(kernels.Span) bool { return true }, inPtrFile}, // offsets are those of all rows
		{inPtrFile, set(8*2+7, 255), func(kernels.Span) bool { return true }, inPtrFile},
		{orderFile, set(4*4, 5), func(s kernels.Span) bool { return s.Lo <= 4 && s.Hi > 4 }, "row 4 is vertex 5"},
		{labelsFile, set(4*1, 3), func(s kernels.Span) bool { return s.Lo <= 1 && s.Hi > 1 }, "row 1 has label 3"},
		{multiColFile, set(4*2, 2), func(s kernels.Span) bool { return false }, ""},
		{multiColFile, set(4*2, 3), func(s kernels.Span) bool { return s.Lo <= 2 && s.Hi > 2 }, multiColFile},
	} {
		dir := mustWrite(t, multi)
		edit(t, dir, c.file, c.make)
		for _, rows := range spans(5) {
			p, err := OpenPart(dir, OpenOptions{}, rows)
			if err == nil {
				p.Close()
			}
			bad := c.bad(rows) && rows.Len() > 0
			if rows.Len() > 0 && bad != (err != nil) || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, rows %v: error %v, want one: %v (%q)", c.file, rows, err, bad, c.want)
			}
		}
	}
}

func TestPartVerifies(t *testing.T) {
	dir := mustWrite(t, toy())
	edit(t, dir, inValFile, func(b []byte) []byte { b[128] = 9; return b })
	p, err := OpenPart(dir, OpenOptions{Verify: true}, kernels.Span{Lo: 3, Hi: 4})
	if err == nil {
		p.Close()
		t.Fatal("a changed weight of another row passed a check of checksums")
	}
	if !strings.Contains(err.Error(), inValFile) || !strings.Contains(err.Error(), "SHA-256") {
		t.Errorf("%q does not name %s and SHA-256", err, inValFile)
	}
}

// Rows are read from the files as they are in the whole store.
func TestPartReads(t *testing.T) {
	for name, s := range map[string]*Store{"toy": toy(), "symmetric": symmetricToy(), "wide": longRows(300)} {
		dir := mustWrite(t, s)
		n := s.Meta.Vertices
		p, err := OpenPart(dir, OpenOptions{}, kernels.Span{Lo: n / 2, Hi: n})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		for _, step := range []int{1, 2, 7, n} {
			var rows []int32
			for v := 0; v < n; v += step {
				rows = append(rows, int32(v))
			}
			for dir, d := range map[string]struct {
				each func([]int32, func(int, []int32, []float32) error) error
				g    *kernels.CSR
			}{"in": {p.EachIn, s.In}, "out": {p.EachOut, s.Out}} {
				next := 0
				err := d.each(rows, func(i int, col []int32, val []float32) error {
					lo, hi := d.g.RowPtr[rows[i]], d.g.RowPtr[rows[i]+1]
					want := fmt.Sprint(next, d.g.Col[lo:hi], valsOf(d.g, lo, hi))
					if got := fmt.Sprint(i, col, val); got != want {
						t.Errorf("%s %s: row %d is %s, want %s", name, dir, rows[i], got, want)
					}
					next++
					return nil
				})
				if err != nil || next != len(rows) {
					t.Errorf("%s %s: read %d of %d rows: %v", name, dir, next, len(rows), err)
				}
			}
			dense, err := p.ReadDense(rows)
			if err != nil || (dense == nil) != (s.Dense == nil) {
				t.Fatalf("%s: dense features %v, error %v", name, dense, err)
			}
			sparse, err := p.ReadSparse(rows)
			if err != nil || (sparse == nil) != (s.Sparse == nil) {
				t.Fatalf("%s: sparse features %v, error %v", name, sparse, err)
			}
			for i, v := range rows {
				if dense != nil && !slices.Equal(dense.Row(i), s.Dense.Row(int(v))) {
					t.Errorf("%s: features of row %d are %v, want %v", name, v, dense.Row(i), s.Dense.Row(int(v)))
				}
				if sparse == nil {
					continue
				}
				lo, hi := s.Sparse.RowPtr[v], s.Sparse.RowPtr[v+1]
				a, b := sparse.RowPtr[i], sparse.RowPtr[i+1]
				if got, want := fmt.Sprint(sparse.Col[a:b], valsOf(sparse, a, b)), fmt.Sprint(s.Sparse.Col[lo:hi], valsOf(s.Sparse, lo, hi)); got != want {
					t.Errorf("%s: features of row %d are %s, want %s", name, v, got, want)
				}
			}
			if sparse != nil {
				if err := sparse.Validate(); err != nil {
					t.Errorf("%s: sparse features of %d rows: %v", name, len(rows), err)
				}
			}
		}
		all := make([]int32, n)
		for v := range all {
			all[v] = int32(v)
		}
		if got, err := p.Names(all); err != nil || !reflect.DeepEqual(got, s.IDs) {
			t.Errorf("%s: names %q, error %v, want %q", name, got, err, s.IDs)
		}
	}
}

func valsOf(g *kernels.CSR, lo, hi int64) []float32 {
	if g.Val == nil {
		return nil
	}
	return g.Val[lo:hi]
}

// longRows has n vertices in a ring with long rows of features, so that reads are cut.
func longRows(n int) *Store {
	s := &Store{
		In:     &kernels.CSR{Cols: n, RowPtr: []int64{0}},
		Out:    &kernels.CSR{Cols: n, RowPtr: []int64{0}},
		Sparse: &kernels.CSR{Cols: 9000, RowPtr: []int64{0}, Val: []float32{}},
		Meta:   Meta{Version: 1, Name: "ring", Vertices: n, Edges: int64(n), Features: 9000, FeatureKind: CSRFeatures, BlockRows: 16},
	}
	for v := range n {
		s.Order, s.Rank = append(s.Order, int32(v)), append(s.Rank, int32(v))
		s.In.Col, s.Out.Col = append(s.In.Col, int32((v+1)%n)), append(s.Out.Col, int32((v+n-1)%n))
		s.In.RowPtr, s.Out.RowPtr = append(s.In.RowPtr, int64(v+1)), append(s.Out.RowPtr, int64(v+1))
		for c := v % 3; c < 9000; c += 3 {
			s.Sparse.Col = append(s.Sparse.Col, int32(c))
			s.Sparse.Val = append(s.Sparse.Val, float32(v*9000+c))
		}
		s.Sparse.RowPtr = append(s.Sparse.RowPtr, int64(len(s.Sparse.Col)))
	}
	return s
}

func TestPartReadsNothingWrong(t *testing.T) {
	dir := mustWrite(t, toy())
	edit(t, dir, inColFile, func(b []byte) []byte { b[128+4] = 77; return b })
	p, err := OpenPart(dir, OpenOptions{}, kernels.Span{Lo: 3, Hi: 5})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	none := func(int, []int32, []float32) error { return nil }
	mine := errors.New("enough")
	for _, c := range []struct {
		what string
		do   func() error
		want string
	}{
		{"a bad column", func() error { return p.EachIn([]int32{0}, none) }, "row 0 has column 77"},
		{"rows that fall", func() error { return p.EachIn([]int32{3, 2}, none) }, "row 2 after row 3"},
		{"a row twice", func() error { return p.EachOut([]int32{3, 3}, none) }, "row 3 after row 3"},
		{"a row too many", func() error { _, err := p.ReadDense([]int32{1, 5}); return err }, "row 5"},
		{"a name too many", func() error { _, err := p.Names([]int32{5}); return err }, "vertex 5 of 5"},
		{"what the caller says", func() error {
			return p.EachOut([]int32{0, 1}, func(int, []int32, []float32) error { return mine })
		}, mine.Error()},
	} {
		if err := c.do(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that says %q", c.what, err, c.want)
		}
	}
	if err := os.Truncate(filepath.Join(dir, denseFile), 200); err != nil {
		t.Fatal(err)
	}
	if _, err := p.ReadDense([]int32{4}); err == nil || !strings.Contains(err.Error(), denseFile) {
		t.Errorf("a truncated file: error %v, want one that names %s", err, denseFile)
	}
}

// FuzzOpenPart hands OpenPart a store of which one file is arbitrary: it must say no, or
// give rows that are safe to walk, and whatever else is read must be checked.
func FuzzOpenPart(f *testing.F) {
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
		f.Add(uint8(len(names)-1), uint8(1), uint8(2), b)
	}
	f.Fuzz(func(t *testing.T, which, lo, count uint8, data []byte) {
		name := names[int(which)%len(names)]
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := os.WriteFile(filepath.Join(dir, name), whole[name], 0o644); err != nil {
				t.Fatal(err)
			}
		}()
		rows := kernels.Span{Lo: int(lo) % 6, Hi: int(lo)%6 + int(count)%6}
		p, err := OpenPart(dir, OpenOptions{}, rows)
		if err != nil {
			return
		}
		defer p.Close()
		for _, g := range p.matrices() {
			for v := rows.Lo; v < rows.Hi; v++ {
				for _, u := range g.csr.Col[g.csr.RowPtr[v]:g.csr.RowPtr[v+1]] {
					if u < 0 || int(u) >= g.csr.Cols {
						t.Fatalf("%s: row %d has column %d of %d", g.col, v, u, g.csr.Cols)
					}
				}
			}
		}
		for v := range int32(p.Meta.Vertices) {
			err := p.EachIn([]int32{v}, func(_ int, col []int32, _ []float32) error {
				for _, u := range col {
					if u < 0 || int(u) >= p.Meta.Vertices {
						t.Fatalf("row %d read has column %d of %d", v, u, p.Meta.Vertices)
					}
				}
				return nil
			})
			_ = err // whatever it says, nothing wrong was handed on
			p.ReadDense([]int32{v})
			p.ReadSparse([]int32{v})
			p.Names([]int32{v})
		}
	})
}

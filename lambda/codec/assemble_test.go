package codec

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"dorylus/kernels"
)

// Chunks in any order, with repeats, in any codecs, make the tensor; rows that Add
// returned are right at once.
func TestAssembler(t *testing.T) {
	for seed := range uint64(60) {
		r := rng(seed)
		rows, cols := r.IntN(70), r.IntN(40)
		m := fill(newMat(rows, cols, r.IntN(3)), r.IntN(len(kinds)), r)
		wire := DType(r.IntN(3))
		size := 1 + r.IntN(rows*cols*4+10)
		var frames [][]byte
		for _, c := range []Codec{None, Auto} { // the same chunks in two codecs
			frames = slices.AppendSeq(frames, encoder(t, Options{Wire: wire, Codec: c}).Chunks(1, m, size))
		}
		what := fmt.Sprintf("seed %d: %d x %d, chunks of %d bytes", seed, rows, cols, size)
		r.Shuffle(len(frames), func(i, j int) { frames[i], frames[j] = frames[j], frames[i] })
		got := newMat(rows, cols, 2)
		a := NewAssembler(got)
		have := 0
		for _, f := range frames {
			if h, err := ReadHeader(f, Limits{}); err != nil || h.Raw > max(size, cols*wire.width()) {
				t.Fatalf("%s: chunk %v, %v", what, h, err)
			}
			s, fresh, err := a.Add(f)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if fresh {
				have += s.Len()
			}
			if have != rows {
				if a.Done() || a.Err() == nil || len(a.Missing()) == 0 {
					t.Fatalf("%s: done with %d rows", what, have)
				}
			}
			if err := same(got.Sub(s), m.Sub(s), wire); s.Len() > 0 && cols > 0 && err != nil {
				t.Fatalf("%s: rows [%d,%d): %v", what, s.Lo, s.Hi, err)
			}
		}
		if have != rows || !a.Done() || a.Err() != nil {
			t.Fatalf("%s: %d rows, done %v, %v", what, have, a.Done(), a.Err())
		}
		if err := same(got, m, wire); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

func TestAssemblerRefuses(t *testing.T) {
	e := encoder(t, Options{})
	m := fill(newMat(20, 8, 0), 0, rng(1))
	got := newMat(20, 8, 0)
	a := NewAssembler(got)
	chunk := func(lo, hi int) []byte { return e.AppendRows(nil, 1, m, kernels.Span{Lo: lo, Hi: hi}) }
	for _, s := range [][2]int{{5, 10}, {15, 18}} {
		if _, fresh, err := a.Add(chunk(s[0], s[1])); !fresh || err != nil {
			t.Fatal(fresh, err)
		}
	}
	want := slices.Clone(got.Host)
	other := fill(newMat(20, 8, 0), 1, rng(2))
	flipped := chunk(0, 5)
	flipped[HeaderSize+3] ^= 4
	for _, c := range []struct {
		frame []byte
		want  string
	}{
		{chunk(4, 6), "rows [4,6) of 20 overlap rows [5,10)"},
		{chunk(9, 12), "overlap rows [5,10)"},
		{chunk(6, 8), "overlap rows [5,10)"},
		{chunk(0, 20), "overlap rows [5,10)"},
		{chunk(12, 16), "overlap rows [15,18)"},
		{e.AppendRows(nil, 1, other, kernels.Span{Lo: 5, Hi: 10}), "arrived before with other values"},
		{e.Append(nil, 1, fill(newMat(21, 8, 0), 0, rng(1))), "a tensor of 21 x 8 into a matrix of 20 x 8"},
		{e.AppendInt32(nil, 1, make([]int32, 20)), "int32 into a matrix"},
		{flipped, "checksum"},
		{flipped[:70], "payload"},
	} {
		if _, fresh, err := a.Add(c.frame); fresh || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if !slices.EqualFunc(want, got.Host, func(a, b float32) bool { return a == b || a != a && b != b }) {
		t.Error("a refused chunk changed the matrix")
	}
	if gaps := fmt.Sprint(a.Missing()); gaps != "[{0 5} {10 15} {18 20}]" {
		t.Errorf("missing %s", gaps)
	}
	if err := a.Err(); err == nil || !strings.Contains(err.Error(), "8 of 20 rows have arrived, rows [0,5) are the first of 3 gaps") {
		t.Errorf("%v", err)
	}
	if err := Decode(chunk(5, 10), newMat(5, 8, 0)); err == nil || !strings.Contains(err.Error(), "rows [5,10) of 20 are a chunk") || errors.Is(err, ErrCorrupt) {
		t.Errorf("a chunk decoded as a tensor: %v", err)
	}
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		rows, rowBytes, size int
		want                 string
	}{
		{0, 4, 10, "[{0 0}]"}, {3, 0, 10, "[{0 3}]"}, {5, 4, 8, "[{0 2} {2 4} {4 5}]"}, {2, 100, 8, "[{0 1} {1 2}]"}, {4, 4, 0, "[{0 1} {1 2} {2 3} {3 4}]"}, {4, 4, 16, "[{0 4}]"},
	} {
		if got := fmt.Sprint(slices.Collect(Split(c.rows, c.rowBytes, c.size))); got != c.want {
			t.Errorf("Split(%d, %d, %d) = %s, want %s", c.rows, c.rowBytes, c.size, got, c.want)
		}
	}
}

package dataset

import (
	"math"
	"slices"
	"strings"
	"testing"

	"dorylus/kernels"
)

// path4 is 0-1-2-3 with two classes and a split that has nothing wrong with it.
func path4() *Raw {
	return &Raw{Name: "path4", N: 4, Undirected: true, Src: []int32{0, 1, 2}, Dst: []int32{1, 2, 3},
		Dense:  kernels.FromSlice(4, 2, []float32{1, 0, 0, 1, 1, 1, 2, 0}),
		Labels: []int32{0, 1, 0, 1},
		Splits: []Split{{Name: "s", Train: []int32{0, 1}, Val: []int32{2}, Test: []int32{3}}}}
}

func TestCheckFindsWhatIsWrong(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, tc := range []struct {
		name     string
		change   func(r *Raw)
		code     string
		severity Severity
		count    int64
		first    string // a part of it
	}{
		{"repeat", func(r *Raw) { r.Src, r.Dst = append(r.Src, 1), append(r.Dst, 2) }, "duplicate-edges", Info, 1, "record 3 (1 -> 2)"},
		{"weighted repeat", func(r *Raw) {
			r.Src, r.Dst, r.Weight = append(r.Src, 1), append(r.Dst, 2), []float32{1, 1, 1, 2}
		}, "duplicate-edges", Warning, 1, "record 3"},
		{"loop", func(r *Raw) { r.Src, r.Dst = append(r.Src, 2), append(r.Dst, 2) }, "self-loops", Info, 1, "(2 -> 2)"},
		{"one way", func(r *Raw) {
			r.Undirected = false
			r.Src, r.Dst = append(r.Src, 1), append(r.Dst, 0)
		}, "one-way-edges", Info, 2, "1 -> 2"},
		{"isolated", func(r *Raw) { r.Src, r.Dst = r.Src[:2], r.Dst[:2] }, "isolated-vertices", Info, 1, "vertex 3"},
		{"named", func(r *Raw) { r.IDs = []string{"a", "b", "c", "d"}; r.Src, r.Dst = r.Src[:2], r.Dst[:2] }, "isolated-vertices", Info, 1, `"d"`},
		{"components", func(r *Raw) { r.Src, r.Dst = []int32{0, 2}, []int32{1, 3} }, "disconnected", Info, 2, "2 of 4"},
		{"no edges", func(r *Raw) { r.Src, r.Dst = nil, nil }, "no-edges", Warning, 1, ""},
		{"edge outside", func(r *Raw) { r.Dst[1] = 9 }, "edge-out-of-range", Error, 1, "record 1 (1 -> 9)"},
		{"rows", func(r *Raw) { r.Labels = r.Labels[:3] }, "shape-mismatch", Error, 1, "3 labels for 4"},
		{"NaN", func(r *Raw) { r.Dense.Host[3] = nan }, "non-finite-features", Error, 1, "row 1 (vertex 1), column 1: NaN"},
		{"sparse inf", func(r *Raw) {
			r.Dense, r.Sparse = nil, &kernels.CSR{Cols: 3, RowPtr: []int64{0, 1, 2, 3, 4}, Col: []int32{0, 1, 2, 0}, Val: []float32{1, inf, 2, 3}}
		}, "non-finite-features", Error, 1, "row 1 (vertex 1), column 1: +Inf"},
		{"zero row", func(r *Raw) { r.Dense.Host[0] = 0 }, "zero-features", Info, 1, "vertex 0"},
		{"constant column", func(r *Raw) { r.Dense.Host[1], r.Dense.Host[7] = 1, 1 }, "constant-columns", Info, 1, ""},
		{"large", func(r *Raw) { r.Dense.Host[0] = -20000 }, "large-features", Warning, 1, "row 0 (vertex 0), column 0: -20000"},
		{"one class", func(r *Raw) { r.Labels = []int32{0, 0, 0, 0} }, "one-class", Warning, 4, "class 0"},
		{"no features", func(r *Raw) { r.Dense = nil }, "no-features", Warning, 4, ""},
		{"label too large", func(r *Raw) { r.Classes = []string{"x"} }, "label-out-of-range", Error, 2, "vertex 1 with label 1"},
		{"label below -1", func(r *Raw) { r.Labels[2] = -7 }, "label-out-of-range", Error, 1, "label -7"},
		{"unlabelled", func(r *Raw) { r.Labels[3], r.Splits[0].Test = -1, []int32{} }, "unlabelled", Info, 1, "vertex 3"},
		{"no labels", func(r *Raw) { r.Labels, r.Splits = nil, nil }, "no-labels", Warning, 4, ""},
		{"class gap", func(r *Raw) { r.Labels[1], r.Labels[3] = 2, 2 }, "empty-classes", Warning, 1, "class 1"},
		{"untrained", func(r *Raw) { r.Splits[0].Train = []int32{0} }, "class-untrained", Warning, 1, `class 1 in split "s"`},
		{"empty train", func(r *Raw) { r.Splits[0].Train = nil }, "empty-train", Error, 1, `train of split "s"`},
		{"empty test", func(r *Raw) { r.Splits[0].Test = nil }, "empty-mask", Warning, 1, `test of split "s"`},
		{"leak", func(r *Raw) { r.Splits[0].Test = []int32{1, 3} }, "split-overlap", Error, 1, "vertex 1 in test of split \"s\", which is in train too"},
		{"twice", func(r *Raw) { r.Splits[0].Test = []int32{3, 3} }, "split-repeats", Error, 1, "vertex 3"},
		{"unlabelled in split", func(r *Raw) { r.Labels[3] = -1 }, "split-unlabelled", Error, 1, "vertex 3 in test"},
		{"split outside", func(r *Raw) { r.Splits[0].Test = []int32{4} }, "split-out-of-range", Error, 1, "vertex 4"},
		{"no split", func(r *Raw) { r.Splits = nil }, "no-splits", Warning, 1, ""},
		{"NaN weight", func(r *Raw) { r.Weight = []float32{1, nan, 1} }, "non-finite-weights", Error, 1, "record 1"},
		{"zero weight", func(r *Raw) { r.Weight = []float32{1, 0, 1} }, "zero-weights", Warning, 1, "record 1"},
		{"negative weight", func(r *Raw) { r.Weight = []float32{1, -0.5, 1} }, "negative-weights", Warning, 1, "-0.5"},
		{"negative degree", func(r *Raw) { r.Weight = []float32{1, -2, 1} }, "negative-degree", Error, 2, "vertex 1"},
		{"empty", func(r *Raw) { *r = Raw{} }, "empty-graph", Error, 1, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := path4()
			tc.change(r)
			found := Check(r)
			expectFinding(t, found, tc.code, tc.severity, tc.count, tc.first)
			if (Fatal(found) != nil) != (found[0].Severity == Error) {
				t.Errorf("Fatal = %v for %v", Fatal(found), found)
			}
		})
	}
}

func TestCheckIsQuietAboutACleanGraph(t *testing.T) {
	if found := Check(path4()); len(found) != 0 {
		t.Errorf("got %v", found)
	}
}

func TestCheckCora(t *testing.T) {
	raw, err := Cora()
	if err != nil {
		t.Fatal(err)
	}
	found := Check(raw)
	if err := Fatal(found); err != nil {
		t.Error(err)
	}
	var codes []string
	for _, f := range found {
		codes = append(codes, f.Code)
	}
	want := []string{"duplicate-edges", "disconnected", "constant-columns"}
	if !slices.Equal(codes, want) {
		t.Errorf("got %v, want %v", found, want)
	}
}

// several is path4 with classes of which a vertex may have several.
func several() *Raw {
	r := path4()
	r.Labels = nil
	r.Multi = &kernels.CSR{Cols: 3, RowPtr: []int64{0, 2, 3, 4, 6}, Col: []int32{0, 1, 2, 1, 0, 2}}
	r.Splits[0].Train = []int32{0, 1}
	return r
}

func TestCheckOfSeveralClasses(t *testing.T) {
	if found := Check(several()); len(found) != 0 {
		t.Fatalf("a sound graph: %v", found)
	}
	for _, tc := range []struct {
		name     string
		change   func(r *Raw)
		code     string
		severity Severity
		count    int64
		first    string
	}{
		{"rows", func(r *Raw) { r.Multi.RowPtr = r.Multi.RowPtr[:4] }, "shape-mismatch", Error, 1, "3 rows of classes for 4"},
		{"flags", func(r *Raw) { r.Labelled = []bool{true} }, "shape-mismatch", Error, 1, "1 vertices are said"},
		{"unlabelled", func(r *Raw) {
			r.Labelled, r.Splits[0].Test = []bool{true, true, true, false}, []int32{}
		}, "unlabelled", Info, 1, "vertex 3"},
		{"unlabelled in split", func(r *Raw) { r.Labelled = []bool{true, true, true, false} }, "split-unlabelled", Error, 1, "vertex 3 in test"},
		{"no class", func(r *Raw) { r.Multi.RowPtr, r.Multi.Col = []int64{0, 2, 3, 3, 5}, []int32{0, 1, 2, 0, 2} }, "no-class", Info, 1, "vertex 2"},
		{"outside", func(r *Raw) { r.Multi.Col[2] = 3 }, "label-out-of-range", Error, 1, "vertex 1 with label 3"},
		{"empty", func(r *Raw) { r.Multi.Cols = 4 }, "empty-classes", Warning, 1, "class 3"},
		{"full", func(r *Raw) { r.Multi.RowPtr, r.Multi.Col = []int64{0, 2, 3, 5, 6}, []int32{0, 2, 2, 1, 2, 2} }, "full-classes", Warning, 1, "class 2"},
		{"untrained", func(r *Raw) { r.Splits[0].Train = []int32{0} }, "class-untrained", Warning, 1, `class 2 in split "s"`},
		{"no split", func(r *Raw) { r.Splits = nil }, "no-splits", Warning, 1, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := several()
			tc.change(r)
			expectFinding(t, Check(r), tc.code, tc.severity, tc.count, tc.first)
		})
	}
}

func TestRareClasses(t *testing.T) {
	r := &Raw{Name: "r", N: 300, Multi: &kernels.CSR{Cols: 2, RowPtr: []int64{0}}}
	for v := range r.N {
		r.Multi.Col = append(r.Multi.Col, int32(v/299))
		r.Multi.RowPtr = append(r.Multi.RowPtr, int64(len(r.Multi.Col)))
	}
	expectFinding(t, Check(r), "rare-classes", Info, 1, "class 1 has 1 of 300")
}

func expectFinding(t *testing.T, found []Finding, code string, s Severity, count int64, first string) {
	t.Helper()
	i := slices.IndexFunc(found, func(f Finding) bool { return f.Code == code })
	if i < 0 {
		t.Fatalf("no %s among %v", code, found)
	}
	f := found[i]
	if f.Severity != s || f.Count != count || !strings.Contains(f.First, first) {
		t.Errorf("got %v %+v, want severity %v, count %d, first with %q", f.Severity, f, s, count, first)
	}
	if f.Effect == "" || f.Remedy == "" {
		t.Errorf("%s says neither effect nor remedy: %+v", code, f)
	}
}

func TestDrawSplitOfSeveralClasses(t *testing.T) {
	r := several()
	r.Labelled = []bool{true, true, false, true}
	if _, err := r.DrawSplit("per-class:1/1", 1); err == nil || !strings.Contains(err.Error(), "several classes") {
		t.Errorf("per-class: %v", err)
	}
	s, err := r.DrawSplit("random:34/33/33", 1)
	all := slices.Concat(s.Train, s.Val, s.Test)
	slices.Sort(all)
	if err != nil || !slices.Equal(all, []int32{0, 1, 3}) {
		t.Errorf("random: %+v, %v", s, err)
	}
}

// A dealer hands on every edge once, those of a target in the order they came in.
func TestDealer(t *testing.T) {
	r := newRNG(5, 0)
	for _, n := range []int{1, 255, 256, 1000, 100000} {
		last := make([]int32, n)
		handed := int32(0)
		const edges = dealtSlab + 1000
		d := newDealer(n, edges, func(u, v int32) {
			if u <= last[v] {
				t.Fatalf("%d vertices: edge %d of target %d comes after edge %d", n, u, v, last[v])
			}
			last[v] = u
			handed++
		})
		for i := range int32(edges) {
			d.add(i+1, int32(r.intn(n)))
		}
		if d.flush(); handed != edges {
			t.Errorf("%d vertices: %d edges of %d were handed on", n, handed, edges)
		}
	}
}

package dataset

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dorylus/engine/testkit"
)

// refused are the files of data/matrixmarket that are no graph or no valid file,
// with a part of the message that says why.
var refused = map[string]string{
	"complex.mtx": "complex", "empty.mtx": "3 x 4", "lp_afiro.mtx": "27 x 51", "lp_afiro_structure.mtx": "27 x 51",
	"sources_7.mtx": "64 x 1", "full_noheader.mtx": "no banner", "west0067_noheader.mtx": "no banner",
	"mangled1.mtx": `object "mangled"`, "mangled2.mtx": `format "mangled"`, "mangled3.mtx": `field "mangled"`, "mangled4.mtx": `symmetry "mangled"`,
	"mangled5.mtx": "line 5: 4 numbers", "mangled6.mtx": "line 5: 4 numbers", "mangled7.mtx": "line 5: 2 numbers", "mangled8.mtx": "1 numbers",
	"mangled9.mtx": "3 x 4", "mangled10.mtx": "3 x 4", "mangled11.mtx": "3 x 4", "mangled12.mtx": "3 x 4", "mangled13.mtx": "3 x 4",
	"mangled14.mtx": "3 x 4", "mangled15.mtx": "is not one number", "mangled16.mtx": "is not one number", "mangled_format.mtx": "pattern",
}

// accepted are vertices and records of some of the others.
var accepted = map[string][2]int{
	"karate.mtx": {34, 78}, "ldbc-directed-example.mtx": {10, 17}, "ldbc-undirected-example.mtx": {9, 12}, "west0067.mtx": {67, 294},
	"west0067_jumbled.mtx": {67, 294}, "full.mtx": {3, 9}, "full_symmetric.mtx": {4, 10}, "skew_fp64.mtx": {6, 20}, "LFAT5_hypersparse.mtx": {2000, 30},
	"jagmesh7.mtx": {1138, 4294}, "mangled_bool.mtx": {7, 12}, "mangled_skew.mtx": {6, 20},
}

func TestMatrixMarketFiles(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testkit.Shared(t, "data", "matrixmarket"), "*.mtx"))
	if err != nil || len(files) != 83 {
		t.Fatalf("%d files, %v; want 83", len(files), err)
	}
	for _, f := range files {
		name := filepath.Base(f)
		raw, err := Open(context.Background(), f, Options{})
		why, no := refused[name]
		switch {
		case no && err == nil:
			t.Errorf("%s: read as %s, want it refused: %s", name, raw.Summary(), why)
		case no && !strings.Contains(err.Error(), why):
			t.Errorf("%s: refused by %q, want %q in it", name, err, why)
		case !no && err != nil:
			t.Errorf("%s: %v", name, err)
		}
		if want, ok := accepted[name]; ok && err == nil && (raw.N != want[0] || len(raw.Src) != want[1]) {
			t.Errorf("%s: %d vertices, %d records, want %v", name, raw.N, len(raw.Src), want)
		}
	}
}

func TestMatrixMarketMeaning(t *testing.T) {
	read := func(name string) *Raw {
		raw, err := Open(context.Background(), testkit.Shared(t, "data", "matrixmarket", name), Options{})
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	if raw := read("ldbc-directed-example.mtx"); raw.Undirected || raw.name(int(raw.Src[0])) != `"1"` || raw.name(int(raw.Dst[0])) != `"3"` || raw.Weight[0] != 0.5 {
		t.Errorf("first edge %s of weight %v, want 1 -> 3 of 0.5", raw.record(0), raw.Weight[0])
	}
	if raw := read("karate.mtx"); !raw.Undirected || raw.Weight != nil {
		t.Errorf("karate: undirected %v, weights %v", raw.Undirected, raw.Weight)
	}
	if raw := read("skew_fp64.mtx"); raw.Undirected || raw.Weight[0] != -raw.Weight[10] || raw.Src[0] != raw.Dst[10] || Fatal(Check(raw)) == nil {
		t.Errorf("skew: weights %v, check %v; want mirrored weights and its inf reported", raw.Weight, Fatal(Check(raw)))
	}
	// Arrays run column by column.
	if raw := read("full.mtx"); raw.Src[1] != 1 || raw.Dst[1] != 0 || raw.Weight[1] != 0.709 {
		t.Errorf("full: second value at %s", raw.record(1))
	}
	if raw := read("full_symmetric.mtx"); raw.Src[4] != 1 || raw.Dst[4] != 1 {
		t.Errorf("full_symmetric: fifth value at %s, want the diagonal of column 2", raw.record(4))
	}
}

func TestMETISRefuses(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"one-sided", "3 2\n2 3\n1\n\n", "3 neighbours, but the header"},
		{"asymmetric", "3 2\n2 3\n1\n2\n", "vertex 1 lists 3, but 3 does not list 1"},
		{"outside", "2 1\n2\n3\n", `line 3: neighbour "3"`},
		{"loop", "2 1\n1\n2\n", "vertex 1 lists itself"},
		{"short", "3 1\n2\n1\n", "2 lines of vertices"},
		{"long", "1 1\n\n1\n1\n", "more lines than the 1 vertices"},
		{"weights differ", "2 1 1\n2 5\n1 6\n", "weighs 5 at one end and 6"},
		{"no weight", "2 1 1\n2\n1 6\n", "line 2: the last neighbour has no weight"},
		{"format", "2 1 7\n2\n1\n", `format "7"`},
		{"header", "% only comments\n", "ends before its header"},
		{"huge", "2000000000 1\n", "do not fit"},
		{"text", "hello there\n", `"hello"`},
		{"vertex weights", "2 1 10 3\n1 1\n", "line 2: 2 numbers, but 3"},
	} {
		_, err := Open(context.Background(), "d/g.graph", Options{FS: folder(map[string]string{"g.graph": tc.text})})
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "read g.graph: ") {
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.want)
		}
	}
}

func TestUnreadable(t *testing.T) {
	for path, want := range map[string]string{
		filepath.Join(t.TempDir(), "none.csv"): "no such file",
		t.TempDir():                            "not recognised",
	} {
		if _, err := Open(context.Background(), path, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
	if os.Getuid() == 0 {
		return // the superuser reads everything
	}
	f := filepath.Join(t.TempDir(), "e.csv")
	if err := os.WriteFile(f, []byte("0,1\n"), 0o000); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), f, Options{}); err == nil || !strings.Contains(err.Error(), "right to read") {
		t.Errorf("got %v", err)
	}
}

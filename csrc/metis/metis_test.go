package metis

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// grid is a side x side grid.
func grid(side int) (n int, rowPtr []int64, col []int32) {
	rowPtr = []int64{0}
	for y := range side {
		for x := range side {
			v := y*side + x
			if y > 0 {
				col = append(col, int32(v-side))
			}
			if x > 0 {
				col = append(col, int32(v-1))
			}
			if x < side-1 {
				col = append(col, int32(v+1))
			}
			if y < side-1 {
				col = append(col, int32(v+side))
			}
			rowPtr = append(rowPtr, int64(len(col)))
		}
	}
	return side * side, rowPtr, col
}

func needMETIS(t *testing.T) {
	t.Helper()
	if !Linked() {
		t.Skip("SKIPPED: METIS is not linked; run with -tags metis where libmetis is installed")
	}
}

func TestWithoutMETISTheErrorSaysHowToGetIt(t *testing.T) {
	if Linked() {
		t.Skip("SKIPPED: METIS is linked; this is about builds without it")
	}
	if _, err := Partition(2, []int64{0, 1, 2}, []int32{1, 0}, 2, 0); !errors.Is(err, ErrNotLinked) {
		t.Errorf("got %v", err)
	}
}

func TestAGridIsCutWell(t *testing.T) {
	needMETIS(t)
	n, rowPtr, col := grid(60)
	for _, parts := range []int{2, 8, 9, 40} {
		part, err := Partition(n, rowPtr, col, parts, 3)
		if err != nil {
			t.Fatal(err)
		}
		size := make([]int, parts)
		cut := 0
		for v := range n {
			size[part[v]]++
			for _, u := range col[rowPtr[v]:rowPtr[v+1]] {
				if part[u] != part[v] {
					cut++
				}
			}
		}
		if top := slices.Max(size); top > n/parts*5/4+1 {
			t.Errorf("%d parts: the largest has %d of %d vertices", parts, top, n)
		}
		if share := float64(cut) / float64(len(col)); share > 0.25 {
			t.Errorf("%d parts: %.2f of the edges are cut", parts, share)
		}
		again, err := Partition(n, rowPtr, col, parts, 3)
		if err != nil || !slices.Equal(part, again) {
			t.Errorf("%d parts: the same seed gives other parts (%v)", parts, err)
		}
	}
}

// Communities that are hidden by shuffled names must be found: the cut may not be
// much worse than the planted one.
func TestPlantedCommunitiesAreFound(t *testing.T) {
	needMETIS(t)
	const k, size, degree = 8, 500, 10
	n := k * size
	rng := rand.New(rand.NewPCG(4, 4))
	name := rng.Perm(n)
	truth := make([]int, n)
	rows := make([][]int32, n)
	for v := range n {
		truth[name[v]] = v / size
		for range degree {
			u := rng.IntN(n)
			if rng.IntN(10) < 8 {
				u = v/size*size + rng.IntN(size)
			}
			if a, b := int32(name[v]), int32(name[u]); a != b && !slices.Contains(rows[a], b) {
				rows[a], rows[b] = append(rows[a], b), append(rows[b], a)
			}
		}
	}
	rowPtr, col := []int64{0}, []int32{}
	for _, r := range rows {
		slices.Sort(r)
		col = append(col, r...)
		rowPtr = append(rowPtr, int64(len(col)))
	}
	part, err := Partition(n, rowPtr, col, k, 1)
	if err != nil {
		t.Fatal(err)
	}
	cut, planted := 0, 0
	for v := range n {
		for _, u := range col[rowPtr[v]:rowPtr[v+1]] {
			if part[u] != part[v] {
				cut++
			}
			if truth[u] != truth[v] {
				planted++
			}
		}
	}
	if float64(cut) > 1.2*float64(planted) {
		t.Errorf("%d entries are cut, the planted communities cut %d of %d", cut, planted, len(col))
	}
}

// Inputs that METIS itself answers with SIGFPE, an unwritten result or nonsense.
func TestTrivialCutsNeverReachMETIS(t *testing.T) {
	needMETIS(t)
	n, rowPtr, col := grid(4)
	part, err := Partition(n, rowPtr, col, 1, 0)
	if err != nil || slices.Max(part) != 0 || len(part) != n {
		t.Errorf("one part: %v, %v", part, err)
	}
	part, err = Partition(0, []int64{0}, nil, 1, 0)
	if err != nil || len(part) != 0 {
		t.Errorf("no vertices: %v, %v", part, err)
	}
	part, err = Partition(6, make([]int64, 7), nil, 3, 0)
	if err != nil || !slices.Equal(part, []int32{0, 0, 1, 1, 2, 2}) {
		t.Errorf("no edges: %v, %v", part, err)
	}
	if part, err = Partition(n, rowPtr, col, n, 0); err != nil || len(part) != n {
		t.Errorf("a part per vertex: %v, %v", part, err)
	}
}

func TestOddGraphsAreRefused(t *testing.T) {
	needMETIS(t)
	for _, c := range []struct {
		what   string
		n      int
		rowPtr []int64
		col    []int32
		parts  int
		want   string
	}{
		{"no parts", 2, []int64{0, 1, 2}, []int32{1, 0}, 0, "0 parts"},
		{"too many parts", 2, []int64{0, 1, 2}, []int32{1, 0}, 3, "3 parts of 2"},
		{"offsets", 2, []int64{0, 1}, []int32{1}, 2, "2 row offsets"},
		{"end", 2, []int64{0, 1, 3}, []int32{1, 0}, 2, "offsets run"},
		{"fall", 3, []int64{0, 2, 1, 2}, []int32{1, 0}, 2, "row 1 starts"},
		{"loop", 2, []int64{0, 2, 3}, []int32{0, 1, 0}, 2, "row 0 has column 0"},
		{"repeat", 2, []int64{0, 2, 4}, []int32{1, 1, 0, 0}, 2, "column 1 after 1"},
		{"range", 2, []int64{0, 1, 2}, []int32{7, 0}, 2, "column 7"},
		{"one-way", 3, []int64{0, 1, 2, 2}, []int32{1, 2}, 2, "not symmetric"},
	} {
		if _, err := Partition(c.n, c.rowPtr, c.col, c.parts, 0); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want it to say %q", c.what, err, c.want)
		}
	}
}

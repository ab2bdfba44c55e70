package dataset

import (
	"context"
	"reflect"
	"testing"
	"time"

	"dorylus/engine/testkit"
)

// facts are the counts of a data set as data/README.md states them.
type facts struct {
	path       string // below shared/data
	opt        Options
	n, records int
	directed   bool
	duplicates int // records that repeat another exactly
	loops      int // vertices with a loop
	simple     int // undirected edges without loops and repeats
	isolated   int // vertices without a neighbour other than themselves
	cols, nnz  int
	classes    int
	splits     int
	train      int // of the first split
}

var realSets = []facts{
	{path: "planetoid-cora", n: 2708, records: 10858, duplicates: 302, simple: 5278, cols: 1433, nnz: 49216, classes: 7, splits: 1, train: 140},
	{path: "planetoid-citeseer", n: 3327, records: 9464, duplicates: 236, loops: 124, simple: 4552, isolated: 48, cols: 3703, nnz: 105165, classes: 6, splits: 1, train: 120},
	{path: "gnnbench-npz/cora.npz", n: 2708, records: 5429, simple: 5278, cols: 1433, nnz: 49216, classes: 7},
	{path: "gnnbench-npz/citeseer.npz", n: 3312, records: 4715, loops: 124, simple: 4536, isolated: 48, cols: 3703, nnz: 105165, classes: 6},
	{path: "ppnp-cora-ml/cora_ml.npz", n: 2995, records: 8416, simple: 8158, cols: 2879, nnz: 151171, classes: 7},
	{path: "amazon-photo/amazon_electronics_photo.npz", n: 7650, records: 143663, loops: 1, simple: 119081, isolated: 115, cols: 745, nnz: 1979909, classes: 8},
	{path: "amazon-computers/amazon_electronics_computers.npz", n: 13752, records: 287209, simple: 245861, isolated: 281, cols: 767, nnz: 3675081, classes: 10},
	{path: "coauthor-cs/ms_academic_cs.npz", n: 18333, records: 163788, simple: 81894, cols: 6805, nnz: 1092079, classes: 15},
	{path: "coauthor-physics/ms_academic_phy.npz", n: 34493, records: 495924, simple: 247962, cols: 8415, nnz: 1137311, classes: 5},
	{path: "heterophilous/minesweeper.npz", n: 10000, records: 39402, simple: 39402, cols: 7, nnz: -1, classes: 2, splits: 10},
	{path: "heterophilous/actor.npz", n: 7600, records: 26659, simple: 26659, cols: 932, nnz: 40977, classes: 5, splits: 10},
	{path: "heterophilous/squirrel.npz", n: 5201, records: 198353, simple: 198353, cols: 2089, nnz: 93477, classes: 5, splits: 10},
	{path: "heterophilous/texas.npz", n: 183, records: 279, simple: 279, cols: 1703, nnz: 15266, classes: 5, splits: 10},
	{path: "heterophilous/chameleon_filtered_directed.npz", n: 890, records: 13584, directed: true, loops: 50, simple: 8854, cols: 2325, nnz: 9903, classes: 5, splits: 10},
	{path: "polblogs/polblogs.npz", n: 1490, records: 19025, loops: 3, simple: 16715, isolated: 266, classes: 2},
	{path: "metis-graph/4elt.graph", n: 15606, records: 45878, simple: 45878},
	{path: "metis-graph/test.mgraph", n: 766, records: 1314, simple: 1314},
	{path: "metis-graph/example_weighted.graph", n: 132, records: 328, simple: 328, isolated: 5},
	{path: "github-social", n: 37700, records: 289003, simple: 289003, classes: 2},
	{path: "musae-facebook/facebook_edges.csv", n: 22470, records: 171002, directed: true, loops: 179, simple: 170823},
	{path: "musae-facebook", n: 22470, records: 171002, loops: 179, simple: 170823, cols: 4714, nnz: 314583, classes: 4},
	{path: "linqs-cora", n: 2708, records: 5429, simple: 5278, cols: 1433, nnz: 49216, classes: 7},
	{path: "humango", n: 3106, records: 18496, loops: 530, simple: 15978, isolated: 540, cols: 32, nnz: -1, classes: 14, splits: 1, train: 0},
	{path: "musae-twitch-ptbr", n: 1912, records: 31299, simple: 31299, cols: 3169, nnz: 38019, classes: 2},
}

func TestRealSets(t *testing.T) {
	for _, want := range realSets {
		t.Run(want.path, func(t *testing.T) {
			start := time.Now()
			raw, err := Open(context.Background(), testkit.Shared(t, "data", want.path), want.opt)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%v", time.Since(start))
			want.compare(t, raw)
		})
	}
}

// compare reports every count that differs.
func (want facts) compare(t *testing.T, raw *Raw) {
	t.Helper()
	got := facts{path: want.path, opt: want.opt, n: raw.N, records: len(raw.Src), directed: !raw.Undirected, nnz: -1, splits: len(raw.Splits)}
	directed := map[[2]int32]bool{}
	undirected := map[[2]int32]bool{}
	loops := map[int32]bool{}
	touched := make([]bool, raw.N)
	for i, u := range raw.Src {
		v := raw.Dst[i]
		if directed[[2]int32{u, v}] {
			got.duplicates++
		}
		directed[[2]int32{u, v}] = true
		if u == v {
			loops[u] = true
			continue
		}
		touched[u], touched[v] = true, true
		undirected[[2]int32{min(u, v), max(u, v)}] = true
	}
	got.simple, got.loops = len(undirected), len(loops)
	for _, on := range touched {
		if !on {
			got.isolated++
		}
	}
	if raw.Dense != nil {
		got.cols, got.nnz = raw.Dense.Cols, 0
		for _, x := range raw.Dense.Host {
			if x != 0 {
				got.nnz++
			}
		}
	}
	if raw.Sparse != nil {
		got.cols, got.nnz = raw.Sparse.Cols, raw.Sparse.Edges()
		checkSorted(t, raw)
	}
	if want.nnz == -1 || raw.Dense == nil && raw.Sparse == nil {
		got.nnz = want.nnz
	}
	got.classes = raw.classes()
	if want.train > 0 && got.splits > 0 {
		got.train = len(raw.Splits[0].Train)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %+v\nwant %+v", want.path, got, want)
	}
}

func checkSorted(t *testing.T, raw *Raw) {
	t.Helper()
	m := raw.Sparse
	if m.Rows() != raw.N {
		t.Fatalf("%d feature rows for %d vertices", m.Rows(), raw.N)
	}
	for i := range m.Rows() {
		for j := m.RowPtr[i] + 1; j < m.RowPtr[i+1]; j++ {
			if m.Col[j] <= m.Col[j-1] {
				t.Fatalf("row %d: column %d after %d", i, m.Col[j], m.Col[j-1])
			}
		}
	}
}

// Golden splits are in each data set's own vertex order: a reader that numbers
// vertices differently does not get the same number of training vertices per class.
func TestGoldenSplitsFitTheReaders(t *testing.T) {
	for _, tc := range []struct {
		file, path string
		opt        Options
		splits     int
		perClass   int // training vertices of each class; 0: half of all
	}{
		{"gnnbench-cora.json", "gnnbench-npz/cora.npz", Options{}, 5, 20},
		{"gnnbench-citeseer.json", "gnnbench-npz/citeseer.npz", Options{}, 5, 20},
		{"ppnp-cora-ml.json", "ppnp-cora-ml/cora_ml.npz", Options{}, 5, 20},
		{"amazon-photo.json", "amazon-photo/amazon_electronics_photo.npz", Options{}, 5, 20},
		{"amazon-computers.json", "amazon-computers/amazon_electronics_computers.npz", Options{}, 5, 20},
		{"coauthor-cs.json", "coauthor-cs/ms_academic_cs.npz", Options{}, 5, 20},
		{"coauthor-physics.json", "coauthor-physics/ms_academic_phy.npz", Options{}, 5, 20},
		{"polblogs.json", "polblogs/polblogs.npz", Options{}, 3, 0},
		{"github-social.json", "github-social", Options{}, 3, 0},
		{"musae-facebook.json", "musae-facebook", Options{}, 3, 0},
		{"musae-twitch-ptbr.json", "musae-twitch-ptbr", Options{}, 3, 0},
		{"linqs-cora.json", "linqs-cora", Options{}, 5, 20},
	} {
		t.Run(tc.file, func(t *testing.T) {
			tc.opt.SplitFile = testkit.Shared(t, "golden", "splits", tc.file)
			raw, err := Open(context.Background(), testkit.Shared(t, "data", tc.path), tc.opt)
			if err != nil {
				t.Fatal(err)
			}
			if err := Fatal(Check(raw)); err != nil {
				t.Error(err)
			}
			if len(raw.Splits) != tc.splits {
				t.Fatalf("%d splits, want %d", len(raw.Splits), tc.splits)
			}
			for _, s := range raw.Splits {
				count := make([]int, raw.classes())
				for _, v := range s.Train {
					count[raw.Labels[v]]++
				}
				for k, n := range count {
					if tc.perClass > 0 && n != tc.perClass {
						t.Errorf("split %s: %d training vertices of class %d, want %d", s.Name, n, k, tc.perClass)
					}
				}
				if tc.perClass == 0 && len(s.Train) != raw.N/2 {
					t.Errorf("split %s: %d training vertices, want half of %d", s.Name, len(s.Train), raw.N)
				}
			}
		})
	}
}

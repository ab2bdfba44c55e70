package prepare

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dorylus/engine/dataset"
	"dorylus/engine/order"
	"dorylus/engine/store"
	"dorylus/kernels"
)

func mustBuild(t testing.TB, raw *dataset.Raw, opt Options) *store.Store {
	t.Helper()
	s, err := Build(context.Background(), raw, opt)
	if err != nil {
		t.Fatal(err)
	}
	checkStore(t, s)
	return s
}

// checkStore holds what every store promises.
func checkStore(t testing.TB, s *store.Store) {
	t.Helper()
	n := s.Meta.Vertices
	if len(s.Order) != n || len(s.Rank) != n {
		t.Fatalf("order %d and rank %d of %d vertices", len(s.Order), len(s.Rank), n)
	}
	for r, v := range s.Order {
		if int(s.Rank[v]) != r {
			t.Fatalf("rank[order[%d]] = %d", r, s.Rank[v])
		}
	}
	for _, g := range []*kernels.CSR{s.In, s.Out} {
		if g.Rows() != n || g.Cols != n || int64(g.Edges()) != s.Meta.Edges || len(g.Col) != g.Edges() {
			t.Fatalf("%d x %d with %d edges, want %d vertices and %d edges", g.Rows(), g.Cols, g.Edges(), n, s.Meta.Edges)
		}
		for v := range n {
			cols := g.Col[g.RowPtr[v]:g.RowPtr[v+1]]
			for i, u := range cols {
				if u < 0 || int(u) >= n || i > 0 && cols[i-1] >= u {
					t.Fatalf("row %d is not ascending in [0,%d): %v", v, n, cols)
				}
			}
		}
		if (g.Val != nil) != s.Meta.Weighted || g.Val != nil && len(g.Val) != len(g.Col) {
			t.Fatalf("%d weights for %d edges, weighted %v", len(g.Val), len(g.Col), s.Meta.Weighted)
		}
	}
	if s.Meta.Symmetric != (s.In == s.Out) {
		t.Fatalf("symmetric %v but in == out is %v", s.Meta.Symmetric, s.In == s.Out)
	}
	in, out := edgeMap(s), map[[2]int32]float32{}
	for u := range n {
		for e := s.Out.RowPtr[u]; e < s.Out.RowPtr[u+1]; e++ {
			out[[2]int32{s.Order[u], s.Order[s.Out.Col[e]]}] = weight(s.Out, e)
		}
	}
	if d := diff(in, out); d != "" {
		t.Fatalf("out-edges are not the in-edges by source: %s", d)
	}
}

func weight(g *kernels.CSR, e int64) float32 {
	if g.Val == nil {
		return 1
	}
	return g.Val[e]
}

// edgeMap is the weight of every edge (src, dst), in the user's vertices.
func edgeMap(s *store.Store) map[[2]int32]float32 {
	m := map[[2]int32]float32{}
	for v := range s.In.Rows() {
		for e := s.In.RowPtr[v]; e < s.In.RowPtr[v+1]; e++ {
			m[[2]int32{s.Order[s.In.Col[e]], s.Order[v]}] = weight(s.In, e)
		}
	}
	return m
}

func diff(got, want map[[2]int32]float32) string {
	for e, w := range want {
		if g, ok := got[e]; !ok {
			return fmt.Sprintf("edge %d -> %d is missing", e[0], e[1])
		} else if g != w {
			return fmt.Sprintf("edge %d -> %d weighs %v, want %v", e[0], e[1], g, w)
		}
	}
	for e := range got {
		if _, ok := want[e]; !ok {
			return fmt.Sprintf("edge %d -> %d should not be there", e[0], e[1])
		}
	}
	return ""
}

// plain is the definition of what canonicalise does, with maps.
func plain(raw *dataset.Raw, opt Options) map[[2]int32]float32 {
	sum := map[[2]int32]float64{}
	for i := range raw.Src {
		e := [2]int32{raw.Src[i], raw.Dst[i]}
		if opt.Direction == Reverse {
			e[0], e[1] = e[1], e[0]
		}
		if opt.SelfLoops == Remove && e[0] == e[1] {
			continue
		}
		if raw.Weight == nil {
			sum[e] = 1
		} else {
			sum[e] += float64(raw.Weight[i])
		}
	}
	m := map[[2]int32]float32{}
	for e, w := range sum {
		m[e] = float32(w)
	}
	if opt.Direction == Undirected || (opt.Direction == Auto || opt.Direction == "") && raw.Undirected {
		u := map[[2]int32]float32{}
		for e, w := range m {
			if back, ok := m[[2]int32{e[1], e[0]}]; ok {
				w = max(w, back)
			}
			u[e], u[[2]int32{e[1], e[0]}] = w, w
		}
		m = u
	}
	return m
}

// random is a graph with duplicates, self-loops and everything else that a
// source can have.
func random(rng *rand.Rand, n, records int, weighted bool) *dataset.Raw {
	raw := &dataset.Raw{Name: "random", Format: "test", N: n, Undirected: rng.IntN(2) == 0}
	for range records {
		raw.Src = append(raw.Src, int32(rng.IntN(n)))
		raw.Dst = append(raw.Dst, int32(rng.IntN(n)))
		if weighted {
			raw.Weight = append(raw.Weight, float32(rng.IntN(9)-2)/4)
		}
	}
	f := 1 + rng.IntN(20)
	host := make([]float32, n*f)
	for i := range host {
		host[i] = float32(rng.IntN(5))
	}
	raw.Dense = kernels.FromSlice(n, f, host)
	for v := range n {
		raw.Labels = append(raw.Labels, int32(rng.IntN(4)-1))
		if len(raw.Splits) == 0 {
			raw.Splits = []dataset.Split{{Name: "public"}}
		}
		switch sp := &raw.Splits[0]; rng.IntN(4) {
		case 0:
			sp.Train = append(sp.Train, int32(v))
		case 1:
			sp.Val = append(sp.Val, int32(v))
		case 2:
			sp.Test = append(sp.Test, int32(v))
		}
	}
	return raw
}

func TestEdgesAreThoseOfTheDefinition(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := 1 + rng.IntN(40)
		raw := random(rng, n, rng.IntN(6*n), rng.IntN(2) == 0)
		for _, direction := range []string{Auto, Directed, Undirected, Reverse} {
			for _, loops := range []string{Keep, Remove} {
				opt := Options{Direction: direction, SelfLoops: loops, Order: order.Methods[rng.IntN(len(order.Methods))], Seed: seed, Threads: 1 + rng.IntN(3)}
				if opt.Order == order.METIS {
					opt.Order = order.Hash
				}
				s := mustBuild(t, raw, opt)
				if d := diff(edgeMap(s), plain(raw, opt)); d != "" {
					t.Fatalf("seed %d, %+v, undirected %v: %s", seed, opt, raw.Undirected, d)
				}
			}
		}
	}
}

func TestSortsAreTheSameForAnyThreads(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	raw := random(rng, 3000, 90000, true)
	var want *store.Store
	for _, threads := range []int{1, 2, 5} {
		s := mustBuild(t, raw, Options{Order: order.LPA, Threads: threads})
		if want == nil {
			want = s
			continue
		}
		if !slices.Equal(s.Order, want.Order) || !slices.Equal(s.In.Col, want.In.Col) || !slices.Equal(s.In.Val, want.In.Val) || !slices.Equal(s.Out.Col, want.Out.Col) {
			t.Errorf("%d threads give another store than 1", threads)
		}
	}
}

func TestRowsFollowTheOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	raw := random(rng, 500, 3000, false)
	for _, method := range []string{order.Natural, order.Degree, order.Hash, order.LPA, order.Stream, order.Fennel} {
		s := mustBuild(t, raw, Options{Order: method, Seed: 5})
		for r, v := range s.Order {
			if !slices.Equal(s.Dense.Row(r), raw.Dense.Row(int(v))) {
				t.Fatalf("%s: features of row %d are not those of vertex %d", method, r, v)
			}
			if s.Labels[r] != raw.Labels[v] {
				t.Fatalf("%s: label of row %d is not that of vertex %d", method, r, v)
			}
		}
		for i, rows := range [][]int32{s.Splits[0].Train, s.Splits[0].Val, s.Splits[0].Test} {
			want := [][]int32{raw.Splits[0].Train, raw.Splits[0].Val, raw.Splits[0].Test}[i]
			var got []int32
			for _, r := range rows {
				got = append(got, s.Order[r])
			}
			if !slices.IsSorted(rows) {
				t.Fatalf("%s: split rows are not ascending", method)
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("%s: split role %d holds %v, want %v", method, i, got, want)
			}
		}
	}
}

func TestRelabelledInputGivesAnIsomorphicGraph(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 2))
		raw := random(rng, 60, 400, seed%2 == 0)
		perm := make([]int32, raw.N)
		for i, p := range rng.Perm(raw.N) {
			perm[i] = int32(p)
		}
		moved := &dataset.Raw{Name: "moved", N: raw.N, Undirected: raw.Undirected, Weight: raw.Weight}
		for i := range raw.Src {
			moved.Src = append(moved.Src, perm[raw.Src[i]])
			moved.Dst = append(moved.Dst, perm[raw.Dst[i]])
		}
		a, b := mustBuild(t, raw, Options{Seed: seed}), mustBuild(t, moved, Options{Seed: seed})
		if a.Meta.Edges != b.Meta.Edges || a.Meta.Symmetric != b.Meta.Symmetric {
			t.Fatalf("seed %d: %d edges, symmetric %v; relabelled %d, %v", seed, a.Meta.Edges, a.Meta.Symmetric, b.Meta.Edges, b.Meta.Symmetric)
		}
		want := map[[2]int32]float32{}
		for e, w := range edgeMap(a) {
			want[[2]int32{perm[e[0]], perm[e[1]]}] = w
		}
		if d := diff(edgeMap(b), want); d != "" {
			t.Fatalf("seed %d: relabelled: %s", seed, d)
		}
		if !slices.Equal(a.Meta.Changes, b.Meta.Changes) {
			t.Fatalf("seed %d: changes %q, relabelled %q", seed, a.Meta.Changes, b.Meta.Changes)
		}
	}
}

func TestWeightsOfAnUndirectedSource(t *testing.T) {
	// 0-1 is listed both ways with one weight, 1-2 one way, 2-3 both ways with
	// two weights, 3-4 twice the same way, 4-4 is a loop.
	raw := &dataset.Raw{Name: "w", N: 5, Undirected: true,
		Src:    []int32{0, 1, 1, 2, 3, 3, 3, 4},
		Dst:    []int32{1, 0, 2, 3, 2, 4, 4, 4},
		Weight: []float32{2, 2, 3, 1, 5, 1, 2, 7},
	}
	s := mustBuild(t, raw, Options{Order: order.Natural})
	want := map[[2]int32]float32{
		{0, 1}: 2, {1, 0}: 2, {1, 2}: 3, {2, 1}: 3, {2, 3}: 5, {3, 2}: 5, {3, 4}: 3, {4, 3}: 3, {4, 4}: 7,
	}
	if d := diff(edgeMap(s), want); d != "" {
		t.Error(d)
	}
	if !s.Meta.Symmetric {
		t.Error("not symmetric")
	}
	changes := []string{
		"merged 1 duplicate edge", "added 2 reverse edges",
		"took the larger weight for 1 edge whose directions had different ones",
	}
	if !slices.Equal(s.Meta.Changes, changes) {
		t.Errorf("changes %q, want %q", s.Meta.Changes, changes)
	}

	raw.Undirected = false
	s = mustBuild(t, raw, Options{Order: order.Natural})
	if s.Meta.Symmetric {
		t.Error("a directed graph with one-way edges counts as symmetric")
	}
	if d := diff(edgeMap(s), map[[2]int32]float32{{0, 1}: 2, {1, 0}: 2, {1, 2}: 3, {2, 3}: 1, {3, 2}: 5, {3, 4}: 3, {4, 4}: 7}); d != "" {
		t.Error(d)
	}
}

func TestSymmetricNeedsEqualWeights(t *testing.T) {
	raw := &dataset.Raw{Name: "s", N: 2, Src: []int32{0, 1}, Dst: []int32{1, 0}, Weight: []float32{1, 1}}
	if s := mustBuild(t, raw, Options{}); !s.Meta.Symmetric {
		t.Error("equal weights both ways: not symmetric")
	}
	raw.Weight = []float32{1, 2}
	if s := mustBuild(t, raw, Options{}); s.Meta.Symmetric {
		t.Error("different weights both ways: symmetric")
	}
}

func TestOrdinaryEdgesOfTheDomain(t *testing.T) {
	for name, raw := range map[string]*dataset.Raw{
		"empty":      {},
		"one vertex": {N: 1},
		"a loop":     {N: 1, Src: []int32{0}, Dst: []int32{0}},
		"no edges":   {N: 100, Labels: make([]int32, 100)},
		"no columns": {N: 3, Dense: &kernels.Mat{Rows: 3}},
	} {
		for _, method := range order.Methods {
			if method == order.METIS {
				continue
			}
			for _, features := range []string{AsGiven, Identity} {
				t.Run(name+"/"+method+"/"+features, func(t *testing.T) {
					s := mustBuild(t, raw, Options{Order: method, Features: features})
					if s.Meta.Edges != int64(len(raw.Src)) || s.Meta.Vertices != raw.N {
						t.Errorf("%d vertices, %d edges", s.Meta.Vertices, s.Meta.Edges)
					}
				})
			}
		}
	}
}

func TestFeatures(t *testing.T) {
	raw := &dataset.Raw{Name: "f", N: 3, Dense: kernels.FromSlice(3, 2, []float32{1, 3, 0, 0, -2, 2})}
	s := mustBuild(t, raw, Options{Features: RowNormalize})
	if got, want := flat(s), []float32{0.25, 0.75, 0, 0, -0.5, 0.5}; !slices.Equal(got, want) {
		t.Errorf("row-normalize: %v, want %v", got, want)
	}
	if raw.Dense.Host[0] != 1 {
		t.Error("row-normalize changed the source")
	}
	raw.Dense = kernels.FromSlice(4, 2, []float32{1, 5, 2, 5, 3, 5, 4, 5})
	raw.N = 4
	s = mustBuild(t, raw, Options{Features: Standardize})
	for i, want := range []float32{-1.3416408, 0, -0.4472136, 0, 0.4472136, 0, 1.3416408, 0} {
		if got := flat(s)[i]; got-want > 1e-6 || want-got > 1e-6 {
			t.Errorf("standardize: value %d is %v, want %v", i, got, want)
		}
	}
	raw.Dense = nil
	raw.Sparse = &kernels.CSR{Cols: 30, RowPtr: []int64{0, 2, 2, 5, 6}, Col: []int32{2, 0, 1, 0, 1, 2}, Val: []float32{1, 3, 1, 2, 1, 4}}
	s = mustBuild(t, raw, Options{Features: RowNormalize})
	if !slices.Equal(s.Sparse.Col, []int32{0, 2, 0, 1, 2}) || !slices.Equal(s.Sparse.Val, []float32{0.75, 0.25, 0.5, 0.5, 1}) {
		t.Errorf("sparse row-normalize: columns %v, values %v", s.Sparse.Col, s.Sparse.Val)
	}
	s = mustBuild(t, raw, Options{Features: Identity, Order: order.Hash})
	if !slices.Equal(s.Sparse.Col, s.Order) || s.Meta.Features != 4 || s.Meta.FeatureKind != store.CSRFeatures {
		t.Errorf("identity: columns %v, order %v, meta %+v", s.Sparse.Col, s.Order, s.Meta)
	}
}

func flat(s *store.Store) []float32 {
	var all []float32
	for v := range s.Dense.Rows {
		all = append(all, s.Dense.Row(int(s.Rank[v]))...)
	}
	return all
}

func TestRefusals(t *testing.T) {
	ok := func() *dataset.Raw { return &dataset.Raw{Name: "bad", N: 3, Src: []int32{0}, Dst: []int32{1}} }
	nan := float32(0)
	nan /= nan
	for _, c := range []struct {
		what string
		raw  func(r *dataset.Raw)
		opt  Options
		want string
	}{
		{"source beyond", func(r *dataset.Raw) { r.Src[0] = 3 }, Options{}, "edge record 0 is 3 -> 1"},
		{"negative", func(r *dataset.Raw) { r.Dst[0] = -1 }, Options{}, "edge record 0 is 0 -> -1"},
		{"too many vertices", func(r *dataset.Raw) { r.N = 1 << 31 }, Options{}, "ids are 32-bit"},
		{"lengths", func(r *dataset.Raw) { r.Dst = nil }, Options{}, "1 sources but 0 destinations"},
		{"weights", func(r *dataset.Raw) { r.Weight = []float32{1, 2} }, Options{}, "2 edge weights for 1"},
		{"nan weight", func(r *dataset.Raw) { r.Weight = []float32{nan} }, Options{}, "weight NaN"},
		{"labels", func(r *dataset.Raw) { r.Labels = []int32{0} }, Options{}, "1 labels for 3"},
		{"label range", func(r *dataset.Raw) { r.Labels = []int32{0, 1, 2}; r.Classes = []string{"a", "b"} }, Options{}, "vertex 2 has label 2, but there are 2 classes"},
		{"names", func(r *dataset.Raw) { r.IDs = []string{"a"} }, Options{}, "1 vertex names"},
		{"features", func(r *dataset.Raw) { r.Dense = kernels.FromSlice(2, 1, []float32{1, 2}) }, Options{}, "2 feature rows for 3"},
		{"no features", nil, Options{Features: RowNormalize}, "no features"},
		{"split overlap", func(r *dataset.Raw) { r.Splits = []dataset.Split{{Name: "p", Train: []int32{1}, Test: []int32{1}}} }, Options{}, "vertex 1 is in train and again in test"},
		{"split range", func(r *dataset.Raw) { r.Splits = []dataset.Split{{Name: "p", Val: []int32{9}}} }, Options{}, "val vertex 9"},
		{"option", nil, Options{Order: "metsi"}, `unknown order "metsi"`},
		{"block rows", nil, Options{BlockRows: 100}, "blocks of 100 rows"},
		{"negative block rows", nil, Options{BlockRows: -16}, "blocks of -16 rows"},
		{"large blocks", nil, Options{BlockRows: MaxBlockRows + 16}, "multiple of 16 up to 65536"},
		{"metis", nil, Options{Order: order.METIS}, "METIS is not linked"},
	} {
		raw := ok()
		if c.raw != nil {
			c.raw(raw)
		}
		_, err := Build(context.Background(), raw, c.opt)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "prepare bad: ") {
			t.Errorf("%s: %v, want it to say %q", c.what, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Build(ctx, ok(), Options{}); err != context.Canceled && !strings.Contains(fmt.Sprint(err), "canceled") {
		t.Errorf("cancelled: %v", err)
	}
}

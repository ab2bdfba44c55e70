package order

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dorylus/kernels"
)

// fromPairs is the graph of directed edges (u,v), both ways, columns ascending.
func fromPairs(n int, edges map[[2]int32]bool) Graph {
	side := func(key, val int) *kernels.CSR {
		rows := make([][]int32, n)
		for e := range edges {
			rows[e[key]] = append(rows[e[key]], e[val])
		}
		g := &kernels.CSR{Cols: n, RowPtr: []int64{0}}
		for _, r := range rows {
			slices.Sort(r)
			g.Col = append(g.Col, r...)
			g.RowPtr = append(g.RowPtr, int64(len(g.Col)))
		}
		return g
	}
	in, out := side(1, 0), side(0, 1)
	if slices.Equal(in.Col, out.Col) && slices.Equal(in.RowPtr, out.RowPtr) {
		out = in
	}
	return Graph{in, out}
}

// planted has k communities of size vertices each, shuffled: degree edges a
// vertex, of which the share intra stays inside.
func planted(rng *rand.Rand, k, size, degree int, intra float64) (Graph, []int32) {
	n := k * size
	name := rng.Perm(n)
	truth := make([]int32, n)
	edges := map[[2]int32]bool{}
	for v := range n {
		truth[name[v]] = int32(v / size)
		for range degree {
			u := rng.IntN(n)
			if rng.Float64() < intra {
				u = v/size*size + rng.IntN(size)
			}
			a, b := int32(name[v]), int32(name[u])
			edges[[2]int32{a, b}], edges[[2]int32{b, a}] = true, true
		}
	}
	return fromPairs(n, edges), truth
}

// standIn takes METIS's place, which this package must not import: runs of equal
// length. csrc/metis tests the real one.
func standIn(n int, _ []int64, _ []int32, parts int, _ uint64) ([]int32, error) {
	part := make([]int32, n)
	for v := range part {
		part[v] = int32(v * parts / n)
	}
	return part, nil
}

func mustCompute(t testing.TB, g Graph, opt Options) *Result {
	t.Helper()
	r, err := Compute(context.Background(), g, opt)
	if err != nil {
		t.Fatalf("%+v: %v", opt.Method, err)
	}
	if _, err := invert(r.Order, g.Rows()); err != nil {
		t.Fatalf("%s: %v", opt.Method, err)
	}
	if r.Used == Auto || r.Reason == "" {
		t.Fatalf("%s: used %q because %q", opt.Method, r.Used, r.Reason)
	}
	return r
}

func TestEveryMethodGivesAPermutation(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := 1 + rng.IntN(300)
		edges := map[[2]int32]bool{}
		for range rng.IntN(4 * n) {
			edges[[2]int32{int32(rng.IntN(n)), int32(rng.IntN(1 + rng.IntN(n)))}] = true
		}
		g := fromPairs(n, edges)
		for _, method := range Methods {
			opt := Options{Method: method, Seed: seed, Threads: 1, Partitioner: standIn}
			r := mustCompute(t, g, opt)
			opt.Threads = 3
			if again := mustCompute(t, g, opt); !slices.Equal(again.Order, r.Order) {
				t.Fatalf("seed %d, %s: 3 threads give another order than 1", seed, method)
			}
			if r.Cluster != nil {
				last := int32(0)
				for _, v := range r.Order {
					if c := r.Cluster[v]; c != last && c != last+1 {
						t.Fatalf("seed %d, %s: cluster %d follows %d in the order", seed, method, c, last)
					} else {
						last = c
					}
				}
				if int(last) != r.Clusters-1 {
					t.Fatalf("seed %d, %s: %d clusters, the last is %d", seed, method, r.Clusters, last)
				}
			}
		}
	}
}

func TestCommunitiesAreFound(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	g, truth := planted(rng, 12, 700, 10, 0.8)
	natural := mustCompute(t, g, Options{Method: Natural})
	shuffled := mustCompute(t, g, Options{Method: Hash, Seed: 1})
	ideal := Measure(g, shuffled.Rank, truth)
	t.Logf("planted: intra %.2f; natural gap %.0f hit %.2f", ideal.Intra, natural.Quality.Gap, natural.Quality.Hit)
	for method, least := range map[string]float64{LPA: 0.95, LDG: 0.8, Fennel: 0.8} {
		r := mustCompute(t, g, Options{Method: method, Seed: 3, Threads: 2})
		t.Logf("%-7s %3d clusters, intra %.2f, gap %.0f, hit %.2f, %.2f s", method, r.Clusters, r.Quality.Intra, r.Quality.Gap, r.Quality.Hit, r.Seconds)
		if r.Quality.Intra < least*ideal.Intra {
			t.Errorf("%s: %.2f of the edges stay inside a cluster, want %.2f", method, r.Quality.Intra, least*ideal.Intra)
		}
		if r.Quality.Gap > 0.8*natural.Quality.Gap {
			t.Errorf("%s: edges span %.0f rows, %.0f in the source's order", method, r.Quality.Gap, natural.Quality.Gap)
		}
	}
}

func TestAutoChoosesAndSaysWhy(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	g, _ := planted(rng, 10, 600, 8, 0.8)
	for _, c := range []struct {
		what   string
		opt    Options
		used   string
		reason string
	}{
		{"no METIS", Options{}, LPA, "METIS is not linked"},
		{"little memory", Options{Memory: 200 << 10}, Stream, "label propagation would take 304 KiB, 200 KiB are allowed"},
		{"no memory", Options{Memory: 100 << 10, Partitioner: standIn}, Natural, "streaming would take 164 KiB, 100 KiB are allowed"},
		{"little memory for METIS", Options{Memory: 2 << 20, Partitioner: standIn}, LPA, "METIS would take 6 MiB, 2 MiB are allowed"},
		{"METIS cuts as the source is ordered", Options{Partitioner: standIn}, Natural, "metis gains nothing"},
	} {
		var told []Estimate
		c.opt.Method, c.opt.Announce = Auto, func(list []Estimate) { told = list }
		r := mustCompute(t, g, c.opt)
		if len(told) == 0 || c.used != Natural && (told[0].Method != r.Used || told[0] != r.Estimate) {
			t.Errorf("%s: announced %+v, used %s and noted %+v", c.what, told, r.Used, r.Estimate)
		}
		if r.Used != c.used || !strings.Contains(r.Reason, c.reason) {
			t.Errorf("%s: used %s because %q, want %s because %q", c.what, r.Used, r.Reason, c.used, c.reason)
		}
	}
	g, truth := planted(rng, 10, 600, 8, 0.8)
	perfect := func(n int, _ []int64, _ []int32, parts int, _ uint64) ([]int32, error) {
		part := make([]int32, n)
		for v := range part {
			part[v] = truth[v] * int32(parts) / 10
		}
		return part, nil
	}
	if r := mustCompute(t, g, Options{Method: Auto, Partitioner: perfect}); r.Used != METIS || r.Quality.Intra < 0.75 {
		t.Errorf("a good cut: used %s because %q, intra %.2f", r.Used, r.Reason, r.Quality.Intra)
	}
}

// For several servers auto takes the smallest cut, whoever finds it.
func TestAutoTakesTheSmallestCut(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	g, truth := planted(rng, 4, 600, 8, 0.8)
	perfect := func(n int, _ []int64, _ []int32, parts int, _ uint64) ([]int32, error) {
		part := make([]int32, n)
		for v := range part {
			part[v] = truth[v] * int32(parts) / 4
		}
		return part, nil
	}
	useless := func(n int, _ []int64, _ []int32, parts int, _ uint64) ([]int32, error) {
		part := make([]int32, n)
		for v := range part {
			part[v] = int32(v % parts)
		}
		return part, nil
	}
	for _, c := range []struct {
		what string
		opt  Options
		used string
		says []string
	}{
		{"a perfect cut", Options{Partitioner: perfect}, METIS, []string{"smallest cut between 4 servers", "natural 7", "metis ", "lpa "}},
		{"a useless cut", Options{Partitioner: useless}, LPA, []string{"metis ", "lpa "}},
		{"little memory", Options{Partitioner: perfect, Memory: 100 << 10}, Stream, []string{"stream ", "METIS would take", "label propagation would take"}},
		{"no memory", Options{Memory: 10 << 10}, Natural, []string{"natural ", "streaming would take"}},
	} {
		var told []Estimate
		c.opt.Method, c.opt.Partitions, c.opt.Announce = Auto, 4, func(list []Estimate) { told = list }
		r := mustCompute(t, g, c.opt)
		if r.Used != c.used || len(told) == 0 {
			t.Errorf("%s: used %s because %q, want %s; announced %+v", c.what, r.Used, r.Reason, c.used, told)
		}
		for _, s := range c.says {
			if !strings.Contains(r.Reason, s) {
				t.Errorf("%s: the reason %q does not say %q", c.what, r.Reason, s)
			}
		}
	}
	ordered := Graph{In: relabel(g.In, truth)}
	ordered.Out = ordered.In
	if r := mustCompute(t, ordered, Options{Method: Auto, Partitions: 4, Partitioner: useless}); r.Used != Natural && countCut(ordered, r.Order, r.Rank, 4) > countCut(ordered, identity(g.Rows()), identity(g.Rows()), 4) {
		t.Errorf("an ordered source: used %s because %q, which cuts more", r.Used, r.Reason)
	}
}

// relabel puts the vertices of a symmetric graph in the order of their groups.
func relabel(g *kernels.CSR, group []int32) *kernels.CSR {
	order, _ := groups(group, int(slices.Max(group))+1)
	rank := make([]int32, len(order))
	for r, v := range order {
		rank[v] = int32(r)
	}
	out := &kernels.CSR{Cols: g.Cols, RowPtr: []int64{0}}
	for _, v := range order {
		at := len(out.Col)
		for _, u := range g.Col[g.RowPtr[v]:g.RowPtr[v+1]] {
			out.Col = append(out.Col, rank[u])
		}
		slices.Sort(out.Col[at:])
		out.RowPtr = append(out.RowPtr, int64(len(out.Col)))
	}
	return out
}

func TestCountCut(t *testing.T) {
	// A path of six vertices: two runs of three cut one edge, three of two cut two.
	g := &kernels.CSR{Cols: 6, RowPtr: []int64{0}}
	for v := range int32(6) {
		for _, u := range []int32{v - 1, v + 1} {
			if u >= 0 && u < 6 {
				g.Col = append(g.Col, u)
			}
		}
		g.RowPtr = append(g.RowPtr, int64(len(g.Col)))
	}
	for parts, want := range map[int]int64{1: 0, 2: 2, 3: 4, 6: 10, 9: 10} {
		if got := countCut(Graph{g, g}, identity(6), identity(6), parts); got != want {
			t.Errorf("a path of 6 in %d runs: %d edges cut, want %d", parts, got, want)
		}
	}
	if got := share(math.MaxInt64-5, 3, 4); got != (math.MaxInt64-5)/4*3+1 {
		t.Errorf("three quarters of %d are %d", int64(math.MaxInt64-5), got)
	}
}

func TestTallyDoesNotOverflow(t *testing.T) {
	c := newTally(2)
	c.count[1] = math.MaxInt32 - 1
	for range 3 {
		c.add(1)
	}
	if c.count[1] != math.MaxInt32 {
		t.Errorf("the count is %d, want %d", c.count[1], math.MaxInt32)
	}
}

func TestABadPartitionerIsNotTrusted(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	g, _ := planted(rng, 4, 100, 4, 0.8)
	for what, p := range map[string]Partitioner{
		"short": func(n int, _ []int64, _ []int32, _ int, _ uint64) ([]int32, error) { return make([]int32, n-1), nil },
		"range": func(n int, _ []int64, _ []int32, k int, _ uint64) ([]int32, error) {
			return slices.Repeat([]int32{int32(k)}, n), nil
		},
		"error": func(int, []int64, []int32, int, uint64) ([]int32, error) { return nil, fmt.Errorf("out of luck") },
		"unset ": func(n int, _ []int64, _ []int32, _ int, _ uint64) ([]int32, error) {
			return slices.Repeat([]int32{-1}, n), nil
		},
	} {
		if _, err := Compute(context.Background(), g, Options{Method: METIS, Partitioner: p}); err == nil || !strings.Contains(err.Error(), "order metis") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// The partitioner must get a symmetric graph without self-loops or repeats, in
// both levels of the cut.
func TestThePartitionerGetsACleanGraph(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	n := 120000
	edges := map[[2]int32]bool{}
	for v := range n {
		edges[[2]int32{int32(v), int32(v)}] = true
		for range 2 {
			edges[[2]int32{int32(v), int32((v + 1 + rng.IntN(50)) % n)}] = true
		}
	}
	calls := 0
	check := func(n int, rowPtr []int64, col []int32, parts int, seed uint64) ([]int32, error) {
		calls++
		if parts < 2 || n < 2*parts {
			t.Errorf("%d parts of %d vertices", parts, n)
		}
		has := map[[2]int32]bool{}
		for v := range n {
			for _, u := range col[rowPtr[v]:rowPtr[v+1]] {
				if int(u) == v || has[[2]int32{int32(v), u}] {
					t.Fatalf("call %d: loop or repeat %d -> %d", calls, v, u)
				}
				has[[2]int32{int32(v), u}] = true
			}
		}
		for e := range has {
			if !has[[2]int32{e[1], e[0]}] {
				t.Fatalf("call %d: %d -> %d has no reverse", calls, e[0], e[1])
			}
		}
		part := make([]int32, n)
		for v := range part {
			part[v] = int32(v * parts / n)
		}
		return part, nil
	}
	r := mustCompute(t, fromPairs(n, edges), Options{Method: METIS, Partitioner: check})
	if want := clusterCount(n); r.Clusters < want*9/10 || r.Clusters > want*11/10 {
		t.Errorf("%d clusters, want about %d", r.Clusters, want)
	}
	if calls < 2 {
		t.Errorf("%d calls: %d clusters were to be cut in two levels", calls, r.Clusters)
	}
}

func TestComputeStopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	rng := rand.New(rand.NewPCG(1, 1))
	g, _ := planted(rng, 4, 100, 4, 0.8)
	for _, method := range []string{LPA, Stream} {
		if _, err := Compute(ctx, g, Options{Method: method}); err != context.Canceled {
			t.Errorf("%s: %v", method, err)
		}
	}
}

func TestInvertNamesTheFault(t *testing.T) {
	for _, c := range []struct {
		order []int32
		want  string
	}{{[]int32{0, 1}, "2 entries for 3"}, {[]int32{0, 1, 3}, "vertex 3 at row 2"}, {[]int32{0, 1, 1}, "vertex 1 at rows 1 and 2"}, {[]int32{-1, 1, 1}, "vertex -1"}} {
		if _, err := invert(c.order, 3); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.order, err, c.want)
		}
	}
}

package graph

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"dorylus/engine/store"
	"dorylus/engine/task"
	"dorylus/kernels"
)

// table is a Gather for goroutines.
type table struct {
	mu    sync.Mutex
	size  int
	given map[string][][]byte
	full  map[string]chan struct{}
	count map[string]int
}

func newTable(n int) *table {
	return &table{size: n, given: map[string][][]byte{}, full: map[string]chan struct{}{}, count: map[string]int{}}
}

func (t *table) gather(rank int) func(string, []byte) ([][]byte, error) {
	return func(key string, mine []byte) ([][]byte, error) {
		t.mu.Lock()
		if t.given[key] == nil {
			t.given[key], t.full[key] = make([][]byte, t.size), make(chan struct{})
		}
		t.given[key][rank] = mine
		if t.count[key]++; t.count[key] == t.size {
			close(t.full[key])
		}
		full, given := t.full[key], t.given[key]
		t.mu.Unlock()
		<-full
		return given, nil
	}
}

// plans builds the plan of each partition.
func plans(t *testing.T, g *random, opt Options, cuts []task.Range) []*Plan {
	t.Helper()
	tab := newTable(len(cuts))
	out := make([]*Plan, len(cuts))
	var wg sync.WaitGroup
	for rank, blocks := range cuts {
		wg.Go(func() {
			o := opt
			o.Part = &Part{Blocks: blocks, Rank: rank, Gather: tab.gather(rank)}
			p, err := Build(g.st, o)
			if err != nil {
				t.Errorf("partition %d: %v", rank, err)
			}
			out[rank] = p
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return out
}

// The plans of all partitions have together what the plan of the whole graph has: the
// same rows, the same edges in the same order, and ghosts for every row that is read.
func TestPartsHaveWhatTheWholeHas(t *testing.T) {
	all, some := 0, 0
	for seed := range uint64(60) {
		g := newRandom(seed)
		opt := Options{Seeds: g.seeds, Levels: 1 + g.rng.IntN(4), Seen: seed%3 != 0}
		for range opt.Levels - 1 {
			opt.Backward, opt.Skip = append(opt.Backward, g.rng.IntN(3) > 0), append(opt.Skip, g.rng.IntN(5) == 0)
		}
		whole, err := Build(g.st, opt)
		if err != nil {
			t.Fatal(err)
		}
		parts := 1 + g.rng.IntN(5)
		for rank, p := range plans(t, g, opt, Partition(g.st, g.seeds, parts)) {
			if d := g.differs(whole, p, opt); d != "" {
				t.Fatalf("seed %d, partition %d of %d: %s", seed, rank, parts, d)
			}
			for _, l := range p.Levels {
				if l.Rows == nil && p.Own.Len() < p.Blocks {
					all++
				} else if l.Rows != nil {
					some++
				}
			}
		}
	}
	if all < 20 || some < 20 {
		t.Errorf("%d levels of partitions have all rows and %d some: too few to show anything", all, some)
	}
}

// Where a partition has nearly all rows, its edges are those of the store, in the same memory.
func TestPartsShareTheStoresEdges(t *testing.T) {
	st := randomStore(200, 8000, 16, 1, true)
	g := &random{st: st}
	opt := Options{Levels: 3, Backward: []bool{true, true}}
	cuts := Partition(st, nil, 3)
	for rank, p := range plans(t, g, opt, cuts) {
		own := BlockSpan(&st.Meta, cuts[rank])
		for k, h := range p.Hops {
			for dir, x := range map[string]struct{ got, of *kernels.CSR }{"forward": {h.Fwd, st.In}, "backward": {h.Bwd, st.Out}} {
				lo := x.of.RowPtr[own.Lo]
				if &x.got.Col[0] != &x.of.Col[lo] || &x.got.Val[0] != &x.of.Val[lo] {
					t.Errorf("partition %d, hop %d %s: the edges are a copy", rank, k, dir)
				}
				if err := x.got.Validate(); err != nil {
					t.Errorf("partition %d, hop %d %s: %v", rank, k, dir, err)
				}
			}
		}
	}
	for rank, p := range plans(t, g, opt, []task.Range{{Hi: Blocks(&st.Meta)}}) {
		if p.Hops[0].Fwd != st.In || p.Hops[1].Bwd != st.Out {
			t.Errorf("partition %d of one does not have the store's own edges", rank)
		}
	}
}

// What lies around some rows are their edges, whichever way they are numbered.
func TestAround(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 3))
		n := 20 + rng.IntN(100)
		st := randomStore(n, n*rng.IntN(40), 16, seed, seed%2 == 0)
		lo := rng.IntN(n)
		var rows []int32
		for v := lo; v < n; v += 1 + int(seed/2%2) {
			rows = append(rows, int32(v))
		}
		h := Around(st.In, rows)
		if err := h.Edges.Validate(); err != nil || h.Edges.Rows() != len(rows) || h.Edges.Cols != h.Sources.N {
			t.Fatalf("seed %d: %d rows of %d columns, %v", seed, h.Edges.Rows(), h.Edges.Cols, err)
		}
		for i, v := range rows {
			var got []int32
			for _, u := range h.Edges.Col[h.Edges.RowPtr[i]:h.Edges.RowPtr[i+1]] {
				got = append(got, h.Sources.Store(int(u)))
			}
			if want := st.In.Col[st.In.RowPtr[v]:st.In.RowPtr[v+1]]; !slices.Equal(got, want) {
				t.Errorf("seed %d: row %d has %v, want %v", seed, v, got, want)
			}
			if st.In.Val != nil && !slices.Equal(h.Edges.Val[h.Edges.RowPtr[i]:h.Edges.RowPtr[i+1]], st.In.Val[st.In.RowPtr[v]:st.In.RowPtr[v+1]]) {
				t.Errorf("seed %d: row %d has other weights", seed, v)
			}
			if h.Sources.Store(int(h.Self[i])) != v {
				t.Errorf("seed %d: row %d is source %d", seed, v, h.Self[i])
			}
		}
	}
	st := randomStore(30, 90, 16, 1, true)
	if h := Around(st.In, nil); h.Edges != st.In || h.Self != nil || h.Sources.Rows != nil || h.Rows.N != 30 {
		t.Errorf("around all rows there is %+v", h)
	}
	if h := Around(st.In, []int32{}); h.Edges.Rows() != 0 || h.Sources.N != 0 {
		t.Errorf("around no rows there is %+v", h)
	}
}

// random is a graph with seeds, nil for all.
type random struct {
	rng   *rand.Rand
	st    *store.Store
	seeds []int32
}

func newRandom(seed uint64) *random {
	rng := rand.New(rand.NewPCG(seed, 2))
	n := 1 + rng.IntN(120)
	edges := rng.IntN(4*n + 1)
	if seed%4 == 1 { // everybody is everybody's neighbour
		edges *= 10
	}
	g := &random{rng: rng, st: randomStore(n, edges, 1+rng.IntN(30), seed, seed%2 == 0)}
	for v := range n {
		if seed%5 != 4 && rng.IntN(10) < 1+int(seed%3)*3 {
			g.seeds = append(g.seeds, int32(v))
		}
	}
	return g
}

// differs says where a partition's plan is another than the whole graph's.
func (g *random) differs(whole, p *Plan, opt Options) string {
	own := kernels.Span{Lo: min(p.Own.Lo*p.BlockRows, g.st.Meta.Vertices), Hi: min(p.Own.Hi*p.BlockRows, g.st.Meta.Vertices)}
	inside := func(rows []int32) []int32 {
		return slices.DeleteFunc(slices.Clone(rows), func(v int32) bool { return int(v) < own.Lo || int(v) >= own.Hi })
	}
	all := func(l *Level) []int32 {
		rows := make([]int32, l.N)
		for i := range rows {
			rows[i] = l.Store(i)
		}
		return rows
	}
	for k := range whole.Levels {
		w, l := &whole.Levels[k], &p.Levels[k]
		if p.Total[k] != whole.Total[k] {
			return fmt.Sprintf("level %d has %d rows in all, want %d", k, p.Total[k], whole.Total[k])
		}
		if want, got := inside(all(w)), inside(all(l)); !slices.Equal(want, got) {
			return fmt.Sprintf("level %d: own rows %v, want %v", k, got, want)
		}
		for b := p.Own.Lo; b < p.Own.Hi; b++ {
			if got, want := l.Block(b).Len(), w.Block(b).Len(); got != want {
				return fmt.Sprintf("level %d, block %d: %d rows, want %d", k, b, got, want)
			}
		}
		if opt.Seen {
			if got, want := p.SeenRows(k), whole.SeenRows(k); !slices.Equal(got, want) {
				return fmt.Sprintf("level %d: rows seen by block %v, want %v", k, got, want)
			}
			var got, want []int32
			for _, i := range p.Seen[k] {
				got = append(got, l.Store(int(i)))
			}
			for _, i := range whole.Seen[k] {
				want = append(want, w.Store(int(i)))
			}
			if !slices.Equal(inside(got), inside(want)) || (p.Seen[k] == nil) != (whole.Seen[k] == nil) {
				return fmt.Sprintf("level %d: seen %v, want %v", k, inside(got), inside(want))
			}
		}
	}
	for k := range whole.Hops {
		src, dst := k, k+1
		for _, dir := range []string{"forward", "backward"} {
			w, h := whole.Hops[k].Fwd, p.Hops[k].Fwd
			need := p.Needs[k].Fwd
			if dir == "backward" {
				src, dst, need = k+1, k, p.Needs[k].Bwd
				w, h = whole.Hops[k].Bwd, p.Hops[k].Bwd
			}
			if (w == nil) != (h == nil) {
				return fmt.Sprintf("hop %d %s: there is one %v, want %v", k, dir, h != nil, w != nil)
			}
			if w == nil {
				continue
			}
			if err := h.Validate(); err != nil {
				return fmt.Sprintf("hop %d %s: %v", k, dir, err)
			}
			var ghosts []int32
			for i := range h.Rows() {
				v := p.Levels[dst].Store(i)
				var got []int32
				for _, u := range h.Col[h.RowPtr[i]:h.RowPtr[i+1]] {
					got = append(got, p.Levels[src].Store(int(u)))
				}
				if int(v) < own.Lo || int(v) >= own.Hi {
					if len(got) > 0 {
						return fmt.Sprintf("hop %d %s: ghost %d has edges", k, dir, v)
					}
					continue
				}
				j := slices.Index(all(&whole.Levels[dst]), v)
				var want []int32
				for _, u := range w.Col[w.RowPtr[j]:w.RowPtr[j+1]] {
					want = append(want, whole.Levels[src].Store(int(u)))
				}
				if !slices.Equal(got, want) {
					return fmt.Sprintf("hop %d %s: row %d reads %v, want %v", k, dir, v, got, want)
				}
				for _, u := range got {
					if int(u) < own.Lo || int(u) >= own.Hi {
						ghosts = append(ghosts, u)
					}
				}
			}
			slices.Sort(ghosts)
			if ghosts = slices.Compact(ghosts); !slices.Equal(ghosts, need) {
				return fmt.Sprintf("hop %d %s: ghosts %v are listed, %v are read", k, dir, need, ghosts)
			}
		}
		if d := g.sameSelf(p, k); d != "" {
			return d
		}
	}
	return ""
}

// sameSelf checks that own rows find themselves in the level below.
func (g *random) sameSelf(p *Plan, k int) string {
	upper, lower := &p.Levels[k+1], &p.Levels[k]
	span := upper.Span(p.Own)
	for i := span.Lo; i < span.Hi; i++ {
		at := int32(i)
		if s := p.Hops[k].FwdSelf; s != nil {
			at = s[i]
		}
		if at < 0 || lower.Store(int(at)) != upper.Store(i) {
			return fmt.Sprintf("hop %d: row %d is row %d of the level below", k, i, at)
		}
	}
	return ""
}

// A partition that was started with another graph is found out.
func TestPartsOfAnotherGraphAreRefused(t *testing.T) {
	g := newRandom(7)
	part := &Part{Blocks: task.Range{Hi: 1}, Gather: func(_ string, mine []byte) ([][]byte, error) {
		return [][]byte{mine, mine[:8]}, nil
	}}
	if _, err := Build(g.st, Options{Levels: 2, Seeds: []int32{0}, Part: part}); err == nil {
		t.Error("half a message was accepted")
	}
	part.Gather = func(_ string, mine []byte) ([][]byte, error) { return [][]byte{mine, mine}, nil }
	if _, err := Build(g.st, Options{Levels: 2, Seeds: []int32{0}, Part: part}); err == nil {
		t.Error("rows that two partitions own were accepted")
	}
}

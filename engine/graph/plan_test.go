package graph

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"dorylus/engine/store"
	"dorylus/engine/task"
	"dorylus/kernels"
)

// randomStore is a directed graph without features.
func randomStore(n, edges, blockRows int, seed uint64, weighted bool) *store.Store {
	rng := rand.New(rand.NewPCG(seed, 1))
	in := make([]map[int32]float32, n)
	out := make([]map[int32]float32, n)
	for v := range n {
		in[v], out[v] = map[int32]float32{}, map[int32]float32{}
	}
	for range edges {
		u, v, w := int32(rng.IntN(n)), int32(rng.IntN(n)), rng.Float32()
		in[v][u], out[u][v] = w, w
	}
	csr := func(rows []map[int32]float32) *kernels.CSR {
		g := &kernels.CSR{Cols: n, RowPtr: []int64{0}}
		for _, row := range rows {
			var cols []int32
			for c := range row {
				cols = append(cols, c)
			}
			slices.Sort(cols)
			for _, c := range cols {
				g.Col = append(g.Col, c)
				if weighted {
					g.Val = append(g.Val, row[c])
				}
			}
			g.RowPtr = append(g.RowPtr, int64(len(g.Col)))
		}
		return g
	}
	return &store.Store{In: csr(in), Out: csr(out), Meta: store.Meta{Name: "random", Vertices: n, BlockRows: blockRows}}
}

func TestPlanHoldsWhatTheSeedsSee(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 2))
		n := 1 + rng.IntN(120)
		st := randomStore(n, rng.IntN(4*n+1), 1+rng.IntN(30), seed, seed%2 == 0)
		var seeds []int32
		for v := range n {
			if rng.IntN(10) == 0 {
				seeds = append(seeds, int32(v))
			}
		}
		if seeds == nil {
			seeds = []int32{int32(rng.IntN(n))}
		}
		p, err := Build(st, Options{Seeds: seeds, Levels: 3, Backward: []bool{true, true}})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for k, h := range p.Hops {
			checkHop(t, fmt.Sprintf("seed %d hop %d", seed, k), st, &p.Levels[k], &p.Levels[k+1], &h)
		}
		last := &p.Levels[2]
		if last.Rows != nil && !slices.Equal(last.Rows, seeds) {
			t.Errorf("seed %d: last level %v, want the seeds %v", seed, last.Rows, seeds)
		}
		for k := range p.Levels {
			checkBlocks(t, p, &p.Levels[k])
		}
	}
}

// checkHop compares a hop with the store, edge by edge.
func checkHop(t *testing.T, what string, st *store.Store, src, dst *Level, h *Hop) {
	t.Helper()
	at := src.index(st.Meta.Vertices)
	for i := range dst.N {
		v := dst.Store(i)
		lo, hi := st.In.RowPtr[v], st.In.RowPtr[v+1]
		got := h.Fwd.Col[h.Fwd.RowPtr[i]:h.Fwd.RowPtr[i+1]]
		if len(got) != int(hi-lo) {
			t.Fatalf("%s: row %d has %d in-edges, want %d: the level below misses in-neighbours", what, v, len(got), hi-lo)
		}
		for e, u := range st.In.Col[lo:hi] {
			if got[e] != at[u] {
				t.Fatalf("%s: row %d edge %d comes from %d, want %d", what, v, e, got[e], at[u])
			}
			if st.In.Val != nil && h.Fwd.Val[h.Fwd.RowPtr[i]+int64(e)] != st.In.Val[lo+int64(e)] {
				t.Fatalf("%s: row %d edge %d has another weight", what, v, e)
			}
		}
		if h.FwdSelf != nil && src.Store(int(h.FwdSelf[i])) != v {
			t.Fatalf("%s: row %d finds itself at %d", what, v, h.FwdSelf[i])
		}
	}
	if f, b := h.Fwd.Edges(), h.Bwd.Edges(); f != b {
		t.Fatalf("%s: %d edges forward, %d backward", what, f, b)
	}
	for u := range h.Bwd.Rows() {
		for e := h.Bwd.RowPtr[u]; e < h.Bwd.RowPtr[u+1]; e++ {
			v := h.Bwd.Col[e]
			row := h.Fwd.Col[h.Fwd.RowPtr[v]:h.Fwd.RowPtr[v+1]]
			if _, ok := slices.BinarySearch(row, int32(u)); !ok {
				t.Fatalf("%s: edge %d>%d is backward only", what, u, v)
			}
		}
	}
}

func checkBlocks(t *testing.T, p *Plan, l *Level) {
	t.Helper()
	for b := range p.Blocks {
		span := l.Block(b)
		for i := span.Lo; i < span.Hi; i++ {
			if got := int(l.Store(i)) / p.BlockRows; got != b {
				t.Fatalf("level row %d (store row %d) is in block %d, want %d", i, l.Store(i), b, got)
			}
		}
	}
	if l.BlockPtr[0] != 0 || l.BlockPtr[p.Blocks] != l.N {
		t.Fatalf("blocks cover [%d,%d) of %d rows", l.BlockPtr[0], l.BlockPtr[p.Blocks], l.N)
	}
}

func TestCutCoversAllBlocksOnce(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 3))
		n := 1 + rng.IntN(300)
		st := randomStore(n, rng.IntN(5*n), 1+rng.IntN(20), seed, false)
		p, err := Build(st, Options{Levels: 2})
		if err != nil {
			t.Fatal(err)
		}
		count := 1 + rng.IntN(40)
		cuts := p.Cut(count)
		if want := min(count, p.Blocks); len(cuts) != want {
			t.Fatalf("seed %d: %d intervals, want %d", seed, len(cuts), want)
		}
		at := 0
		for i, r := range cuts {
			if r.Lo != at || r.Hi <= r.Lo {
				t.Fatalf("seed %d: interval %d is [%d,%d) after block %d", seed, i, r.Lo, r.Hi, at)
			}
			at = r.Hi
		}
		if at != p.Blocks {
			t.Fatalf("seed %d: %d of %d blocks are in an interval", seed, at, p.Blocks)
		}
	}
}

// A hub in the first block: equal rows would give one interval nearly all edges.
func TestCutBalancesEdges(t *testing.T) {
	const n, blocks, rows = 6400, 64, 100
	in := &kernels.CSR{Cols: n, RowPtr: []int64{0}}
	for v := range n {
		deg := 1 + 200*(n-v)/n
		for u := range deg {
			in.Col = append(in.Col, int32(u))
		}
		in.RowPtr = append(in.RowPtr, int64(len(in.Col)))
	}
	st := &store.Store{In: in, Out: in, Meta: store.Meta{Vertices: n, BlockRows: rows}}
	p, err := Build(st, Options{Levels: 2})
	if err != nil {
		t.Fatal(err)
	}
	cuts := p.Cut(8)
	most := int64(0)
	for _, r := range cuts {
		s := p.Levels[1].Span(r)
		most = max(most, in.RowPtr[s.Hi]-in.RowPtr[s.Lo])
	}
	if share := float64(most) * 8 / float64(in.Edges()); share > 1.3 {
		t.Errorf("the largest of 8 intervals has %.2f times its share of the edges", share)
	}
}

func TestSourcesAreThoseWhoseRowsAreRead(t *testing.T) {
	st := randomStore(200, 300, 10, 7, false)
	p, err := Build(st, Options{Levels: 2})
	if err != nil {
		t.Fatal(err)
	}
	cuts := p.Cut(6)
	of := func(v int32) int32 {
		return int32(slices.IndexFunc(cuts, func(r task.Range) bool { s := p.Levels[0].Span(r); return int(v) >= s.Lo && int(v) < s.Hi }))
	}
	got := Sources(p.Hops[0].Fwd, &p.Levels[1], &p.Levels[0], cuts, task.Range{Lo: 2, Hi: 5}, true)
	for i := 2; i < 5; i++ {
		want := []int32{int32(i)}
		s := p.Levels[1].Span(cuts[i])
		for e := st.In.RowPtr[s.Lo]; e < st.In.RowPtr[s.Hi]; e++ {
			if j := of(st.In.Col[e]); !slices.Contains(want, j) {
				want = append(want, j)
			}
		}
		slices.Sort(want)
		if !slices.Equal(got[i-2], want) {
			t.Errorf("interval %d reads %v, want %v", i, got[i-2], want)
		}
	}
}

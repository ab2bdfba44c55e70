package graph

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"dorylus/engine/store"
	"dorylus/engine/task"
	"dorylus/kernels"
)

// randomGraph is a directed graph of n vertices, in blocks of 16.
func randomGraph(rng *rand.Rand, n int) *store.Store {
	st := &store.Store{Meta: store.Meta{Name: "random", Vertices: n, BlockRows: 16}}
	rows := func(in [][]int32) *kernels.CSR {
		g := &kernels.CSR{Cols: n, RowPtr: []int64{0}}
		for _, r := range in {
			g.Col = append(g.Col, r...)
			g.RowPtr = append(g.RowPtr, int64(len(g.Col)))
		}
		return g
	}
	in, out := make([][]int32, n), make([][]int32, n)
	for v := range n {
		for u := range n {
			if near := max(u-v, v-u) < 10; near && rng.IntN(3) == 0 || rng.IntN(200) == 0 {
				in[v] = append(in[v], int32(u))
				out[u] = append(out[u], int32(v))
			}
		}
	}
	st.In, st.Out = rows(in), rows(out)
	st.Meta.Edges = int64(st.In.Edges())
	return st
}

// The plain definition: sets of rows.
func TestGhostsAgainstSets(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 9))
		st := randomGraph(rng, 1+rng.IntN(300))
		parts := 1 + rng.IntN(6)
		cuts := Partition(st, nil, parts)
		var edgesIn, edgesOut int64
		for own, r := range cuts {
			g, err := FindGhosts(context.Background(), st, cuts, own)
			if err != nil {
				t.Fatal(err)
			}
			mine := BlockSpan(&st.Meta, r)
			for dir, d := range map[string]struct {
				side *Side
				csr  *kernels.CSR
				sum  *int64
			}{"forward": {g.Forward, st.In, &edgesIn}, "backward": {g.Backward, st.Out, &edgesOut}} {
				edges, sets := make([]int64, parts), make([]map[int32]bool, parts)
				for p := range sets {
					sets[p] = map[int32]bool{}
				}
				for v := mine.Lo; v < mine.Hi; v++ {
					for _, u := range d.csr.Col[d.csr.RowPtr[v]:d.csr.RowPtr[v+1]] {
						p := slices.IndexFunc(cuts, func(r task.Range) bool { return r.Has(int(u) / 16) })
						if p != own {
							edges[p]++
							sets[p][u] = true
						}
					}
				}
				for p := range sets {
					want := slices.Sorted(maps.Keys(sets[p]))
					got := d.side.List(BlockSpan(&st.Meta, cuts[p]))
					if !slices.Equal(got, want) || d.side.Rows[p] != int64(len(want)) || d.side.Edges[p] != edges[p] {
						t.Errorf("seed %d, partition %d %s: of %d, %d rows %v and %d edges; want %d rows %v and %d edges",
							seed, own, dir, p, d.side.Rows[p], got, d.side.Edges[p], len(want), want, edges[p])
					}
				}
				_, cut := d.side.Total()
				*d.sum += cut
			}
		}
		if edgesIn != edgesOut {
			t.Errorf("seed %d: %d edges are cut forward, %d backward", seed, edgesIn, edgesOut)
		}
	}
}

func TestSurvey(t *testing.T) {
	// Two blocks of 16, and one edge from row 0 to rows 16 and 17, one from 20 to 1,
	// and one inside each block.
	n := 32
	edges := [][2]int32{{0, 16}, {0, 17}, {2, 3}, {20, 1}, {21, 22}} // source, destination
	st := &store.Store{Meta: store.Meta{Name: "two blocks", Vertices: n, Edges: int64(len(edges)), BlockRows: 16}}
	csr := func(at, to int) *kernels.CSR {
		g := &kernels.CSR{Cols: n, RowPtr: make([]int64, 1)}
		for v := range int32(n) {
			for _, e := range edges {
				if e[at] == v {
					g.Col = append(g.Col, e[to])
				}
			}
			g.RowPtr = append(g.RowPtr, int64(len(g.Col)))
		}
		return g
	}
	st.In, st.Out = csr(1, 0), csr(0, 1)
	got, err := Survey(context.Background(), st, "s", []int32{0, 1, 30}, []task.Range{{Lo: 0, Hi: 1}, {Lo: 1, Hi: 2}, {Lo: 2, Hi: 2}})
	if err != nil {
		t.Fatal(err)
	}
	const perRow = 8 + 8 + 4
	want := &store.PartitionsMeta{Split: "s", CutEdges: 3, CutFraction: 0.6, GhostBytes: 4 * (2 + 3), Parts: []store.PartitionMeta{
		{FirstBlock: 0, Blocks: 1, Rows: 16, Edges: 2 + 3, Train: 2, Bytes: 4*5 + 16*perRow, GhostsForward: 1, CutIn: 1, GhostsBackward: 2, CutOut: 2, GhostBytes: 12},
		{FirstBlock: 1, Blocks: 1, Rows: 16, Edges: 3 + 2, Train: 1, Bytes: 4*5 + 16*perRow, GhostsForward: 1, CutIn: 2, GhostsBackward: 1, CutOut: 1, GhostBytes: 8},
		{FirstBlock: 2},
	}}
	if g, w := fmt.Sprintf("%+v", *got), fmt.Sprintf("%+v", *want); g != w {
		t.Errorf("survey:\n%s, want\n%s", g, w)
	}
}

func TestGhostsStopWhenTold(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	st := randomGraph(rand.New(rand.NewPCG(1, 1)), 40)
	if _, err := FindGhosts(ctx, st, Partition(st, nil, 2), 0); err == nil {
		t.Error("a cancelled search ends without an error")
	}
}

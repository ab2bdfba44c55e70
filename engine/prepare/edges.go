package prepare

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"dorylus/engine/dataset"
	"dorylus/engine/store"
	"dorylus/kernels"
)

// canonical is the graph in the user's vertex order with every decision about
// its edges made. Columns ascend without repeats.
type canonical struct {
	in, out *kernels.CSR // in: rows are destinations; out: rows are sources
	changes []string
}

// symmetric says that one CSR serves as both.
func (c *canonical) symmetric() bool { return c.in == c.out }

// canonicalise makes the edge records into a graph:
//
//  1. Records of the same (src, dst) become one edge; weights are added in
//     record order, in float64, and rounded once. This gives A.
//  2. Self-loops are dropped if asked for.
//  3. An undirected graph becomes the union of A and its transpose. A weight
//     given in one direction holds for both; where both are given the larger
//     one holds, so the two listings of one edge never add up. For weights that
//     are not negative this is A.maximum(A.T) of scipy.
func canonicalise(raw *dataset.Raw, opt Options) (*canonical, error) {
	if err := checkEdges(raw); err != nil {
		return nil, err
	}
	c := &canonical{}
	src, dst, w := raw.Src, raw.Dst, raw.Weight
	undirected := opt.Direction == Undirected || opt.Direction == Auto && raw.Undirected
	if opt.Direction == Reverse {
		src, dst = dst, src
		c.note(int64(len(src)), "turned %d edge around", "turned %d edges around")
	}
	g, err := bySource(raw.N, src, dst, w, opt.Threads)
	if err != nil {
		return nil, err
	}
	if opt.Consume {
		raw.Src, raw.Dst, raw.Weight = nil, nil, nil
	}
	src, dst, w = nil, nil, nil
	g = transpose(g, nil, nil, opt.Threads) // rows are destinations now, columns ascend
	loops, merged, err := compact(g, opt.SelfLoops == Remove, opt.Threads)
	if err != nil {
		return nil, err
	}
	c.note(merged, "merged %d duplicate edge", "merged %d duplicate edges")
	c.note(loops, "removed %d self-loop", "removed %d self-loops")

	c.in = g
	switch {
	case symmetric(g, opt.Threads):
		c.out = g
	case undirected:
		u, conflicts := union(g, transpose(g, nil, nil, opt.Threads), opt.Threads)
		c.in, c.out = u, u
		c.note(int64(u.Edges()-g.Edges()), "added %d reverse edge", "added %d reverse edges")
		c.note(conflicts, "took the larger weight for %d edge whose directions had different ones",
			"took the larger weight for %d edges whose directions had different ones")
	default:
		c.out = transpose(g, nil, nil, opt.Threads)
	}
	return c, nil
}

// note records a change that was made count times.
func (c *canonical) note(count int64, one, many string) {
	if count == 1 {
		c.changes = append(c.changes, fmt.Sprintf(one, count))
	} else if count > 1 {
		c.changes = append(c.changes, fmt.Sprintf(many, count))
	}
}

// checkEdges refuses records that cannot be edges.
func checkEdges(raw *dataset.Raw) error {
	if raw.N < 0 || raw.N > math.MaxInt32 {
		return fmt.Errorf("%d vertices: ids are 32-bit, at most %d fit", raw.N, math.MaxInt32)
	}
	if len(raw.Src) != len(raw.Dst) {
		return fmt.Errorf("%d sources but %d destinations of edges", len(raw.Src), len(raw.Dst))
	}
	if raw.Weight != nil && len(raw.Weight) != len(raw.Src) {
		return fmt.Errorf("%d edge weights for %d edge records", len(raw.Weight), len(raw.Src))
	}
	for i, w := range raw.Weight {
		if f := float64(w); math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("edge record %d (%d -> %d) has weight %v: give every edge a finite weight", i, raw.Src[i], raw.Dst[i], w)
		}
	}
	return nil
}

// compact merges equal neighbouring columns of each row in place, adding their
// values, and drops the diagonal if asked for. It returns how many entries of
// the diagonal were dropped and how many entries were merged into others.
func compact(g *kernels.CSR, dropDiagonal bool, threads int) (dropped, merged int64, err error) {
	parts := workers(threads, 0, int64(g.Edges()))
	cut := cutRows(g, nil, parts)
	start := make([]int64, parts+1)
	for t := range start {
		start[t] = g.RowPtr[cut[t]]
	}
	kept := make([]int64, parts) // part t keeps [start[t],kept[t])
	var drops, merges, infinite atomic.Int64
	infinite.Store(-1)
	perWorker(parts, func(t int) {
		e, to := start[t], start[t]
		var nd, nm int64
		for v := cut[t]; v < cut[t+1]; v++ {
			end := start[t+1]
			if v+1 < cut[t+1] {
				end = g.RowPtr[v+1]
			}
			g.RowPtr[v] = to
			for e < end {
				u, from := g.Col[e], e
				sum := 0.0
				for ; e < end && g.Col[e] == u; e++ {
					if g.Val != nil {
						sum += float64(g.Val[e])
					}
				}
				nm += e - from - 1
				if dropDiagonal && int(u) == v {
					nd++
					continue
				}
				g.Col[to] = u
				if g.Val != nil {
					g.Val[to] = float32(sum)
					if math.IsInf(float64(g.Val[to]), 0) {
						infinite.Store(int64(v))
					}
				}
				to++
			}
		}
		kept[t] = to
		drops.Add(nd)
		merges.Add(nm)
	})
	if v := infinite.Load(); v >= 0 {
		return 0, 0, fmt.Errorf("the weights of duplicate edges at vertex %d add up to infinity: scale the weights down", v)
	}
	closeGaps(g, cut, start, kept)
	return drops.Load(), merges.Load(), nil
}

// closeGaps moves the parts of a compacted graph together and trims it.
func closeGaps(g *kernels.CSR, cut []int, start, kept []int64) {
	to := int64(0)
	for t := range kept {
		n := kept[t] - start[t]
		if shift := start[t] - to; shift > 0 {
			copy(g.Col[to:], g.Col[start[t]:kept[t]])
			if g.Val != nil {
				copy(g.Val[to:], g.Val[start[t]:kept[t]])
			}
			for v := cut[t]; v < cut[t+1]; v++ {
				g.RowPtr[v] -= shift
			}
		}
		to += n
	}
	g.RowPtr[len(g.RowPtr)-1] = to
	if wasted := int64(len(g.Col)) - to; wasted > to/8 {
		g.Col = slices.Clone(g.Col[:to])
		if g.Val != nil {
			g.Val = slices.Clone(g.Val[:to])
		}
	} else if wasted > 0 {
		g.Col = g.Col[:to:to]
		if g.Val != nil {
			g.Val = g.Val[:to:to]
		}
	}
}

// union is the entrywise maximum of a and b where both have an entry, and the
// one that is there elsewhere. conflicts counts the pairs (u,v), u < v, whose
// two values differ.
func union(a, b *kernels.CSR, threads int) (sum *kernels.CSR, conflicts int64) {
	n := a.Rows()
	parts := workers(threads, 0, int64(a.Edges()))
	cut := cutRows(a, nil, parts)
	u := &kernels.CSR{Cols: n, RowPtr: make([]int64, n+1)}
	perWorker(parts, func(t int) {
		for v := cut[t]; v < cut[t+1]; v++ {
			var n int64
			mergeRow(a, b, v, func(_ int32, _, _ int64) { n++ })
			u.RowPtr[v+1] = n
		}
	})
	for v := range n {
		u.RowPtr[v+1] += u.RowPtr[v]
	}
	u.Col = store.OnHugePages(make([]int32, u.Edges()))
	if a.Val != nil {
		u.Val = store.OnHugePages(make([]float32, u.Edges()))
	}
	var differ atomic.Int64
	perWorker(parts, func(t int) {
		var nd int64
		for v := cut[t]; v < cut[t+1]; v++ {
			e := u.RowPtr[v]
			mergeRow(a, b, v, func(col int32, ea, eb int64) {
				u.Col[e] = col
				if u.Val != nil {
					switch {
					case ea < 0:
						u.Val[e] = b.Val[eb]
					case eb < 0:
						u.Val[e] = a.Val[ea]
					default:
						u.Val[e] = max(a.Val[ea], b.Val[eb])
						if a.Val[ea] != b.Val[eb] && int(col) < v {
							nd++
						}
					}
				}
				e++
			})
		}
		differ.Add(nd)
	})
	return u, differ.Load()
}

// mergeRow calls emit for each column of row v of a or b, ascending, with the
// entries that hold it; -1: none.
func mergeRow(a, b *kernels.CSR, v int, emit func(col int32, ea, eb int64)) {
	i, iEnd := a.RowPtr[v], a.RowPtr[v+1]
	j, jEnd := b.RowPtr[v], b.RowPtr[v+1]
	for i < iEnd || j < jEnd {
		switch {
		case j == jEnd || i < iEnd && a.Col[i] < b.Col[j]:
			emit(a.Col[i], i, -1)
			i++
		case i == iEnd || b.Col[j] < a.Col[i]:
			emit(b.Col[j], -1, j)
			j++
		default:
			emit(a.Col[i], i, j)
			i, j = i+1, j+1
		}
	}
}

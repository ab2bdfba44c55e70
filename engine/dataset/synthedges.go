package dataset

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// drawEdge draws the ends of an edge of the model; first >= 0 fixes one end.
type drawEdge func(r *rng, first int) (u, v int)

// synthChunk is how many edges share a stream of random numbers: the unit of
// parallel work, so that the graph does not depend on the number of cores.
const synthChunk = 1 << 16

// edges fills raw with that many different edges without loops, source below
// destination, ascending. Beside them it needs 4 bytes an edge and 8 a vertex.
func (s synthSpec) edges(ctx context.Context, raw *Raw, records int, perm []int32, draw drawEdge) error {
	raw.Src, raw.Dst = make([]int32, records), make([]int32, records)
	if err := s.candidates(ctx, 0, raw.Src, raw.Dst, perm, draw); err != nil {
		return err
	}
	g := distinct(s.n, raw.Src, raw.Dst)
	var extra []uint64 // more edges, src<<32|dst, ascending, none of them in g
	const rounds = 100
	for round := uint64(1); len(extra) < records-g.kept; round++ {
		if round > rounds {
			return fmt.Errorf("after %d attempts %d of %d edges still repeat others; use a smaller degree or fewer classes", rounds, records-g.kept-len(extra), records)
		}
		missing := records - g.kept - len(extra)
		src, dst := make([]int32, missing), make([]int32, missing)
		if err := s.candidates(ctx, round, src, dst, perm, draw); err != nil {
			return err
		}
		for i, u := range src {
			if u >= 0 && !g.has(u, dst[i]) {
				extra = append(extra, uint64(u)<<32|uint64(uint32(dst[i])))
			}
		}
		slices.Sort(extra)
		extra = slices.Compact(extra)
	}
	g.write(raw, extra)
	return nil
}

// candidates fills src and dst with drawn edges, -1 for a loop. In round 0 an rmat
// graph first gives each vertex an edge.
func (s synthSpec) candidates(ctx context.Context, round uint64, src, dst []int32, perm []int32, draw drawEdge) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for ctx.Err() == nil {
				c := int(next.Add(1)) - 1
				lo := c * synthChunk
				if lo >= len(src) {
					return
				}
				r := newRNG(s.seed, streamEdges+round<<40+uint64(c)<<8)
				for i := lo; i < min(lo+synthChunk, len(src)); i++ {
					first := -1
					if s.kind == "rmat" && round == 0 && i < s.n {
						first = i
					}
					a, b := draw(r, first)
					u, v := perm[a], perm[b]
					if u == v {
						u, v = -1, -1
					}
					src[i], dst[i] = min(u, v), max(u, v)
				}
			}
		})
	}
	wg.Wait()
	return ctx.Err()
}

// edgeSet is different edges as CSR over sources: row u is col[ptr[u]:end[u]], ascending.
type edgeSet struct {
	ptr  []int64
	end  []int64
	col  []int32
	kept int
}

// distinct is the set of the edges src -> dst that are no loops.
func distinct(n int, src, dst []int32) *edgeSet {
	g := &edgeSet{ptr: make([]int64, n+1), end: make([]int64, n), col: make([]int32, len(src))}
	for _, u := range src {
		if u >= 0 {
			g.ptr[u+1]++
		}
	}
	for u := range n {
		g.ptr[u+1] += g.ptr[u]
		g.end[u] = g.ptr[u]
	}
	for i, u := range src {
		if u >= 0 {
			g.col[g.end[u]] = dst[i]
			g.end[u]++
		}
	}
	var kept atomic.Int64
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			sum := 0
			const step = 1024
			for lo := int(next.Add(step)) - step; lo < n; lo = int(next.Add(step)) - step {
				for u := lo; u < min(lo+step, n); u++ {
					row := g.col[g.ptr[u]:g.end[u]]
					slices.Sort(row)
					left := len(slices.Compact(row))
					g.end[u] = g.ptr[u] + int64(left)
					sum += left
				}
			}
			kept.Add(int64(sum))
		})
	}
	wg.Wait()
	g.kept = int(kept.Load())
	return g
}

func (g *edgeSet) has(u, v int32) bool {
	_, found := slices.BinarySearch(g.col[g.ptr[u]:g.end[u]], v)
	return found
}

// write puts g's edges and the extra ones into raw, ascending.
func (g *edgeSet) write(raw *Raw, extra []uint64) {
	w := 0
	put := func(u, v int32) {
		raw.Src[w], raw.Dst[w] = u, v
		w++
	}
	for u := range g.end {
		for _, v := range g.col[g.ptr[u]:g.end[u]] {
			for len(extra) > 0 && extra[0] < uint64(u)<<32|uint64(uint32(v)) {
				put(int32(extra[0]>>32), int32(uint32(extra[0])))
				extra = extra[1:]
			}
			put(int32(u), v)
		}
	}
	for _, e := range extra {
		put(int32(e>>32), int32(uint32(e)))
	}
}

// sbm is the degree-corrected block model. Vertices of the model are numbered class
// by class.
func (s synthSpec) sbm() (drawEdge, []int32) {
	class := make([]int32, s.n)
	weight := make([]uint64, s.n)
	r := newRNG(s.seed, streamWeights)
	start := make([]int, s.classes+1)
	for k := range s.classes {
		start[k+1] = int(int64(k+1) * int64(s.n) / int64(s.classes))
		for v := start[k]; v < start[k+1]; v++ {
			class[v] = int32(k)
			weight[v] = paretoWeight(r)
		}
	}
	all := newAlias(weight)
	within := make([]*alias, s.classes)
	for k := range within {
		within[k] = newAlias(weight[start[k]:start[k+1]])
	}
	intra := threshold(s.intra)
	return func(r *rng, _ int) (u, v int) {
		u = all.pick(r)
		if r.next()>>1 < intra {
			k := class[u]
			return u, start[k] + within[k].pick(r)
		}
		return u, all.pick(r)
	}, class
}

// rmat draws from Graph500's R-MAT. Classes take turns along the model's numbering;
// for an edge within a class, the second end moves to the nearest vertex of the
// first one's class, which leaves the degrees as they are.
func (s synthSpec) rmat() (drawEdge, []int32) {
	class := make([]int32, s.n)
	for v := range class {
		class[v] = int32(v % s.classes)
	}
	scale := 0
	for 1<<scale < s.n {
		scale++
	}
	intra := threshold(s.intra)
	return func(r *rng, first int) (u, v int) {
		for range scale {
			// Quadrants 0.57, 0.19, 0.19, 0.05 as parts of 2^16.
			q := r.next() >> 48
			u, v = u<<1, v<<1
			switch {
			case q < 37356:
			case q < 49808:
				v |= 1
			case q < 62260:
				u |= 1
			default:
				u, v = u|1, v|1
			}
		}
		if first >= 0 {
			u = first
		}
		if r.next()>>1 < intra {
			v += u%s.classes - v%s.classes
			if v >= s.n {
				v -= s.classes
			}
		}
		return u, v
	}, class
}

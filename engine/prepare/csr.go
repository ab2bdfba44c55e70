package prepare

import (
	"fmt"
	"sync"

	"dorylus/engine/store"
	"dorylus/kernels"
)

// Counting sorts of edges. Every worker counts its own share of the input, in
// its own row of counters, and then places it: the result is stable (equal keys
// stay in input order) and depends on no number of workers. Placing the rows of
// a CSR in ascending order into the rows of its transpose sorts the columns, so
// nothing here compares.

// perWorker runs f for each part of a cut and waits for all.
func perWorker(parts int, f func(t int)) {
	if parts == 1 {
		f(0)
		return
	}
	var wg sync.WaitGroup
	for t := range parts {
		wg.Go(func() { f(t) })
	}
	wg.Wait()
}

// workers is how many workers a sort of e edges over n keys uses: as many as
// asked for, as long as their counters stay small beside the edges.
func workers(threads, n int, e int64) int {
	t := max(1, min(threads, 16))
	for t > 1 && (e < 1<<14 || int64(t)*int64(n)*8 > max(64<<20, e*4)) {
		t--
	}
	return t
}

// cutEven cuts [0,n) into equal parts: part t is [cut[t],cut[t+1]).
func cutEven(n, parts int) []int {
	cut := make([]int, parts+1)
	for t := range cut {
		cut[t] = int(int64(n) * int64(t) / int64(parts))
	}
	return cut
}

// cutRows cuts the rows of g, taken in the given order (nil: ascending), into
// parts of about equal numbers of edges.
func cutRows(g *kernels.CSR, order []int32, parts int) []int {
	n := g.Rows()
	cut := make([]int, parts+1)
	cut[parts] = n
	var seen int64
	t := 1
	for i := range n {
		for t < parts && seen >= int64(g.Edges())*int64(t)/int64(parts) {
			cut[t] = i
			t++
		}
		v := i
		if order != nil {
			v = int(order[i])
		}
		seen += g.RowPtr[v+1] - g.RowPtr[v]
	}
	for ; t < parts; t++ {
		cut[t] = n
	}
	return cut
}

// offsets turns each worker's counts into the places where it puts its first
// edge of every key, and returns the row offsets.
func offsets(n int, count [][]int64) []int64 {
	ptr := make([]int64, n+1)
	var at int64
	for k := range n {
		ptr[k] = at
		for t := range count {
			c := count[t][k]
			count[t][k] = at
			at += c
		}
	}
	ptr[n] = at
	return ptr
}

// bySource sorts edge records into rows by their source; within a row they stay
// in the order of the records. An endpoint outside [0,n) is an error.
func bySource(n int, src, dst []int32, w []float32, threads int) (*kernels.CSR, error) {
	parts := workers(threads, n, int64(len(src)))
	cut := cutEven(len(src), parts)
	count := make([][]int64, parts)
	bad := make([]int, parts)
	perWorker(parts, func(t int) {
		c := make([]int64, n)
		bad[t] = -1
		for i := cut[t]; i < cut[t+1]; i++ {
			if uint32(src[i]) >= uint32(n) || uint32(dst[i]) >= uint32(n) {
				bad[t] = i
				return
			}
			c[src[i]]++
		}
		count[t] = c
	})
	for _, i := range bad {
		if i >= 0 {
			return nil, fmt.Errorf("edge record %d is %d -> %d, but vertices are 0..%d", i, src[i], dst[i], n-1)
		}
	}
	g := &kernels.CSR{Cols: n, RowPtr: offsets(n, count), Col: store.OnHugePages(make([]int32, len(src)))}
	if w != nil {
		g.Val = store.OnHugePages(make([]float32, len(src)))
	}
	perWorker(parts, func(t int) {
		s := newScatter(count[t], g, cut[t+1]-cut[t])
		for i := cut[t]; i < cut[t+1]; i++ {
			var x float32
			if w != nil {
				x = w[i]
			}
			s.add(src[i], dst[i], x)
		}
		s.flush()
	})
	return g, nil
}

// transpose is the transpose of g after renumbering: vertex order[i] of g is i
// in the result, and rank is the inverse of order. nil for both keeps the
// numbers. Columns of the result ascend within a row; equal ones keep the order
// they had in g.
func transpose(g *kernels.CSR, order, rank []int32, threads int) *kernels.CSR {
	n := g.Rows()
	parts := workers(threads, g.Cols, int64(g.Edges()))
	cut := cutRows(g, order, parts)
	count := make([][]int64, parts)
	each := func(t int, do func(i int32, cols []int32, e int64)) {
		for i := cut[t]; i < cut[t+1]; i++ {
			v := int32(i)
			if order != nil {
				v = order[i]
			}
			lo, hi := g.RowPtr[v], g.RowPtr[v+1]
			do(int32(i), g.Col[lo:hi], lo)
		}
	}
	perWorker(parts, func(t int) {
		c := make([]int64, g.Cols)
		each(t, func(_ int32, cols []int32, _ int64) {
			if rank == nil {
				for _, u := range cols {
					c[u]++
				}
				return
			}
			for _, u := range cols {
				c[rank[u]]++
			}
		})
		count[t] = c
	})
	out := &kernels.CSR{Cols: n, RowPtr: offsets(g.Cols, count), Col: store.OnHugePages(make([]int32, g.Edges()))}
	if g.Val != nil {
		out.Val = store.OnHugePages(make([]float32, g.Edges()))
	}
	perWorker(parts, func(t int) {
		s := newScatter(count[t], out, g.Edges()/parts)
		each(t, func(i int32, cols []int32, e int64) {
			for k, u := range cols {
				if rank != nil {
					u = rank[u]
				}
				var w float32
				if g.Val != nil {
					w = g.Val[e+int64(k)]
				}
				s.add(u, i, w)
			}
		})
		s.flush()
	})
	return out
}

// symmetric reports whether g, whose columns ascend without repeats, equals its
// transpose, values included.
func symmetric(g *kernels.CSR, threads int) bool {
	n := g.Rows()
	if n != g.Cols {
		return false
	}
	parts := workers(threads, n, int64(g.Edges()))
	cut := cutRows(g, nil, parts)
	same := make([]bool, parts)
	perWorker(parts, func(t int) {
		// at[u] is the next entry of row u that no edge has been matched with.
		// As edges (v,u) come by ascending v, it must be the one in column v.
		at := make([]int64, n)
		for u := range n {
			lo, hi := g.RowPtr[u], g.RowPtr[u+1]
			for first := int32(cut[t]); lo < hi; {
				if mid := (lo + hi) / 2; g.Col[mid] < first {
					lo = mid + 1
				} else {
					hi = mid
				}
			}
			at[u] = lo
		}
		for v := cut[t]; v < cut[t+1]; v++ {
			for e := g.RowPtr[v]; e < g.RowPtr[v+1]; e++ {
				u := g.Col[e]
				back := at[u]
				if back == g.RowPtr[u+1] || g.Col[back] != int32(v) || g.Val != nil && g.Val[back] != g.Val[e] {
					return
				}
				at[u]++
			}
		}
		same[t] = true
	})
	for _, ok := range same {
		if !ok {
			return false
		}
	}
	return true
}

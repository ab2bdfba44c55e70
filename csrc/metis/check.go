package metis

import (
	"fmt"
	"math"
)

// check refuses graphs that METIS would crash on or cut wrongly: it must be
// symmetric, columns ascending, without self-loops, and have fewer than 2^31
// entries.
func check(n int, rowPtr []int64, col []int32, parts int) error {
	if n < 0 || n > math.MaxInt32 || len(rowPtr) != n+1 {
		return fmt.Errorf("%d row offsets for %d vertices", len(rowPtr), n)
	}
	if len(col) > math.MaxInt32 {
		return fmt.Errorf("%d entries: METIS takes at most %d", len(col), math.MaxInt32)
	}
	if parts < 1 || parts > max(n, 1) {
		return fmt.Errorf("%d parts of %d vertices: want 1 to %d", parts, n, max(n, 1))
	}
	if rowPtr[0] != 0 || rowPtr[n] != int64(len(col)) {
		return fmt.Errorf("offsets run from %d to %d over %d entries", rowPtr[0], rowPtr[n], len(col))
	}
	for v := range n {
		if rowPtr[v] > rowPtr[v+1] {
			return fmt.Errorf("row %d starts at %d, after its end %d", v, rowPtr[v], rowPtr[v+1])
		}
	}
	// As the entries (v,u) come by ascending v, each must match the next entry of
	// row u that none has matched yet.
	at := append([]int64(nil), rowPtr[:n]...)
	for v := range n {
		before := int32(-1)
		for _, u := range col[rowPtr[v]:rowPtr[v+1]] {
			if u <= before || int(u) >= n || int(u) == v {
				return fmt.Errorf("row %d has column %d after %d: want ascending ones in 0..%d, without %d itself", v, u, before, n-1, v)
			}
			before = u
			if at[u] == rowPtr[u+1] || int(col[at[u]]) != v {
				return fmt.Errorf("the graph is not symmetric: %d -> %d has no reverse, or %d -> %d none", v, u, u, v)
			}
			at[u]++
		}
	}
	return nil
}

// trivial is the cut of a graph that METIS must not see: one part, or no edges,
// where runs of vertices are as good as anything. ok is false if there is work.
func trivial(n int, entries int, parts int) (part []int32, ok bool) {
	if parts > 1 && entries > 0 {
		return nil, false
	}
	part = make([]int32, n)
	for v := range part {
		part[v] = int32(int64(v) * int64(parts) / int64(n))
	}
	return part, true
}

// checkResult refuses parts out of range, and a result that nobody wrote.
func checkResult(part []int32, parts int) error {
	for v, p := range part {
		if p < 0 || int(p) >= parts {
			return fmt.Errorf("METIS put vertex %d of %d into part %d of %d", v, len(part), p, parts)
		}
	}
	return nil
}

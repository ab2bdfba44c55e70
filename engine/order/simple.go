package order

import "slices"

// identity is 0..n-1.
func identity(n int) []int32 {
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	return order
}

// degree is the number of neighbours of v, both ways.
func degree(g Graph, v int32) int64 {
	var d int64
	for _, s := range g.sides() {
		d += s.RowPtr[v+1] - s.RowPtr[v]
	}
	return d
}

// byDegree puts the vertices with most edges first; equal ones stay in the
// user's order. It helps graphs of hubs (RMAT, web) and harms communities.
func byDegree(g Graph) []int32 {
	order := identity(g.Rows())
	slices.SortFunc(order, byFallingDegree(g))
	return order
}

// byFallingDegree compares vertices: more edges first, then in the user's order.
func byFallingDegree(g Graph) func(a, b int32) int {
	return func(a, b int32) int {
		if da, db := degree(g, a), degree(g, b); da != db {
			return int(db - da)
		}
		return int(a) - int(b)
	}
}

// byHash shuffles the vertices by a hash of seed and vertex.
func byHash(n int, seed uint64) []int32 {
	order := identity(n)
	slices.SortFunc(order, func(a, b int32) int {
		x, y := mix(seed, uint64(a)), mix(seed, uint64(b))
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return int(a) - int(b)
	})
	return order
}

// mix hashes x under seed: the finaliser of SplitMix64 over their combination.
func mix(seed, x uint64) uint64 {
	z := seed + (x+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

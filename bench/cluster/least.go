package main

import (
	"fmt"

	"dorylus/engine/store"
)

// leastRows are the rows that have to cross between partitions for an epoch of a model of
// two layers whose first gather is done once a run: forward, each vertex that a partition
// needs for its training vertices; backward, each training vertex whose gradient a
// partition needs. They are counted here from the edges, one by one.
type leastRows struct{ Forward, Backward int64 }

// bytes are those of rows of so many float32.
func (n leastRows) bytes(width int) int64 { return 4 * int64(width) * (n.Forward + n.Backward) }

// countLeast counts the rows for the partitions of a cut of the store in dir.
func countLeast(dir string, c cut) (n leastRows, classes int, err error) {
	st, err := store.Open(dir, store.OpenOptions{})
	if err != nil {
		return n, 0, err
	}
	defer func() {
		if e := st.Close(); err == nil {
			err = e
		}
	}()
	if len(st.Splits) == 0 {
		return n, 0, fmt.Errorf("store %s has no split", dir)
	}
	owner := owners(c, st.Meta.Vertices)
	trains := make([]bool, st.Meta.Vertices)
	for _, v := range st.Splits[0].Train {
		trains[v] = true
	}
	return leastOf(st.In.RowPtr, st.In.Col, owner, trains, len(c.Parts)), st.Meta.Classes, nil
}

// owners is the partition of each row.
func owners(c cut, rows int) []int {
	owner := make([]int, 0, rows)
	for p, part := range c.Parts {
		for range part.Rows {
			owner = append(owner, p)
		}
	}
	return owner
}

// leastOf counts in the lists of in-neighbours.
func leastOf(ptr []int64, neighbours []int32, owner []int, trains []bool, parts int) (n leastRows) {
	type pair struct{ vertex, part int }
	seen := make([]bool, len(owner)*parts) // forward: the row of a vertex is needed by a partition
	need := func(p pair, count *int64) {
		if at := p.vertex*parts + p.part; !seen[at] {
			seen[at] = true
			*count++
		}
	}
	for v := range owner {
		if !trains[v] {
			continue
		}
		for _, u := range neighbours[ptr[v]:ptr[v+1]] {
			if owner[u] != owner[v] {
				need(pair{int(u), owner[v]}, &n.Forward)
			}
		}
	}
	clear(seen)
	for v := range owner {
		if !trains[v] {
			continue
		}
		for _, u := range neighbours[ptr[v]:ptr[v+1]] {
			if owner[u] != owner[v] {
				need(pair{v, owner[u]}, &n.Backward)
			}
		}
	}
	return n
}

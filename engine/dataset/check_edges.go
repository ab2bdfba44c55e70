package dataset

import (
	"fmt"
	"slices"
)

// edges looks for repeats, loops, one-way edges, isolated vertices and components.
func (c *checker) edges() {
	r := c.r
	if len(r.Src) == 0 {
		c.add(Finding{Code: "no-edges", Severity: Warning, Count: 1, First: r.where(0),
			Effect: "every vertex is on its own: a model of the graph is no better than one without it", Remedy: "check that the right file of edges is read (--edges-file)"})
		return
	}
	ptr, col := r.bySource()
	c.repeats(ptr, col)
	c.loops()
	if !r.Undirected {
		c.oneWay(ptr, col)
	}
	c.components()
}

// bySource is the records as CSR over sources, destinations ascending.
func (r *Raw) bySource() (ptr []int64, col []int32) {
	ptr = make([]int64, r.N+2)
	for _, u := range r.Src {
		ptr[u+2]++
	}
	for v := range r.N {
		ptr[v+2] += ptr[v+1]
	}
	col = make([]int32, len(r.Src))
	for i, u := range r.Src {
		col[ptr[u+1]] = r.Dst[i]
		ptr[u+1]++
	}
	ptr = ptr[:r.N+1]
	for v := range r.N {
		slices.Sort(col[ptr[v]:ptr[v+1]])
	}
	return ptr, col
}

// repeats counts records that repeat an earlier one exactly. The two directions of
// an undirected edge do not repeat each other.
func (c *checker) repeats(ptr []int64, col []int32) {
	r := c.r
	count, from, to := int64(0), int32(-1), int32(-1)
	for v := range r.N {
		for j := ptr[v] + 1; j < ptr[v+1]; j++ {
			if col[j] == col[j-1] {
				if count == 0 {
					from, to = int32(v), col[j]
				}
				count++
			}
		}
	}
	if count == 0 {
		return
	}
	first, seen := "", false
	for i, u := range r.Src {
		if u != from || r.Dst[i] != to {
			continue
		}
		if seen {
			first = r.record(i)
			break
		}
		seen = true
	}
	f := Finding{Code: "duplicate-edges", Severity: Info, Count: count, First: first,
		Effect: "they are merged into one edge: a neighbour counts once, however often it is listed", Remedy: "nothing to do, unless repeats are meant as weights: then name a column of weights (--weight-column)"}
	if r.Weight != nil {
		f.Severity = Warning
		f.Effect = "they are merged into one edge, and their weights are added"
		f.Remedy = "keep one record per edge if adding is not what you mean"
	}
	c.add(f)
}

func (c *checker) loops() {
	r := c.r
	var loops tally
	for i, u := range r.Src {
		if u == r.Dst[i] {
			loops.hit(func() string { return r.record(i) })
		}
	}
	c.add(loops.finding("self-loops", Info, "the vertex gathers from itself by this edge; GCN and GAT add none of their own there", "prepare with --self-loops=remove if they carry no meaning"))
}

// oneWay counts distinct edges u -> v without v -> u. Sources and destinations both
// ascend, so one cursor per vertex passes over every row once.
func (c *checker) oneWay(ptr []int64, col []int32) {
	r := c.r
	var oneWay tally
	edges := int64(0)
	cursor := slices.Clone(ptr)
	for u := range r.N {
		for j := ptr[u]; j < ptr[u+1]; j++ {
			v := col[j]
			if int(v) == u || j > ptr[u] && col[j-1] == v {
				continue
			}
			edges++
			k := cursor[v]
			for k < ptr[v+1] && int(col[k]) < u {
				k++
			}
			cursor[v] = k
			if k == ptr[v+1] || int(col[k]) != u {
				oneWay.hit(func() string { return fmt.Sprintf("%s -> %s", r.name(u), r.name(int(v))) })
			}
		}
	}
	f := oneWay.finding("one-way-edges", Info, "", "prepare with --direction=undirected if a link counts for both ends")
	f.Effect = fmt.Sprintf("%.1f %% of the edges have no reverse: messages flow only from source to destination", 100*float64(oneWay.count)/float64(max(edges, 1)))
	c.add(f)
}

// components reports isolated vertices and the number of connected components.
func (c *checker) components() {
	r := c.r
	root := make([]int32, r.N)
	for v := range root {
		root[v] = int32(v)
	}
	find := func(v int32) int32 {
		for root[v] != v {
			root[v] = root[root[v]]
			v = root[v]
		}
		return v
	}
	touched := make([]bool, r.N)
	for i, u := range r.Src {
		v := r.Dst[i]
		if u == v {
			continue
		}
		touched[u], touched[v] = true, true
		if a, b := find(u), find(v); a != b {
			root[max(a, b)] = min(a, b)
		}
	}
	var isolated tally
	size := make([]int32, r.N)
	for v := range r.N {
		if !touched[v] {
			isolated.hit(func() string { return "vertex " + r.name(v) })
		}
		size[find(int32(v))]++
	}
	components, largest := int64(0), int32(0)
	for v, s := range size {
		if s > 0 && touched[v] {
			components++
			largest = max(largest, s)
		}
	}
	c.add(isolated.finding("isolated-vertices", Info, "they are classified by their own features alone", "nothing to do, unless their edges are missing from the source"))
	if components > 1 {
		c.add(Finding{Code: "disconnected", Severity: Info, Count: components,
			First:  fmt.Sprintf("the largest component has %d of %d vertices", largest, r.N),
			Effect: "nothing flows between components (isolated vertices are not counted here)", Remedy: "nothing to do: this is common, unless edges are missing from the source"})
	}
}

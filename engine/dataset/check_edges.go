package dataset

import (
	"fmt"
	"math"
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
	c.components(ptr, col)
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
	d := newDealer(r.N, len(r.Src), func(v, u int32) {
		col[ptr[u+1]] = v
		ptr[u+1]++
	})
	for i, u := range r.Src {
		d.add(r.Dst[i], u)
	}
	d.flush()
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
	var count, edges int64
	first := [2]int32{math.MaxInt32, math.MaxInt32}
	cursor := slices.Clone(ptr)
	d := newDealer(r.N, len(col), func(u, v int32) {
		k := cursor[v]
		for k < ptr[v+1] && col[k] < u {
			k++
		}
		cursor[v] = k
		if k == ptr[v+1] || col[k] != u {
			count++
			if u < first[0] || u == first[0] && v < first[1] {
				first = [2]int32{u, v}
			}
		}
	})
	for u := range r.N {
		for j := ptr[u]; j < ptr[u+1]; j++ {
			v := col[j]
			if int(v) == u || j > ptr[u] && col[j-1] == v {
				continue
			}
			edges++
			d.add(int32(u), v)
		}
	}
	d.flush()
	if count == 0 {
		return
	}
	c.add(Finding{Code: "one-way-edges", Severity: Info, Count: count, First: fmt.Sprintf("%s -> %s", r.name(int(first[0])), r.name(int(first[1]))),
		Effect: fmt.Sprintf("%.1f %% of the edges have no reverse: messages flow only from source to destination", 100*float64(count)/float64(max(edges, 1))),
		Remedy: "prepare with --direction=undirected if a link counts for both ends"})
}

// dealer hands on edges by ranges of their targets, a slab of them at a time, so that
// what is known of the targets of a range is in the caches. The edges of a target keep
// their order.
type dealer struct {
	shift    uint // vertices of a range, log2
	hand     func(u, v int32)
	src, dst []int32
	by       [][2]int32
}

const (
	dealtRanges = 256
	dealtSlab   = 2 << 20
)

// newDealer deals edges of n vertices to hand.
func newDealer(n, edges int, hand func(u, v int32)) *dealer {
	d := &dealer{hand: hand}
	for n>>d.shift >= dealtRanges {
		d.shift++
	}
	size := max(1, min(edges, dealtSlab))
	d.src, d.dst, d.by = make([]int32, 0, size), make([]int32, 0, size), make([][2]int32, size)
	return d
}

func (d *dealer) add(u, v int32) {
	d.src, d.dst = append(d.src, u), append(d.dst, v)
	if len(d.src) == len(d.by) {
		d.flush()
	}
}

// flush hands on what is left.
func (d *dealer) flush() {
	var next [dealtRanges + 1]int
	for _, v := range d.dst {
		next[v>>d.shift+1]++
	}
	for b := range dealtRanges {
		next[b+1] += next[b]
	}
	for i, v := range d.dst {
		b := v >> d.shift
		d.by[next[b]] = [2]int32{d.src[i], v}
		next[b]++
	}
	for _, e := range d.by[:len(d.dst)] {
		d.hand(e[0], e[1])
	}
	d.src, d.dst = d.src[:0], d.dst[:0]
}

// components reports isolated vertices and the number of connected components.
func (c *checker) components(ptr []int64, col []int32) {
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
	for u := range r.N {
		a := find(int32(u))
		for _, v := range col[ptr[u]:ptr[u+1]] {
			if b := find(v); a != b {
				root[max(a, b)] = min(a, b)
				a = min(a, b)
			}
		}
	}
	var isolated tally
	size := make([]int32, r.N)
	for v := range r.N {
		size[find(int32(v))]++
	}
	components, largest := int64(0), int32(0)
	for v := range r.N {
		switch n := size[v]; {
		case n > 1:
			components++
			largest = max(largest, n)
		case root[v] == int32(v): // alone; size is kept at the roots
			isolated.hit(func() string { return "vertex " + r.name(v) })
		}
	}
	c.add(isolated.finding("isolated-vertices", Info, "they are classified by their own features alone", "nothing to do, unless their edges are missing from the source"))
	if components > 1 {
		c.add(Finding{Code: "disconnected", Severity: Info, Count: components,
			First:  fmt.Sprintf("the largest component has %d of %d vertices", largest, r.N),
			Effect: "nothing flows between components (isolated vertices are not counted here)", Remedy: "nothing to do: this is common, unless edges are missing from the source"})
	}
}

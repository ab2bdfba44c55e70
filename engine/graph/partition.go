package graph

import (
	"math/bits"
	"slices"
	"sort"

	"dorylus/engine/store"
	"dorylus/engine/task"
	"dorylus/kernels"
)

// The weights of what Partition balances: a block's cost is its share of all edges
// (in and out) times edgeShare, plus its share of all bytes times byteShare, plus its
// share of all training vertices times trainShare. Edges are what an epoch's gathers
// read, and in sparse graphs with narrow features most of its time; bytes stand for
// memory and, as they are features above all, for the dense products; training
// vertices for the levels that only they and their neighbours are in. As a share
// cannot be traded for more than its weight, a partition of average cost holds at most
// twice the average edges and four times the average bytes or training vertices,
// whatever the graph is like. Where less than 1/trainFull of the vertices are training
// ones, their weight falls with their number, or a handful would outweigh the graph.
const (
	edgeShare  = 2
	byteShare  = 1
	trainShare = 1
	trainFull  = 10
)

// rowBytes is what a row takes beside its edges and features: activations and
// gradients of two layers of 64 values.
const rowBytes = 4 * 64 * 4

// Blocks is how many blocks the rows of a store make, at least 1.
func Blocks(m *store.Meta) int {
	return max((m.Vertices+m.BlockRows-1)/m.BlockRows, 1)
}

// BlockSpan is the range of store rows of a run of blocks.
func BlockSpan(m *store.Meta, blocks task.Range) kernels.Span {
	return kernels.Span{Lo: min(blocks.Lo*m.BlockRows, m.Vertices), Hi: min(blocks.Hi*m.BlockRows, m.Vertices)}
}

// Partition cuts the blocks of st into exactly parts runs, in order: the partitions of
// so many graph servers (fewer than 1 count as 1). No other cut has a smaller largest cost; among
// those that have the same, each run takes about its share of what is left. Every
// partition has a block while there are enough of them; the last ones are empty,
// Lo == Hi, where there are more partitions than blocks. train are the store rows of
// the training vertices, ascending.
//
// The result depends on nothing but the arguments. Of a mapped store it reads the row
// offsets at the borders of blocks only.
func Partition(st *store.Store, train []int32, parts int) []task.Range {
	parts = max(parts, 1)
	cost := blockCosts(st, train)
	blocks := len(cost) - 1
	runs := min(parts, blocks)
	// first[i] is the lowest block where run i can begin so that the runs from it on
	// stay within the limit; at most one block per run may be left before it.
	first := make([]int, runs+1)
	fits := func(limit uint64) bool {
		first[runs] = blocks
		for i := runs - 1; i >= 0; i-- {
			end := first[i+1]
			lo := i + sort.Search(end-1-i, func(k int) bool { return cost[end]-cost[i+k] <= limit })
			if cost[end]-cost[lo] > limit {
				return false
			}
			first[i] = lo
		}
		return first[0] == 0
	}
	low, high := uint64(0), cost[blocks] // the smallest limit is in [low,high]
	for low < high {
		if mid := low + (high-low)/2; fits(mid) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	fits(high)
	cuts := make([]task.Range, parts)
	lumps := findLumps(cost, runs)
	lo := 0
	for i := range runs {
		// The end: not before first[i+1], at most the limit away, and there as near as
		// can be to an equal share of the rest.
		hi := max(first[i+1], lo+1)
		want := cost[lo] + lumps.share(cost, lo, runs-i)
		for last := blocks - (runs - 1 - i); hi < last && cost[hi+1]-cost[lo] <= high && nearer(cost[hi+1], cost[hi], want); {
			hi++
		}
		cuts[i] = task.Range{Lo: lo, Hi: hi}
		lo = hi
	}
	for i := runs; i < parts; i++ {
		cuts[i] = task.Range{Lo: blocks, Hi: blocks}
	}
	return cuts
}

// lumps are the blocks that cost more than an equal share of what the others cost: each
// takes a run of its own. They are prefix sums over the blocks.
type lumps struct {
	cost  []uint64
	count []int
}

func findLumps(cost []uint64, runs int) lumps {
	blocks := len(cost) - 1
	l := lumps{make([]uint64, blocks+1), make([]int, blocks+1)}
	for found := -1; found != l.count[blocks]; { // each round finds more of them
		found = l.count[blocks]
		share := l.share(cost, 0, runs)
		for b := range blocks {
			l.cost[b+1], l.count[b+1] = l.cost[b], l.count[b]
			if c := cost[b+1] - cost[b]; c > share {
				l.cost[b+1] += c
				l.count[b+1]++
			}
		}
	}
	return l
}

// share is what each of so many runs from block lo on takes that is none for a lump.
func (l *lumps) share(cost []uint64, lo, runs int) uint64 {
	last := len(cost) - 1
	rest := cost[last] - cost[lo] - (l.cost[last] - l.cost[lo])
	return rest / uint64(max(runs-(l.count[last]-l.count[lo]), 1))
}

// nearer says that a is at least as near to want as b, the smaller one.
func nearer(a, b, want uint64) bool {
	return a <= want || b < want && a-want <= want-b
}

// blockCosts are the prefix sums of the costs of the blocks, in units so small that
// rounding changes no cut.
func blockCosts(st *store.Store, train []int32) []uint64 {
	const unit = 1 << 44
	loads := Loads(st, train)
	blocks := len(loads) - 1
	all := loads[blocks]
	trainUnit := share(int64(min(all.Train*trainFull, all.Rows)), int64(all.Rows), unit)
	cost := make([]uint64, blocks+1)
	for b, l := range loads {
		cost[b] = edgeShare*share(l.Edges, all.Edges, unit) + byteShare*share(l.memory(), all.memory(), unit) +
			trainShare*share(int64(l.Train), int64(all.Train), trainUnit)
	}
	return cost
}

// share is unit * part / all, exactly and rounded down; 0 where all is 0.
func share(part, all int64, unit uint64) uint64 {
	if all <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(part), unit)
	q, _ := bits.Div64(hi, lo, uint64(all))
	return q
}

// Load is what some rows of a store amount to.
type Load struct {
	Rows  int
	Edges int64 // in-edges and out-edges
	// Bytes of the store's edges, features, and what it has for each row.
	Bytes int64
	Train int // training vertices
}

// memory is Bytes and an estimate of activations and gradients.
func (l Load) memory() int64 { return l.Bytes + int64(l.Rows)*rowBytes }

// Loads are the sums over the first b blocks, for every b from 0 to the number of
// blocks. Of a mapped store it reads the row offsets at the borders of blocks only.
//
// In a store.Part these have not been checked: an offset below the one before, or beyond
// the last, counts as that one. Whoever takes the row finds what is wrong.
func Loads(st *store.Store, train []int32) []Load {
	m := &st.Meta
	perRow := int64(8 + 4 + len(st.Splits)) // offset, order, roles
	if st.Labels != nil {
		perRow += 4
	}
	if st.Out != st.In {
		perRow += 8
	}
	loads := make([]Load, Blocks(m)+1)
	edge := int64(4)
	if m.Weighted {
		edge = 8
	}
	var in, out, entries int64 // so far
	for b := range loads {
		row := BlockSpan(m, task.Range{Hi: b}).Hi
		l := &loads[b]
		l.Rows = row
		in = offset(st.In, row, in)
		stored := in
		l.Edges = 2 * stored
		if st.Out != st.In {
			out = offset(st.Out, row, out)
			l.Edges = in + out
			stored = l.Edges
		}
		l.Bytes = stored*edge + int64(row)*perRow
		switch {
		case st.Dense != nil:
			l.Bytes += int64(row) * int64(st.Dense.Stride) * 4
		case st.Sparse != nil:
			entry := int64(4)
			if st.Sparse.Val != nil {
				entry = 8
			}
			entries = offset(st.Sparse, row, entries)
			l.Bytes += entries*entry + int64(row)*8
		}
		l.Train, _ = slices.BinarySearch(train, int32(min(row, 1<<31-1)))
	}
	return loads
}

// offset is where a row begins, not below before and not beyond the end.
func offset(g *kernels.CSR, row int, before int64) int64 {
	return min(max(g.RowPtr[row], before), g.RowPtr[g.Rows()])
}

// Between is what lies between two sums of Loads.
func (l Load) Between(hi Load) Load {
	return Load{Rows: hi.Rows - l.Rows, Edges: hi.Edges - l.Edges, Bytes: hi.Bytes - l.Bytes, Train: hi.Train - l.Train}
}

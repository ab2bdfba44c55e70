package graph

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"dorylus/engine/store"
	"dorylus/engine/task"
	"dorylus/kernels"
)

// Part is one graph server's share of a plan. A plan with a Part holds the rows of its
// own blocks and those of other partitions that they gather, the ghosts; of the store it
// reads the edges of its own rows only. Nil: the whole graph.
type Part struct {
	// Blocks are its own, Rank is its number among Parts partitions.
	Blocks task.Range
	Rank   int
	// Gather gives all partitions what each of them has given under key, by rank. All
	// partitions build the same plans in the same order.
	Gather func(key string, mine []byte) ([][]byte, error)

	plans int
	kept  []keptGraph
}

// keptGraph is a graph that several hops, and several plans, have in common.
type keptGraph struct {
	g          *kernels.CSR // of the store
	rows, cols []int32
	made       *kernels.CSR
}

// Need lists, for a hop and a direction, rows that a partition gathers and does not own:
// store rows, ascending.
type Need struct{ Fwd, Bwd []int32 }

// bitset marks store rows.
type bitset []uint64

func newBitset(n int) bitset      { return make(bitset, (n+63)/64) }
func (s bitset) has(v int32) bool { return s == nil || s[v>>6]&(1<<(v&63)) != 0 }
func (s bitset) set(v int32)      { s[v>>6] |= 1 << (v & 63) }
func (s bitset) count(lo, hi int) (n int) {
	for v := lo; v < hi; {
		if v&63 == 0 && v+64 <= hi {
			n += bits.OnesCount64(s[v>>6])
			v += 64
			continue
		}
		if s.has(int32(v)) {
			n++
		}
		v++
	}
	return n
}

// partial builds the plan of a partition.
type partial struct {
	p     *Plan
	part  *Part
	st    *store.Store
	opt   Options
	n     int
	own   kernels.Span // store rows
	chain []bitset     // by level: the rows that the last one depends on; nil: all, or not looked for
	count []int        // their number
	full  []bool       // by level: it holds all vertices
}

// buildPart is Build for one partition.
func buildPart(st *store.Store, opt Options) (*Plan, error) {
	part, n := opt.Part, st.Meta.Vertices
	b := &partial{
		part: part, st: st, opt: opt, n: n,
		p: &Plan{BlockRows: st.Meta.BlockRows, Levels: make([]Level, opt.Levels), Seen: make([][]int32, opt.Levels), Needs: make([]Need, opt.Levels-1)},
	}
	b.p.Blocks = max((n+b.p.BlockRows-1)/b.p.BlockRows, 1)
	b.p.Own = part.Blocks
	b.own = kernels.Span{Lo: min(part.Blocks.Lo*b.p.BlockRows, n), Hi: min(part.Blocks.Hi*b.p.BlockRows, n)}
	part.plans++
	if err := b.reach(); err != nil {
		return nil, err
	}
	b.needs()
	b.levels()
	for k := range b.p.Hops {
		b.hop(k)
	}
	b.seen()
	return b.p, nil
}

// reach finds, level by level, which rows the last one depends on. A partition knows of
// its own rows by their out-edges, and hears the others'.
func (b *partial) reach() error {
	last := b.opt.Levels - 1
	b.chain, b.count, b.full = make([]bitset, last+1), make([]int, last+1), make([]bool, last+1)
	for k := last; k >= 0; k-- {
		switch {
		case b.opt.Seeds == nil, k < last && b.full[k+1] && !b.opt.Seen:
			b.count[k], b.full[k] = b.n, true
			continue
		case k == last:
			b.chain[k] = newBitset(b.n)
			for _, v := range b.opt.Seeds {
				b.chain[k].set(v)
			}
		default:
			var err error
			if b.chain[k], err = b.closure(k); err != nil {
				return err
			}
		}
		b.count[k] = b.chain[k].count(0, b.n)
		b.full[k] = b.opt.All || float64(b.count[k]) >= promote*float64(b.n) || k < last && b.full[k+1]
	}
	return nil
}

// closure are the rows of chain[k+1] and their in-neighbours.
func (b *partial) closure(k int) (bitset, error) {
	above := b.chain[k+1]
	mine := newBitset(b.own.Len())
	out := b.st.Out
	for v := b.own.Lo; v < b.own.Hi; v++ {
		if above.has(int32(v)) {
			mine.set(int32(v - b.own.Lo))
			continue
		}
		for e := out.RowPtr[v]; e < out.RowPtr[v+1]; e++ {
			if above.has(out.Col[e]) && (out.Val == nil || out.Val[e] != 0) {
				mine.set(int32(v - b.own.Lo))
				break
			}
		}
	}
	data := binary.LittleEndian.AppendUint64(nil, uint64(b.own.Lo))
	data = binary.LittleEndian.AppendUint64(data, uint64(b.own.Len()))
	for _, w := range mine {
		data = binary.LittleEndian.AppendUint64(data, w)
	}
	parts, err := b.part.Gather(fmt.Sprintf("plan %d, rows of level %d", b.part.plans, k), data)
	if err != nil {
		return nil, err
	}
	all := newBitset(b.n)
	covered := 0
	for rank, d := range parts {
		if len(d) < 16 {
			return nil, fmt.Errorf("plan of partition %d: its rows of level %d are %d bytes", rank, k, len(d))
		}
		lo, rows := binary.LittleEndian.Uint64(d), binary.LittleEndian.Uint64(d[8:])
		d = d[16:]
		if rows > uint64(b.n) || lo > uint64(b.n)-rows || uint64(len(d)) != (rows+63)/64*8 {
			return nil, fmt.Errorf("plan of partition %d: rows [%d,%d+%d) of %d in %d bytes", rank, lo, lo, rows, b.n, len(d))
		}
		covered += int(rows)
		for i := uint64(0); i < rows; i++ {
			if d[i>>3]&(1<<(i&7)) != 0 {
				all.set(int32(lo + i))
			}
		}
	}
	if covered != b.n {
		return nil, fmt.Errorf("plan: the partitions have %d rows, the graph %d: they were not started with the same store or number of servers", covered, b.n)
	}
	return all, nil
}

// member says whether store row v is in level k.
func (b *partial) member(k int, v int32) bool { return b.full[k] || b.chain[k].has(v) }

// needs finds the ghosts: what own rows gather and others own.
func (b *partial) needs() {
	list := func(g *kernels.CSR, rows, cols int) []int32 {
		mark := newBitset(b.n)
		for v := b.own.Lo; v < b.own.Hi; v++ {
			if !b.member(rows, int32(v)) {
				continue
			}
			for _, u := range g.Col[g.RowPtr[v]:g.RowPtr[v+1]] {
				if (int(u) < b.own.Lo || int(u) >= b.own.Hi) && b.member(cols, u) {
					mark.set(u)
				}
			}
		}
		return mark.list()
	}
	for k := range b.p.Needs {
		if b.skip(k) {
			continue
		}
		need := &b.p.Needs[k]
		need.Fwd = list(b.st.In, k+1, k)
		if b.backward(k) {
			if b.st.Out == b.st.In && b.full[k] && b.full[k+1] {
				need.Bwd = need.Fwd
			} else {
				need.Bwd = list(b.st.Out, k, k+1)
			}
		}
	}
}

func (b *partial) skip(k int) bool     { return k < len(b.opt.Skip) && b.opt.Skip[k] }
func (b *partial) backward(k int) bool { return k < len(b.opt.Backward) && b.opt.Backward[k] }

func (s bitset) list() []int32 {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	out := make([]int32, 0, n)
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			out = append(out, int32(i<<6+bits.TrailingZeros64(w)))
		}
	}
	return out
}

// levels makes the local row levels: own rows and ghosts, ascending. Levels of the same
// rows share their list. Where these are nearly all vertices, the level has all of them
// and the store's numbers: its own edges are then those of the store, in the same memory,
// and rows that nobody touches take none.
func (b *partial) levels() {
	b.p.Total = slices.Clone(b.count)
	b.p.Hops = make([]Hop, b.opt.Levels-1)
	for k := range b.p.Levels {
		if b.full[k] {
			b.p.Total[k] = b.n
		}
		var ghosts [][]int32
		if k < len(b.p.Needs) {
			ghosts = append(ghosts, b.p.Needs[k].Fwd)
		}
		if k > 0 {
			ghosts = append(ghosts, b.p.Needs[k-1].Bwd)
		}
		rows := b.rowsOf(k, Union(ghosts...))
		if b.full[k] && float64(len(rows)) >= promote*float64(b.n) {
			b.p.Levels[k] = b.p.level(nil, b.n)
			continue
		}
		for j := range k {
			if sameRows(b.p.Levels[j].Rows, rows) {
				rows = b.p.Levels[j].Rows
				break
			}
		}
		for _, kept := range b.part.kept { // of an earlier plan
			if sameRows(kept.rows, rows) {
				rows = kept.rows
				break
			}
		}
		b.p.Levels[k] = b.p.level(rows, b.n)
	}
}

// sameRows compares lists of rows of levels: nil, all, is another than none.
func sameRows(a, b []int32) bool { return (a == nil) == (b == nil) && slices.Equal(a, b) }

// rowsOf are level k's own rows between the ghosts before and behind them.
func (b *partial) rowsOf(k int, ghosts []int32) []int32 {
	at, _ := slices.BinarySearch(ghosts, int32(b.own.Lo))
	rows := make([]int32, 0, len(ghosts)+b.own.Len())
	rows = append(rows, ghosts[:at]...)
	for v := b.own.Lo; v < b.own.Hi; v++ {
		if b.member(k, int32(v)) {
			rows = append(rows, int32(v))
		}
	}
	return append(rows, ghosts[at:]...)
}

// Union merges ascending lists.
func Union(lists ...[]int32) []int32 {
	var out []int32
	for _, l := range lists {
		switch {
		case len(out) == 0:
			out = l
		case len(l) > 0 && !slices.Equal(out, l):
			merged := slices.Concat(out, l)
			slices.Sort(merged)
			out = slices.Compact(merged)
		}
	}
	return out
}

// hop makes the edges of own rows.
func (b *partial) hop(k int) {
	h, src, dst := &b.p.Hops[k], &b.p.Levels[k], &b.p.Levels[k+1]
	same := src.N == dst.N && len(src.Rows) == len(dst.Rows) && (len(src.Rows) == 0 || &src.Rows[0] == &dst.Rows[0])
	if !same {
		h.FwdSelf = pick(dst, src.index(b.n))
	}
	if b.skip(k) {
		return
	}
	h.Fwd = b.graph(b.st.In, dst, src)
	if !b.backward(k) {
		return
	}
	h.Bwd = b.graph(b.st.Out, src, dst)
	if !same {
		h.BwdSelf = pick(src, dst.index(b.n))
	}
}

// graph are the edges of own rows of one level to columns of another; ghosts have none.
func (b *partial) graph(g *kernels.CSR, rows, cols *Level) *kernels.CSR {
	for _, k := range b.part.kept {
		if k.g == g && sameRows(k.rows, rows.Rows) && sameRows(k.cols, cols.Rows) {
			return k.made
		}
	}
	var made *kernels.CSR
	if rows.Rows == nil && cols.Rows == nil {
		made = RowsOf(g, b.own)
	} else {
		made = restrictSpan(g, rows, rows.Span(b.p.Own), cols.index(b.n), cols.N)
	}
	b.part.kept = append(b.part.kept, keptGraph{g, rows.Rows, cols.Rows, made})
	return made
}

// seen is Plan.Seen, and its counts by block, which are of all partitions.
func (b *partial) seen() {
	if !b.opt.Seen {
		return
	}
	b.p.seenRows = make([][]int, b.opt.Levels)
	for k := range b.p.Levels {
		l := &b.p.Levels[k]
		if b.opt.Seeds != nil && b.full[k] && b.count[k] < b.n {
			b.p.Seen[k] = make([]int32, 0, l.N)
			for i := range l.N {
				if b.chain[k].has(l.Store(i)) {
					b.p.Seen[k] = append(b.p.Seen[k], int32(i))
				}
			}
		}
		counts := make([]int, b.p.Blocks)
		for block := range counts {
			lo, hi := min(block*b.p.BlockRows, b.n), min((block+1)*b.p.BlockRows, b.n)
			counts[block] = hi - lo
			if b.opt.Seeds != nil && b.chain[k] != nil {
				counts[block] = b.chain[k].count(lo, hi)
			}
		}
		b.p.seenRows[k] = counts
	}
}

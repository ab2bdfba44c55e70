// Package graph turns a store into what an epoch walks over: row levels, the
// edges between them, blocks and intervals.
package graph

import (
	"fmt"
	"slices"

	"dorylus/engine/store"
	"dorylus/engine/task"
	"dorylus/kernels"
)

// promote is the share of all vertices from which on a level holds all of them:
// the few rows saved would not pay for the copies of edges and features that a
// partial level needs. The same holds for the rows that a partition has of a level.
const promote = 0.95

// Level is the set of vertices that one layer boundary of the model computes.
type Level struct {
	// Rows are store rows, ascending; nil: all of them. Of a partition they may be rows
	// that it neither owns nor gathers.
	Rows []int32
	// N is the number of rows.
	N int
	// BlockPtr has the level rows of block b as [BlockPtr[b],BlockPtr[b+1]).
	BlockPtr []int
}

// Block is the range of level rows that belong to block b.
func (l *Level) Block(b int) kernels.Span {
	return kernels.Span{Lo: l.BlockPtr[b], Hi: l.BlockPtr[b+1]}
}

// Store is the store row of level row i.
func (l *Level) Store(i int) int32 {
	if l.Rows == nil {
		return int32(i)
	}
	return l.Rows[i]
}

// Hop has the edges between level k (sources) and level k+1 (destinations).
type Hop struct {
	// Fwd lists, for each row of level k+1, its in-edges as rows of level k. Bwd
	// is its transpose; nil where no backward gather crosses the hop.
	Fwd, Bwd *kernels.CSR
	// FwdSelf[v] is the level-k row of the same vertex as row v of level k+1;
	// BwdSelf the reverse, -1 where the vertex is not in level k+1. nil:
	// the levels hold the same rows.
	FwdSelf, BwdSelf []int32
}

// Plan is what one kind of pass (training, evaluation) computes. Level L-1 holds
// the rows asked for, level k all in-neighbours of level k+1 and these rows
// themselves.
type Plan struct {
	BlockRows, Blocks int
	Levels            []Level
	Hops              []Hop
	// Seen lists the rows of each level that the last one depends on, ascending;
	// nil: all, as where Options did not ask. They are fewer only where a level holds
	// all vertices since nearly all are needed. Of a partition they are its local rows.
	Seen [][]int32
	// Own are the blocks that this plan computes: all of them but for a Part.
	Own task.Range
	// Total is the number of rows of each level, over all partitions.
	Total []int
	// Needs has, by hop, the ghosts of a Part; nil without one.
	Needs []Need

	seenRows [][]int // by level and block, where Options asked for Seen
}

// Options of Build.
type Options struct {
	// Seeds are the store rows of the last level, ascending; nil: all.
	Seeds []int32
	// Levels is the number of row levels, at least 1.
	Levels int
	// Backward[k] says that gradients cross hop k.
	Backward []bool
	// Skip[k] says that nothing gathers along hop k in an epoch (its result is
	// kept): only its FwdSelf is built.
	Skip []bool
	// Seen asks for Plan.Seen.
	Seen bool
	// All makes every level hold all vertices, as if the last one were asked for them.
	All bool
	// Part is whose plan it is; nil: that of the only one.
	Part *Part
}

// Build makes the plan of a pass over st.
func Build(st *store.Store, opt Options) (*Plan, error) {
	n := st.Meta.Vertices
	if opt.Levels < 1 {
		return nil, fmt.Errorf("plan a pass over %s: %d row levels: at least 1 is needed", st.Meta.Name, opt.Levels)
	}
	if opt.Part != nil {
		return buildPart(st, opt)
	}
	p := &Plan{BlockRows: st.Meta.BlockRows}
	p.Blocks = max((n+p.BlockRows-1)/p.BlockRows, 1)
	p.Own = task.Range{Hi: p.Blocks}
	p.Levels = make([]Level, opt.Levels)
	p.Seen = make([][]int32, opt.Levels)
	rows := opt.Seeds
	for k := opt.Levels - 1; k >= 0; k-- {
		if opt.All || float64(len(rows)) >= promote*float64(n) {
			rows = nil
		}
		p.Levels[k] = p.level(rows, n)
		if k > 0 && rows != nil {
			rows = closure(st, rows)
		}
	}
	for k := range p.Levels {
		p.Total = append(p.Total, p.Levels[k].N)
	}
	if opt.Seen {
		if opt.Seeds != nil {
			p.see(st, opt.Seeds)
		}
		p.countSeen()
	}
	p.Hops = make([]Hop, opt.Levels-1)
	for k := range p.Hops {
		if k < len(opt.Skip) && opt.Skip[k] {
			p.Hops[k].FwdSelf = self(&p.Levels[k], &p.Levels[k+1], n)
			continue
		}
		back := k < len(opt.Backward) && opt.Backward[k]
		p.Hops[k] = hop(st, &p.Levels[k], &p.Levels[k+1], back)
	}
	return p, nil
}

// see finds Seen.
func (p *Plan) see(st *store.Store, seeds []int32) {
	for k := len(p.Seen) - 1; k >= 0; k-- {
		if p.Levels[k].Rows == nil && len(seeds) < p.Levels[k].N {
			p.Seen[k] = seeds
		}
		if k > 0 {
			seeds = closure(st, seeds)
		}
	}
}

// countSeen counts the rows of each block that the last level depends on.
func (p *Plan) countSeen() {
	p.seenRows = make([][]int, len(p.Levels))
	for k, seen := range p.Seen {
		counts := make([]int, p.Blocks)
		for b := range counts {
			counts[b] = p.Levels[k].Block(b).Len()
			if seen != nil {
				counts[b] = 0
			}
		}
		for _, v := range seen {
			counts[int(v)/p.BlockRows]++
		}
		p.seenRows[k] = counts
	}
}

// SeenRows is the number of rows of each block of a level that the last level depends
// on, over all partitions. Options must have asked for Seen.
func (p *Plan) SeenRows(level int) []int { return p.seenRows[level] }

func (p *Plan) level(rows []int32, n int) Level {
	l := Level{Rows: rows, N: n, BlockPtr: make([]int, p.Blocks+1)}
	if rows != nil {
		l.N = len(rows)
	}
	for b := 1; b < p.Blocks; b++ {
		lo := b * p.BlockRows
		if rows == nil {
			l.BlockPtr[b] = lo
		} else {
			l.BlockPtr[b], _ = slices.BinarySearch(rows, int32(lo))
		}
	}
	l.BlockPtr[p.Blocks] = l.N
	return l
}

// closure is rows and their in-neighbours, ascending. An edge of weight 0 makes no
// neighbours. Each vertex looks among its out-edges for one of rows: few of them where
// there are many rows.
func closure(st *store.Store, rows []int32) []int32 {
	out, n := st.Out, st.Meta.Vertices
	in, seen := newBitset(n), make([]bool, n)
	for _, v := range rows {
		in.set(v)
	}
	_ = out.Spread(kernels.Span{Hi: n}, func(s kernels.Span) error { // which has no errors
		for v := s.Lo; v < s.Hi; v++ {
			seen[v] = in.has(int32(v)) || reaches(out, v, in)
		}
		return nil
	})
	all := make([]int32, 0, len(rows))
	for v, s := range seen {
		if s {
			all = append(all, int32(v))
		}
	}
	return all
}

// reaches says whether an out-edge of v, of another weight than 0, ends in rows.
func reaches(out *kernels.CSR, v int, rows bitset) bool {
	for e := out.RowPtr[v]; e < out.RowPtr[v+1]; e++ {
		if rows.has(out.Col[e]) && (out.Val == nil || out.Val[e] != 0) {
			return true
		}
	}
	return false
}

// hop builds the edges between two levels; where both hold all rows they are
// the store's own.
func hop(st *store.Store, src, dst *Level, backward bool) Hop {
	var h Hop
	if src.Rows == nil && dst.Rows == nil {
		h.Fwd = st.In
		if backward {
			h.Bwd = st.Out
		}
		return h
	}
	toSrc, toDst := src.index(st.Meta.Vertices), dst.index(st.Meta.Vertices)
	h.Fwd = restrict(st.In, dst, toSrc, src.N)
	h.FwdSelf = pick(dst, toSrc)
	if backward {
		h.Bwd = restrict(st.Out, src, toDst, dst.N)
		h.BwdSelf = pick(src, toDst)
	}
	return h
}

// self is Hop.FwdSelf alone.
func self(src, dst *Level, n int) []int32 {
	if src.Rows == nil && dst.Rows == nil {
		return nil
	}
	return pick(dst, src.index(n))
}

// index maps store rows to level rows, -1 for those not in the level.
func (l *Level) index(n int) []int32 {
	at := make([]int32, n)
	if l.Rows == nil {
		for v := range at {
			at[v] = int32(v)
		}
		return at
	}
	for v := range at {
		at[v] = -1
	}
	for i, v := range l.Rows {
		at[v] = int32(i)
	}
	return at
}

func pick(l *Level, at []int32) []int32 {
	self := make([]int32, l.N)
	for i := range self {
		self[i] = at[l.Store(i)]
	}
	return self
}

// RowsOf is g with the edges of a span of its rows only; the others have none. It shares
// the memory of g, and is g where the span has all rows.
func RowsOf(g *kernels.CSR, span kernels.Span) *kernels.CSR {
	n := g.Rows()
	if span.Lo == 0 && span.Hi == n {
		return g
	}
	lo, hi := g.RowPtr[span.Lo], g.RowPtr[span.Hi]
	out := &kernels.CSR{Cols: g.Cols, RowPtr: make([]int64, n+1), Col: g.Col[lo:hi:hi]}
	if g.Val != nil {
		out.Val = g.Val[lo:hi:hi]
	}
	for v := span.Lo; v < n; v++ {
		out.RowPtr[v+1] = g.RowPtr[min(v+1, span.Hi)] - lo
	}
	return out
}

// restrict is g with the rows of one level and the columns of another; edges to
// columns outside it are left out. The order of a row's edges is kept.
func restrict(g *kernels.CSR, rows *Level, col []int32, cols int) *kernels.CSR {
	return restrictSpan(g, rows, kernels.Span{Hi: rows.N}, col, cols)
}

// restrictSpan is restrict for a span of the level's rows; others have no edges.
func restrictSpan(g *kernels.CSR, rows *Level, span kernels.Span, col []int32, cols int) *kernels.CSR {
	out := &kernels.CSR{Cols: cols, RowPtr: make([]int64, rows.N+1)}
	rows.each(g, span, func(i int, v int32) {
		kept := int64(0)
		for _, u := range g.Col[g.RowPtr[v]:g.RowPtr[v+1]] {
			if col[u] >= 0 {
				kept++
			}
		}
		out.RowPtr[i+1] = kept
	})
	for i := range rows.N {
		out.RowPtr[i+1] += out.RowPtr[i]
	}
	edges := out.RowPtr[rows.N]
	out.Col = make([]int32, edges)
	if g.Val != nil {
		out.Val = make([]float32, edges)
	}
	rows.each(g, span, func(i int, v int32) {
		at := out.RowPtr[i]
		for e := g.RowPtr[v]; e < g.RowPtr[v+1]; e++ {
			if c := col[g.Col[e]]; c >= 0 {
				out.Col[at] = c
				if g.Val != nil {
					out.Val[at] = g.Val[e]
				}
				at++
			}
		}
	})
	return out
}

// each calls f with every level row of a span and its store row, on several goroutines,
// each having rows of about as many edges of g.
func (l *Level) each(g *kernels.CSR, span kernels.Span, f func(i int, v int32)) {
	if span.Len() == 0 {
		return
	}
	in := kernels.Span{Lo: int(l.Store(span.Lo)), Hi: int(l.Store(span.Hi-1)) + 1}
	_ = g.Spread(in, func(s kernels.Span) error { // which has no errors
		lo, hi := s.Lo, s.Hi
		if l.Rows != nil {
			lo, _ = slices.BinarySearch(l.Rows, int32(s.Lo))
			hi, _ = slices.BinarySearch(l.Rows, int32(s.Hi))
		}
		for i := lo; i < hi; i++ {
			f(i, l.Store(i))
		}
		return nil
	})
}

// Features is the level's part of a sparse feature matrix, in the memory of g where the
// level holds all rows. Rows outside own, a span of the level, are empty.
func (l *Level) Features(g *kernels.CSR, own kernels.Span) *kernels.CSR {
	if l.Rows == nil {
		return RowsOf(g, own)
	}
	same := make([]int32, g.Cols)
	for c := range same {
		same[c] = int32(c)
	}
	return restrictSpan(g, l, own, same, g.Cols)
}

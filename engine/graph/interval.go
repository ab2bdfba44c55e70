package graph

import (
	"math/bits"

	"dorylus/engine/task"
	"dorylus/kernels"
)

// Cut divides the own blocks of p into at most count intervals of consecutive
// blocks, balanced by the edges (and, less so, the rows) that an epoch visits,
// not by vertices. Every interval has at least one block.
func (p *Plan) Cut(count int) []task.Range {
	first, blocks := p.Own.Lo, p.Own.Len()
	count = min(max(count, 1), blocks)
	cost := make([]int64, blocks+1) // prefix sums
	for b := range blocks {
		c := int64(1)
		for k, l := range p.Levels {
			rows := l.Block(first + b)
			c += 16 * int64(rows.Len())
			if k > 0 && p.Hops[k-1].Fwd != nil {
				ptr := p.Hops[k-1].Fwd.RowPtr
				c += ptr[rows.Hi] - ptr[rows.Lo]
			}
		}
		cost[b+1] = cost[b] + c
	}
	cuts := make([]task.Range, 0, count)
	lo := 0
	for i := range count {
		left := count - i // intervals still to cut, this one included
		target := cost[lo] + (cost[blocks]-cost[lo])/int64(left)
		hi := lo + 1
		for hi < blocks-(left-1) && cost[hi+1]-target <= target-cost[hi] {
			hi++
		}
		if left == 1 {
			hi = blocks
		}
		cuts = append(cuts, task.Range{Lo: first + lo, Hi: first + hi})
		lo = hi
	}
	return cuts
}

// Span is the range of level rows of a run of blocks.
func (l *Level) Span(blocks task.Range) kernels.Span {
	return kernels.Span{Lo: l.BlockPtr[blocks.Lo], Hi: l.BlockPtr[blocks.Hi]}
}

// Sources lists, for each interval in own, the intervals whose rows it reads
// along g, ascending. rows is the level of g's rows, cols that of its columns.
// self, if not nil or identity, adds each row's own vertex.
func Sources(g *kernels.CSR, rows, cols *Level, intervals []task.Range, own task.Range, self bool) [][]int32 {
	of := make([]int32, cols.N)
	for i, r := range intervals {
		span := cols.Span(r)
		for v := span.Lo; v < span.Hi; v++ {
			of[v] = int32(i)
		}
	}
	nonEmpty := 0
	for _, r := range intervals {
		if cols.Span(r).Len() > 0 {
			nonEmpty++
		}
	}
	out := make([][]int32, own.Len())
	words := (len(intervals) + 63) / 64
	for i := own.Lo; i < own.Hi; i++ {
		seen, found := make([]uint64, words), 0
		mark := func(j int32) {
			if w, b := j/64, uint64(1)<<(j%64); seen[w]&b == 0 {
				seen[w] |= b
				found++
			}
		}
		if self && cols.Span(intervals[i]).Len() > 0 {
			mark(int32(i))
		}
		span := rows.Span(intervals[i])
		for v := span.Lo; v < span.Hi && found < nonEmpty; v++ {
			for _, u := range g.Col[g.RowPtr[v]:g.RowPtr[v+1]] {
				mark(of[u])
			}
		}
		list := make([]int32, 0, found)
		for w, word := range seen {
			for ; word != 0; word &= word - 1 {
				list = append(list, int32(w*64+bits.TrailingZeros64(word)))
			}
		}
		out[i-own.Lo] = list
	}
	return out
}

// BlockLevel is a level with one row per block.
func BlockLevel(blocks int) Level {
	l := Level{N: blocks, BlockPtr: make([]int, blocks+1)}
	for b := range l.BlockPtr {
		l.BlockPtr[b] = b
	}
	return l
}

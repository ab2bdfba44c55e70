package cuda

import (
	"slices"

	"dorylus/kernels"
)

// attention is how a launch of the attention kernels sees an op: DK_ATT, and which of
// the two forms, v1 or v4, fits its wide matrices.
type attention struct {
	g         *csr
	as, ad    mat
	heads, d  int
	slope     float32
	self      bool
	selfCol   list
	selfW     mat
	drop      kernels.Dropout
	src, dst  list // ids
	form      string
	shift     int32 // log2 of the lanes that take one head of one row
	rows      kernels.Span
	maxGroups int64 // of lanes, in a block
}

// attention takes what the three ops share. The rows of the op's output are sources
// where turned is set, else destinations; wide are its matrices of heads·d columns.
func (o *op) attention(g *graph, p kernels.Attention, as, ad *kernels.Mat, rows kernels.Span, turned bool, wide ...mat) *attention {
	a := &attention{g: &g.on, as: o.mat(as), ad: o.mat(ad), heads: p.Heads, d: wide[0].cols / p.Heads, slope: p.Slope, drop: p.Drop, rows: rows}
	if a.self = p.Self.On; a.self {
		a.selfCol, a.selfW = list{p.Self.Col, rows.Lo, rows.Hi}, o.mat(p.Self.W)
	}
	if p.Drop.P > 0 {
		a.src, a.dst = list{p.SrcIDs, 0, len(p.SrcIDs)}, list{p.DstIDs, 0, len(p.DstIDs)}
		if turned {
			a.src.lo, a.src.hi = rows.Lo, rows.Hi
		} else {
			a.dst.lo, a.dst.hi = rows.Lo, rows.Hi
		}
	}
	lane := 1 // columns of a lane
	a.form = "v1"
	if aligned(wide...) && (a.d%4 == 0 || a.heads == 1) {
		a.form, lane = "v4", 4
	}
	for a.shift < 5 && lane<<a.shift < a.d {
		a.shift++
	}
	a.maxGroups = blockThreads >> a.shift
	return a
}

// args are DK_ATT.
func (a *attention) args(shift int32) []any {
	keep := a.drop.P > 0
	return []any{a.g.rowptr, a.g.col, a.g.val, a.as, a.ad, int32(a.heads), int32(a.d), shift, a.slope, a.self, a.selfCol, a.selfW.p,
		keep, a.drop.Key, uint64(a.drop.Threshold()), a.drop.KeepScale(), a.src, a.dst}
}

// grid is the blocks for n rows or chunks.
func (a *attention) grid(n int64) int64 { return over(n*int64(a.heads), a.maxGroups) }

// short launches the kernel of rows that need no chunks.
func (a *attention) short(x *runner, kernel string, before []any, after ...any) error {
	n := int64(a.rows.Len())
	args := slices.Concat(before, a.args(a.shift), []any{address(0), int64(a.rows.Lo), n, int64(longPart)}, after)
	return x.launch(kernel+a.form, a.grid(n), args...)
}

// onChunks launches a kernel over n chunks or long rows [i0,i1) with shift.
func (a *attention) onChunks(x *runner, kernel string, n int64, i0, i1 int, before ...any) error {
	return x.launch(kernel, a.grid(n), slices.Concat(before, a.args(a.shift), a.g.parts.chunkArgs(i0, i1))...)
}

// GAT implements kernels.Stream.
func (q *queue) GAT(dst, lse *kernels.Mat, g kernels.Graph, x, as, ad *kernels.Mat, p kernels.Attention, ep *kernels.Epilogue, rows kernels.Span) {
	kernels.CheckGAT(dst, lse, g, x, as, ad, p, ep, rows)
	o := q.op("GAT")
	d, l, m, e := o.mat(dst), o.mat(lse), o.mat(x), o.epilogue(ep, rows)
	a := o.attention(o.graph(g), p, as, ad, rows, false, m, d)
	o.run(func(x *runner) error {
		if err := a.short(x, "dk_gat_", []any{d, l, m}, e); err != nil {
			return err
		}
		return x.inParts(a.g.parts, rows, m.cols+2*a.heads, func(part mat, chunks int64, i0, i1 int) error {
			if err := a.onChunks(x, "dk_gat_chunk_"+a.form, chunks, i0, i1, part, m); err != nil {
				return err
			}
			args := slices.Concat([]any{d, l, part, m}, a.args(shiftOf(m.cols)), a.g.parts.chunkArgs(i0, i1), []any{e})
			return x.each("dk_gat_sum", i1-i0, m.cols, args...)
		})
	})
}

// GATBackDst implements kernels.Stream.
func (q *queue) GATBackDst(dad, dot *kernels.Mat, g kernels.Graph, x, as, ad, lse, dy *kernels.Mat, p kernels.Attention, rows kernels.Span) {
	kernels.CheckGATBackDst(dad, dot, g, x, as, ad, lse, dy, p, rows)
	o := q.op("GATBackDst")
	da, do, m, l, u := o.mat(dad), o.mat(dot), o.mat(x), o.mat(lse), o.mat(dy)
	a := o.attention(o.graph(g), p, as, ad, rows, false, m, u)
	o.run(func(x *runner) error {
		if err := a.short(x, "dk_gat_dst_", []any{da, do, m, l, u}); err != nil {
			return err
		}
		return x.inParts(a.g.parts, rows, 3*a.heads, func(part mat, chunks int64, i0, i1 int) error {
			if err := a.onChunks(x, "dk_gat_dst_chunk_"+a.form, chunks, i0, i1, part, m, l, u); err != nil {
				return err
			}
			return a.onChunks(x, "dk_gat_dst_sum", int64(i1-i0), i0, i1, da, do, part, m, l, u)
		})
	})
}

// GATBackSrc implements kernels.Stream.
func (q *queue) GATBackSrc(dx, das *kernels.Mat, back kernels.Graph, x, as, ad, lse, dot, dy *kernels.Mat, p kernels.Attention, rows kernels.Span) {
	kernels.CheckGATBackSrc(dx, das, back, x, as, ad, lse, dot, dy, p, rows)
	o := q.op("GATBackSrc")
	d, da, m, l, do, u := o.mat(dx), o.mat(das), o.mat(x), o.mat(lse), o.mat(dot), o.mat(dy)
	a := o.attention(o.graph(back), p, as, ad, rows, true, m, u, d)
	o.run(func(x *runner) error {
		if err := a.short(x, "dk_gat_src_", []any{d, da, m, l, do, u}); err != nil {
			return err
		}
		width := m.cols + a.heads
		return x.inParts(a.g.parts, rows, width, func(part mat, chunks int64, i0, i1 int) error {
			if err := a.onChunks(x, "dk_gat_src_chunk_"+a.form, chunks, i0, i1, part, m, l, do, u); err != nil {
				return err
			}
			if err := a.onChunks(x, "dk_gat_src_self", int64(i1-i0), i0, i1, part, chunks, m, l, do, u); err != nil {
				return err
			}
			args := slices.Concat([]any{d, da, part, chunks, int32(a.heads), int32(a.d), shiftOf(width)}, a.g.parts.chunkArgs(i0, i1))
			return x.each("dk_gat_src_sum", i1-i0, width, args...)
		})
	})
}

package cuda

import (
	"slices"

	"dorylus/kernels"
)

// maxForm is which of the forms of the maximum kernels fits an op: the columns of a
// tile, and the rows or chunks of a block.
type maxForm struct {
	rows, chunks  string
	tile, perRows int
	chunkTile     int
}

func maxFormOf(cols int, wide ...mat) maxForm {
	switch {
	case !aligned(wide...):
		return maxForm{"s32", "cs32", 32, 8, 32}
	case cols <= 32:
		return maxForm{"g8", "c32", 32, 32, 128}
	}
	return maxForm{"g32", "c32", 128, 8, 128}
}

// grid is the blocks for n rows.
func (f maxForm) grid(cols, n int) int64 {
	return over(int64(cols), int64(f.tile)) * over(int64(n), int64(f.perRows))
}

// chunkGrid is the blocks for n chunks, of which a block has eight.
func (f maxForm) chunkGrid(cols int, n int64) int64 {
	return over(int64(cols), int64(f.chunkTile)) * over(n, 8)
}

// SpMMMax implements kernels.Stream.
func (q *queue) SpMMMax(dst, arg *kernels.Mat, g kernels.Graph, x *kernels.Mat, rows kernels.Span) {
	kernels.CheckSpMMMax(dst, arg, g, x, rows)
	o := q.op("SpMMMax")
	c, d, at, m := &o.graph(g).on, o.mat(dst), o.mat(arg), o.mat(x)
	form, n, cols := maxFormOf(m.cols, d, at, m), rows.Len(), int32(m.cols)
	o.run(func(x *runner) error {
		err := x.launch("dk_spmm_max_"+form.rows, form.grid(m.cols, n), d, at, m, cols, c.rowptr, c.col, c.val,
			address(0), int64(rows.Lo), int64(n), int64(longPart))
		if err != nil || cols == 0 {
			return err
		}
		// A row of a chunk is its maxima, then where they came from.
		half := kernels.PadCols(m.cols)
		return x.inParts(c.parts, rows, 2*half, func(part mat, chunks int64, i0, i1 int) error {
			from := part.p + address(4*half)
			args := slices.Concat([]any{part.p, from, part.ld, m, cols, c.rowptr, c.col, c.val}, c.parts.chunkArgs(i0, i1))
			if err := x.launch("dk_spmm_max_"+form.chunks, form.chunkGrid(m.cols, chunks), args...); err != nil {
				return err
			}
			args = slices.Concat([]any{d, at, part.p, from, part.ld, cols}, c.parts.chunkArgs(i0, i1), []any{shiftOf(m.cols)})
			return x.each("dk_spmm_max_sum", i1-i0, m.cols, args...)
		})
	})
}

// SpMMMaxBack implements kernels.Stream.
func (q *queue) SpMMMaxBack(dx *kernels.Mat, back kernels.Graph, dy, arg *kernels.Mat, rows kernels.Span) {
	kernels.CheckSpMMMaxBack(dx, back, dy, arg, rows)
	o := q.op("SpMMMaxBack")
	c, d, u, at := &o.graph(back).on, o.mat(dx), o.mat(dy), o.mat(arg)
	form, n, cols := maxFormOf(d.cols, d, u, at), rows.Len(), int32(d.cols)
	o.run(func(x *runner) error {
		err := x.launch("dk_spmm_max_back_"+form.rows, form.grid(d.cols, n), d, u, at, cols, c.rowptr, c.col,
			address(0), int64(rows.Lo), int64(n), int64(longPart))
		if err != nil || cols == 0 {
			return err
		}
		return x.inParts(c.parts, rows, d.cols, func(part mat, chunks int64, i0, i1 int) error {
			args := slices.Concat([]any{part, u, at, cols, c.rowptr, c.col}, c.parts.chunkArgs(i0, i1))
			if err := x.launch("dk_spmm_max_back_"+form.chunks, form.chunkGrid(d.cols, chunks), args...); err != nil {
				return err
			}
			args = slices.Concat([]any{d, part, mat{}, cols}, c.parts.chunkArgs(i0, i1),
				[]any{shiftOf(d.cols), address(0), address(0), false, address(0), address(0), epi{}})
			return x.each("dk_spmm_sum", i1-i0, d.cols, args...)
		})
	})
}

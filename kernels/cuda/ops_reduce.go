package cuda

import "dorylus/kernels"

// slabRows is DK_SLAB: the rows that one block of a sum over rows takes.
const slabRows = 512

// sumRows sets dst to sums over rows. kernel writes the sums of each slab's cols
// columns; args are its arguments after them. Column c goes to dst[c/d][c%d], divided
// by div. Sums over no rows are 0.
func (x *runner) sumRows(dst mat, d int, div float32, kernel string, rows, cols int, args ...any) error {
	if cols == 0 {
		return nil
	}
	slabs := over(int64(rows), slabRows)
	var part mat
	if slabs > 0 {
		var err error
		if part, err = x.scratchMat(int(slabs), cols); err != nil {
			return err
		}
		if err := x.launch(kernel, slabs*over(int64(cols), 32), append([]any{part}, args...)...); err != nil {
			return err
		}
	}
	return x.launch("dk_col_finish", over(int64(cols), blockThreads), dst, part, slabs, int32(cols), int32(d), div)
}

// ColSum implements kernels.Stream.
func (q *queue) ColSum(dst, x *kernels.Mat, rows kernels.Span) {
	kernels.CheckColSum(dst, x, rows)
	o := q.op("ColSum")
	d, m := o.mat(dst), o.mat(x).sub(rows.Lo, rows.Hi)
	o.run(func(x *runner) error { return x.colSum(d, m) })
}

func (x *runner) colSum(dst, m mat) error {
	return x.sumRows(dst, m.cols, 1, "dk_col_sum", m.rows, m.cols, m, int64(m.rows), int32(m.cols))
}

// ColDot implements kernels.Stream.
func (q *queue) ColDot(dst, a, b *kernels.Mat) {
	kernels.CheckColDot(dst, a, b)
	o := q.op("ColDot")
	d, l, r := o.mat(dst), o.mat(a), o.mat(b)
	o.run(func(x *runner) error { return x.colDot(d, l, r) })
}

func (x *runner) colDot(dst, a, b mat) error {
	return x.sumRows(dst, a.cols, 1, "dk_col_dot", a.rows, a.cols, a, b, int64(a.rows), int32(a.cols))
}

// Dot implements kernels.Stream: each column's sum, then their sum.
func (q *queue) Dot(dst, a, b *kernels.Mat) {
	kernels.CheckDot(dst, a, b)
	o := q.op("Dot")
	d, l, r := o.mat(dst), o.mat(a), o.mat(b)
	o.run(func(x *runner) error {
		sums, err := x.scratchMat(1, l.cols)
		if err != nil {
			return err
		}
		if err := x.colDot(sums, l, r); err != nil {
			return err
		}
		return x.launch("dk_total", 1, d.p, sums.p, int64(l.cols))
	})
}

// ColMoments implements kernels.Stream.
func (q *queue) ColMoments(dst, x *kernels.Mat) {
	kernels.CheckColMoments(dst, x)
	o := q.op("ColMoments")
	d, m := o.mat(dst), o.mat(x)
	o.run(func(x *runner) error {
		rows, cols := int64(m.rows), int32(m.cols)
		mean := d.sub(0, 1)
		if err := x.sumRows(mean, m.cols, float32(max(rows, 1)), "dk_col_sum", m.rows, m.cols, m, rows, cols); err != nil {
			return err
		}
		return x.sumRows(d.sub(1, 2), m.cols, 1, "dk_col_square", m.rows, m.cols, m, mean.p, rows, cols)
	})
}

// HeadDotGrad implements kernels.Stream.
func (q *queue) HeadDotGrad(da, d, x *kernels.Mat) {
	kernels.CheckHeadDotGrad(da, d, x)
	o := q.op("HeadDotGrad")
	a, g, m := o.mat(da), o.mat(d), o.mat(x)
	o.run(func(x *runner) error {
		return x.sumRows(a, a.cols, 1, "dk_head_dot_grad", m.rows, m.cols, g, m, int64(m.rows), int32(a.rows), int32(a.cols))
	})
}

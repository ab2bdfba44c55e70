package cuda

import (
	"dorylus/kernels"
)

// Put implements kernels.Stream.
func (q *queue) Put(dst *kernels.Mat, src []float32) {
	kernels.CheckPut(dst, src)
	o := q.op("Put")
	d := o.mat(dst)
	o.run(func(x *runner) error { return x.moveIn(d, packedRows(src, d.cols)) })
}

// Get implements kernels.Stream.
func (q *queue) Get(dst []float32, src *kernels.Mat) {
	kernels.CheckGet(dst, src)
	o := q.op("Get")
	s := o.mat(src)
	o.run(func(x *runner) error { return x.moveOut(packedRows(dst, s.cols), s) })
}

// Copy implements kernels.Stream.
func (q *queue) Copy(dst, src *kernels.Mat) {
	kernels.CheckCopy(dst, src)
	o := q.op("Copy")
	switch {
	case onHost(src):
		d, host := o.mat(dst), *src
		o.run(func(x *runner) error { return x.moveIn(d, host.Row) })
	case onHost(dst):
		s, host := o.mat(src), *dst
		o.run(func(x *runner) error { return x.moveOut(host.Row, s) })
	default:
		d, s := o.mat(dst), o.mat(src)
		o.run(func(x *runner) error { return x.copyMat(d, s) })
	}
}

// Zero implements kernels.Stream.
func (q *queue) Zero(dst *kernels.Mat) {
	kernels.CheckZero(dst)
	o := q.op("Zero")
	d := o.mat(dst)
	o.run(func(x *runner) error { return x.zero(d) })
}

// zero queues d = 0.
func (x *runner) zero(d mat) error {
	return x.each("dk_zero", d.rows, d.cols, d, int64(d.rows), int32(d.cols), shiftOf(d.cols))
}

// Add implements kernels.Stream.
func (q *queue) Add(dst, a, b *kernels.Mat) {
	kernels.CheckAdd(dst, a, b)
	o := q.op("Add")
	d, l, r := o.mat(dst), o.mat(a), o.mat(b)
	o.run(func(x *runner) error {
		return x.each("dk_add", d.rows, d.cols, d, l, r, int64(d.rows), int32(d.cols), shiftOf(d.cols))
	})
}

// AddScaled implements kernels.Stream.
func (q *queue) AddScaled(dst, a, b *kernels.Mat, c float32, s *kernels.Mat) {
	kernels.CheckAddScaled(dst, a, b, c, s)
	o := q.op("AddScaled")
	d, l, r, by := o.mat(dst), o.mat(a), o.mat(b), o.mat(s)
	o.run(func(x *runner) error {
		return x.each("dk_add_scaled", d.rows, d.cols, d, l, r, c, by.p, int64(d.rows), int32(d.cols), shiftOf(d.cols))
	})
}

// GatherRows implements kernels.Stream.
func (q *queue) GatherRows(dst, src *kernels.Mat, ids []int32) {
	kernels.CheckGatherRows(dst, src, ids)
	o := q.op("GatherRows")
	d := o.mat(dst)
	if onHost(src) {
		host := *src
		o.run(func(x *runner) error { return x.moveIn(d, func(r int) []float32 { return host.Row(int(ids[r])) }) })
		return
	}
	s := o.mat(src)
	o.run(func(x *runner) error {
		return x.each("dk_gather_rows", d.rows, d.cols, d, s, list{ids, 0, len(ids)}, int64(d.rows), int32(d.cols), shiftOf(d.cols))
	})
}

// ScatterRows implements kernels.Stream.
func (q *queue) ScatterRows(dst, src *kernels.Mat, ids []int32) {
	kernels.CheckScatterRows(dst, src, ids)
	o := q.op("ScatterRows")
	d, s := o.mat(dst), o.mat(src)
	o.run(func(x *runner) error {
		return x.each("dk_scatter_rows", s.rows, s.cols, d, s, list{ids, 0, len(ids)}, int64(s.rows), int32(s.cols), shiftOf(s.cols))
	})
}

// Forward implements kernels.Stream.
func (q *queue) Forward(dst, x *kernels.Mat, ep *kernels.Epilogue, rows kernels.Span) {
	kernels.CheckForward(dst, x, ep, rows)
	o := q.op("Forward")
	d, m, e := o.mat(dst), o.mat(x), o.epilogue(ep, rows)
	o.run(func(x *runner) error {
		return x.each("dk_forward", rows.Len(), d.cols, d, m, int64(rows.Lo), int64(rows.Len()), int32(d.cols), shiftOf(d.cols), e)
	})
}

// Backward implements kernels.Stream.
func (q *queue) Backward(dx, dy, y *kernels.Mat, ep *kernels.Epilogue, rows kernels.Span) {
	kernels.CheckBackward(dx, dy, y, ep, rows)
	o := q.op("Backward")
	d, g, m := o.mat(dx), o.mat(dy), o.mat(y)
	if ep == nil {
		o.run(func(x *runner) error { return x.copyMat(d.sub(rows.Lo, rows.Hi), g.sub(rows.Lo, rows.Hi)) })
		return
	}
	e := o.epilogue(&kernels.Epilogue{Act: ep.Act, Drop: ep.Drop}, rows) // the bias is not read
	o.run(func(x *runner) error {
		return x.each("dk_backward", rows.Len(), d.cols, d, g, m, int64(rows.Lo), int64(rows.Len()), int32(d.cols), shiftOf(d.cols), e)
	})
}

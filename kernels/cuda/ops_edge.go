package cuda

import "dorylus/kernels"

// SDDMM implements kernels.Stream.
func (q *queue) SDDMM(dst *kernels.Mat, g kernels.Graph, x, y *kernels.Mat, rows kernels.Span) {
	kernels.CheckSDDMM(dst, g, x, y, rows)
	o := q.op("SDDMM")
	r, d, l, m := o.graph(g), o.mat(dst), o.mat(x), o.mat(y)
	kernel := "dk_sddmm_v1"
	if aligned(l, m) {
		kernel = "dk_sddmm_v4"
	}
	o.run(func(x *runner) error {
		e0, e1 := r.edges(rows)
		return x.launch(kernel, over(e1-e0, blockThreads), d.p, l, m, int32(l.cols), r.on.rowptr, r.on.col, int64(rows.Lo), int64(rows.Hi), e0, e1)
	})
}

// EdgeDropout implements kernels.Stream.
func (q *queue) EdgeDropout(dst *kernels.Mat, g kernels.Graph, drop kernels.Dropout, rows kernels.Span) {
	kernels.CheckEdgeDropout(dst, g, drop, rows)
	o := q.op("EdgeDropout")
	r, d := o.graph(g), o.mat(dst)
	e := o.epilogue(&kernels.Epilogue{Drop: drop}, rows)
	o.run(func(x *runner) error {
		e0, e1 := r.edges(rows)
		return x.launch("dk_edge_dropout", over(e1-e0, blockThreads), d.p, r.on.val, r.on.rowptr, r.on.col, int64(rows.Lo), int64(rows.Hi), e0, e1,
			e.mode, e.ids, e.key, e.drop, e.keep)
	})
}

// edges are the edges [e0,e1) of a span of rows.
func (r *graph) edges(rows kernels.Span) (e0, e1 int64) {
	return r.host.RowPtr[rows.Lo], r.host.RowPtr[rows.Hi]
}

package cuda

import "dorylus/kernels"

// A form is how a gather cuts a matrix into tiles: groups of lanes hold a tile's columns.
type form struct {
	name string // of the kernels, after dk_spmm_, dk_spmmt_ and their like
	tile int    // columns
	rows int    // rows a block
}

// The forms of gathers. Those named s take single values, for matrices that do not lie
// on 16 bytes.
var (
	g8  = form{"g8", 32, 32}
	g16 = form{"g16", 64, 16}
	g32 = form{"g32", 128, 8}
	s8  = form{"s8", 8, 32}
	s32 = form{"s32", 32, 8}
)

// l2Share is how much of the device's cache a tile of the gathered matrix may take.
const l2Share = 0.8

// formOf is the form for a gather from rows x cols: the least tile that holds a row, but
// where a tile's columns of all rows would not stay in the cache, the narrowest. It does
// not depend on what part of the output is made.
func (x *runner) formOf(rows, cols int, on16 bool) form {
	switch {
	case !on16 && cols <= s8.tile:
		return s8
	case !on16:
		return s32
	case x.d.opt.Cut.Tile != 0:
		return x.d.opt.Cut.form()
	case cols <= g8.tile:
		return g8
	}
	f := g32
	if cols <= g16.tile {
		f = g16
	}
	if 4*float64(rows)*float64(min(cols, f.tile)) > l2Share*float64(x.d.info.L2) {
		return g8
	}
	return f
}

// wide is the form in which a warp takes a row of many edges, if there is one.
func (f form) wide() (form, bool) {
	switch f {
	case g8:
		return form{"w8", g8.tile, 8}, true
	case g16:
		return form{"w16", g16.tile, 8}, true
	case s8:
		return form{"ws8", s8.tile, 8}, true
	}
	return form{}, false
}

// chunk is the name of the form's kernel for chunks of long rows.
func (f form) chunk() string {
	switch f {
	case s8:
		return "cs8"
	case s32:
		return "cs32"
	}
	return "c" + f.name[1:]
}

// blocks is the grid over n rows and cols columns; a chunk of a long row takes a block.
func (f form) blocks(n, cols int) int64 {
	return over(int64(cols), int64(f.tile)) * over(int64(n), int64(f.rows))
}

func (f form) chunkBlocks(chunks int64, cols int) int64 {
	return over(int64(cols), int64(f.tile)) * chunks
}

// SpMM implements kernels.Stream.
func (q *queue) SpMM(dst *kernels.Mat, g kernels.Graph, x *kernels.Mat, ga kernels.Gather, rows kernels.Span) {
	kernels.CheckSpMM(dst, g, x, ga, rows)
	o := q.op("SpMM")
	s := &gather{
		g: o.graph(g), dst: o.mat(dst), x: o.mat(x), rows: rows,
		rs: o.mat(ga.Scale.Row), cs: o.mat(ga.Scale.Col), ep: o.epilogue(ga.Ep, rows),
	}
	s.w = s.g.on.val
	if ga.W != nil {
		s.w = o.mat(ga.W).p
	}
	if ga.Self.On {
		s.self, s.selfCol, s.selfW = true, list{ga.Self.Col, rows.Lo, rows.Hi}, o.mat(ga.Self.W).p
	}
	o.run(s.run)
}

// gather is an SpMM.
type gather struct {
	g       *graph
	dst, x  mat
	rows    kernels.Span
	w       address
	rs, cs  mat
	self    bool
	selfCol list
	selfW   address
	ep      epi
}

func (s *gather) run(x *runner) error {
	n, cols := s.rows.Len(), s.dst.cols
	if n == 0 || cols == 0 {
		return nil
	}
	src, kernel, err := s.source(x)
	if err != nil {
		return err
	}
	c, f := &s.g.on, x.formOf(s.x.rows, cols, aligned(s.dst, src))
	launch := func(f form, rows address, lo, n int, least, most int64) error {
		return x.launch(kernel+f.name, f.blocks(n, cols), s.dst, src, int32(cols), c.rowptr, c.col, s.w,
			rows, int64(lo), int64(n), least, most, s.rs.p, s.cs.p, s.self, s.selfCol, s.selfW, s.ep)
	}
	i0, i1 := c.long.cut(s.rows)
	w0, w1 := c.wide.cut(s.rows)
	cut := x.d.opt.Cut
	most := cut.Long // edges of the rows that f takes
	if wide, ok := f.wide(); ok {
		most = cut.Wide
		if err := launch(wide, c.wide.on, w0, w1-w0, cut.Wide, cut.Long); err != nil {
			return err
		}
		n -= w1 - w0
	}
	if n > i1-i0 { // rows of few edges
		if err := launch(f, 0, s.rows.Lo, s.rows.Len(), 0, most); err != nil {
			return err
		}
	}
	return x.inParts(c.long, s.rows, partCols(cols), func(part mat, chunks int64, i0, i1 int) error {
		err := x.launch(kernel+f.chunk(), f.chunkBlocks(chunks, cols),
			part, src, int32(cols), c.rowptr, c.col, s.w, s.cs.p, c.long.on, c.long.chunksOn, int64(i0), int64(i1))
		if err != nil {
			return err
		}
		return x.sumChunks(kernel+"sum", s.dst, part, src, c.long, i0, i1, s.rs.p, s.cs.p, s.self, s.selfCol, s.selfW, s.ep)
	})
}

// With precision bf16 a gather reads its rows from a copy in bfloat16, in scratch memory,
// where the graph has at least bf16Edges edges for each row and the copy takes at most
// one part in bf16Share of the memory. That does not depend on the op's span.
const (
	bf16Edges = 4
	bf16Share = 8
)

// source is what is gathered from, and the beginning of the names of the kernels that do.
func (s *gather) source(x *runner) (mat, string, error) {
	rows, cols := s.x.rows, s.x.cols
	ld := int64(cols+7) / 8 * 8 // on 16 bytes
	bytes := 2 * ld * int64(rows)
	if x.d.opt.Precision != "bf16" || !s.dst.on16() || s.g.Edges() < bf16Edges*rows || bytes > x.pool.limit/bf16Share {
		return s.x, "dk_spmm_", nil
	}
	p, err := x.scratch(bytes)
	if err != nil {
		return mat{}, "", err
	}
	src := mat{p, ld, rows, cols}
	err = x.each("dk_to_bf16", rows, cols, src, s.x, int64(rows), int32(cols), shiftOf(cols))
	return src, "dk_spmm_bf16_", err
}

// partCols is the columns of the sums of chunks: a single one would not lie on 16 bytes.
func partCols(cols int) int { return max(cols, 2) }

// sumChunks finishes long rows from the sums of their chunks.
func (x *runner) sumChunks(kernel string, dst, part, src mat, l longRows, i0, i1 int, rs, cs address, self bool, selfCol list, selfW address, ep epi) error {
	return x.each(kernel, i1-i0, dst.cols, dst, part, src, int32(dst.cols), l.on, l.chunksOn, int64(i0), int64(i1),
		shiftOf(dst.cols), rs, cs, self, selfCol, selfW, ep)
}

// SpMMT implements kernels.Stream.
func (q *queue) SpMMT(dst *kernels.Mat, g kernels.Graph, w, x *kernels.Mat, rows kernels.Span) {
	kernels.CheckSpMMT(dst, g, w, x, rows)
	o := q.op("SpMMT")
	r, d, m := o.graph(g), o.mat(dst), o.mat(x)
	values := r.on.val
	if w != nil {
		values = o.mat(w).p
	}
	r.transpose()
	o.run(func(x *runner) error { return r.scatter(x, d, m, values, rows) })
}

// scatter is SpMMT as a gather along the transpose.
func (r *graph) scatter(x *runner, d, m mat, w address, rows kernels.Span) error {
	if d.rows == 0 || d.cols == 0 {
		return nil
	}
	t, err := r.backward(x)
	if err != nil {
		return err
	}
	f, cols, lo, hi := x.formOf(m.rows, d.cols, aligned(d, m)), int32(d.cols), int64(rows.Lo), int64(rows.Hi)
	n := len(t.long.rows)
	if d.rows > n {
		err := x.launch("dk_spmmt_"+f.name, f.blocks(d.rows, d.cols), d, m, cols, t.rowptr, t.col, w, t.perm, int64(d.rows), x.d.opt.Cut.Long, lo, hi)
		if err != nil {
			return err
		}
	}
	return x.inParts(t.long, kernels.Span{Hi: d.rows}, partCols(d.cols), func(part mat, chunks int64, i0, i1 int) error {
		err := x.launch("dk_spmmt_"+f.chunk(), f.chunkBlocks(chunks, d.cols),
			part, m, cols, t.rowptr, t.col, w, t.perm, t.long.on, t.long.chunksOn, int64(i0), int64(i1), lo, hi)
		if err != nil {
			return err
		}
		return x.sumChunks("dk_spmm_sum", d, part, m, t.long, i0, i1, 0, 0, false, list{}, 0, epi{})
	})
}

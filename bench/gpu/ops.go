package main

import (
	"fmt"

	"dorylus/kernels"
)

// operation is an op beside SpMM and GEMM, in fp32. Its name is the peers' too.
type operation struct {
	Name string `json:"name"` // "gat forward 8x8"
	cost
	*Times
}

// operands are matrices and kept lists that one op's measurement takes.
type operands struct {
	b     *bench
	mats  []*kernels.Mat
	lists [][]int32
	err   error
}

// mat is a filled matrix; after an error, nil.
func (o *operands) mat(rows, cols int) *kernels.Mat {
	if o.err != nil {
		return nil
	}
	m, err := o.b.filled(rows, cols)
	if o.err = err; err != nil {
		return nil
	}
	o.mats = append(o.mats, m)
	return m
}

// list keeps v on the device, so that its copy is not timed.
func (o *operands) list(v []int32) []int32 {
	if o.err == nil {
		if o.err = o.b.d.Keep(v); o.err == nil {
			o.lists = append(o.lists, v)
		}
	}
	return v
}

func (o *operands) free() {
	for _, m := range o.mats {
		o.b.d.Free(m)
	}
	for _, l := range o.lists {
		o.b.d.Drop(l)
	}
}

// add measures one op.
func (o *operands) add(name string, c cost, op func()) {
	if o.err != nil {
		return
	}
	r := operation{Name: name, cost: c}
	if r.Times, o.err = o.b.time(&r.cost, op); o.err != nil {
		o.err = fmt.Errorf("%s: %w", name, o.err)
		return
	}
	o.b.out.Ops = append(o.b.out.Ops, r)
}

// ops measures all of them; back is the transpose of b's graph.
func (b *bench) ops(back *kernels.CSR) error {
	g, err := b.d.Load(back)
	if err != nil {
		return err
	}
	defer b.d.Unload(g)
	for _, f := range []func(*operands){
		func(o *operands) { o.gat(g, 8, 8) },
		func(o *operands) { o.gat(g, 1, 41) },
		func(o *operands) { o.maximum(g, 128) },
		func(o *operands) { o.loss(41) },
		func(o *operands) { o.epilogue(128) },
		func(o *operands) { o.adam(602, 128) },
		func(o *operands) { o.rows(128) },
	} {
		o := &operands{b: b}
		f(o)
		o.free()
		if o.err != nil {
			return o.err
		}
	}
	return nil
}

// gat is attention of some heads of cols columns, with a self term, forward and the two
// halves of its gradient. Nothing of the size of the edges is stored, so that the bytes are
// rows, a sector of each narrow matrix, and an index for every term.
func (o *operands) gat(back kernels.Graph, heads, cols int) {
	b, n := o.b, o.b.csr.Rows()
	all, vertices, terms := kernels.Span{Hi: n}, int64(n), int64(o.b.csr.Edges()+n)
	x, dy, y, dx := o.mat(n, heads*cols), o.mat(n, heads*cols), o.mat(n, heads*cols), o.mat(n, heads*cols)
	as, ad, lse, dot, das, dad := o.mat(n, heads), o.mat(n, heads), o.mat(n, heads), o.mat(n, heads), o.mat(n, heads), o.mat(n, heads)
	p := kernels.Attention{Heads: heads, Slope: 0.2, Self: kernels.Self{On: true}}
	wide, narrow := sector(4*heads*cols), sector(4*heads)
	// The op reads a row of wide and k narrow ones for each term, and others once a row.
	bytes := func(k, wides, narrows int64) cost {
		once := vertices * (wides*wide + narrows*narrow + 8)
		return cost{Bytes: terms*(wide+k*narrow+4) + once, Least: vertices*(wide+k*narrow) + terms*4 + once}
	}
	form := fmt.Sprintf("%dx%d", heads, cols)
	o.add("gat forward "+form, bytes(1, 1, 2), func() { b.s.GAT(y, lse, b.g, x, as, ad, p, nil, all) })
	along, against := bytes(1, 1, 4), bytes(3, 2, 2)
	dst := func() { b.s.GATBackDst(dad, dot, b.g, x, as, ad, lse, dy, p, all) }
	src := func() { b.s.GATBackSrc(dx, das, back, x, as, ad, lse, dot, dy, p, all) }
	o.add("gat backward, destinations "+form, along, dst)
	o.add("gat backward, sources "+form, against, src)
	o.add("gat backward "+form, cost{along.Bytes + against.Bytes, along.Least + against.Least}, func() { dst(); src() })
}

// maximum is GraphSAGE's pooling; the gradient reads a row and its winners for every edge.
func (o *operands) maximum(back kernels.Graph, cols int) {
	b, n := o.b, o.b.csr.Rows()
	all, vertices, edges, row := kernels.Span{Hi: n}, int64(n), int64(o.b.csr.Edges()), sector(4*cols)
	x, y, arg, dx := o.mat(n, cols), o.mat(n, cols), o.mat(n, cols), o.mat(n, cols)
	o.add(fmt.Sprintf("max forward %d", cols), cost{edges*(row+4) + vertices*(2*row+8), vertices*(3*row+8) + edges*4},
		func() { b.s.SpMMMax(y, arg, b.g, x, all) })
	o.add(fmt.Sprintf("max backward %d", cols), cost{edges*(2*row+4) + vertices*(row+8), vertices*(3*row+8) + edges*4},
		func() { b.s.SpMMMaxBack(dx, back, y, arg, all) })
}

// loss is masked cross-entropy with its gradient: two of three rows have a label.
func (o *operands) loss(classes int) {
	b, n := o.b, o.b.csr.Rows()
	labels := make([]int32, n)
	for v := range labels {
		if labels[v] = int32(v*7) % int32(classes); v%3 == 2 {
			labels[v] = -1
		}
	}
	logits, grad := o.mat(n, classes), o.mat(n, classes)
	labels = o.list(labels)
	row, labelled, sum := sector(4*classes), int64(n-n/3), []float64{0}
	bytes := labelled*row + int64(n)*(row+4) // rows without a label are not read, but set
	o.add(fmt.Sprintf("cross-entropy %d", classes), cost{bytes, bytes},
		func() { b.s.SoftmaxXent(grad, sum, logits, labels, nil, 1/float32(labelled), kernels.Span{Hi: n}) })
}

// epilogue is bias, ReLU and dropout of a layer, and their gradient.
func (o *operands) epilogue(cols int) {
	b, n := o.b, o.b.csr.Rows()
	x, y, dy, bias := o.mat(n, cols), o.mat(n, cols), o.mat(n, cols), o.mat(1, cols)
	ep := &kernels.Epilogue{Bias: bias, Act: kernels.ReLU, Drop: kernels.Dropout{P: 0.5, Key: kernels.DropKey(1, 2, 3)}}
	row, all := int64(n)*sector(4*cols), kernels.Span{Hi: n}
	o.add(fmt.Sprintf("bias, relu, dropout %d", cols), cost{2 * row, 2 * row}, func() { b.s.Forward(y, x, ep, all) })
	o.add(fmt.Sprintf("bias, relu, dropout backward %d", cols), cost{3 * row, 3 * row}, func() { b.s.Backward(dy, dy, y, ep, all) })
}

// adam is a step of the first layer's weights.
func (o *operands) adam(rows, cols int) {
	p, g, m, v := o.mat(rows, cols), o.mat(rows, cols), o.mat(rows, cols), o.mat(rows, cols)
	if o.err != nil {
		return
	}
	o.b.s.Zero(m)
	o.b.s.Zero(v)
	o.err = o.b.s.Wait()
	bytes := 7 * int64(rows) * sector(4*cols)
	h := kernels.Adam{LR: 0.01, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8}
	o.add(fmt.Sprintf("adam %dx%d", rows, cols), cost{bytes, bytes}, func() { h.Step++; o.b.s.Adam(p, g, m, v, h) })
}

// rows gathers and scatters a tenth of the rows, as ghosts are.
func (o *operands) rows(cols int) {
	b, n := o.b, o.b.csr.Rows()
	some := max(n/10, 1)
	ids := make([]int32, some)
	for i := range ids {
		ids[i] = int32(i * 10 % n)
	}
	x, y := o.mat(n, cols), o.mat(some, cols)
	ids = o.list(ids)
	bytes := int64(some) * (2*sector(4*cols) + 4)
	o.add(fmt.Sprintf("gather rows %d", cols), cost{bytes, bytes}, func() { b.s.GatherRows(y, x, ids) })
	o.add(fmt.Sprintf("scatter rows %d", cols), cost{bytes, bytes}, func() { b.s.ScatterRows(x, y, ids) })
}

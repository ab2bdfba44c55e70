package model

import (
	"testing"

	"dorylus/engine/graph"
	"dorylus/kernels"
)

// rig runs a program on a whole graph as one block, in the order of its steps:
// what the pipeline does, without the pipeline.
type rig struct {
	t       testing.TB
	dev     kernels.Device
	s       kernels.Stream
	prog    *Program
	in, out *kernels.CSR
	ctx     *Ctx
	fwd     kernels.Graph
	bwd     kernels.Graph
	scale   *kernels.Mat
	mean    *kernels.Mat
	self    *kernels.Mat
}

// newRig binds prog to a graph (in-edges and out-edges) and features, dense or
// sparse. Labels below 0 are not trained on.
func newRig(t testing.TB, dev kernels.Device, prog *Program, in, out *kernels.CSR, x *kernels.Mat, sparse *kernels.CSR, labels []int32) *rig {
	t.Helper()
	s, err := dev.NewStream()
	must(t, err)
	r := &rig{t: t, dev: dev, s: s, prog: prog, in: in, out: out}
	r.fwd, err = dev.Load(in)
	must(t, err)
	r.bwd, err = dev.Load(out)
	must(t, err)
	selfW := graph.NormOf(in, nil, graph.SelfLoop)
	scale := graph.NormOf(in, nil, graph.GCNScale)
	r.scale = &kernels.Mat{Rows: len(scale), Cols: 1, Stride: 1, Host: scale}
	r.mean = &kernels.Mat{Rows: len(scale), Cols: 1, Stride: 1, Host: graph.NormOf(in, nil, graph.MeanScale)}
	if selfW != nil {
		r.self = &kernels.Mat{Rows: len(selfW), Cols: 1, Stride: 1, Host: selfW}
	}
	n := in.Rows()
	train := 0
	for _, l := range labels {
		if l >= 0 {
			train++
		}
	}
	c := &Ctx{
		S: s, Full: make([]*kernels.Mat, len(prog.Bufs)), Level: make([]int, len(prog.Bufs)),
		Seen: make([][]int32, prog.Levels),
		Rows: make([]kernels.Span, prog.Levels+1), IDs: make([][]int32, prog.Levels), Self: make([][]int32, prog.Levels),
		Weights: make([]*kernels.Mat, len(prog.Params)), Grads: make([]*kernels.Mat, len(prog.Params)),
		Labels: labels, LossScale: 1 / float32(max(train, 1)), Loss: make([]float64, 1), Seed: 5, Train: true,
	}
	r.ctx = c
	scratch := map[[3]int]*kernels.Mat{}
	c.Scratch = func(slot, rows, cols int) *kernels.Mat {
		key := [3]int{slot, rows, cols}
		if scratch[key] == nil {
			scratch[key] = kernels.FromSlice(rows, cols, make([]float32, rows*cols))
		}
		return scratch[key]
	}
	c.Rows[prog.Levels] = kernels.Span{Hi: 1}
	for k := range prog.Levels {
		c.Rows[k] = kernels.Span{Hi: n}
		c.IDs[k] = make([]int32, n)
		for i := range n {
			c.IDs[k][i] = int32(i)
		}
	}
	if sparse != nil {
		c.SparseX, err = dev.Load(sparse)
		must(t, err)
	}
	for b, spec := range prog.Bufs {
		c.Level[b] = spec.Level
		if spec.PerBlock {
			c.Level[b] = prog.Levels
		}
		switch {
		case spec.PerBlock:
			c.Full[b], err = dev.Alloc(1, spec.Cols)
			must(t, err)
		case b == X:
			c.Full[b] = x
		case spec.Edges:
			e := sparse.Edges()
			c.Full[b] = &kernels.Mat{Rows: e, Cols: 1, Stride: 1, Host: make([]float32, e)}
		default:
			c.Full[b], err = dev.Alloc(n, spec.Cols)
			must(t, err)
		}
		if spec.Made != nil {
			r.gather(spec.Made)
		}
	}
	for i, p := range prog.Params {
		c.Weights[i], err = dev.Alloc(p.Rows, p.Cols)
		must(t, err)
		c.Grads[i], err = dev.Alloc(p.Rows, p.Cols)
		must(t, err)
	}
	return r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (r *rig) gather(g *Gather) {
	ga := kernels.Gather{}
	switch g.Norm {
	case NormGCN:
		ga.Scale = kernels.Scale{Row: r.scale, Col: r.scale}
		ga.Self = kernels.Self{On: true, W: r.self}
	case NormSelf:
		ga.Self = kernels.Self{On: true, W: r.self}
	case NormMean:
		if g.Back {
			ga.Scale.Col = r.mean
		} else {
			ga.Scale.Row = r.mean
		}
	}
	if g.Reduce != nil {
		r.reduce(g)
		return
	}
	along := r.fwd
	if g.Back {
		along = r.bwd
	}
	full, rows := r.ctx.Full, kernels.Span{Hi: r.in.Rows()}
	if g.Run != nil {
		g.Run(r.ctx, &GatherArgs{G: along, Src: full[g.Src], Args: ga, Rows: rows})
		return
	}
	if g.Ep != nil {
		ga.Ep = g.Ep(r.ctx)
	}
	r.s.SpMM(full[g.Dst], along, full[g.Src], ga, rows)
}

// reduce is a reduction of the one block.
func (r *rig) reduce(g *Gather) {
	must(r.t, r.s.Wait())
	red := &Reduction{Rows: []int{r.in.Rows()}, Weights: make([][]float32, len(r.prog.Params)), Out: make([]float32, r.prog.Bufs[g.Dst].Cols)}
	if r.ctx.Train {
		red.Parts = r.ctx.Full[g.Src]
	}
	for i, w := range r.ctx.Weights {
		red.Weights[i] = w.Host
	}
	g.Reduce.Fn(red)
	r.s.Put(r.ctx.Full[g.Dst], red.Out)
}

// step runs one step.
func (r *rig) step(s *Step) {
	if s.Gather != nil {
		r.gather(s.Gather)
	}
	for _, op := range s.Ops {
		op(r.ctx)
	}
}

// run does one epoch and returns its loss.
func (r *rig) run() float64 {
	r.t.Helper()
	for i := range r.prog.Steps {
		r.step(&r.prog.Steps[i])
	}
	must(r.t, r.s.Wait())
	return r.ctx.Loss[0]
}

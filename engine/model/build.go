package model

import (
	"fmt"
	"slices"

	"dorylus/engine/task"
	"dorylus/kernels"
)

// builder writes a program: forward stages in order, each leaving behind its
// backward stage, which finish runs in reverse.
type builder struct {
	cfg      Config
	p        Program
	grad     map[int]int  // buffer -> buffer of its gradient
	leaf     map[int]bool // buffers through which no parameter is reached
	begun    map[int]bool // buffers whose gradient a backward stage has set already
	backward []func()
	dropX    int // the sparse features' values under dropout, NoBuf before their first use
	dir      task.Dir
}

// epilogue is what a stage fuses into its end: bias, activation, and the dropout
// of the next layer's input.
type epilogue struct {
	bias  int // parameter index, NoBuf for none
	act   kernels.Act
	drop  float32
	layer int // keys the dropout
}

func newBuilder(cfg Config) *builder {
	b := &builder{cfg: cfg, dropX: NoBuf, grad: map[int]int{}, leaf: map[int]bool{X: true}, begun: map[int]bool{}}
	b.buf(Buf{Name: "X", Cols: cfg.Features, Const: true})
	return b
}

func (b *builder) buf(x Buf) int {
	b.p.Bufs = append(b.p.Bufs, x)
	b.p.Levels = max(b.p.Levels, x.Level+1)
	return len(b.p.Bufs) - 1
}

func (b *builder) param(s ParamSpec) int {
	b.p.Params = append(b.p.Params, s)
	return len(b.p.Params) - 1
}

// gradOf is the buffer of a buffer's gradient.
func (b *builder) gradOf(buf int) int {
	if g, ok := b.grad[buf]; ok {
		return g
	}
	of := b.p.Bufs[buf]
	g := b.buf(Buf{Name: "d" + of.Name, Level: of.Level, Cols: of.Cols, Grad: true})
	b.grad[buf] = g
	return g
}

func (b *builder) needsGrad(buf int) bool { return !b.leaf[buf] }

// contribute is gradOf for a stage that reads buf: first says that it is the first
// to set the gradient; later ones add to it.
func (b *builder) contribute(buf int) (d int, first bool) {
	first = !b.begun[buf]
	b.begun[buf] = true
	return b.gradOf(buf), first
}

// setGrad is gradOf for a stage that cannot add: it must be the first.
func (b *builder) setGrad(buf int) int {
	d, first := b.contribute(buf)
	if !first {
		panic("model: a gather's gradient comes after another one of " + b.p.Bufs[buf].Name)
	}
	return d
}

// later keeps a place in the backward order: what is put into it runs after all
// stages that are added from now on.
func (b *builder) later() *func() {
	f := new(func())
	*f = func() {}
	b.backward = append(b.backward, func() { (*f)() })
	return f
}

// tensor adds an op, fused into the step before it if that is a tensor step too:
// nothing between them touches the graph.
func (b *builder) tensor(s Step, op Op) {
	s.Dir, s.Publish, s.Reads = b.dir, NoBuf, -1
	if s.Name == "" {
		s.Name = task.Task{Kind: s.Kind, Dir: s.Dir}.Name()
	}
	s.Ops = []Op{op}
	n := len(b.p.Steps)
	// Edge scores stay a task of their own, to run beside the graph or away from it.
	if n == 0 || !b.p.Steps[n-1].Kind.Tensor() || b.p.Steps[n-1].Kind != s.Kind {
		b.p.Steps = append(b.p.Steps, s)
		return
	}
	last := &b.p.Steps[n-1]
	last.Ops = append(last.Ops, op)
	if !hasSuffixPart(last.Name, s.Name) {
		last.Name += "+" + s.Name
	}
	last.In, last.Out = union(last.In, s.In), union(last.Out, s.Out)
	last.Params, last.Grads = union(last.Params, s.Params), union(last.Grads, s.Grads)
	last.Loss = last.Loss || s.Loss
	last.Scratch += s.Scratch
}

func hasSuffixPart(name, part string) bool {
	return name == part || len(name) > len(part) && name[len(name)-len(part)-1:] == "+"+part
}

func union(a, b []int) []int {
	for _, x := range b {
		if !slices.Contains(a, x) {
			a = append(a, x)
		}
	}
	return a
}

// publish adds the SC step that makes a buffer's rows readable.
func (b *builder) publish(buf, layer int) int {
	b.p.Bufs[buf].Published = true
	b.p.Steps = append(b.p.Steps, Step{
		Kind: task.SC, Dir: b.dir, Layer: layer, Publish: buf, Reads: -1,
		Name: task.Task{Kind: task.SC, Dir: b.dir}.Name(), In: []int{buf},
	})
	return len(b.p.Steps) - 1
}

// gatherStep adds a publication and the gather that reads it.
func (b *builder) gatherStep(g Gather, layer int, params []int) {
	b.gatherFrom(b.publish(g.Src, layer), g, layer, params)
}

// gatherFrom adds a gather of what step sc has published.
func (b *builder) gatherFrom(sc int, g Gather, layer int, params []int) {
	b.p.Steps = append(b.p.Steps, Step{
		Kind: task.GA, Dir: b.dir, Layer: layer, Publish: NoBuf, Reads: sc, Gather: &g,
		Name: task.Task{Kind: task.GA, Dir: b.dir}.Name(), In: []int{g.Src}, Out: []int{g.Dst}, Params: params,
	})
}

// keeps says that what is gathered from h is kept for the run: h are dense features that
// nothing changes from one epoch to the next.
func (b *builder) keeps(h int) bool {
	return h == X && !b.cfg.Sparse && b.cfg.InputDropout == 0 && !b.cfg.NoCache
}

// kept is a constant buffer: the gather of a constant one, made once per run.
func (b *builder) kept(name string, src int, norm Norm) int {
	from := b.p.Bufs[src]
	g := &Gather{Hop: from.Level, Src: src, Norm: norm}
	dst := b.buf(Buf{Name: name, Level: from.Level + 1, Cols: from.Cols, Const: true, Made: g})
	g.Dst = dst
	b.leaf[dst] = true
	return dst
}

// ops of the epilogue, on whole-level matrices (whole) or on the block's rows.
func (e epilogue) forward(c *Ctx, level int, whole bool) *kernels.Epilogue {
	ep := &kernels.Epilogue{Act: e.act}
	if e.bias != NoBuf {
		ep.Bias = c.Weights[e.bias]
	}
	if whole {
		ep.Drop = c.Drop(e.drop, level, e.layer)
	} else {
		ep.Drop = c.BlockDrop(e.drop, level, e.layer)
	}
	return ep
}

func (e epilogue) trivial() bool { return e.act == kernels.Identity && e.drop == 0 }

// backOp turns the gradient of an epilogue's output into that of its input, in
// place, and sets the bias gradient.
func (b *builder) backOp(out int, e epilogue, layer int) {
	if e.trivial() && e.bias == NoBuf {
		return
	}
	d, level := b.gradOf(out), b.p.Bufs[out].Level
	s := Step{Kind: task.AV, Layer: layer, In: []int{d}, Out: []int{d}}
	if !e.trivial() {
		s.In = append(s.In, out)
	}
	if e.bias != NoBuf {
		s.Grads = []int{e.bias}
	}
	b.tensor(s, func(c *Ctx) {
		dm := c.Mat(d)
		all := kernels.Span{Hi: dm.Rows}
		if !e.trivial() {
			ep := &kernels.Epilogue{Act: e.act, Drop: c.BlockDrop(e.drop, level, e.layer)}
			c.S.Backward(dm, dm, c.Mat(out), ep, all)
		}
		if e.bias != NoBuf {
			c.gradColSum(e.bias, dm, level)
		}
	})
}

// loss adds the cross-entropy of the logits, softmax or, for multi-label data,
// binary, and ends the forward part.
func (b *builder) loss(logits int) {
	b.p.Output = logits
	b.p.Forward = len(b.p.Steps)
	b.p.ForwardOps = len(b.p.Steps[b.p.Forward-1].Ops)
	d := b.gradOf(logits)
	b.tensor(Step{Kind: task.AV, Layer: b.cfg.Layers, Name: "loss", In: []int{logits}, Out: []int{d}, Loss: true},
		func(c *Ctx) { c.lossOf(c.Mat(d), c.Mat(logits), b.p.Bufs[logits].Level, b.cfg.MultiLabel) })
}

// finish writes the backward half and returns the program.
func (b *builder) finish() *Program {
	b.dir = task.Backward
	for _, f := range slices.Backward(b.backward) {
		f()
	}
	for i := range b.p.Steps {
		s := &b.p.Steps[i]
		for _, buf := range slices.Concat(s.In, s.Out) {
			s.Alone = s.Alone || b.p.Bufs[buf].PerBlock
		}
	}
	return &b.p
}

func name(kind string, layer int) string { return fmt.Sprintf("%s%d", kind, layer) }

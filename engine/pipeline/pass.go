package pipeline

import (
	"fmt"
	"slices"

	"dorylus/engine"
	"dorylus/engine/graph"
	"dorylus/engine/model"
	"dorylus/engine/sched"
	"dorylus/engine/task"
	"dorylus/kernels"
)

// pass is a program bound to data: the matrices, graphs and intervals of one
// kind of walk over the graph, training or evaluation.
type pass struct {
	prog  *model.Program
	plan  *graph.Plan
	train bool
	steps []model.Step // the program's, or its forward part

	blocks    graph.Level  // one row per block: the level of PerBlock buffers
	intervals []task.Range // of blocks
	own       task.Range   // of intervals
	ends      []int        // by partition: the interval behind its last one

	full    []*kernels.Mat // by buffer: an interval's own, private rows
	pub     []published    // by buffer: what others read
	sparse  kernels.Graph
	rows0   *kernels.CSR   // sparse, in host memory
	gathers []gatherArgs   // by step
	routes  []*routes      // by step that publishes; nil without other partitions
	kept    [][]int32      // of their lists, those that the device holds
	ctxs    [][]*model.Ctx // by own interval, then block
	owned   []*kernels.Mat
	dev     kernels.Device
}

// gatherArgs is all of a GA step that does not change from epoch to epoch.
type gatherArgs struct {
	g       kernels.Graph
	ga      kernels.Gather
	sources [][]int32
	level   int   // of the output; see pass.level
	rows    []int // of a Reduce: how many of each block the loss can reach
}

// passConfig says what newPass builds.
type passConfig struct {
	prog      *model.Program
	sparse    bool    // the program multiplies the features as sparse
	seeds     []int32 // nil: all rows
	all       bool    // compute rows, too, that the seeds do not depend on
	train     bool
	intervals int // at most
	// shared gives published rows memory of their own; latched guards them
	// against readers and late messages. shared needs latched.
	shared, latched bool
	part            *graph.Part // of a cluster; nil: this process has all of the graph
	seed            uint64
	labels          []int32      // by store row; -1 or nil: not trained on
	multi           *kernels.CSR // multi-label classes by store row, or nil
	classW          *kernels.Mat
	lossScale       float32
}

// newPass binds a program.
func newPass(in *inputs, w *workers, c passConfig) (*pass, error) {
	p := &pass{prog: c.prog, train: c.train, dev: in.dev, steps: c.prog.Steps}
	if !c.train {
		p.steps = p.steps[:c.prog.Forward]
	}
	var err error
	if p.plan, err = graph.Build(in.st, p.planOptions(c)); err != nil {
		return nil, err
	}
	p.blocks = graph.BlockLevel(p.plan.Blocks)
	if err := p.cut(c.intervals, c.part); err != nil {
		return nil, err
	}
	if err := p.bind(in, w, c); err != nil {
		p.close()
		return nil, err
	}
	if err := p.bindGathers(in); err != nil {
		p.close()
		return nil, err
	}
	if c.part != nil {
		if err := p.addRoutes(c.part); err != nil {
			p.close()
			return nil, err
		}
	}
	if err := p.contexts(in, c); err != nil {
		p.close()
		return nil, err
	}
	in.st.Forget()
	return p, nil
}

// planOptions finds the hops that gradients cross and those that no step
// gathers along.
func (p *pass) planOptions(c passConfig) graph.Options {
	o := graph.Options{Seeds: c.seeds, All: c.all, Levels: p.prog.Levels, Part: c.part}
	for _, s := range p.steps {
		o.Seen = o.Seen || s.Gather != nil && s.Gather.Reduce != nil
	}
	o.Backward, o.Skip = make([]bool, o.Levels-1), make([]bool, o.Levels-1)
	for k := range o.Skip {
		o.Skip[k] = true
	}
	for _, s := range p.steps {
		if s.Gather == nil || s.Gather.Reduce != nil {
			continue
		}
		o.Skip[s.Gather.Hop] = false
		if s.Gather.Back {
			o.Backward[s.Gather.Hop] = true
		}
	}
	return o
}

// bind gives each buffer that a step names its matrix.
func (p *pass) bind(in *inputs, w *workers, c passConfig) error {
	used := make([]bool, len(p.prog.Bufs))
	for i := range p.steps {
		for _, b := range slices.Concat(p.steps[i].In, p.steps[i].Out) {
			used[b] = true
		}
	}
	p.full = make([]*kernels.Mat, len(p.prog.Bufs))
	p.pub = make([]published, len(p.prog.Bufs))
	for b, spec := range p.prog.Bufs {
		if !used[b] {
			continue
		}
		level := p.level(p.levelOf(b))
		var err error
		switch {
		case b == model.X && c.sparse:
			p.rows0 = level.Features(in.st.Sparse, level.Span(p.plan.Own))
			p.sparse, err = in.load(p.rows0)
		case spec.Const:
			p.full[b], err = in.constant(p.prog, b, level, p.plan, w)
		case spec.Edges:
			p.full[b], err = p.edgeBuffer(in, p.sparse)
		default:
			purpose := purposeOf(&spec)
			if purpose == kernels.Published && c.shared {
				purpose = kernels.Activations // what others read is a copy
			}
			p.full[b], err = p.alloc(purpose, level.N, spec.Cols)
		}
		if err != nil {
			return fmt.Errorf("bind buffer %s: %w", spec.Name, err)
		}
		if !spec.Published {
			continue
		}
		rows := p.full[b]
		if c.shared {
			if rows, err = p.alloc(kernels.Published, level.N, spec.Cols); err != nil {
				return fmt.Errorf("bind published buffer %s: %w", spec.Name, err)
			}
		}
		p.pub[b] = p.publish(rows, level, c.latched)
	}
	return nil
}

// levelOf is the level of a buffer, for pass.level.
func (p *pass) levelOf(buf int) int {
	if spec := &p.prog.Bufs[buf]; !spec.PerBlock {
		return spec.Level
	}
	return p.prog.Levels
}

// level is a row level of the plan, or behind the last one that of the blocks
// themselves.
func (p *pass) level(k int) *graph.Level {
	if k == p.prog.Levels {
		return &p.blocks
	}
	return &p.plan.Levels[k]
}

func (p *pass) alloc(purpose kernels.Purpose, rows, cols int) (*kernels.Mat, error) {
	m, err := kernels.AllocFor(p.dev, purpose, rows, cols)
	if err == nil {
		p.owned = append(p.owned, m)
	}
	return m, err
}

// purposeOf is what a buffer is for, as far as where it should lie depends on it.
func purposeOf(b *model.Buf) kernels.Purpose {
	switch {
	case b.Const && b.Made == nil:
		return kernels.Features
	case b.Const:
		return kernels.FirstGather
	case b.PerBlock:
		return kernels.Other
	case b.Published:
		return kernels.Published
	case b.Grad:
		return kernels.Gradients
	}
	return kernels.Activations
}

// edgeBuffer holds one value per edge, without padding.
func (p *pass) edgeBuffer(in *inputs, g kernels.Graph) (*kernels.Mat, error) {
	m, err := p.alloc(kernels.Edges, 1, max(g.Edges(), 1))
	if err != nil {
		return nil, err
	}
	return &kernels.Mat{Rows: g.Edges(), Cols: 1, Stride: 1, Host: m.Host, Addr: m.Addr}, nil
}

func (p *pass) bindGathers(in *inputs) error {
	p.gathers = make([]gatherArgs, len(p.steps))
	for i, s := range p.steps {
		if s.Gather == nil {
			continue
		}
		if s.Gather.Reduce != nil {
			p.gathers[i] = gatherArgs{level: p.prog.Levels, sources: p.everyone(), rows: p.plan.SeenRows(s.Gather.Reduce.Level)}
			continue
		}
		hop := &p.plan.Hops[s.Gather.Hop]
		src, dst := s.Gather.Hop, s.Gather.Hop+1
		csr, self := hop.Fwd, hop.FwdSelf
		if s.Gather.Back {
			src, dst = dst, src
			csr, self = hop.Bwd, hop.BwdSelf
		}
		g, err := in.load(csr)
		if err != nil {
			return fmt.Errorf("load the edges of hop %d: %w", s.Gather.Hop, err)
		}
		from, to := &p.plan.Levels[src], &p.plan.Levels[dst]
		ga, err := in.gather(s.Gather, to, from, self)
		if err != nil {
			return fmt.Errorf("norms of hop %d: %w", s.Gather.Hop, err)
		}
		p.gathers[i] = gatherArgs{
			g: g, ga: ga, level: dst,
			sources: graph.Sources(csr, to, from, p.intervals, p.own, ga.Self.On),
		}
	}
	return nil
}

// contexts prepares each block's Ctx once; an epoch only changes epoch, weights
// and gradients.
func (p *pass) contexts(in *inputs, c passConfig) error {
	levels := make([]int, len(p.prog.Bufs))
	for b := range p.prog.Bufs {
		levels[b] = p.levelOf(b)
	}
	ids := make([][]int32, p.prog.Levels)
	for k := range ids {
		l := &p.plan.Levels[k]
		if l.Rows == nil {
			ids[k] = in.st.Order
			continue
		}
		ids[k] = make([]int32, l.N)
		for i := range ids[k] {
			ids[k][i] = in.st.Order[l.Store(i)]
		}
	}
	var labels []int32
	if c.labels != nil {
		last := &p.plan.Levels[p.prog.Levels-1]
		labels = make([]int32, last.N)
		for i := range labels {
			labels[i] = c.labels[last.Store(i)]
		}
	}
	var targets *kernels.CSR
	if c.multi != nil && c.labels != nil {
		last := &p.plan.Levels[p.prog.Levels-1]
		targets = last.Features(c.multi, last.Span(p.plan.Own))
	}
	self := make([][]int32, len(p.plan.Hops))
	lists := [][]int32{labels}
	for k := range self {
		self[k] = p.plan.Hops[k].FwdSelf
		lists = append(lists, self[k], p.plan.Hops[k].BwdSelf)
	}
	if c.train {
		lists = append(lists, ids...) // of dropout
	}
	if targets != nil {
		lists = append(lists, targets.Col)
	}
	p.ctxs = make([][]*model.Ctx, p.own.Len())
	for i := p.own.Lo; i < p.own.Hi; i++ {
		r := p.intervals[i]
		for b := r.Lo; b < r.Hi; b++ {
			x := &model.Ctx{
				Full: p.full, Level: levels, Rows: make([]kernels.Span, p.prog.Levels+1), IDs: ids, Self: self, SparseX: p.sparse, Sparse: p.rows0,
				Seen:   p.seenIn(b),
				Grads:  make([]*kernels.Mat, len(p.prog.Params)),
				Labels: labels, Targets: targets, ClassW: c.classW, LossScale: c.lossScale, Loss: make([]float64, 1),
				Block: b, Seed: c.seed, Train: c.train,
			}
			for k := range x.Rows {
				x.Rows[k] = p.level(k).Block(b)
			}
			lists = append(lists, x.Seen...)
			p.ctxs[i-p.own.Lo] = append(p.ctxs[i-p.own.Lo], x)
		}
	}
	return in.keep(lists...)
}

// schedule is the pass as the scheduler sees it.
func (p *pass) schedule() []sched.Step {
	steps := make([]sched.Step, len(p.steps))
	for i, s := range p.steps {
		steps[i] = sched.Step{Kind: s.Kind, Dir: s.Dir, Layer: s.Layer, Reads: s.Reads, Publishes: s.Publish != model.NoBuf}
		if s.Gather != nil {
			steps[i].Sources = p.gathers[i].sources
		}
	}
	return steps
}

// ops are the ops of a step that are due in this pass.
func (p *pass) ops(step int) []model.Op {
	s := &p.steps[step]
	if !p.train && step == p.prog.Forward-1 {
		return s.Ops[:p.prog.ForwardOps]
	}
	return s.Ops
}

// kind is which of a run's passes it is.
func (p *pass) kind() engine.Pass {
	if p.train {
		return engine.Training
	}
	return engine.Evaluation
}

// rows is an interval's row range at a level.
func (p *pass) rows(interval, level int) kernels.Span {
	return p.level(level).Span(p.intervals[interval])
}

func (p *pass) close() {
	for _, m := range p.owned {
		p.dev.Free(m)
	}
	p.owned = nil
	p.dropRoutes()
}

package workload

import (
	"context"
	"fmt"
	"slices"

	"dorylus/engine/graph"
	"dorylus/engine/model"
	"dorylus/engine/params"
	"dorylus/engine/sim"
	"dorylus/engine/store"
	"dorylus/engine/task"
	"dorylus/kernels"
)

// Options say which pass over which partitions.
type Options struct {
	Program *model.Program
	Sparse  bool // the program multiplies the features as sparse
	// Seeds are the training vertices, as store rows, ascending; nil: all vertices, as in an
	// evaluation. Train says which it is.
	Seeds []int32
	Train bool
	// All computes rows, too, that the seeds do not depend on.
	All bool
	// Cuts are the partitions: runs of blocks, some of them empty. One is a run in one
	// process.
	Cuts []task.Range
	// Intervals is how many a partition has at most.
	Intervals int
	// Shared: published rows are kept apart from those that are being computed, as in an
	// async run.
	Shared bool
	// Wire is the bytes of a value between servers, 4 or 2; 0: 4.
	Wire int
	// Reach, if not nil, is used again for other cuts of the same store and seeds.
	Reach *Reach
	// Merged: gradients come as sums over blocks from remote workers. Traffic, by step, is
	// what they exchange; nil: there are none.
	Merged  bool
	Traffic []Traffic
}

// Traffic is what a remote worker exchanges for a step.
type Traffic struct {
	Down, Up []int // buffers
	Params   []int // gradients that it returns
}

// Workload is what the tasks of a pass amount to.
type Workload struct {
	Steps     []model.Step
	Keys      []Key
	Intervals int // in all
	Blocks    int
	Parts     []Part
	// Params are the bytes of all parameters.
	Params int64
}

// Part is the share of one partition.
type Part struct {
	Blocks, Own task.Range // Own are its intervals
	// Sources[s] are those of the gather of step s, by own interval; nil for other steps.
	Sources [][][]int32
	// Tasks, Sends and Remote are by own interval and step.
	Tasks  [][]Amounts
	Sends  [][][]sim.Send
	Remote [][]Exchange
	// Push[s] are the bytes of gradients that step s makes, as they go to parameter servers.
	Push []int64
	// Start is the work before the first epoch: gathers of constants.
	Start  Amounts
	Memory Memory
	// Ghosts is the number of rows that it receives in an epoch, Edges that of edges that
	// its gathers read.
	Ghosts int64
	Edges  float64
}

// Exchange is what a task sends to a remote worker and gets back, in bytes.
type Exchange struct {
	Remote   bool
	Down, Up int64
}

// builder makes a Workload.
type builder struct {
	o      *Options
	ctx    context.Context
	st     *store.Store
	steps  []model.Step
	m      *meter
	parts  []*planned
	of     []int32 // by block: its interval
	blocks graph.Level
	zeros  []int32
}

// planned is what is kept of a partition's plan.
type planned struct {
	plan    *graph.Plan // without its edges
	cuts    []task.Range
	graphs  map[hopSide]*shape
	sources map[hopSide][][]int32 // by own block: the blocks that it reads
	rows0   *shape                // sparse features
	same    []bool                // by hop: both levels hold the same rows
	memory  Memory
	start   Amounts
}

// hopSide names the edges of a hop, and whether a row's own vertex counts as a source.
type hopSide struct {
	hop        int
	back, self bool
}

// Build makes the workload of a pass over st. It reads all edges that the pass gathers
// along, once or twice for each partition.
func Build(ctx context.Context, st *store.Store, o Options) (*Workload, error) {
	b := &builder{o: &o, ctx: ctx, st: st, steps: o.Program.Steps, m: newMeter(), zeros: make([]int32, st.Meta.Vertices)}
	if !o.Train {
		b.steps = b.steps[:o.Program.Forward]
	}
	if o.Wire == 0 {
		o.Wire = 4
	}
	if o.Reach == nil {
		o.Reach = NewReach(st, o.Seeds)
	}
	b.blocks = graph.BlockLevel(graph.Blocks(&st.Meta))
	for rank := range o.Cuts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p, err := b.plan(rank)
		if err != nil {
			return nil, fmt.Errorf("plan partition %d of %d of %s: %w", rank, len(o.Cuts), st.Meta.Name, err)
		}
		b.parts = append(b.parts, p)
	}
	w := &Workload{Steps: b.steps, Blocks: b.blocks.N}
	b.of = make([]int32, b.blocks.N)
	for rank, p := range b.parts {
		part := Part{Blocks: o.Cuts[rank], Own: task.Range{Lo: w.Intervals, Hi: w.Intervals + len(p.cuts)}, Memory: p.memory, Start: p.start}
		for i, r := range p.cuts {
			for block := r.Lo; block < r.Hi; block++ {
				b.of[block] = int32(w.Intervals + i)
			}
		}
		w.Intervals += len(p.cuts)
		w.Parts = append(w.Parts, part)
	}
	for _, s := range o.Program.Params {
		w.Params += 4 * int64(s.Rows) * int64(s.Cols)
	}
	for rank := range w.Parts {
		b.fill(&w.Parts[rank], rank)
	}
	w.Keys = b.m.list
	return w, nil
}

// fill works out the tasks of a partition.
func (b *builder) fill(part *Part, rank int) {
	p := b.parts[rank]
	part.Push = make([]int64, len(b.steps))
	part.Sources = make([][][]int32, len(b.steps))
	for s := range b.steps {
		step := &b.steps[s]
		if step.Gather != nil {
			part.Sources[s] = b.intervalSources(p, step)
		}
		if b.o.Train {
			for _, g := range step.Grads {
				part.Push[s] += b.paramBytes(g) * int64(len(params.Subtrees(part.Blocks.Lo, part.Blocks.Hi)))
			}
		}
	}
	ctxs := b.contexts(p)
	for _, blocks := range p.cuts {
		tasks, sends, remote := make([]Amounts, len(b.steps)), make([][]sim.Send, len(b.steps)), make([]Exchange, len(b.steps))
		for s := range b.steps {
			step := &b.steps[s]
			switch {
			case step.Gather != nil:
				part.Edges += b.gather(p, ctxs, step, blocks)
			case step.Publish != model.NoBuf:
				sends[s] = b.scatter(p, rank, s, blocks)
			default:
				b.apply(p, ctxs, s, blocks)
				remote[s] = b.exchange(p, s, blocks)
			}
			if !b.o.Train && s == len(b.steps)-1 { // scores
				out := &b.o.Program.Bufs[b.o.Program.Output]
				b.m.add(Key{Op: Loss, Cols: out.Cols}, float64(b.rows(p, b.o.Program.Output, blocks))*float64(out.Cols))
			}
			tasks[s] = b.m.take()
		}
		part.Tasks, part.Sends, part.Remote = append(part.Tasks, tasks), append(part.Sends, sends), append(part.Remote, remote)
	}
	for s := range b.steps {
		if b.steps[s].Publish != model.NoBuf {
			part.Ghosts += int64(len(b.read(s, p)))
		}
	}
}

func (b *builder) paramBytes(p int) int64 {
	s := &b.o.Program.Params[p]
	return 4 * int64(s.Rows) * int64(s.Cols)
}

// intervalSources are the intervals that each own interval reads at a gather.
func (b *builder) intervalSources(p *planned, step *model.Step) [][]int32 {
	out := make([][]int32, len(p.cuts))
	if step.Gather.Reduce != nil {
		if b.o.Train {
			for i := range out {
				out[i] = slices.Compact(slices.Clone(b.of))
			}
		}
		return out
	}
	byBlock := p.sources[side(step)]
	for i, r := range p.cuts {
		var list []int32
		for block := r.Lo; block < r.Hi; block++ {
			for _, from := range byBlock[block-p.plan.Own.Lo] {
				list = append(list, b.of[from])
			}
		}
		slices.Sort(list)
		out[i] = slices.Compact(list)
	}
	return out
}

// side is which edges a gather goes along.
func side(step *model.Step) hopSide {
	g := step.Gather
	return hopSide{g.Hop, g.Back, g.Norm == model.NormGCN || g.Norm == model.NormSelf}
}

// gather counts a gather of an interval and returns its edges.
func (b *builder) gather(p *planned, ctxs []*model.Ctx, step *model.Step, blocks task.Range) float64 {
	g := step.Gather
	if g.Reduce != nil {
		cols := b.o.Program.Bufs[g.Src].Cols
		b.m.values(float64(blocks.Len()) * float64(cols) * float64(b.blocks.N))
		return 0
	}
	key := side(step)
	dst := g.Hop + 1
	if g.Back {
		dst = g.Hop
	}
	rows := p.plan.Levels[dst].Span(blocks)
	edges := p.graphs[hopSide{g.Hop, g.Back, false}]
	c := ctxs[blocks.Lo-p.plan.Own.Lo]
	ga := kernels.Gather{Self: kernels.Self{On: key.self}}
	if g.Run != nil {
		g.Run(c, &model.GatherArgs{G: edges, Src: c.Full[g.Src], Args: ga, Rows: rows})
		return edges.in(rows)
	}
	if g.Ep != nil {
		ga.Ep = g.Ep(c)
	}
	b.m.SpMM(c.Full[g.Dst], edges, c.Full[g.Src], ga, rows)
	return edges.in(rows)
}

// scatter counts a publication of an interval and returns what goes to whom.
func (b *builder) scatter(p *planned, rank, s int, blocks task.Range) []sim.Send {
	buf := &b.o.Program.Bufs[b.steps[s].Publish]
	if b.o.Shared {
		b.m.values(2 * float64(b.rows(p, b.steps[s].Publish, blocks)) * float64(buf.Cols))
	}
	reach := task.Range{Lo: blocks.Lo * p.plan.BlockRows, Hi: blocks.Hi * p.plan.BlockRows}
	if buf.PerBlock {
		reach = blocks
	}
	wire := int64(b.o.Wire)
	if buf.PerBlock || buf.RefHi > 0 {
		wire = 4
	}
	var out []sim.Send
	for to, other := range b.parts {
		if to == rank {
			continue
		}
		list := b.read(s, other)
		lo, _ := slices.BinarySearch(list, int32(reach.Lo))
		hi, _ := slices.BinarySearch(list, int32(min(reach.Hi, 1<<31-1)))
		if n := int64(hi - lo); n > 0 {
			b.m.values((1 + scatteredCost) * float64(n) * float64(buf.Cols))
			out = append(out, sim.Send{To: to, Bytes: n * int64(buf.Cols) * wire})
		}
	}
	return out
}

// read are the rows, of the store or of blocks, that a partition gathers of what step s
// publishes.
func (b *builder) read(s int, p *planned) []int32 {
	if len(b.parts) == 1 {
		return nil
	}
	var lists [][]int32
	for _, r := range b.steps {
		switch {
		case r.Gather == nil || r.Reads != s:
		case r.Gather.Reduce != nil:
			if b.o.Train {
				blocks := make([]int32, b.blocks.N)
				for i := range blocks {
					blocks[i] = int32(i)
				}
				lists = append(lists, blocks)
			}
		case r.Gather.Back:
			lists = append(lists, p.plan.Needs[r.Gather.Hop].Bwd)
		default:
			lists = append(lists, p.plan.Needs[r.Gather.Hop].Fwd)
		}
	}
	return graph.Union(lists...)
}

// rows is how many an interval has in a buffer.
func (b *builder) rows(p *planned, buf int, blocks task.Range) int {
	if b.o.Program.Bufs[buf].PerBlock {
		return blocks.Len()
	}
	return p.plan.Levels[b.o.Program.Bufs[buf].Level].Span(blocks).Len()
}

// apply counts a tensor task of an interval.
func (b *builder) apply(p *planned, ctxs []*model.Ctx, s int, blocks task.Range) {
	step := &b.steps[s]
	ops := step.Ops
	if !b.o.Train && s == b.o.Program.Forward-1 {
		ops = ops[:b.o.Program.ForwardOps]
	}
	for block := blocks.Lo; block < blocks.Hi; block++ {
		c := ctxs[block-p.plan.Own.Lo]
		if idle(c, step) {
			continue
		}
		for _, op := range ops {
			op(c)
		}
		if b.o.Train {
			for _, g := range step.Grads { // into the sum over blocks
				b.m.values(3 * float64(b.paramBytes(g)/4))
			}
		}
	}
}

// idle says that a block has no rows that the step would read or set.
func idle(c *model.Ctx, step *model.Step) bool {
	for _, list := range [][]int{step.In, step.Out} {
		for _, b := range list {
			if c.Span(b).Len() > 0 {
				return false
			}
		}
	}
	return true
}

// exchange is what a tensor task of an interval has with a remote worker.
func (b *builder) exchange(p *planned, s int, blocks task.Range) Exchange {
	if b.o.Traffic == nil {
		return Exchange{}
	}
	t := &b.o.Traffic[s]
	size := func(buf int) int64 {
		spec := &b.o.Program.Bufs[buf]
		if spec.Edges || buf == model.X && p.rows0 != nil {
			return int64(p.rows0.in(p.plan.Levels[0].Span(blocks))) * int64(4+b.o.Wire)
		}
		return int64(b.rows(p, buf, blocks)) * int64(spec.Cols) * int64(b.o.Wire)
	}
	x := Exchange{Remote: true}
	for _, buf := range t.Down {
		x.Down += size(buf)
	}
	for _, buf := range t.Up {
		x.Up += size(buf)
	}
	if b.o.Train {
		sums := blocks.Len()
		if b.o.Merged {
			sums = len(params.Subtrees(blocks.Lo, blocks.Hi))
		}
		for _, g := range t.Params {
			x.Up += b.paramBytes(g) / 4 * int64(b.o.Wire) * int64(sums)
		}
	}
	return x
}

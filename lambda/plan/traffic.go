package plan

import (
	"fmt"
	"slices"
	"strings"

	"dorylus/engine/model"
	"dorylus/engine/task"
)

// Shape is how large a pass is.
type Shape struct {
	// Rows are those of each row level, over all intervals; behind the last level those
	// of PerBlock buffers: one a block.
	Rows []int
	// NonZeros are those of sparse features; -1: they are dense.
	NonZeros          int
	Intervals, Blocks int
	// Sums are the runs of blocks that gradients come merged in; 0: they do not.
	Sums    int
	Workers int
	Width   int // bytes of a value on the wire: 4, or 2 for bf16 and fp16
}

// Savings are the bytes that one training epoch moves between the graph server and its
// workers, before compression and without the heads of messages, by a naive protocol and
// by this one, and what each idea takes off. The ideas are taken in this order, each on
// top of those before: another order would share out the same sum in another way.
type Savings struct {
	// Naive runs the paper's order: a gather, then the product, per layer, and the loss
	// as a task of its own. Every task is sent all that it reads, weights too, and
	// returns all that it sets.
	Naive int64
	// Fusion: tasks with nothing of the graph between them are one, and what one op sets
	// for the next is not sent back and forth.
	Fusion int64
	// Residency: constant rows stay with a worker for the run, others for the epoch, and
	// weights come once per worker and version.
	Residency int64
	// Remade: what only later tensor tasks read is not returned; who loses it makes it
	// again.
	Remade int64
	// Order of multiplication: products come before their gather where that makes the
	// gathered rows narrower, and so next to the product of the layer before. It is below
	// 0 where input dropout keeps the first gather from being made once for all.
	Order int64
	// Merged: of the gradients of blocks below one node of the tree of sums, one sum is
	// returned.
	Merged int64
	// Planned is what is left.
	Planned int64
}

// Factor is how many times more the naive protocol moves.
func (s Savings) Factor() float64 { return float64(s.Naive) / float64(s.Planned) }

// String is a table.
func (s Savings) String() string {
	var b strings.Builder
	line := func(what string, n int64) {
		fmt.Fprintf(&b, "%-28s %9.2f MB %6.1f %%\n", what, float64(n)/1e6, 100*float64(n)/float64(s.Naive))
	}
	line("naive", s.Naive)
	line("fusion", -s.Fusion)
	line("residency", -s.Residency)
	line("rematerialisation", -s.Remade)
	line("order of multiplication", -s.Order)
	line("merged gradients", -s.Merged)
	line("planned", s.Planned)
	return b.String()
}

// protocol is which of the ideas are in use.
type protocol struct{ fused, resident, remade, merged bool }

// Compare works the savings out for a program that cfg builds. For models other than gcn
// the naive protocol has the program's own order. Of a task's inputs that several of its
// ops read it counts one copy, and it leaves labels and dropout's vertex numbers out: the
// naive protocol moves a little more than Naive says.
func Compare(cfg model.Config, prog *model.Program, s Shape) Savings {
	ours := New(prog, len(prog.Steps))
	naive, fused := ours, ours
	if cfg.Model == "gcn" && !cfg.Residual && !cfg.JumpingKnowledge && cfg.Norm == "" {
		p := gatherFirst(cfg)
		naive = New(p, len(p.Steps))
		p = fuse(p)
		fused = New(p, len(p.Steps))
	}
	out := Savings{Naive: naive.bytes(s, protocol{}), Planned: ours.bytes(s, protocol{true, true, true, true})}
	left := out.Naive
	for _, x := range []struct {
		part *int64
		now  int64
	}{
		{&out.Fusion, fused.bytes(s, protocol{fused: true})},
		{&out.Residency, fused.bytes(s, protocol{fused: true, resident: true})},
		{&out.Remade, fused.bytes(s, protocol{fused: true, resident: true, remade: true})},
		{&out.Order, ours.bytes(s, protocol{fused: true, resident: true, remade: true})},
		{&out.Merged, out.Planned},
	} {
		*x.part, left = left-x.now, x.now
	}
	return out
}

// fuse makes one step of tensor steps that follow each other.
func fuse(p *model.Program) *model.Program {
	out := *p
	out.Steps = nil
	join := func(a, b []int) []int {
		a = slices.Clone(a)
		for _, x := range b {
			if !slices.Contains(a, x) {
				a = append(a, x)
			}
		}
		return a
	}
	for i, s := range p.Steps {
		n := len(out.Steps)
		if n > 0 && s.Kind == out.Steps[n-1].Kind && s.Kind.Tensor() {
			last := &out.Steps[n-1]
			last.In, last.Out = join(last.In, s.In), join(last.Out, s.Out)
			last.Params, last.Grads = join(last.Params, s.Params), join(last.Grads, s.Grads)
		} else {
			out.Steps = append(out.Steps, s)
		}
		if i < p.Forward {
			out.Forward = len(out.Steps)
		}
	}
	return &out
}

// bytes is what an epoch moves.
func (p *Plan) bytes(s Shape, by protocol) int64 {
	var n int64
	held := map[int]int{} // by buffer: the step whose version the interval's worker has
	weights := map[int]bool{}
	gradients := s.Blocks
	if by.merged && s.Sums > 0 {
		gradients = s.Sums
	}
	for i, step := range p.Steps {
		if step == nil {
			continue
		}
		of := &p.prog.Steps[i]
		for _, v := range step.Needs {
			at, have := held[v.Buf]
			if by.resident && (v.Step < 0 || have && at == v.Step) {
				continue
			}
			n += p.size(s, v.Buf)
			held[v.Buf] = v.Step
		}
		if !by.fused {
			for _, b := range of.In { // set further up in the same task
				if !p.prog.Bufs[b].Const && p.writer(b, i) < 0 {
					n += p.size(s, b)
				}
			}
		}
		down := of.Out
		if by.remade {
			down = step.Ships
		}
		for _, b := range down {
			n += p.size(s, b)
		}
		for _, b := range of.Out {
			held[b] = i
		}
		for _, w := range of.Params {
			if !by.resident {
				n += p.paramSize(s, w) * int64(s.Intervals)
			}
			weights[w] = true
		}
		for _, w := range of.Grads {
			n += p.paramSize(s, w) * int64(gradients)
		}
	}
	if by.resident {
		for w := range weights {
			n += p.paramSize(s, w) * int64(min(s.Workers, s.Intervals))
		}
	}
	return n
}

// size is the bytes of a buffer's rows in all intervals.
func (p *Plan) size(s Shape, buf int) int64 {
	b := &p.prog.Bufs[buf]
	switch {
	case buf == model.X && s.NonZeros >= 0:
		return int64(s.NonZeros)*int64(4+s.Width) + 4*int64(s.Rows[0])
	case b.Edges:
		return int64(s.NonZeros) * int64(s.Width)
	case b.PerBlock:
		return int64(s.Blocks) * int64(b.Cols) * int64(s.Width)
	}
	return int64(s.Rows[b.Level]) * int64(b.Cols) * int64(s.Width)
}

func (p *Plan) paramSize(s Shape, w int) int64 {
	return int64(p.prog.Params[w].Rows) * int64(p.prog.Params[w].Cols) * int64(s.Width)
}

// gatherFirst is the graph convolutional network in the paper's order, without its ops:
//
//	forward   GA: A_l = Â·H_{l-1}   AV: H_l = act(A_l·W_l + b_l)
//	loss      dH_L
//	          (A_1 once for the run where nothing drops features out)
//	backward  ∇AV: dW_l, db_l, dA_l of A_l, H_l, dH_l   ∇GA: dH_{l-1} = Âᵀ·dA_l
func gatherFirst(cfg model.Config) *model.Program {
	p := &model.Program{Levels: cfg.Layers + 1}
	buf := func(name string, level, cols int) int {
		p.Bufs = append(p.Bufs, model.Buf{Name: name, Level: level, Cols: cols})
		return len(p.Bufs) - 1
	}
	step := func(kind task.Kind, in, out, params, grads []int) {
		p.Steps = append(p.Steps, model.Step{Kind: kind, In: in, Out: out, Params: params, Grads: grads, Publish: model.NoBuf, Reads: -1})
	}
	type layer struct {
		a, h   int
		params []int
	}
	h, width := buf("X", 0, cfg.Features), cfg.Features
	p.Bufs[h].Const = true
	layers := make([]layer, cfg.Layers)
	for l := range layers {
		out := cfg.Hidden
		if l == cfg.Layers-1 {
			out = cfg.Classes
		}
		x := &layers[l]
		x.a, x.h = buf("A", l+1, width), buf("H", l+1, out)
		p.Params = append(p.Params, model.ParamSpec{Rows: width, Cols: out})
		x.params = []int{len(p.Params) - 1}
		if cfg.Bias {
			p.Params = append(p.Params, model.ParamSpec{Rows: 1, Cols: out})
			x.params = append(x.params, len(p.Params)-1)
		}
		if l == 0 && cfg.InputDropout == 0 {
			p.Bufs[x.a].Const = true // made once for the run
		} else {
			step(task.GA, []int{h}, []int{x.a}, nil, nil)
		}
		step(task.AV, []int{x.a}, []int{x.h}, x.params, nil)
		h, width = x.h, out
	}
	p.Forward, p.Output = len(p.Steps), h
	d := buf("dH", cfg.Layers, width)
	step(task.AV, []int{h}, []int{d}, nil, nil)
	for l, x := range slices.Backward(layers) {
		if l == 0 {
			step(task.AV, []int{x.a, x.h, d}, nil, nil, x.params)
			break
		}
		da := buf("dA", l+1, p.Bufs[x.a].Cols)
		step(task.AV, []int{x.a, x.h, d}, []int{da}, x.params[:1], x.params)
		d = buf("dH", l, p.Bufs[x.a].Cols)
		step(task.GA, []int{da}, []int{d}, nil, nil)
	}
	return p
}

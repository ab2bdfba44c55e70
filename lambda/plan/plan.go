// Package plan works out, from a model's program alone, what has to travel for each
// of its tensor steps: which rows a worker needs, which it gives back, and which it
// may keep to itself because nobody but later tensor steps reads them.
package plan

import (
	"fmt"
	"slices"

	"dorylus/engine/model"
)

// Version names the content of a buffer within an epoch: as step Step has left it.
// Constant buffers have Step -1.
type Version struct{ Buf, Step int }

// String is "1@3": buffer 1 as step 3 has left it.
func (v Version) String() string { return fmt.Sprintf("%d@%d", v.Buf, v.Step) }

// Step is what one tensor step exchanges.
type Step struct {
	// Needs are the versions that the step works on: what it reads, and what it
	// changes a part of.
	Needs []Version
	// Ships are the buffers that it sets and the graph server has to have.
	Ships []int
	// Keeps are those that it sets for later tensor steps only.
	Keeps []int
}

// Plan has a Step for every tensor step of a program, by step index; others are nil.
//
// The graph server's memory holds a version once a graph step or a Ships entry has
// put it there. A version that is only kept by a worker can be made again from the
// graph server's memory by Replay, whenever that worker is gone: a plan ships whatever
// that would not be true of.
type Plan struct {
	prog    *model.Program
	Steps   []*Step
	shipped map[Version]bool // set by a tensor step and shipped
}

// New plans the first steps steps of a program: all for training, Program.Forward of
// them for an evaluation.
func New(prog *model.Program, steps int) *Plan {
	p := &Plan{prog: prog, Steps: make([]*Step, steps), shipped: map[Version]bool{}}
	for s := range steps {
		if p.tensor(s) {
			p.Steps[s] = &Step{Needs: p.needs(s)}
		}
	}
	p.shipWhatGraphStepsRead()
	for changed := true; changed; {
		changed = p.shipWhatCannotBeReplayed()
	}
	for s, step := range p.Steps {
		if step == nil {
			continue
		}
		for _, b := range prog.Steps[s].Out {
			if p.shipped[Version{b, s}] {
				step.Ships = append(step.Ships, b)
			} else {
				step.Keeps = append(step.Keeps, b)
			}
		}
	}
	return p
}

func (p *Plan) tensor(s int) bool { return p.prog.Steps[s].Kind.Tensor() }

// writer is the last step before s that sets a buffer; -1 for none.
func (p *Plan) writer(buf, s int) int {
	for t := s - 1; t >= 0; t-- {
		if slices.Contains(p.prog.Steps[t].Out, buf) {
			return t
		}
	}
	return -1
}

// needs are the versions that a step finds in the buffers that it names. What it sets
// counts where an earlier step has set it too: it may keep a part of that.
func (p *Plan) needs(s int) []Version {
	var out []Version
	step := &p.prog.Steps[s]
	for _, b := range step.In {
		v := Version{b, p.writer(b, s)}
		if v.Step < 0 && !p.prog.Bufs[b].Const {
			continue // set by the step itself, further up in its ops
		}
		out = append(out, v)
	}
	for _, b := range step.Out {
		v := Version{b, p.writer(b, s)}
		if v.Step >= 0 && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// shipWhatGraphStepsRead marks what gathers and publications work on, and the output.
func (p *Plan) shipWhatGraphStepsRead() {
	for s := range p.Steps {
		if p.tensor(s) {
			continue
		}
		for _, v := range p.needs(s) {
			p.ship(v)
		}
	}
	p.ship(Version{p.prog.Output, p.writer(p.prog.Output, p.prog.Forward)})
}

func (p *Plan) ship(v Version) bool {
	if v.Step < 0 || !p.tensor(v.Step) || p.shipped[v] {
		return false
	}
	p.shipped[v] = true
	return true
}

// shipWhatCannotBeReplayed marks the kept versions that some step needs but could not
// have made again for it.
func (p *Plan) shipWhatCannotBeReplayed() bool {
	changed := false
	for s, step := range p.Steps {
		if step == nil {
			continue
		}
		for _, v := range step.Needs {
			if p.kept(v) && !p.replayable(v, s) && p.ship(v) {
				changed = true
			}
		}
	}
	return changed
}

// kept says that only workers hold a version.
func (p *Plan) kept(v Version) bool { return v.Step >= 0 && p.tensor(v.Step) && !p.shipped[v] }

// replayable says that v can be made again when step s is due: what its step needs is
// still in the graph server's memory, or can be made again too.
func (p *Plan) replayable(v Version, s int) bool {
	for _, need := range p.Steps[v.Step].Needs {
		if p.kept(need) {
			if !p.replayable(need, s) {
				return false
			}
			continue
		}
		for t := need.Step + 1; t < s; t++ {
			if p.sets(t, need.Buf) {
				return false
			}
		}
	}
	return true
}

// sets says that the graph server's memory of a buffer changes with step t.
func (p *Plan) sets(t, buf int) bool {
	if !slices.Contains(p.prog.Steps[t].Out, buf) {
		return false
	}
	return !p.tensor(t) || p.shipped[Version{buf, t}]
}

// Replay lists, in order, the steps that have to run before step s, s itself left
// out, for a worker that holds only the versions that have says. Each needs what the
// graph server has, what the worker has, and what the replayed steps before it leave.
func (p *Plan) Replay(s int, have func(Version) bool) []int {
	due := map[int]bool{}
	var visit func(s int)
	visit = func(s int) {
		for _, v := range p.Steps[s].Needs {
			if p.kept(v) && !have(v) && !due[v.Step] {
				due[v.Step] = true
				visit(v.Step)
			}
		}
	}
	visit(s)
	var out []int
	for t := range due {
		out = append(out, t)
	}
	slices.Sort(out)
	return out
}

package sink

import (
	"fmt"
	"maps"
	"math"
	"strings"

	"dorylus/engine"
)

// foldGPU says what GPUs the run has used. What an emulated device took is no time of
// anything that could be rented.
func (t *Tally) foldGPU(s *Summary) {
	if t.gpu != nil {
		s.GPUs, s.Precision, s.Products = t.gpu.GPUs, t.gpu.Precision, t.gpu.Products
	}
	if t.emulated {
		s.Emulated, s.CostNote, s.Value = true, engine.EmulatedNote, Number(math.NaN())
		for part := range s.Cost {
			s.Cost[part] = Number(math.NaN())
		}
	}
}

// Timed is s as it may be set beside others: without times and dollars if it was
// emulated.
func (s Summary) Timed() Summary {
	if !s.Emulated {
		return s
	}
	nan := Number(math.NaN())
	s.EpochSeconds, s.TotalSeconds, s.Value, s.CostNote = nan, nan, nan, engine.EmulatedNote
	s.TaskSeconds, s.Cost = maps.Clone(s.TaskSeconds), maps.Clone(s.Cost)
	for kind := range s.TaskSeconds {
		s.TaskSeconds[kind] = nan
	}
	for part := range s.Cost {
		s.Cost[part] = nan
	}
	runs := s.Runs
	s.Runs = nil
	for _, r := range runs {
		s.Runs = append(s.Runs, r.Timed())
	}
	return s
}

// gpuWords says what GPUs have computed in what precision, and what they needed.
func (s Summary) gpuWords(b *strings.Builder) {
	for i, g := range s.GPUs {
		head, tail := "", ""
		if i == 0 {
			head, tail = "GPU", "; precision "+s.Precision
			if s.Emulated {
				head = "EMULATED"
			}
		}
		if g.Spilled > 0 {
			tail += fmt.Sprintf("; %s in the host's memory for want of room", size(g.Spilled))
		}
		fmt.Fprintf(b, "%-10s %s, %s: %s at most, of %s allowed and %s in all%s\n", head, g.Name, g.What, size(g.Peak), size(g.Limit), size(g.Total), tail)
	}
}

// gpus says on what a run computes, and above all if that is no GPU.
func (p *Progress) gpus(e engine.GPUUsed) {
	if p.onGPUs || p.style == None && !e.Emulated {
		return
	}
	p.onGPUs = true
	for _, g := range e.GPUs {
		what := ""
		if e.Emulated {
			what = "EMULATED, no GPU: "
		}
		p.note(fmt.Sprintf("%s: %s%s; %s of %s may be used, precision %s", g.Name, what, g.What, size(g.Limit), size(g.Total), e.Precision))
	}
}

package fleet

import (
	"dorylus/engine"
	"dorylus/engine/params"
	"dorylus/lambda/plan"
)

// Savings compares the bytes of a training epoch by a naive protocol with those that
// this one plans, for the job that the fleet is bound to. Intervals of other partitions
// do not count.
func (f *Fleet) Savings() plan.Savings {
	j := f.job
	s := plan.Shape{Rows: make([]int, j.Program.Levels), NonZeros: -1, Workers: f.Slots() / 2, Width: 4}
	if f.opt.Precision != "fp32" {
		s.Width = 2
	}
	for i := range j.Intervals[engine.Training] {
		blocks := j.Blocks(engine.Training, i)
		if len(blocks) == 0 {
			continue
		}
		s.Intervals++
		s.Blocks += len(blocks)
		s.Sums += len(params.Subtrees(blocks[0].Block, blocks[0].Block+len(blocks)))
		for _, c := range blocks {
			for k := range s.Rows {
				s.Rows[k] += c.Rows[k].Len()
			}
		}
		if x := blocks[0].Sparse; x != nil {
			s.NonZeros = len(x.Col)
		}
	}
	return plan.Compare(j.Model, j.Program, s)
}

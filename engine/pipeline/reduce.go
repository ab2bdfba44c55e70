package pipeline

import (
	"slices"

	"dorylus/engine/model"
	"dorylus/kernels"
)

// reduce runs a Reduce for the blocks of an interval, which are the rows of the
// destination. src are the published rows of all blocks.
func (p *pass) reduce(s kernels.Stream, step int, src *kernels.Mat, weights []*kernels.Mat, rows kernels.Span) error {
	g := p.steps[step].Gather
	dst := p.full[g.Dst].Sub(rows)
	r := &model.Reduction{Rows: p.gathers[step].rows, Weights: make([][]float32, len(p.prog.Params)), Out: make([]float32, dst.Cols)}
	if p.train {
		r.Parts = kernels.FromSlice(src.Rows, src.Cols, make([]float32, src.Rows*src.Cols))
		s.Get(r.Parts.Host, src)
	}
	for _, i := range p.steps[step].Params {
		r.Weights[i] = make([]float32, weights[i].Rows*weights[i].Cols)
		s.Get(r.Weights[i], weights[i])
	}
	if err := s.Wait(); err != nil {
		return err
	}
	g.Reduce.Fn(r)
	s.Put(dst, slices.Repeat(r.Out, dst.Rows))
	return s.Wait()
}

// everyone lists all intervals as the sources of each own one, for a reduction; an
// evaluation reads none.
func (p *pass) everyone() [][]int32 {
	var all []int32
	if p.train {
		for i := range p.intervals {
			all = append(all, int32(i))
		}
	}
	return slices.Repeat([][]int32{all}, p.own.Len())
}

// seenIn are the rows of a block that the loss can reach, by level and counted
// within the block; nil: all.
func (p *pass) seenIn(block int) [][]int32 {
	out := make([][]int32, p.prog.Levels)
	for k, seen := range p.plan.Seen {
		if seen == nil {
			continue
		}
		span := p.plan.Levels[k].Block(block)
		lo, _ := slices.BinarySearch(seen, int32(span.Lo))
		hi, _ := slices.BinarySearch(seen, int32(span.Hi))
		out[k] = make([]int32, 0, hi-lo)
		for _, v := range seen[lo:hi] {
			out[k] = append(out[k], v-int32(span.Lo))
		}
	}
	return out
}

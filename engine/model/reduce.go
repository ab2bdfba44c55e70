package model

import "dorylus/kernels"

// Reduce combines what all blocks have published into values that every block
// reads: sums over the whole graph inside an epoch. It is the same function of the
// same rows in the same order for every interval, whatever the intervals are.
type Reduce struct {
	// Level is the row level whose rows Reduction.Rows counts.
	Level int
	// Fn sets Out. It runs in an evaluation too, where Parts is nil.
	Fn func(r *Reduction)
}

// Reduction is what a Reduce works with, in host memory.
type Reduction struct {
	// Parts has one row per block; nil outside training.
	Parts *kernels.Mat
	// Rows is how many rows of each block training sees.
	Rows []int
	// Weights are those that the step reads, by parameter index; others are nil.
	Weights [][]float32
	// Out is one row of the destination, which every block gets.
	Out []float32
}

// reduceStep adds the publication of src, a PerBlock buffer, and the reduction of
// all its rows to one, of which dst holds a copy per block.
func (b *builder) reduceStep(src, dst, layer int, params []int, r *Reduce) {
	b.gatherStep(Gather{Src: src, Dst: dst, Reduce: r}, layer, params)
}

// moments are a column's mean and sum of squared distances from it over n rows.
type moments struct{ n, mean, m2 float64 }

// merged are the moments over both's rows (Chan, Golub, LeVeque, 1979).
func (a moments) merged(b moments) moments {
	if a.n == 0 || b.n == 0 {
		if a.n == 0 {
			return b
		}
		return a
	}
	n, d := a.n+b.n, b.mean-a.mean
	return moments{n: n, mean: a.mean + d*(b.n/n), m2: a.m2 + b.m2 + d*d*(a.n*b.n/n)}
}

// mergeMoments are the moments of a column over all blocks, whose own are
// part(block), merged in a fixed tree.
func mergeMoments(blocks int, part func(block int) moments) moments {
	switch blocks {
	case 0:
		return moments{}
	case 1:
		return part(0)
	}
	half := blocks / 2
	return mergeMoments(half, part).merged(mergeMoments(blocks-half, func(i int) moments { return part(half + i) }))
}

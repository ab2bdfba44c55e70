package graph

import (
	"math"
	"slices"

	"dorylus/kernels"
)

// SelfWeights says what a model that wants a self-loop of weight 1 where the
// graph has none adds to each row: 1, or 0 where a loop exists. It is nil where
// every row gets 1. loops is the number of explicit self-loops.
func SelfWeights(in *kernels.CSR) (w []float32, loops int) {
	for v := range in.Rows() {
		row := in.Col[in.RowPtr[v]:in.RowPtr[v+1]]
		if _, has := slices.BinarySearch(row, int32(v)); !has {
			continue
		}
		if w == nil {
			w = make([]float32, in.Rows())
			for i := range w {
				w[i] = 1
			}
		}
		w[v] = 0
		loops++
	}
	return w, loops
}

// GCNScale is D^-½ of Kipf and Welling's normalisation: one over the square root
// of the weighted in-degree, the added self-loop included; 0 where the degree is
// not positive. self is what SelfWeights gave.
func GCNScale(in *kernels.CSR, self []float32) []float32 {
	scale := make([]float32, in.Rows())
	for v := range scale {
		lo, hi := in.RowPtr[v], in.RowPtr[v+1]
		deg := 1.0
		if self != nil {
			deg = float64(self[v])
		}
		if in.Val == nil {
			deg += float64(hi - lo)
		} else {
			for _, w := range in.Val[lo:hi] {
				deg += float64(w)
			}
		}
		if deg > 0 {
			scale[v] = float32(1 / math.Sqrt(deg))
		}
	}
	return scale
}

// MeanScale is one over the sum of each row's in-edge weights: what turns a sum
// over neighbours into their mean; 0 where the sum is 0.
func MeanScale(in *kernels.CSR) []float32 {
	scale := make([]float32, in.Rows())
	for v := range scale {
		lo, hi := in.RowPtr[v], in.RowPtr[v+1]
		sum := float64(hi - lo)
		if in.Val != nil {
			sum = 0
			for _, w := range in.Val[lo:hi] {
				sum += float64(w)
			}
		}
		if sum != 0 {
			scale[v] = float32(1 / sum)
		}
	}
	return scale
}

// Pick is a vector of the level's rows of a vector over store rows. It is v
// itself where the level holds all rows.
func (l *Level) Pick(v []float32) []float32 {
	if l.Rows == nil || v == nil {
		return v
	}
	out := make([]float32, l.N)
	for i, r := range l.Rows {
		out[i] = v[r]
	}
	return out
}

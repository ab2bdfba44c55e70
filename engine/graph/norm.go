package graph

import (
	"math"
	"slices"

	"dorylus/kernels"
)

// Norm is a value per vertex by which gathers are normalised.
type Norm uint8

const (
	// SelfLoop is what a model that wants a self-loop of weight 1 where the graph has
	// none adds to each row: 1, or 0 where a loop exists.
	SelfLoop Norm = iota
	// GCNScale is D^-½ of Kipf and Welling's normalisation: one over the square root
	// of the weighted in-degree, the added self-loop included; 0 where the degree is
	// not positive.
	GCNScale
	// MeanScale is one over the sum of a row's in-edge weights: what turns a sum
	// over neighbours into their mean; 0 where the sum is 0.
	MeanScale
)

// NormOf are the values of rows of in, nil for all rows. It is nil itself where all of
// them would be 1 as a SelfLoop. Only the rows asked for are read.
func NormOf(in *kernels.CSR, rows []int32, what Norm) []float32 {
	n := len(rows)
	if rows == nil {
		n = in.Rows()
	}
	out := make([]float32, n)
	ones := true
	for i := range out {
		v := int32(i)
		if rows != nil {
			v = rows[i]
		}
		out[i] = what.of(in, v)
		ones = ones && out[i] == 1
	}
	if ones && what == SelfLoop {
		return nil
	}
	return out
}

// of is the value of one row.
func (what Norm) of(in *kernels.CSR, v int32) float32 {
	lo, hi := in.RowPtr[v], in.RowPtr[v+1]
	self := 0.0
	if what != MeanScale {
		if _, has := slices.BinarySearch(in.Col[lo:hi], v); !has {
			self = 1
		}
	}
	if what == SelfLoop {
		return float32(self)
	}
	sum := self
	if in.Val == nil {
		sum += float64(hi - lo)
	} else {
		for _, w := range in.Val[lo:hi] {
			sum += float64(w)
		}
	}
	switch {
	case what == GCNScale && sum > 0:
		return float32(1 / math.Sqrt(sum))
	case what == MeanScale && sum != 0:
		return float32(1 / sum)
	}
	return 0
}

// Neighbourhood is what a gather for a few rows reads.
type Neighbourhood struct {
	Rows, Sources Level
	Edges         *kernels.CSR // of Rows, columns are rows of Sources
	Self          []int32      // the row of Sources that is the row itself; nil: the same
}

// Around has the in-edges of rows, which are ascending (nil: all), and as sources all that
// they read and the rows themselves. Where these are nearly all there are, Sources are all,
// and edges of rows that follow each other share the memory of in.
func Around(in *kernels.CSR, rows []int32) *Neighbourhood {
	n := in.Rows()
	all := Level{N: n}
	if rows == nil {
		return &Neighbourhood{Rows: all, Sources: all, Edges: in}
	}
	mark := newBitset(n)
	for _, v := range rows {
		mark.set(v)
		for _, u := range in.Col[in.RowPtr[v]:in.RowPtr[v+1]] {
			mark.set(u)
		}
	}
	h := &Neighbourhood{Rows: Level{Rows: rows, N: len(rows)}, Sources: all}
	if len(rows) == 0 || float64(mark.count(0, n)) < promote*float64(n) {
		sources := mark.list()
		h.Sources = Level{Rows: sources, N: len(sources)}
		at := h.Sources.index(n)
		h.Edges, h.Self = restrict(in, &h.Rows, at, len(sources)), pick(&h.Rows, at)
		return h
	}
	h.Self = rows
	first := int(rows[0])
	if int(rows[len(rows)-1])-first+1 != len(rows) {
		h.Edges = restrict(in, &h.Rows, all.index(n), n)
		return h
	}
	lo, hi := in.RowPtr[first], in.RowPtr[first+len(rows)]
	h.Edges = &kernels.CSR{Cols: in.Cols, RowPtr: make([]int64, len(rows)+1), Col: in.Col[lo:hi:hi]}
	if in.Val != nil {
		h.Edges.Val = in.Val[lo:hi:hi]
	}
	for i := range h.Edges.RowPtr {
		h.Edges.RowPtr[i] = in.RowPtr[first+i] - lo
	}
	return h
}

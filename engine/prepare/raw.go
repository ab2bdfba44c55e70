package prepare

import (
	"slices"

	"dorylus/engine/dataset"
	"dorylus/engine/store"
	"dorylus/kernels"
)

// Raw is the graph of a store in the user's order, for writers of other formats. Its
// edges are all of the store's, in both directions where they go both ways. What need
// not be moved is shared with the store.
func Raw(s *store.Store) *dataset.Raw {
	n, e := s.Meta.Vertices, s.In.Edges()
	r := &dataset.Raw{Name: s.Meta.Name, Format: "store", N: n, IDs: s.IDs, Classes: s.Meta.ClassNames,
		Src: make([]int32, 0, e), Dst: make([]int32, 0, e)}
	if s.In.Val != nil {
		r.Weight = make([]float32, 0, e)
	}
	for v := range n { // in the user's order
		row := s.Rank[v]
		for k := s.In.RowPtr[row]; k < s.In.RowPtr[row+1]; k++ {
			r.Src, r.Dst = append(r.Src, s.Order[s.In.Col[k]]), append(r.Dst, int32(v))
			if r.Weight != nil {
				r.Weight = append(r.Weight, s.In.Val[k])
			}
		}
	}
	if m := s.Dense; m != nil {
		r.Dense = kernels.FromSlice(n, m.Cols, make([]float32, n*m.Cols))
		for v := range n {
			copy(r.Dense.Row(v), m.Row(int(s.Rank[v])))
		}
	}
	if s.Sparse != nil {
		r.Sparse = rowsOf(s.Sparse, s.Rank)
	}
	switch {
	case s.Multi != nil:
		r.Multi = rowsOf(s.Multi, s.Rank)
		r.Labelled = make([]bool, n)
		for v := range n {
			r.Labelled[v] = s.Labels[s.Rank[v]] >= 0
		}
	case s.Labels != nil:
		r.Labels = make([]int32, n)
		for v := range n {
			r.Labels[v] = s.Labels[s.Rank[v]]
		}
	}
	for _, sp := range s.Splits {
		r.Splits = append(r.Splits, dataset.Split{Name: sp.Name, Train: users(sp.Train, s.Order), Val: users(sp.Val, s.Order), Test: users(sp.Test, s.Order)})
	}
	return r
}

// rowsOf is g with row rank[v] at v.
func rowsOf(g *kernels.CSR, rank []int32) *kernels.CSR {
	out := &kernels.CSR{Cols: g.Cols, RowPtr: make([]int64, 1, len(rank)+1), Col: make([]int32, 0, len(g.Col))}
	for _, row := range rank {
		lo, hi := g.RowPtr[row], g.RowPtr[row+1]
		out.Col = append(out.Col, g.Col[lo:hi]...)
		if g.Val != nil {
			out.Val = append(out.Val, g.Val[lo:hi]...)
		}
		out.RowPtr = append(out.RowPtr, int64(len(out.Col)))
	}
	return out
}

// users are the user's numbers of store rows, ascending.
func users(rows, order []int32) []int32 {
	list := make([]int32, len(rows))
	for i, r := range rows {
		list[i] = order[r]
	}
	slices.Sort(list)
	return list
}

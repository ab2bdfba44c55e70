package pipeline

import (
	"math/rand/v2"
	"slices"

	"dorylus/engine/dataset"
	"dorylus/engine/store"
	"dorylus/kernels"
)

func add(r *dataset.Raw, u, v int, w float32) {
	r.Src, r.Dst, r.Weight = append(r.Src, int32(u)), append(r.Dst, int32(v)), append(r.Weight, w)
}

func shuffled(n int, seed uint64) []int32 {
	to := make([]int32, n)
	for i, p := range rand.New(rand.NewPCG(seed, 9)).Perm(n) {
		to[i] = int32(p)
	}
	return to
}

// chosen are the rows of m in the given order.
func chosen(m *kernels.Mat, rows []int32) *kernels.Mat {
	out := kernels.FromSlice(len(rows), m.Cols, make([]float32, len(rows)*m.Cols))
	for i, r := range rows {
		copy(out.Row(i), m.Row(int(r)))
	}
	return out
}

// relabel gives vertex v of r the number to[v] of n. Numbers that nobody gets are
// vertices without edges, label or role, whose dense features are ones.
func relabel(r *dataset.Raw, to []int32, n int) *dataset.Raw {
	from := slices.Repeat([]int32{-1}, n)
	for v, t := range to {
		from[t] = int32(v)
	}
	q := &dataset.Raw{Name: r.Name, N: n, Undirected: r.Undirected, Classes: r.Classes, Weight: r.Weight, Labelled: make([]bool, n)}
	for i := range r.Src {
		q.Src, q.Dst = append(q.Src, to[r.Src[i]]), append(q.Dst, to[r.Dst[i]])
	}
	if r.Dense != nil {
		q.Dense = kernels.FromSlice(n, r.Dense.Cols, slices.Repeat([]float32{1}, n*r.Dense.Cols))
	}
	for t, v := range from {
		q.Labelled[t] = v >= 0
		if v >= 0 && r.Dense != nil {
			copy(q.Dense.Row(t), r.Dense.Row(int(v)))
		}
		if r.Labels != nil {
			q.Labels = append(q.Labels, -1)
			if v >= 0 {
				q.Labels[t] = r.Labels[v]
			}
		}
	}
	if r.Multi == nil {
		q.Labelled = nil
	}
	q.Sparse, q.Multi = rowsFrom(r.Sparse, from), rowsFrom(r.Multi, from)
	move := func(rows []int32) []int32 {
		var out []int32
		for _, v := range rows {
			out = append(out, to[v])
		}
		slices.Sort(out)
		return out
	}
	s := r.Splits[0]
	q.Splits = []dataset.Split{{Train: move(s.Train), Val: move(s.Val), Test: move(s.Test)}}
	return q
}

// rowsFrom are the rows of g in the given order, -1 for an empty one.
func rowsFrom(g *kernels.CSR, rows []int32) *kernels.CSR {
	if g == nil {
		return nil
	}
	out := &kernels.CSR{Cols: g.Cols, RowPtr: []int64{0}}
	for _, r := range rows {
		if r >= 0 {
			lo, hi := g.RowPtr[r], g.RowPtr[r+1]
			out.Col = append(out.Col, g.Col[lo:hi]...)
			if g.Val != nil {
				out.Val = append(out.Val, g.Val[lo:hi]...)
			}
		}
		out.RowPtr = append(out.RowPtr, int64(len(out.Col)))
	}
	return out
}

// withVertex puts an unconnected vertex at a number; to has the new numbers of the
// others.
func withVertex(r *dataset.Raw, at int32) (more *dataset.Raw, to []int32) {
	for v := range int32(r.N) {
		if v >= at {
			v++
		}
		to = append(to, v)
	}
	return relabel(r, to, r.N+1), to
}

// split makes two records of every third: part of its weight, and the rest. Without
// weights it repeats the record.
func split(r *dataset.Raw, part float32) *dataset.Raw {
	q := *r
	q.Src, q.Dst, q.Weight = slices.Clone(r.Src), slices.Clone(r.Dst), slices.Clone(r.Weight)
	for e := 0; e < len(r.Src); e += 3 {
		q.Src, q.Dst = append(q.Src, r.Src[e]), append(q.Dst, r.Dst[e])
		if r.Weight != nil {
			q.Weight[e] = part * r.Weight[e]
			q.Weight = append(q.Weight, r.Weight[e]-q.Weight[e])
		}
	}
	return &q
}

// parallel is a weighted store in which every third edge is two, with unequal shares
// of its weight: not what prepare makes, but what its merging stands for.
func parallel(st *store.Store) *store.Store {
	double := func(g *kernels.CSR, forward bool) *kernels.CSR {
		out := &kernels.CSR{Cols: g.Cols, RowPtr: []int64{0}}
		for r := range g.Rows() {
			for e := g.RowPtr[r]; e < g.RowPtr[r+1]; e++ {
				u, v, w := g.Col[e], int32(r), g.Val[e]
				if !forward {
					u, v = v, u
				}
				if (7*u+5*v)%3 == 0 {
					out.Col, out.Val = append(out.Col, g.Col[e]), append(out.Val, w/4)
					w -= w / 4
				}
				out.Col, out.Val = append(out.Col, g.Col[e]), append(out.Val, w)
			}
			out.RowPtr = append(out.RowPtr, int64(len(out.Col)))
		}
		return out
	}
	q := *st
	q.In, q.Out = double(st.In, true), double(st.Out, false)
	q.Meta.Edges, q.Meta.Symmetric = int64(q.In.Edges()), false
	return &q
}

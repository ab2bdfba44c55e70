package kerneltest

import (
	"math/rand/v2"
	"slices"

	"dorylus/kernels"
)

// toy is a graph with what breaks kernels: empty rows at both ends and in the
// middle, a hub, duplicate edges, self edges, rows of 2 to 6 edges. rows and
// cols may differ. weighted gives values of its own: small integers, so that
// exact trials can use them.
func toy(rng *rand.Rand, rows, cols int, weighted bool) *kernels.CSR {
	return crowd(rng, rows, cols, 5, weighted)
}

// crowd is toy with degree edges in a row, from half to one and a half times
// that many.
func crowd(rng *rand.Rand, rows, cols, degree int, weighted bool) *kernels.CSR {
	g := &kernels.CSR{Cols: cols, RowPtr: make([]int64, 1, rows+1)}
	for v := range rows {
		n := 0
		switch {
		case cols == 0 || v == 0 || v == rows-1 || v%7 == 5:
		case v == rows/2:
			n = max(301, 2*degree)
		default:
			n = degree/2 + rng.IntN(degree)
		}
		var row []int32
		for range n {
			row = append(row, int32(rng.IntN(cols)))
		}
		if n > 2 {
			row[1] = row[0] // a duplicate
		}
		if n > 0 && v < cols && v%3 == 0 {
			row[n-1] = int32(v) // a self edge
		}
		slices.Sort(row)
		g.Col = append(g.Col, row...)
		g.RowPtr = append(g.RowPtr, int64(len(g.Col)))
	}
	if weighted {
		g.Val = make([]float32, len(g.Col))
		for e := range g.Val {
			g.Val[e] = float32(rng.IntN(7) - 3)
		}
	}
	return g
}

// random gives values in (-1,1); exact ones are integers in [-4,4].
func random(rng *rand.Rand, exact bool) func(r, c int) float32 {
	if exact {
		return func(int, int) float32 { return float32(rng.IntN(9) - 4) }
	}
	return func(int, int) float32 { return 2*rng.Float32() - 1 }
}

// positive gives scales: values in (0.1,1.1), or powers of two.
func positive(rng *rand.Rand, exact bool) func(r, c int) float32 {
	if exact {
		return func(int, int) float32 { return []float32{0.25, 0.5, 1, 2}[rng.IntN(4)] }
	}
	return func(int, int) float32 { return rng.Float32() + 0.1 }
}

// selfCols maps rows to columns, some of them to none.
func selfCols(rng *rand.Rand, rows, cols int) []int32 {
	m := make([]int32, rows)
	for v := range m {
		m[v] = int32(rng.IntN(cols+1)) - 1
	}
	return m
}

// scattered is n different ids in [0,1<<31), in no order.
func scattered(rng *rand.Rand, n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(i)*1000003 + int32(rng.IntN(1000))
		ids[i] &= 1<<31 - 1
	}
	rng.Shuffle(n, func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids
}

package prepare

import (
	"fmt"
	"math"
	"sort"
	"sync/atomic"
	"unsafe"

	"dorylus/engine/dataset"
	"dorylus/engine/store"
	"dorylus/kernels"
)

// checkFeatures refuses features that do not fit the vertices.
func checkFeatures(raw *dataset.Raw) error {
	if raw.Dense != nil && raw.Sparse != nil {
		return fmt.Errorf("the source has dense and sparse features: give one kind")
	}
	if d := raw.Dense; d != nil {
		if d.Rows != raw.N {
			return fmt.Errorf("%d feature rows for %d vertices", d.Rows, raw.N)
		}
		if d.Rows > 0 && (d.Stride < d.Cols || len(d.Host) < (d.Rows-1)*d.Stride+d.Cols) {
			return fmt.Errorf("%d feature values do not hold %d rows of %d, %d apart", len(d.Host), d.Rows, d.Cols, d.Stride)
		}
	}
	if g := raw.Sparse; g != nil {
		if len(g.RowPtr) != raw.N+1 {
			return fmt.Errorf("%d feature rows for %d vertices", len(g.RowPtr)-1, raw.N)
		}
		if err := checkCSR(g); err != nil {
			return fmt.Errorf("sparse features: %w", err)
		}
	}
	return nil
}

// checkCSR refuses offsets that run backwards or out of the arrays, and columns
// outside the matrix.
func checkCSR(g *kernels.CSR) error {
	if g.RowPtr[0] != 0 || g.RowPtr[g.Rows()] != int64(len(g.Col)) || g.Val != nil && len(g.Val) != len(g.Col) {
		return fmt.Errorf("offsets run from %d to %d over %d columns and %d values", g.RowPtr[0], g.RowPtr[g.Rows()], len(g.Col), len(g.Val))
	}
	for v := range g.Rows() {
		if g.RowPtr[v] > g.RowPtr[v+1] {
			return fmt.Errorf("row %d starts at %d, after its end %d", v, g.RowPtr[v], g.RowPtr[v+1])
		}
	}
	for e, u := range g.Col {
		if u < 0 || int(u) >= g.Cols {
			return fmt.Errorf("entry %d is in column %d, but columns are 0..%d", e, u, g.Cols-1)
		}
	}
	return nil
}

// gatherFeatures puts the features into store order, transformed as asked for,
// and says in words what it changed.
func gatherFeatures(s *store.Store, raw *dataset.Raw, opt Options) (changes []string, err error) {
	if opt.Features == Identity {
		if raw.Dense != nil || raw.Sparse != nil {
			changes = append(changes, "replaced the features of the source by the identity matrix")
		} else {
			changes = append(changes, "gave every vertex a feature column of its own")
		}
		s.Sparse = identity(s.Order)
		return changes, nil
	}
	if raw.Dense == nil && raw.Sparse == nil {
		if opt.Features != AsGiven {
			return nil, fmt.Errorf("features=%s: the source has no features; use features=identity to give every vertex its own column", opt.Features)
		}
		return nil, nil
	}
	compact := *raw
	if note := dataset.CompactFeatures(&compact); note != "" {
		changes = append(changes, note)
		raw = &compact
	}
	if raw.Dense != nil {
		s.Dense = gatherDense(raw.Dense, s.Order, opt)
	} else {
		var merged int64
		s.Sparse, merged = gatherSparse(raw.Sparse, s.Order)
		if merged > 0 {
			changes = append(changes, fmt.Sprintf("added up %d repeated entries of the sparse features", merged))
		}
	}
	switch opt.Features {
	case RowNormalize:
		skipped := normaliseRows(s, opt.Threads)
		change := "divided each feature row by the sum of its absolute values"
		if skipped > 0 {
			change += fmt.Sprintf(" (%d rows of zeros left as they are)", skipped)
		}
		changes = append(changes, change)
	case Standardize:
		if s.Sparse != nil {
			if s.Dense, err = densify(s.Sparse); err != nil {
				return nil, err
			}
			s.Sparse = nil
			changes = append(changes, "made the sparse features dense")
		}
		constant := standardise(s.Dense, s.Rank)
		change := "shifted and scaled each feature column to mean 0 and standard deviation 1 over all vertices"
		if constant > 0 {
			change += fmt.Sprintf(" (%d constant columns became 0)", constant)
		}
		changes = append(changes, change)
	}
	return changes, nil
}

// identity is one column per vertex, numbered in the user's order.
func identity(order []int32) *kernels.CSR {
	g := &kernels.CSR{Cols: len(order), RowPtr: make([]int64, len(order)+1), Col: make([]int32, len(order))}
	for r, v := range order {
		g.Col[r] = v
		g.RowPtr[r+1] = int64(r) + 1
	}
	return g
}

// gatherDense copies the rows of m in the given order into a matrix whose rows
// start on 64-byte boundaries. It may return m itself where that is so already
// and m is consumed.
func gatherDense(m *kernels.Mat, order []int32, opt Options) *kernels.Mat {
	stride := kernels.PadCols(m.Cols)
	natural := true
	for r, v := range order {
		if int(v) != r {
			natural = false
			break
		}
	}
	if opt.Consume && natural && m.Stride == stride && len(m.Host) >= m.Rows*stride && aligned(m.Host) {
		return m
	}
	d := newDense(m.Rows, m.Cols)
	cut := cutEven(m.Rows, opt.Threads)
	perWorker(opt.Threads, func(t int) {
		for r := cut[t]; r < cut[t+1]; r++ {
			copy(d.Row(r), m.Row(int(order[r])))
		}
	})
	return d
}

// newDense is a zeroed matrix with padded rows on 64-byte boundaries.
func newDense(rows, cols int) *kernels.Mat {
	stride := kernels.PadCols(cols)
	host := store.OnHugePages(make([]float32, rows*stride+kernels.Align))
	shift := 0
	for shift < kernels.Align && !aligned(host[shift:]) {
		shift++
	}
	return &kernels.Mat{Rows: rows, Cols: cols, Stride: stride, Host: host[shift : shift+rows*stride]}
}

func aligned(host []float32) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(host)))%(kernels.Align*4) == 0
}

// gatherSparse copies the rows of g in the given order, columns ascending.
// Repeated columns of a row are added up; merged counts them.
func gatherSparse(g *kernels.CSR, order []int32) (out *kernels.CSR, merged int64) {
	out = &kernels.CSR{Cols: g.Cols, RowPtr: make([]int64, len(order)+1), Col: make([]int32, 0, g.Edges())}
	if g.Val != nil {
		out.Val = make([]float32, 0, g.Edges())
	}
	var perm []int
	for r, v := range order {
		lo, hi := int(g.RowPtr[v]), int(g.RowPtr[v+1])
		ascending := true
		for e := lo + 1; e < hi; e++ {
			ascending = ascending && g.Col[e-1] < g.Col[e]
		}
		if ascending {
			out.Col = append(out.Col, g.Col[lo:hi]...)
			if g.Val != nil {
				out.Val = append(out.Val, g.Val[lo:hi]...)
			}
			out.RowPtr[r+1] = int64(len(out.Col))
			continue
		}
		perm = perm[:0]
		for e := lo; e < hi; e++ {
			perm = append(perm, e)
		}
		sort.SliceStable(perm, func(i, j int) bool { return g.Col[perm[i]] < g.Col[perm[j]] })
		start := len(out.Col)
		for _, e := range perm {
			last := len(out.Col) - 1
			if last >= start && out.Col[last] == g.Col[e] {
				merged++
				if g.Val != nil {
					out.Val[last] += g.Val[e]
				}
				continue
			}
			out.Col = append(out.Col, g.Col[e])
			if g.Val != nil {
				out.Val = append(out.Val, g.Val[e])
			}
		}
		out.RowPtr[r+1] = int64(len(out.Col))
	}
	return out, merged
}

// normaliseRows divides each feature row by the sum of its absolute values,
// taken in float64. Rows of zeros stay; it returns how many there are.
func normaliseRows(s *store.Store, threads int) (zero int64) {
	if s.Sparse != nil && s.Sparse.Val == nil {
		s.Sparse.Val = make([]float32, s.Sparse.Edges())
		for e := range s.Sparse.Val {
			s.Sparse.Val[e] = 1
		}
	}
	row := func(r int) []float32 {
		if s.Dense != nil {
			return s.Dense.Row(r)
		}
		return s.Sparse.Val[s.Sparse.RowPtr[r]:s.Sparse.RowPtr[r+1]]
	}
	var zeros atomic.Int64
	cut := cutEven(len(s.Order), threads)
	perWorker(threads, func(t int) {
		for r := cut[t]; r < cut[t+1]; r++ {
			x := row(r)
			sum := 0.0
			for _, v := range x {
				sum += math.Abs(float64(v))
			}
			if sum == 0 {
				zeros.Add(1)
				continue
			}
			for i, v := range x {
				x[i] = float32(float64(v) / sum)
			}
		}
	})
	return zeros.Load()
}

// maxDensified is the largest matrix, in values, that sparse features are made
// into: 8 GiB.
const maxDensified = 1 << 31

// densify is g as a dense matrix.
func densify(g *kernels.CSR) (*kernels.Mat, error) {
	if n := int64(g.Rows()) * int64(kernels.PadCols(g.Cols)); n > maxDensified {
		return nil, fmt.Errorf("features=standardize: makes the sparse features dense, %d x %d values or %.0f GiB; use row-normalize, which keeps them sparse",
			g.Rows(), g.Cols, float64(n)*4/(1<<30))
	}
	d := newDense(g.Rows(), g.Cols)
	for r := range g.Rows() {
		row := d.Row(r)
		for e := g.RowPtr[r]; e < g.RowPtr[r+1]; e++ {
			if g.Val == nil {
				row[g.Col[e]] = 1
			} else {
				row[g.Col[e]] = g.Val[e]
			}
		}
	}
	return d, nil
}

// standardise shifts and scales each column to mean 0 and (population) standard
// deviation 1, in two passes in float64. The sums run in the user's order, so
// that the vertex order changes no bit. Constant columns become 0; it returns
// how many there are.
func standardise(d *kernels.Mat, rank []int32) (constant int) {
	if d.Rows == 0 {
		return 0
	}
	mean, dev := make([]float64, d.Cols), make([]float64, d.Cols)
	for _, r := range rank {
		for c, v := range d.Row(int(r)) {
			mean[c] += float64(v)
		}
	}
	for c := range mean {
		mean[c] /= float64(d.Rows)
	}
	for _, r := range rank {
		for c, v := range d.Row(int(r)) {
			dev[c] += (float64(v) - mean[c]) * (float64(v) - mean[c])
		}
	}
	for c := range dev {
		dev[c] = math.Sqrt(dev[c] / float64(d.Rows))
		// The mean of equal values may be off in its last bits.
		if dev[c] <= 1e-12*math.Abs(mean[c]) {
			dev[c] = 0
			constant++
		}
	}
	for r := range d.Rows {
		row := d.Row(r)
		for c, v := range row {
			if dev[c] == 0 {
				row[c] = 0
			} else {
				row[c] = float32((float64(v) - mean[c]) / dev[c])
			}
		}
	}
	return constant
}

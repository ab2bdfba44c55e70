package order

import (
	"context"
	"fmt"
	"math"
	"slices"

	"dorylus/kernels"
)

// oneCut is the largest number of clusters that is cut at once. METIS's time
// grows with the number of parts, so more are cut in two levels: first into
// about the square root of the number, then each part again.
const oneCut = 48

// clusters cuts the graph with the injected partitioner, in one or two levels;
// at each level parts are arranged so that neighbours follow each other.
func clusters(ctx context.Context, g Graph, opt Options, r *Result) error {
	if opt.Partitioner == nil {
		return fmt.Errorf("order metis: METIS is not linked into this program; build with -tags metis where libmetis is installed, or use order lpa")
	}
	n := g.Rows()
	r.Cluster = make([]int32, n)
	r.Clusters = 1
	k := clusterCount(n)
	if k >= 2 && g.In.Edges() > 0 {
		m := mirror(g)
		if m.Edges() > math.MaxInt32 {
			return fmt.Errorf("order metis: the symmetric graph has %d entries, METIS takes at most %d; use order lpa or stream", m.Edges(), math.MaxInt32)
		}
		top := k
		if k > oneCut {
			top = int(math.Ceil(math.Sqrt(float64(k))))
		}
		var err error
		if r.Cluster, r.Clusters, err = cut(m, top, opt); err != nil {
			return err
		}
		if top < k {
			if err := cutAgain(ctx, m, k, opt, r); err != nil {
				return err
			}
		}
	}
	r.Order = byCluster(g, r.Cluster, r.Clusters)
	return nil
}

// cut cuts m into at most k parts and arranges them.
func cut(m *kernels.CSR, k int, opt Options) (cluster []int32, clusters int, err error) {
	n := m.Rows()
	if k < 2 || n < 2*k || m.Edges() == 0 {
		return make([]int32, n), 1, nil
	}
	part, err := opt.Partitioner(n, m.RowPtr, m.Col, k, opt.Seed)
	if err != nil {
		return nil, 0, fmt.Errorf("order metis: cut %d vertices into %d clusters: %w", n, k, err)
	}
	if len(part) != n {
		return nil, 0, fmt.Errorf("order metis: the partitioner placed %d of %d vertices", len(part), n)
	}
	for v, p := range part {
		if p < 0 || int(p) >= k {
			return nil, 0, fmt.Errorf("order metis: the partitioner put vertex %d into part %d of %d", v, p, k)
		}
	}
	cluster, clusters = chain(Graph{m, m}, part, k)
	return cluster, clusters, nil
}

// cutAgain cuts each cluster of r into its share of k.
func cutAgain(ctx context.Context, m *kernels.CSR, k int, opt Options, r *Result) error {
	n := m.Rows()
	members := byCluster(Graph{m, m}, r.Cluster, r.Clusters)
	local := make([]int32, n)
	fine := make([]int32, n)
	count := int32(0)
	for c, lo := 0, 0; c < r.Clusters; c++ {
		hi := lo
		for hi < n && int(r.Cluster[members[hi]]) == c {
			hi++
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		opt.Progress(int64(c+1), int64(r.Clusters)+1)
		inside := members[lo:hi]
		slices.Sort(inside)
		share := int(math.Round(float64(k) * float64(len(inside)) / float64(n)))
		part, parts, err := cut(induced(m, inside, r.Cluster, local), share, opt)
		if err != nil {
			return err
		}
		for i, v := range inside {
			fine[v] = count + part[i]
		}
		count += int32(parts)
		lo = hi
	}
	r.Cluster, r.Clusters = fine, int(count)
	return nil
}

// induced is the graph between the vertices inside, one whole cluster. local is
// scratch of one entry per vertex of m.
func induced(m *kernels.CSR, inside, cluster, local []int32) *kernels.CSR {
	for i, v := range inside {
		local[v] = int32(i)
	}
	sub := &kernels.CSR{Cols: len(inside), RowPtr: make([]int64, 1, len(inside)+1)}
	for _, v := range inside {
		for _, u := range m.Col[m.RowPtr[v]:m.RowPtr[v+1]] {
			if cluster[u] == cluster[v] {
				sub.Col = append(sub.Col, local[u])
			}
		}
		sub.RowPtr = append(sub.RowPtr, int64(len(sub.Col)))
	}
	return sub
}

// mirror is the symmetric pattern of g without self-loops and repeats.
func mirror(g Graph) *kernels.CSR {
	n := g.Rows()
	m := &kernels.CSR{Cols: n, RowPtr: make([]int64, 1, n+1), Col: make([]int32, 0, g.In.Edges())}
	for v := range int32(n) {
		a := g.In.Col[g.In.RowPtr[v]:g.In.RowPtr[v+1]]
		var b []int32
		if g.In != g.Out {
			b = g.Out.Col[g.Out.RowPtr[v]:g.Out.RowPtr[v+1]]
		}
		for len(a) > 0 || len(b) > 0 {
			var u int32
			if len(b) == 0 || len(a) > 0 && a[0] <= b[0] {
				u = a[0]
				if len(b) > 0 && b[0] == u {
					b = b[1:]
				}
				a = a[1:]
			} else {
				u, b = b[0], b[1:]
			}
			if u != v {
				m.Col = append(m.Col, u)
			}
		}
		m.RowPtr = append(m.RowPtr, int64(len(m.Col)))
	}
	return m
}

// Package order computes the one vertex order of a store. Neighbours that lie
// close together share cache lines, tiles and partitions; the order is chosen
// once, by prepare, and recorded.
//
// Every method is deterministic: the same graph and seed give the same order
// for any number of threads.
package order

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"dorylus/kernels"
)

// Methods of Options.Method.
const (
	Auto    = "auto"    // the best of the others that fits; see Compute
	METIS   = "metis"   // clusters by METIS, cut twice
	LPA     = "lpa"     // clusters by label propagation
	Stream  = "stream"  // clusters in little memory: LDG
	LDG     = "ldg"     // clusters by linear deterministic greedy
	Fennel  = "fennel"  // clusters by Fennel's score
	Degree  = "degree"  // most in-edges first
	Natural = "natural" // the user's order
	Hash    = "hash"    // shuffled: the control that has no locality
)

// Methods lists what Options.Method may be.
var Methods = []string{Auto, METIS, LPA, Stream, LDG, Fennel, Degree, Natural, Hash}

// Graph is a graph in the user's order, both ways. Columns ascend without
// repeats. Out == In where the pattern is symmetric.
type Graph struct{ In, Out *kernels.CSR }

// Rows is the number of vertices.
func (g Graph) Rows() int { return g.In.Rows() }

// sides are the CSRs that together list every vertex's neighbours. In a directed
// graph a neighbour that is linked both ways is met twice.
func (g Graph) sides() []*kernels.CSR {
	if g.In == g.Out {
		return []*kernels.CSR{g.In}
	}
	return []*kernels.CSR{g.In, g.Out}
}

// Partitioner cuts a symmetric graph without self-loops or repeated edges into
// parts, and returns the part of each vertex. METIS is one; it is handed in, so
// that this package needs no cgo.
type Partitioner func(n int, rowPtr []int64, col []int32, parts int, seed uint64) ([]int32, error)

// Options says how to order.
type Options struct {
	Method string
	Seed   uint64
	// Threads is the number of workers; it changes no bit.
	Threads int
	// Partitioner is METIS; nil: not linked.
	Partitioner Partitioner
	// Memory is how many bytes the order may take beside the graph; 0: no limit.
	Memory int64
	// Partitions is for how many graph servers the order is; from 2 on, auto looks for
	// the smallest cut rather than for the least time.
	Partitions int
	// Announce, if not nil, is told before anything starts what the methods are expected
	// to take: first those that are run, then better ones that are not.
	Announce func([]Estimate)
	// Progress, if not nil, is told about sweeps and cuts.
	Progress func(done, total int64)
}

// Result is an order: a permutation of the vertices.
type Result struct {
	// Order[row] is the vertex that comes at row; Rank is its inverse.
	Order, Rank []int32
	// Cluster of each vertex, numbered along the order; nil where the method
	// has none.
	Cluster  []int32
	Clusters int
	Used     string // the method, never auto
	// Estimate is what the method that was run was expected to take.
	Estimate Estimate
	Reason   string // why, in words
	Seconds  float64
	Quality  Quality
}

// Natural says that the order is the user's own.
func (r *Result) Natural() bool {
	for i, v := range r.Order {
		if int(v) != i {
			return false
		}
	}
	return true
}

// Compute orders the vertices of g. The result has been checked to be a
// permutation.
func Compute(ctx context.Context, g Graph, opt Options) (*Result, error) {
	start := time.Now()
	if opt.Threads < 1 {
		opt.Threads = 1
	}
	if opt.Progress == nil {
		opt.Progress = func(int64, int64) {}
	}
	n := g.Rows()
	if n > math.MaxInt32 || g.Out.Rows() != n {
		return nil, fmt.Errorf("%d rows of in-edges and %d of out-edges: need the same number, at most %d", n, g.Out.Rows(), math.MaxInt32)
	}
	var r *Result
	var err error
	if opt.Method == Auto {
		r, err = auto(ctx, g, opt)
	} else {
		estimate := opt.estimate(g, opt.Method)
		opt.announce(estimate, nil)
		r, err = compute(ctx, g, opt.Method, opt)
		if err == nil {
			r.Estimate = estimate
			if r.Reason == "" {
				r.Reason = "asked for"
			}
		}
	}
	if err != nil {
		return nil, err
	}
	if r.Rank, err = invert(r.Order, n); err != nil {
		return nil, fmt.Errorf("%s: %w", r.Used, err)
	}
	if r.Quality == (Quality{}) {
		r.Quality = Measure(g, r.Rank, r.Cluster)
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// compute runs one method.
func compute(ctx context.Context, g Graph, method string, opt Options) (*Result, error) {
	r := &Result{Used: method}
	var err error
	switch method {
	case Natural:
		r.Order = identity(g.Rows())
	case Degree:
		r.Order = byDegree(g)
	case Hash:
		r.Order = byHash(g.Rows(), opt.Seed)
	case LPA:
		err = propagate(ctx, g, opt, r)
	case Stream, LDG, Fennel:
		err = stream(ctx, g, opt, r)
	case METIS:
		err = clusters(ctx, g, opt, r)
	default:
		err = fmt.Errorf("unknown method %q: use one of %q", method, Methods)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// invert is the inverse of a permutation of 0..n-1, or an error that says where
// order is not one.
func invert(order []int32, n int) ([]int32, error) {
	if len(order) != n {
		return nil, fmt.Errorf("order has %d entries for %d vertices", len(order), n)
	}
	rank := make([]int32, n)
	for v := range rank {
		rank[v] = -1
	}
	for r, v := range order {
		if v < 0 || int(v) >= n {
			return nil, fmt.Errorf("order has vertex %d at row %d, but vertices are 0..%d", v, r, n-1)
		}
		if rank[v] >= 0 {
			return nil, fmt.Errorf("order has vertex %d at rows %d and %d", v, rank[v], r)
		}
		rank[v] = int32(r)
	}
	return rank, nil
}

// byCluster orders the vertices by cluster, then by falling degree, then as they
// were. Hubs first within a cluster: their rows are read by most of the others.
func byCluster(g Graph, cluster []int32, clusters int) []int32 {
	order, start := groups(cluster, clusters)
	for c := range clusters {
		slices.SortFunc(order[start[c]:start[c+1]], byFallingDegree(g))
	}
	return order
}

package order

import (
	"context"
	"fmt"
	"math"
)

// The costs by which auto chooses: the upper ends of what METIS 5.1.0 took on one
// core for graphs of degree 10 to 100 with communities. From degree 40 on, label
// propagation finds as good an order in a fifth of the time; below, METIS is worth
// waiting for.
const (
	metisSecondsPerEdge   = 1e-6 // per directed edge
	metisSecondsPerVertex = 5e-6
	metisSeconds          = 6  // auto takes METIS up to this estimate
	metisBytesPerEdge     = 60 // mirror and METIS's own levels
	metisBytesPerVertex   = 100
	lpaBytesPerVertex     = 48
)

// auto takes the best method that is cheap enough: METIS where it is linked and
// estimated to take at most a few seconds and the memory allowed; else label
// propagation; else streaming. It keeps the user's order where the result is no
// better for the caches, which happens when a source is already well ordered.
func auto(ctx context.Context, g Graph, opt Options) (*Result, error) {
	n, e := int64(g.Rows()), int64(g.In.Edges())
	if e == 0 || n < 16 {
		r, err := compute(ctx, g, Natural, opt)
		if err == nil {
			r.Reason = fmt.Sprintf("%d vertices and %d edges leave nothing to gain", n, e)
		}
		return r, err
	}
	seconds := float64(e)*metisSecondsPerEdge + float64(n)*metisSecondsPerVertex
	metisBytes := e*metisBytesPerEdge + n*metisBytesPerVertex
	lpaBytes := n * (lpaBytesPerVertex + 4*int64(opt.Threads))
	var method, reason string
	switch {
	case opt.Memory > 0 && lpaBytes > opt.Memory:
		method = Stream
		reason = fmt.Sprintf("label propagation would take %d MiB, %d are allowed", lpaBytes>>20, opt.Memory>>20)
	case opt.Partitioner == nil:
		method, reason = LPA, "METIS is not linked into this program"
	case seconds > metisSeconds:
		method, reason = LPA, fmt.Sprintf("METIS would take about %.0f s", seconds)
	case opt.Memory > 0 && metisBytes > opt.Memory:
		method, reason = LPA, fmt.Sprintf("METIS would take %d MiB, %d are allowed", metisBytes>>20, opt.Memory>>20)
	default:
		method, reason = METIS, fmt.Sprintf("METIS is linked and takes less than %.0f s", math.Ceil(seconds))
	}
	r, err := compute(ctx, g, method, opt)
	if err != nil {
		return nil, err
	}
	r.Reason = reason
	if r.Rank, err = invert(r.Order, int(n)); err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	r.Quality = Measure(g, r.Rank, r.Cluster)
	natural := Measure(g, identity(int(n)), nil)
	if r.Quality.Hit < natural.Hit+0.02 && r.Quality.Gap > 0.9*natural.Gap {
		kept := &Result{Used: Natural, Order: identity(int(n)), Quality: natural}
		kept.Reason = fmt.Sprintf("%s gains nothing over the source's order: cache hits %.2f against %.2f", method, r.Quality.Hit, natural.Hit)
		return kept, nil
	}
	return r, nil
}

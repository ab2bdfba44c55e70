package order

import (
	"context"
	"fmt"
	"math"
)

// metisSeconds is up to which estimate auto takes METIS for the caches alone: from degree
// 40 on, label propagation finds as good an order in a fifth of the time. Where the
// order is for several servers, which exchange the rows at the cut every epoch, METIS is
// worth any time that it takes.
const metisSeconds = 6

// metisEntries is the most entries of a symmetric graph that METIS, as it is packaged,
// can number.
const metisEntries = math.MaxInt32

// auto takes the best method that is cheap enough: METIS where it is linked, estimated to
// take at most a few seconds and the memory allowed; else label propagation; else
// streaming; else, where not even that fits, the user's order. It also keeps the user's
// order where the result is no better for the caches, which happens when a source is
// already well ordered.
func auto(ctx context.Context, g Graph, opt Options) (*Result, error) {
	n, e := g.Rows(), g.In.Edges()
	if e == 0 || n < 16 {
		r, err := compute(ctx, g, Natural, opt)
		if err == nil {
			r.Reason = fmt.Sprintf("%d vertices and %d edges leave nothing to gain", n, e)
		}
		return r, err
	}
	fit, refused := opt.weigh(g)
	if opt.Partitions > 1 {
		return smallestCut(ctx, g, opt, fit, refused)
	}
	first := Estimate{Method: Natural}
	if len(fit) > 0 {
		first = fit[0]
	}
	opt.announce(first, refused)
	r, err := compute(ctx, g, first.Method, opt)
	if err != nil {
		return nil, err
	}
	r.Estimate = first
	if len(refused) > 0 {
		r.Reason = refused[len(refused)-1].Refused
	} else {
		r.Reason = fmt.Sprintf("METIS is linked and takes less than %.0f s", math.Ceil(first.Seconds))
	}
	if err := r.measure(g); err != nil || first.Method == Natural {
		return r, err
	}
	natural := Measure(g, identity(n), nil)
	if r.Quality.Hit < natural.Hit+0.02 && r.Quality.Gap > 0.9*natural.Gap {
		kept := &Result{Used: Natural, Order: identity(n), Quality: natural}
		kept.Reason = fmt.Sprintf("%s gains nothing over the source's order: cache hits %.2f against %.2f", first.Method, r.Quality.Hit, natural.Hit)
		return kept, nil
	}
	return r, nil
}

// measure fills in Rank and Quality.
func (r *Result) measure(g Graph) (err error) {
	if r.Rank, err = invert(r.Order, g.Rows()); err != nil {
		return fmt.Errorf("%s: %w", r.Used, err)
	}
	r.Quality = Measure(g, r.Rank, r.Cluster)
	return nil
}

// weigh divides auto's methods, the best one first, into those that it may take and those
// it may not, up to the first that it may take (for several servers: label propagation
// too, which now and then finds a smaller cut than METIS).
func (opt *Options) weigh(g Graph) (fit, refused []Estimate) {
	for _, method := range []string{METIS, LPA, Stream} {
		if len(fit) > 0 && (opt.Partitions < 2 || method == Stream) {
			break
		}
		est := opt.estimate(g, method)
		switch {
		case method == METIS && opt.Partitioner == nil:
			est.Refused = "METIS is not linked into this program"
		case method == METIS && entries(g) > metisEntries:
			est.Refused = fmt.Sprintf("METIS numbers at most %d edges", metisEntries)
		case opt.Memory > 0 && est.Bytes > opt.Memory:
			est.Refused = fmt.Sprintf("%s would take %s, %s are allowed", words[method], size(est.Bytes), size(opt.Memory))
		case method == METIS && opt.Partitions < 2 && est.Seconds > metisSeconds:
			est.Refused = fmt.Sprintf("METIS would take about %.0f s", est.Seconds)
		}
		if est.Refused != "" {
			refused = append(refused, est)
		} else {
			fit = append(fit, est)
		}
	}
	return fit, refused
}

// entries is at most how many edges a symmetric graph with the edges of g has.
func entries(g Graph) int64 {
	if g.In == g.Out {
		return int64(g.In.Edges())
	}
	return 2 * int64(g.In.Edges())
}

// size is a number of bytes as people say it.
func size(bytes int64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}

// words are how a reason begins.
var words = map[string]string{METIS: "METIS", LPA: "label propagation", Stream: "streaming"}

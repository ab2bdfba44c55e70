package order

import (
	"context"
	"math"
)

// Streaming partitioners place one vertex after the other beside most of the
// neighbours placed so far, in a few bytes per vertex. Further passes
// ("restreaming") place each again, now knowing all of its neighbours; on planted
// communities four passes come near to label propagation, one stays far from it.
const (
	streamPasses    = 4
	streamNeighbour = 64
	// streamSlack is by how much a cluster may exceed the average.
	streamSlack = 1.1
)

// stream clusters by linear deterministic greedy (Stanton and Kliot, KDD 2012)
// or by Fennel's score (Tsourakakis et al., WSDM 2014). Only clusters that hold
// a neighbour are scored. Vertices that have none placed yet are dealt out one
// cluster after the other: filling one cluster first was tried, and communities
// then grow into it all together (a quarter of the edges inside instead of 0.7).
func stream(ctx context.Context, g Graph, opt Options, r *Result) error {
	n := g.Rows()
	k := clusterCount(n)
	limit := int64(math.Ceil(streamSlack * float64(n) / float64(k)))
	near := neighbours{sides: g.sides(), seed: opt.Seed, limit: streamNeighbour}
	score := ldgScore(float64(limit))
	if r.Used == Fennel {
		score = fennelScore(n, k, sampledEdges(g))
	}
	cluster := make([]int32, n)
	for v := range cluster {
		cluster[v] = -1
	}
	size := make([]int64, k)
	t := newTally(k)
	list := make([]int32, 0, 2*streamNeighbour)
	deal := int32(0) // where the next vertex without a placed neighbour goes
	for pass := range streamPasses {
		for v := range int32(n) {
			if v&0xffff == 0 {
				if err := ctx.Err(); err != nil {
					return err
				}
				opt.Progress(int64(pass)*int64(n)+int64(v), streamPasses*int64(n))
			}
			old := cluster[v]
			if old >= 0 {
				size[old]--
			}
			list = near.appendTo(list[:0], v)
			for _, u := range list {
				if c := cluster[u]; c >= 0 {
					t.add(c)
				}
			}
			best, top := int32(-1), math.Inf(-1)
			for _, c := range t.touched {
				if size[c] >= limit {
					continue
				}
				s := score(t.count[c], size[c])
				if s > top || s == top && (c == old || best != old && c < best) {
					best, top = c, s
				}
			}
			t.reset()
			if best < 0 {
				best = old
			}
			if best < 0 {
				// A full cluster cannot be the only one: there is slack.
				for best = deal; size[best] >= limit; {
					best = (best + 1) % int32(k)
				}
				deal = (best + 1) % int32(k)
			}
			cluster[v] = best
			size[best]++
		}
	}
	r.Cluster, r.Clusters = chain(g, cluster, k)
	r.Order = byCluster(g, r.Cluster, r.Clusters)
	return nil
}

// ldgScore weighs neighbours by the room that is left.
func ldgScore(limit float64) func(count int32, size int64) float64 {
	return func(count int32, size int64) float64 {
		return float64(count) * (1 - float64(size)/limit)
	}
}

// fennelScore subtracts the marginal cost of a bigger cluster: the derivative of
// alpha * size^1.5, alpha = edges * sqrt(k) / n^1.5.
func fennelScore(n, k int, edges float64) func(count int32, size int64) float64 {
	alpha := edges * math.Sqrt(float64(k)) / math.Pow(float64(n), 1.5)
	return func(count int32, size int64) float64 {
		return float64(count) - 1.5*alpha*math.Sqrt(float64(size))
	}
}

// sampledEdges is the number of undirected edges that sampling sees.
func sampledEdges(g Graph) float64 {
	var sum int64
	for v := range int32(g.Rows()) {
		sum += min(degree(g, v), streamNeighbour)
	}
	return float64(sum) / 2
}

package order

import "math"

// Quality measures an order.
type Quality struct {
	// Intra is the share of edges whose ends lie in one cluster; 0 without
	// clusters. Cut is the number of the others.
	Intra float64
	Cut   int64
	// Gap is the average distance in rows between the ends of an edge.
	Gap float64
	// Hit estimates the share of gathered rows that a cache of CacheRows rows
	// still holds, from samples of consecutive rows.
	Hit float64
}

// CacheRows is the cache that Quality.Hit supposes: 1 MiB of rows of 64 floats.
const CacheRows = 4096

// Measure measures the order with the given ranks over the in-edges of g.
// cluster may be nil.
func Measure(g Graph, rank, cluster []int32) Quality {
	var q Quality
	in := g.In
	if in.Edges() == 0 {
		return q
	}
	var gap float64
	for v := range in.Rows() {
		var rowGap int64
		for _, u := range in.Col[in.RowPtr[v]:in.RowPtr[v+1]] {
			d := int64(rank[v]) - int64(rank[u])
			rowGap += max(d, -d)
			if cluster != nil && cluster[u] != cluster[v] {
				q.Cut++
			}
		}
		gap += float64(rowGap)
	}
	q.Gap = gap / float64(in.Edges())
	if cluster != nil {
		q.Intra = 1 - float64(q.Cut)/float64(in.Edges())
	}
	q.Hit = hitRate(g, rank)
	return q
}

// hitRate walks the in-edges of sampled runs of rows, as a gather does, and
// counts how often the row read was among the last CacheRows reads' worth of
// distinct rows: a clock over first-in, first-out slots.
func hitRate(g Graph, rank []int32) float64 {
	in := g.In
	n := in.Rows()
	order := make([]int32, n)
	for v, r := range rank {
		order[r] = int32(v)
	}
	const runs = 16
	perRun := int64(math.Max(1<<16, 4*CacheRows))
	filled := make([]int32, n) // when a row was last loaded; 0: never in this run
	var reads, hits int64
	for k := range int64(runs) {
		clear(filled)
		loads := int32(0)
		begin := int(int64(n) * k / runs)
		end := int(int64(n) * (k + 1) / runs)
		var done int64
		for r := begin; r < end && done < perRun; r++ {
			v := order[r]
			for _, u := range in.Col[in.RowPtr[v]:in.RowPtr[v+1]] {
				done++
				if at := filled[u]; at != 0 && loads-at < CacheRows {
					hits++
					continue
				}
				loads++
				filled[u] = loads
			}
		}
		reads += done
	}
	if reads == 0 {
		return 0
	}
	return float64(hits) / float64(reads)
}

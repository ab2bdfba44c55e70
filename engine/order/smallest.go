package order

import (
	"context"
	"fmt"
	"strings"
)

// smallestCut runs the methods of fit and takes the order that cuts the fewest edges
// between opt.Partitions servers, the user's own among them. Which method that is depends
// on the graph: METIS cuts half as many edges of Coauthor Physics as label propagation,
// which on planted communities larger than a cluster finds the communities themselves.
func smallestCut(ctx context.Context, g Graph, opt Options, fit, refused []Estimate) (*Result, error) {
	best := &Result{Used: Natural, Order: identity(g.Rows())}
	if err := best.measure(g); err != nil {
		return nil, err
	}
	cut := countCut(g, best.Order, best.Rank, opt.Partitions)
	tried := []string{cutText(g, Natural, cut)}
	if len(fit) == 0 {
		opt.announce(Estimate{Method: Natural}, refused)
	} else {
		opt.announce(fit[0], append(fit[1:len(fit):len(fit)], refused...))
	}
	for _, est := range fit {
		r, err := compute(ctx, g, est.Method, opt)
		if err != nil {
			return nil, err
		}
		if err := r.measure(g); err != nil {
			return nil, err
		}
		c := countCut(g, r.Order, r.Rank, opt.Partitions)
		tried = append(tried, cutText(g, est.Method, c))
		if c < cut {
			best, cut = r, c
			best.Estimate = est
		}
	}
	best.Reason = fmt.Sprintf("the smallest cut between %d servers: %s", opt.Partitions, strings.Join(tried, ", "))
	for _, est := range refused {
		best.Reason += "; " + est.Refused
	}
	return best, nil
}

func cutText(g Graph, method string, cut int64) string {
	return fmt.Sprintf("%s %.1f %%", method, 100*float64(cut)/float64(g.In.Edges()))
}

// countCut is how many in-edges lie between parts runs of the order, each of which has
// its share of the edges.
func countCut(g Graph, order, rank []int32, parts int) (cut int64) {
	var all int64
	for v := range int32(g.Rows()) {
		all += 1 + degree(g, v)
	}
	end := make([]int32, parts) // of each part, in rows
	part, sum := 0, int64(0)
	for r, v := range order {
		sum += 1 + degree(g, v)
		for part < parts && sum >= share(all, part+1, parts) {
			end[part] = int32(r + 1)
			part++
		}
	}
	lo := int32(0)
	for _, hi := range end {
		for _, v := range order[lo:hi] {
			for _, u := range g.In.Col[g.In.RowPtr[v]:g.In.RowPtr[v+1]] {
				if r := rank[u]; r < lo || r >= hi {
					cut++
				}
			}
		}
		lo = hi
	}
	return cut
}

// share is all * part / parts without leaving an int64.
func share(all int64, part, parts int) int64 {
	return all/int64(parts)*int64(part) + all%int64(parts)*int64(part)/int64(parts)
}

package order

import "context"

// mergePasses is how often merge looks at every cluster.
const mergePasses = 4

// merge joins small clusters with those they share most edges with, up to the
// size of a cluster that suits the caches. Label propagation leaves thousands of
// clusters of a few vertices where edges are few; big ones it leaves alone, and
// so does merge. cluster is renumbered by breadth-first visit.
func merge(ctx context.Context, near neighbours, cluster []int32, clusters int) (merged []int32, count int, err error) {
	n := len(cluster)
	limit := int32(float64(n)/float64(clusterCount(n))*streamSlack) + 1
	members, start := groups(cluster, clusters)
	group := identity(clusters) // what each cluster has joined
	size := make([]int32, clusters)
	for c := range clusters {
		size[c] = start[c+1] - start[c]
	}
	t := newTally(clusters)
	var list []int32
	for range mergePasses {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		moved := 0
		for c := range int32(clusters) {
			own := start[c+1] - start[c]
			if own >= limit {
				continue
			}
			for _, v := range members[start[c]:start[c+1]] {
				list = near.appendTo(list[:0], v)
				for _, u := range list {
					if cluster[u] != c {
						t.add(group[cluster[u]])
					}
				}
			}
			old := group[c]
			best, top := old, t.count[old]
			for _, s := range t.touched {
				if s != old && size[s]+own <= limit && (t.count[s] > top || t.count[s] == top && best != old && s < best) {
					best, top = s, t.count[s]
				}
			}
			t.reset()
			if best != old {
				size[old] -= own
				size[best] += own
				group[c] = best
				moved++
			}
		}
		if moved == 0 {
			break
		}
	}
	label := make([]int32, n)
	for v, c := range cluster {
		label[v] = group[c]
	}
	merged, count = numberByVisit(near, label)
	return merged, count, nil
}

// groups lists the vertices by cluster: those of c are members[start[c]:start[c+1]].
func groups(cluster []int32, clusters int) (members, start []int32) {
	start = make([]int32, clusters+1)
	for _, c := range cluster {
		start[c+1]++
	}
	for c := range clusters {
		start[c+1] += start[c]
	}
	at := append([]int32(nil), start[:clusters]...)
	members = make([]int32, len(cluster))
	for v, c := range cluster {
		members[at[c]] = int32(v)
		at[c]++
	}
	return members, start
}

package order

// clusterRows is the cluster size aimed for: 2,048 rows of 64 floats are half a
// MiB, so that a cluster and what it reads of its neighbours stay in a core's
// cache.
const clusterRows = 2048

// clusterCount is how many clusters n vertices are cut into: of about
// clusterRows, but at least 8 where every one gets 8 vertices.
func clusterCount(n int) int {
	k := (n + clusterRows - 1) / clusterRows
	return max(k, min(8, n/8), 1)
}

// chainLimit is the largest number of clusters that chain arranges: its time
// grows with the square.
const chainLimit = 1 << 13

// chain renumbers the non-empty ones of k clusters so that each comes after the
// one, among those not yet placed, that it shares most edges with; connections
// to earlier ones count less and less.
func chain(g Graph, cluster []int32, k int) (renumbered []int32, clusters int) {
	number := make([]int32, k)
	if k > chainLimit {
		for c := range number {
			number[c] = int32(c)
		}
		return dropEmpty(cluster, number)
	}
	links := clusterLinks(g, cluster, k)
	for c := range number {
		number[c] = -1
	}
	pull := make([]float64, k)
	last := heaviest(links)
	for i := range k {
		number[last] = int32(i)
		for c := range pull {
			pull[c] *= 0.5
		}
		for _, l := range links[last] {
			pull[l.to] += float64(l.edges)
		}
		best := -1
		for c := range number {
			if number[c] < 0 && (best < 0 || pull[c] > pull[best]) {
				best = c
			}
		}
		last = best
	}
	return dropEmpty(cluster, number)
}

// link is how many sampled edges lead to another cluster.
type link struct{ to, edges int32 }

// clusterLinks counts the edges between clusters.
func clusterLinks(g Graph, cluster []int32, k int) [][]link {
	near := neighbours{sides: g.sides(), limit: 64}
	members := byCluster(g, cluster, k)
	links := make([][]link, k)
	t := newTally(k)
	var list []int32
	flush := func(c int32) {
		for _, d := range t.touched {
			links[c] = append(links[c], link{d, t.count[d]})
		}
		t.reset()
	}
	for i, v := range members {
		if i > 0 && cluster[members[i-1]] != cluster[v] {
			flush(cluster[members[i-1]])
		}
		list = near.appendTo(list[:0], v)
		for _, u := range list {
			if cluster[u] != cluster[v] {
				t.add(cluster[u])
			}
		}
	}
	if len(members) > 0 {
		flush(cluster[members[len(members)-1]])
	}
	return links
}

// heaviest is the cluster with most edges to others, where a chain begins.
func heaviest(links [][]link) int {
	best, top := 0, int64(-1)
	for c, ls := range links {
		var sum int64
		for _, l := range ls {
			sum += int64(l.edges)
		}
		if sum > top {
			best, top = c, sum
		}
	}
	return best
}

// dropEmpty applies number to cluster and closes the gaps that empty clusters
// leave.
func dropEmpty(cluster, number []int32) (renumbered []int32, clusters int) {
	used := make([]bool, len(number))
	for _, c := range cluster {
		used[number[c]] = true
	}
	packed := make([]int32, len(number))
	for i, u := range used {
		packed[i] = int32(clusters)
		if u {
			clusters++
		}
	}
	renumbered = make([]int32, len(cluster))
	for v, c := range cluster {
		renumbered[v] = packed[number[c]]
	}
	return renumbered, clusters
}

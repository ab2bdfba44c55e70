package order

import (
	"context"
	"slices"
	"sync"
)

// Label propagation: every vertex takes the label that most of its neighbours
// have, again and again. Six sweeps over 64 sampled neighbours find the
// communities of a graph in less time than a few gathers over it.
const (
	lpaSweeps    = 6
	lpaNeighbour = 64
	// lpaBatches is into how many batches, drawn by hash, a sweep is cut.
	// Vertices of a batch read the labels as they were before it, so they can be
	// done by any number of workers; and as neighbours mostly fall into
	// different batches, labels do not flip to and fro as they do when the whole
	// graph moves at once.
	lpaBatches = 16
)

// propagate clusters by label propagation.
func propagate(ctx context.Context, g Graph, opt Options, r *Result) error {
	n := g.Rows()
	label := identity(n)
	next := make([]int32, n)
	batch, start := batches(n, opt.Seed)
	tallies := make([]*tally, opt.Threads)
	for t := range tallies {
		tallies[t] = newTally(n)
	}
	for sweep := range lpaSweeps {
		changed := 0
		near := neighbours{sides: g.sides(), seed: mix(opt.Seed, uint64(sweep)), limit: lpaNeighbour}
		for b := range lpaBatches {
			if err := ctx.Err(); err != nil {
				return err
			}
			members := batch[start[b]:start[b+1]]
			var wg sync.WaitGroup
			for t := range opt.Threads {
				lo, hi := len(members)*t/opt.Threads, len(members)*(t+1)/opt.Threads
				wg.Go(func() {
					list := make([]int32, 0, 2*lpaNeighbour)
					for _, v := range members[lo:hi] {
						list = near.appendTo(list[:0], v)
						next[v] = majority(tallies[t], label, list, label[v], near.seed)
					}
				})
			}
			wg.Wait()
			for _, v := range members {
				if label[v] != next[v] {
					label[v] = next[v]
					changed++
				}
			}
		}
		opt.Progress(int64(sweep+1), lpaSweeps)
		if changed == 0 {
			break
		}
	}
	near := neighbours{sides: g.sides(), seed: opt.Seed, limit: 16}
	cluster, clusters := numberByVisit(near, label)
	var err error
	if r.Cluster, r.Clusters, err = merge(ctx, near, cluster, clusters); err != nil {
		return err
	}
	r.Order = byCluster(g, r.Cluster, r.Clusters)
	return nil
}

// batches deals the vertices into lpaBatches lists by hash, each ascending:
// list b is batch[start[b]:start[b+1]].
func batches(n int, seed uint64) (batch []int32, start []int) {
	of := func(v int) int { return int(mix(seed^0x5bd1e995, uint64(v)) % lpaBatches) }
	start = make([]int, lpaBatches+1)
	for v := range n {
		start[of(v)+1]++
	}
	for b := range lpaBatches {
		start[b+1] += start[b]
	}
	at := slices.Clone(start)
	batch = make([]int32, n)
	for v := range n {
		b := of(v)
		batch[at[b]] = int32(v)
		at[b]++
	}
	return batch, start
}

// majority is the label that most of the listed vertices have. own wins ties it
// is part of; others are decided by hash, so that no label is favoured.
func majority(t *tally, label, list []int32, own int32, seed uint64) int32 {
	if len(list) == 0 {
		return own
	}
	for _, u := range list {
		t.add(label[u])
	}
	best, top := own, t.count[own]
	for _, l := range t.touched {
		c := t.count[l]
		if c > top || c == top && best != own && mix(seed, uint64(l)) < mix(seed, uint64(best)) {
			best, top = l, c
		}
	}
	t.reset()
	return best
}

// numberByVisit renumbers labels 0,1,... in the order in which a breadth-first
// walk over clusters first meets them, so that clusters that share edges get
// near numbers.
func numberByVisit(near neighbours, label []int32) (cluster []int32, clusters int) {
	n := len(label)
	members, start := groups(label, n)
	number := make([]int32, n)
	for l := range number {
		number[l] = -1
	}
	queue := make([]int32, 0, 1024)
	visit := func(l int32) {
		if number[l] < 0 {
			number[l] = int32(clusters)
			clusters++
			queue = append(queue, l)
		}
	}
	var list []int32
	for v := range n {
		visit(label[v])
		for head := 0; head < len(queue); head++ {
			l := queue[head]
			for _, u := range members[start[l]:start[l+1]] {
				list = near.appendTo(list[:0], u)
				for _, w := range list {
					visit(label[w])
				}
			}
		}
		queue = queue[:0]
	}
	cluster = make([]int32, n)
	for v, l := range label {
		cluster[v] = number[l]
	}
	return cluster, clusters
}

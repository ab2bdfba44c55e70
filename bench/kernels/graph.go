//go:build cgo && amd64 && linux

package main

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"dorylus/kernels"
)

// A planted graph has communities of equal size, most edges inside them, and
// degrees by a power law at both ends. Its vertices are numbered in community
// order; csr gives them other names.
type planted struct {
	vertices, communities int
	seed                  uint64
	degree                []int32
	slots                 []int32 // per community, each vertex as often as its degree demands
}

const (
	inside      = 0.8 // share of edges inside a community
	communities = 50
)

func plant(vertices, degree int, seed uint64) *planted {
	p := &planted{vertices: vertices, communities: communities, seed: seed, degree: make([]int32, vertices)}
	r := rand.New(rand.NewPCG(seed, 0))
	want := make([]float64, vertices)
	var sum float64
	for v := range want {
		want[v] = math.Min(math.Pow(1-r.Float64(), -1/1.8), 40) // Pareto, its tail cut
		sum += want[v]
	}
	for v := range want {
		p.degree[v] = int32(want[v]*float64(degree)*float64(vertices)/sum + 0.5)
	}
	per := p.slotsPer()
	p.slots = make([]int32, per*p.communities)
	for c := range p.communities {
		lo, hi := c*vertices/p.communities, (c+1)*vertices/p.communities
		var all, at float64
		for v := lo; v < hi; v++ {
			all += want[v]
		}
		i := 0
		for v := lo; v < hi; v++ {
			at += want[v]
			for ; i < per && float64(i) < at/all*float64(per); i++ {
				p.slots[c*per+i] = int32(v)
			}
		}
		for ; i < per; i++ {
			p.slots[c*per+i] = int32(hi - 1)
		}
	}
	return p
}

func (p *planted) slotsPer() int { return 8 * (p.vertices/p.communities + 1) }

// csr lists the in-edges with vertex v named name[v]: the same graph for every
// name. Edges drawn twice count once.
func (p *planted) csr(name []int32) *kernels.CSR {
	per := uint64(p.slotsPer())
	return build(p.vertices, name, func(v int, row []int32) []int32 {
		r := rand.NewPCG(p.seed, uint64(v)+1)
		own := uint64(min(v*p.communities/p.vertices, p.communities-1))
		for range p.degree[v] {
			bits := r.Uint64()
			c := own
			if float64(bits>>40) >= inside*(1<<24) {
				c = (bits & 0xffff) * uint64(p.communities) >> 16
			}
			row = append(row, p.slots[c*per+(bits>>8&0xffffffff)*per>>32])
		}
		return row
	})
}

// build makes the CSR whose row name[v] holds the names of draw's sources for v.
func build(n int, name []int32, draw func(v int, row []int32) []int32) *kernels.CSR {
	vertex := make([]int32, n) // by name
	for v, m := range name {
		vertex[m] = int32(v)
	}
	const parts = 64
	rows := make([][]int32, parts)
	g := &kernels.CSR{Cols: n, RowPtr: make([]int64, n+1)}
	parallel(parts, func(part int) {
		var col, row []int32
		for m := part * n / parts; m < (part+1)*n/parts; m++ {
			row = draw(int(vertex[m]), row[:0])
			for i, u := range row {
				row[i] = name[u]
			}
			slices.Sort(row)
			row = slices.Compact(row)
			g.RowPtr[m+1] = int64(len(row))
			col = append(col, row...)
		}
		rows[part] = col
	})
	for v := range n {
		g.RowPtr[v+1] += g.RowPtr[v]
	}
	g.Col = make([]int32, g.RowPtr[n])
	parallel(parts, func(part int) {
		copy(g.Col[g.RowPtr[part*n/parts]:], rows[part])
		rows[part] = nil
	})
	return g
}

// renamed is g with vertex v named name[v].
func renamed(g *kernels.CSR, name []int32) *kernels.CSR {
	return build(g.Cols, name, func(v int, row []int32) []int32 {
		return append(row, g.Col[g.RowPtr[v]:g.RowPtr[v+1]]...)
	})
}

func natural(n int) []int32 {
	name := make([]int32, n)
	for v := range name {
		name[v] = int32(v)
	}
	return name
}

func shuffled(n int, seed uint64) []int32 {
	name := natural(n)
	rand.New(rand.NewPCG(seed, 99)).Shuffle(n, func(i, j int) { name[i], name[j] = name[j], name[i] })
	return name
}

// rmat is a recursive-matrix graph of 2^scale vertices, those with the most
// in-edges first.
func rmat(scale, degree int, seed uint64) *kernels.CSR {
	n := 1 << scale
	const parts = 64
	type edge struct{ src, dst int32 }
	edges := make([][]edge, parts)
	parallel(parts, func(part int) {
		r := rand.NewPCG(seed, uint64(part)+1000)
		list := make([]edge, n*degree/parts)
		for i := range list {
			var e edge
			for range scale {
				e.src, e.dst = e.src<<1, e.dst<<1
				switch q := float64(r.Uint64()>>11) / (1 << 53); {
				case q < 0.57:
				case q < 0.76:
					e.src |= 1
				case q < 0.95:
					e.dst |= 1
				default:
					e.src, e.dst = e.src|1, e.dst|1
				}
			}
			list[i] = e
		}
		edges[part] = list
	})
	in := make([][]int32, n)
	for _, list := range edges {
		for _, e := range list {
			in[e.dst] = append(in[e.dst], e.src)
		}
	}
	order := natural(n)
	slices.SortStableFunc(order, func(a, b int32) int { return len(in[b]) - len(in[a]) })
	name := make([]int32, n)
	for i, v := range order {
		name[v] = int32(i)
	}
	return build(n, name, func(v int, row []int32) []int32 { return append(row, in[v]...) })
}

// parallel runs f for each part on all cores. Parts are cut without regard to the
// machine, so what they draw does not depend on it.
func parallel(parts int, f func(part int)) {
	var wg sync.WaitGroup
	slot := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range parts {
		wg.Go(func() {
			slot <- struct{}{}
			f(i)
			<-slot
		})
	}
	wg.Wait()
}

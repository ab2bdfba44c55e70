package order

import (
	"math"

	"dorylus/kernels"
)

// neighbours samples the neighbours of vertices: all of them, or limit that are
// evenly spaced from a start drawn by (seed, v).
type neighbours struct {
	sides []*kernels.CSR
	seed  uint64
	limit int64
}

// appendTo appends a sample of the neighbours of v, v itself left out.
func (s *neighbours) appendTo(list []int32, v int32) []int32 {
	var d int64
	for _, g := range s.sides {
		d += g.RowPtr[v+1] - g.RowPtr[v]
	}
	if d <= s.limit {
		for _, g := range s.sides {
			for _, u := range g.Col[g.RowPtr[v]:g.RowPtr[v+1]] {
				if u != v {
					list = append(list, u)
				}
			}
		}
		return list
	}
	// Position i of the sample is ((i + shift) * d) / limit with shift in [0,1).
	shift := float64(mix(s.seed, uint64(v))>>11) / (1 << 53)
	first := s.sides[0]
	size := first.RowPtr[v+1] - first.RowPtr[v]
	for i := range s.limit {
		at := int64((float64(i) + shift) * float64(d) / float64(s.limit))
		var u int32
		if at < size {
			u = first.Col[first.RowPtr[v]+at]
		} else {
			u = s.sides[1].Col[s.sides[1].RowPtr[v]+at-size]
		}
		if u != v {
			list = append(list, u)
		}
	}
	return list
}

// tally counts small numbers of keys out of [0,n).
type tally struct {
	count   []int32
	touched []int32
}

func newTally(n int) *tally { return &tally{count: make([]int32, n)} }

// add counts k; the count stays at the largest int32, which the edges between two
// clusters of tens of millions of vertices can reach.
func (t *tally) add(k int32) {
	switch t.count[k] {
	case 0:
		t.touched = append(t.touched, k)
	case math.MaxInt32:
		return
	}
	t.count[k]++
}

func (t *tally) reset() {
	for _, k := range t.touched {
		t.count[k] = 0
	}
	t.touched = t.touched[:0]
}

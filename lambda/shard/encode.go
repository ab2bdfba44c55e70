package shard

import (
	"encoding/json"
	"iter"
	"slices"

	"dorylus/engine"
	"dorylus/kernels"
	"dorylus/lambda/codec"
)

// head is a shard without its arrays: what is there, and how long.
type head struct {
	Pass       engine.Pass `json:"pass"`
	Interval   int         `json:"interval"`
	Seed       uint64      `json:"seed"`
	Train      bool        `json:"train"`
	FirstBlock int         `json:"first_block"`
	Ptr        [][]int     `json:"ptr"`
	LossScale  float32     `json:"loss_scale"`
	Vectors    []int       `json:"vectors"` // lengths, in the order of vectors; -1: nil
	Targets    int         `json:"targets"` // columns; -1: nil
	Sparse     int         `json:"sparse"`
	Values     bool        `json:"values"` // Sparse has values
	ClassW     int         `json:"class_weights"`
	Const      []shape     `json:"const"`
}

type shape struct{ Buf, Rows, Cols int }

// vectors are the shard's lists of int32, in a fixed order. Offsets of sparse matrices
// are not among them.
func (s *Shard) vectors() []*[]int32 {
	out := []*[]int32{&s.Labels}
	for k := range s.IDs {
		out = append(out, &s.IDs[k])
	}
	for k := range s.Self {
		out = append(out, &s.Self[k])
	}
	for b := range s.Seen {
		for k := range s.Seen[b] {
			out = append(out, &s.Seen[b][k])
		}
	}
	return out
}

// Head is the shard's head, as text: all but its arrays.
func (s *Shard) Head() ([]byte, error) {
	h := head{
		Pass: s.Pass, Interval: s.Interval, Seed: s.Seed, Train: s.Train, FirstBlock: s.FirstBlock, Ptr: s.Ptr, LossScale: s.LossScale,
		Targets: -1, Sparse: -1, ClassW: -1,
	}
	for _, v := range s.vectors() {
		if *v == nil {
			h.Vectors = append(h.Vectors, -1)
			continue
		}
		h.Vectors = append(h.Vectors, len(*v))
	}
	if s.Targets != nil {
		h.Targets = s.Targets.Cols
	}
	if s.Sparse != nil {
		h.Sparse, h.Values = s.Sparse.Cols, s.Sparse.Val != nil
	}
	if s.ClassW != nil {
		h.ClassW = s.ClassW.Cols
	}
	for b, m := range s.Const {
		if m != nil {
			h.Const = append(h.Const, shape{b, m.Rows, m.Cols})
		}
	}
	return json.Marshal(h)
}

// Frames are the shard's arrays, in an order that the head gives: frames of at most size
// bytes of values each, or one row where that is more, each made when it is asked for. An
// array of no rows has none.
func (s *Shard) Frames(e *codec.Encoder, size int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		ints := func(key codec.Key, v []int32) bool {
			for part := range slices.Chunk(v, max(size/4, 1)) {
				if !yield(e.AppendInt32(nil, key, part)) {
					return false
				}
			}
			return true
		}
		floats := func(key codec.Key, m *kernels.Mat) bool {
			if m == nil || m.Rows == 0 {
				return true
			}
			for rows := range codec.Split(m.Rows, 4*m.Cols, size) {
				if !yield(e.Append(nil, key, m.Sub(rows))) {
					return false
				}
			}
			return true
		}
		csr := func(key codec.Key, g *kernels.CSR) bool {
			return g == nil || ints(key, degrees(g)) && ints(key+1, g.Col) && (g.Val == nil || floats(key+2, column(g.Val)))
		}
		for i, v := range s.vectors() {
			if !ints(codec.Key(1<<20+i), *v) {
				return
			}
		}
		if !csr(2<<20, s.Targets) || !csr(3<<20, s.Sparse) || !floats(5<<20, s.ClassW) {
			return
		}
		for b, m := range s.Const {
			if !floats(codec.Key(6<<20+b), m) {
				return
			}
		}
	}
}

// column is v as a matrix of one column, of the same memory.
func column(v []float32) *kernels.Mat { return kernels.FromSlice(len(v), 1, v) }

// degrees are the lengths of g's rows.
func degrees(g *kernels.CSR) []int32 {
	out := make([]int32, g.Rows())
	for i := range out {
		out[i] = int32(g.RowPtr[i+1] - g.RowPtr[i])
	}
	return out
}

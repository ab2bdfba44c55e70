package shard

import (
	"encoding/json"
	"fmt"
	"math"

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

// Encode is the shard as a head and frames.
func (s *Shard) Encode(e *codec.Encoder) ([]byte, [][]byte, error) {
	h := head{
		Pass: s.Pass, Interval: s.Interval, Seed: s.Seed, Train: s.Train, FirstBlock: s.FirstBlock, Ptr: s.Ptr, LossScale: s.LossScale,
		Targets: -1, Sparse: -1, ClassW: -1,
	}
	var frames [][]byte
	ints := func(key codec.Key, v []int32) { frames = append(frames, e.AppendInt32(nil, key, v)) }
	floats := func(key codec.Key, m *kernels.Mat) { frames = append(frames, e.Append(nil, key, m)) }
	for i, v := range s.vectors() {
		if *v == nil {
			h.Vectors = append(h.Vectors, -1)
			continue
		}
		h.Vectors = append(h.Vectors, len(*v))
		ints(codec.Key(1<<20+i), *v)
	}
	csr := func(key codec.Key, g *kernels.CSR) {
		ints(key, degrees(g))
		ints(key+1, g.Col)
	}
	if s.Targets != nil {
		h.Targets = s.Targets.Cols
		csr(2<<20, s.Targets)
	}
	if s.Sparse != nil {
		h.Sparse, h.Values = s.Sparse.Cols, s.Sparse.Val != nil
		csr(3<<20, s.Sparse)
		if h.Values {
			floats(4<<20, kernels.FromSlice(1, len(s.Sparse.Val), s.Sparse.Val))
		}
	}
	if s.ClassW != nil {
		h.ClassW = s.ClassW.Cols
		floats(5<<20, s.ClassW)
	}
	for b, m := range s.Const {
		if m != nil {
			h.Const = append(h.Const, shape{b, m.Rows, m.Cols})
			floats(codec.Key(6<<20+b), m)
		}
	}
	text, err := json.Marshal(h)
	return text, frames, err
}

// degrees are the lengths of g's rows.
func degrees(g *kernels.CSR) []int32 {
	out := make([]int32, g.Rows())
	for i := range out {
		out[i] = int32(g.RowPtr[i+1] - g.RowPtr[i])
	}
	return out
}

// Decode reads what Encode has made, for a program of so many buffers. limit bounds the
// memory of its arrays, in bytes; that of the buffers which Open adds is for Fits to
// judge, as is whether the arrays suit a program.
func Decode(text []byte, frames [][]byte, bufs int, limit int64) (*Shard, error) {
	var h head
	if err := json.Unmarshal(text, &h); err != nil {
		return nil, fmt.Errorf("read a shard: %w", err)
	}
	d := &decoder{frames: frames, left: limit}
	s := &Shard{
		Pass: h.Pass, Interval: h.Interval, Seed: h.Seed, Train: h.Train, FirstBlock: h.FirstBlock, Ptr: h.Ptr, LossScale: h.LossScale,
		Const: make([]*kernels.Mat, bufs),
	}
	if err := s.shapes(&h); err != nil {
		return nil, fmt.Errorf("read the shard of interval %d: %w", h.Interval, err)
	}
	for i, v := range s.vectors() {
		if h.Vectors[i] >= 0 {
			*v = d.ints(h.Vectors[i])
		}
	}
	if h.Targets >= 0 {
		s.Targets = d.csr(h.Targets, s.Rows(len(h.Ptr)-1), false)
	}
	if h.Sparse >= 0 {
		s.Sparse = d.csr(h.Sparse, s.Rows(0), h.Values)
	}
	if h.ClassW >= 0 {
		s.ClassW = d.floats(1, h.ClassW)
	}
	for _, c := range h.Const {
		s.Const[c.Buf] = d.floats(c.Rows, c.Cols)
	}
	if d.err == nil && len(d.frames) > 0 {
		d.err = fmt.Errorf("%d frames too many", len(d.frames))
	}
	if d.err != nil {
		return nil, fmt.Errorf("read the shard of interval %d: %w", h.Interval, d.err)
	}
	return s, nil
}

// shapes checks the head and makes room for the lists.
func (s *Shard) shapes(h *head) error {
	if len(h.Ptr) == 0 || len(h.Ptr[0]) < 2 {
		return fmt.Errorf("it has no blocks")
	}
	for k, p := range h.Ptr {
		if len(p) != len(h.Ptr[0]) || p[0] != 0 {
			return fmt.Errorf("level %d has %d block bounds from %v on, want %d from 0 on", k, len(p), p[:min(1, len(p))], len(h.Ptr[0]))
		}
		for b := 1; b < len(p); b++ {
			if p[b] < p[b-1] || p[b] > math.MaxInt32 {
				return fmt.Errorf("block %d of level %d ends at row %d, after %d", b-1, k, p[b], p[b-1])
			}
		}
	}
	levels := len(h.Ptr)
	if n := 2*levels + s.Blocks()*levels; len(h.Vectors) != n { // labels, ids, self; seen
		return fmt.Errorf("it has %d lists, want %d", len(h.Vectors), n)
	}
	s.IDs, s.Self, s.Seen = make([][]int32, levels), make([][]int32, levels-1), make([][][]int32, s.Blocks())
	for b := range s.Seen {
		s.Seen[b] = make([][]int32, levels)
	}
	for _, c := range h.Const {
		if c.Buf < 0 || c.Buf >= len(s.Const) {
			return fmt.Errorf("it has rows of buffer %d of %d", c.Buf, len(s.Const))
		}
	}
	return nil
}

// decoder takes frames one by one. The first error sticks.
type decoder struct {
	frames [][]byte
	left   int64
	err    error
}

// take is the next frame, if it is a tensor of this shape whose memory, in bytes, is left.
func (d *decoder) take(rows, cols int, bytes func() int64) []byte {
	if d.err != nil {
		return nil
	}
	if len(d.frames) == 0 {
		d.err = fmt.Errorf("a tensor of %d x %d is missing", rows, cols)
		return nil
	}
	f := d.frames[0]
	d.frames = d.frames[1:]
	h, err := codec.ReadHeader(f, codec.Limits{MaxBytes: max(d.left, 1)}) // 0 were the default
	switch {
	case err != nil:
		d.err = err
	case h.Total != rows || h.Cols != cols:
		d.err = fmt.Errorf("a tensor is %d x %d, want %d x %d", h.Total, h.Cols, rows, cols)
	default: // now the shape is one whose bytes can be counted
		n := bytes()
		if n <= d.left {
			d.left -= n
			return f
		}
		d.err = fmt.Errorf("a tensor of %d x %d needs %d bytes, %d are left", rows, cols, n, d.left)
	}
	return nil
}

func (d *decoder) ints(n int) []int32 {
	f := d.take(n, 1, func() int64 { return 4 * int64(n) })
	if d.err != nil {
		return nil
	}
	v := make([]int32, n)
	d.err = codec.DecodeInt32(f, v)
	return v
}

func (d *decoder) floats(rows, cols int) *kernels.Mat {
	f := d.take(rows, cols, func() int64 { return padded(rows, cols) })
	if d.err != nil {
		return nil
	}
	stride := kernels.PadCols(cols)
	m := &kernels.Mat{Rows: rows, Cols: cols, Stride: stride, Host: make([]float32, rows*stride)}
	d.err = codec.Decode(f, m)
	return m
}

func (d *decoder) csr(cols, rows int, values bool) *kernels.CSR {
	degrees := d.ints(rows)
	if d.left -= 8 * int64(rows+1); d.err == nil && d.left < 0 {
		d.err = fmt.Errorf("a sparse matrix of %d rows needs %d bytes more than are left", rows, -d.left)
	}
	if d.err != nil {
		return nil
	}
	g := &kernels.CSR{Cols: cols, RowPtr: make([]int64, 1, rows+1)}
	for _, n := range degrees {
		g.RowPtr = append(g.RowPtr, g.RowPtr[len(g.RowPtr)-1]+int64(n))
	}
	edges := g.RowPtr[rows]
	if edges < 0 || edges > math.MaxInt32 {
		d.err = fmt.Errorf("a sparse matrix has %d values", edges)
		return nil
	}
	g.Col = d.ints(int(edges))
	if values {
		if f := d.take(1, int(edges), func() int64 { return 4 * edges }); d.err == nil {
			g.Val = make([]float32, edges)
			d.err = codec.Decode(f, kernels.FromSlice(1, len(g.Val), g.Val))
		}
	}
	if d.err == nil {
		d.err = g.Validate()
	}
	return g
}

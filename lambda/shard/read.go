package shard

import (
	"encoding/json"
	"fmt"
	"iter"
	"math"

	"dorylus/engine"
	"dorylus/kernels"
	"dorylus/lambda/codec"
)

// Reader puts a shard together from its frames as they come, each in the place where it
// stays, so that there is never a second copy of it. It belongs to one goroutine, which
// has to Close it.
type Reader struct {
	s    *Shard
	next func() (struct{}, bool) // goes on until a frame is wanted or all are there
	stop func()
	want func(struct{}) bool // has the next frame put into frame; false: none will come

	frame []byte // the next one
	more  bool   // a frame is wanted
	limit int64
	left  int64 // of limit
	err   error // the first one
}

// NewReader reads a shard's head, for a program of so many buffers. limit bounds the
// memory of its arrays, in bytes; that of the buffers which Open adds is for Fits to
// judge, as is whether the arrays suit a program. An array gets its memory when its first
// frame has come.
func NewReader(text []byte, bufs int, limit int64) (*Reader, error) {
	var h head
	if err := json.Unmarshal(text, &h); err != nil {
		return nil, fmt.Errorf("read a shard: %w", err)
	}
	s := &Shard{
		Pass: h.Pass, Interval: h.Interval, Seed: h.Seed, Train: h.Train, FirstBlock: h.FirstBlock, Ptr: h.Ptr, LossScale: h.LossScale,
		Const: make([]*kernels.Mat, bufs),
	}
	if err := s.shapes(&h); err != nil {
		return nil, fmt.Errorf("read the shard of interval %d: %w", h.Interval, err)
	}
	r := &Reader{s: s, limit: limit, left: limit}
	r.next, r.stop = iter.Pull(func(want func(struct{}) bool) {
		r.want = want
		r.arrays(&h)
	})
	_, r.more = r.next()
	if r.err != nil {
		r.Close()
		return nil, r.wrap()
	}
	return r, nil
}

// Add takes frames, the next ones in the order of Frames, and keeps no part of them. After
// an error nothing more is taken.
func (r *Reader) Add(frames [][]byte) error {
	for i, f := range frames {
		if r.err == nil && !r.more {
			r.err = fmt.Errorf("%d frames too many", len(frames)-i)
		}
		if r.err != nil {
			return r.wrap()
		}
		r.frame = f
		_, r.more = r.next()
		r.frame = nil
	}
	if r.err != nil {
		return r.wrap()
	}
	return nil
}

// Key is the shard's pass and interval.
func (r *Reader) Key() (engine.Pass, int) { return r.s.Pass, r.s.Interval }

// Bytes is the memory of what has come so far.
func (r *Reader) Bytes() int64 { return r.limit - r.left }

// Shard is the shard, once all of it is there.
func (r *Reader) Shard() (*Shard, error) {
	r.Close()
	if r.err != nil {
		return nil, r.wrap()
	}
	return r.s, nil
}

// Close ends the reading. What is missing then is an error of Shard.
func (r *Reader) Close() { r.stop() }

func (r *Reader) wrap() error {
	return fmt.Errorf("read the shard of interval %d: %w", r.s.Interval, r.err)
}

// arrays reads all arrays, one behind the other.
func (r *Reader) arrays(h *head) {
	s := r.s
	for i, v := range s.vectors() {
		if h.Vectors[i] >= 0 {
			*v = r.ints(fmt.Sprintf("list %d", i), h.Vectors[i])
		}
	}
	if h.Targets >= 0 {
		s.Targets = r.csr("the targets", h.Targets, s.Rows(len(h.Ptr)-1), false)
	}
	if h.Sparse >= 0 {
		s.Sparse = r.csr("the sparse features", h.Sparse, s.Rows(0), h.Values)
	}
	if h.ClassW >= 0 {
		s.ClassW = r.floats("the class weights", 1, h.ClassW)
	}
	for _, c := range h.Const {
		s.Const[c.Buf] = r.floats(fmt.Sprintf("buffer %d", c.Buf), c.Rows, c.Cols)
	}
}

// array reads the frames of one array of rows of so many bytes in memory each, which alloc
// reserves and put fills with a frame's rows.
func (r *Reader) array(what string, rows, cols int, rowBytes int64, alloc func(), put func(frame []byte, at kernels.Span) error) {
	if r.err == nil && (rows < 0 || cols < 0) {
		r.err = fmt.Errorf("%s of %d x %d", what, rows, cols)
	}
	if r.err == nil && rows == 0 {
		alloc()
	}
	for have := 0; r.err == nil && have < rows; {
		if !r.want(struct{}{}) {
			r.err = fmt.Errorf("%s of %d x %d ends behind row %d: frames are missing", what, rows, cols, have)
			return
		}
		f := r.frame
		h, err := codec.ReadHeader(f, codec.Limits{MaxBytes: max(r.limit, 1)}) // 0 were the default
		switch {
		case err != nil:
			r.err = fmt.Errorf("%s: %w", what, err)
			return
		case h.Cols != cols || h.Total < 1 || h.Total > rows-have:
			r.err = fmt.Errorf("%s: a frame of %d x %d came, want at most %d x %d", what, h.Total, h.Cols, rows-have, cols)
			return
		}
		if have == 0 { // now the columns are few enough to count their bytes
			if !r.reserve(what, rows, rowBytes) {
				return
			}
			alloc()
		}
		if err := put(f, kernels.Span{Lo: have, Hi: have + h.Total}); err != nil {
			r.err = fmt.Errorf("%s: %w", what, err)
		}
		have += h.Total
	}
}

// reserve takes memory off the limit.
func (r *Reader) reserve(what string, rows int, rowBytes int64) bool {
	if rowBytes > 0 && int64(rows) > r.left/rowBytes {
		r.err = fmt.Errorf("%s: %d rows of %d bytes each are more than the %d bytes that are left: use more --intervals, or workers with more memory",
			what, rows, rowBytes, r.left)
		return false
	}
	r.left -= int64(rows) * rowBytes
	return true
}

func (r *Reader) ints(what string, n int) []int32 {
	var v []int32
	r.array(what, n, 1, 4, func() { v = make([]int32, n) }, func(f []byte, at kernels.Span) error {
		return codec.DecodeInt32(f, v[at.Lo:at.Hi])
	})
	return v
}

func (r *Reader) floats(what string, rows, cols int) *kernels.Mat {
	m := &kernels.Mat{Rows: rows, Cols: cols}
	r.array(what, rows, cols, padded(1, cols), func() {
		m.Stride = kernels.PadCols(cols)
		m.Host = make([]float32, rows*m.Stride)
	}, func(f []byte, at kernels.Span) error { return codec.Decode(f, m.Sub(at)) })
	return m
}

func (r *Reader) csr(what string, cols, rows int, values bool) *kernels.CSR {
	degrees := r.ints(what+"' lengths of rows", rows)
	if r.err != nil || !r.reserve(what+"' offsets", rows+1, 8) {
		return nil
	}
	g := &kernels.CSR{Cols: cols, RowPtr: make([]int64, 1, rows+1)}
	for _, n := range degrees {
		g.RowPtr = append(g.RowPtr, g.RowPtr[len(g.RowPtr)-1]+int64(n))
	}
	edges := g.RowPtr[rows]
	if edges < 0 || edges > math.MaxInt32 {
		r.err = fmt.Errorf("%s have %d values", what, edges)
		return nil
	}
	g.Col = r.ints(what+"' columns", int(edges))
	if values {
		r.array(what+"' values", int(edges), 1, 4, func() { g.Val = make([]float32, edges) }, func(f []byte, at kernels.Span) error {
			return codec.Decode(f, column(g.Val[at.Lo:at.Hi]))
		})
	}
	if r.err == nil {
		r.err = g.Validate()
	}
	return g
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

package spill

import (
	"slices"

	"dorylus/kernels"
)

// mode says how a step uses an operand.
type mode uint8

const (
	reads   mode = 1 << iota
	writes       // all of the part, unless reads is set too
	scratch      // memory of the arena, of m's shape, without contents
)

// part is a rectangle of an operand that a step uses.
type part struct {
	m          *kernels.Mat // nil: none
	rows, cols kernels.Span // of m
	mode       mode
	// full: the op is given a matrix of all of m's rows, of which it touches these
	// alone. Otherwise one of these rows only.
	full bool
}

// all is a whole matrix.
func all(m *kernels.Mat, mo mode) part {
	if m == nil {
		return part{}
	}
	return part{m: m, rows: kernels.Span{Hi: m.Rows}, cols: kernels.Span{Hi: m.Cols}, mode: mo}
}

// within is the rows of all columns.
func within(m *kernels.Mat, rows kernels.Span, mo mode, full bool) part {
	p := all(m, mo)
	if m != nil {
		p.rows, p.full = rows, full
	}
	return p
}

// columns is all or some rows of some columns.
func columns(m *kernels.Mat, rows, cols kernels.Span, mo mode, full bool) part {
	p := within(m, rows, mo, full)
	if m != nil {
		p.cols = cols
	}
	return p
}

// region is what is staged for one or several parts that lie in the same rows of a
// block. In a linear block it is values [lo,hi), which the arena holds as they lie. In
// a block of tiles it is rows [r0,r1) of the tiles of columns [c0,c1), which go through
// raw, tile after tile, to at, where they lie by rows; a single tile goes to at.
type region struct {
	b              *block
	lo, hi         int
	r0, r1, c0, c1 int
	stride         int // in the arena
	mode           mode
	whole          bool // some part writes all columns that are no padding
	at, raw        int  // bytes from the slot's start
	parts          []int
	first          int // a linear region's least start of a part
}

func (r *region) tiles() int { return (r.c1 - r.c0 + r.b.tile - 1) / r.b.tile }

// layout is where the parts of a step lie in a slot.
type layout struct {
	regions []*region
	of      []*region // of each part; nil: resident or empty
	views   []view
	scratch []int // bytes from the slot's start, for parts that are scratch
	bytes   int
}

const grain = 256 // of places in the arena, in bytes

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// lay finds a place in a slot for all parts that are spilled or scratch.
func (m *Memory) lay(parts []part) (*layout, error) {
	l := &layout{of: make([]*region, len(parts)), views: make([]view, len(parts)), scratch: make([]int, len(parts))}
	for i, p := range parts {
		switch {
		case p.m == nil || p.rows.Len() == 0 || p.cols.Len() == 0:
		case p.mode == scratch:
			l.scratch[i] = l.bytes
			l.bytes += roundUp(p.m.Rows*p.m.Stride*4, grain)
		case Spilled(p.m):
			v, err := m.view(p.m)
			if err != nil {
				return nil, err
			}
			l.views[i] = v
			l.add(i, p, v)
		}
	}
	for _, r := range l.regions {
		l.place(r)
	}
	return l, nil
}

// add puts a part into the region of its block and rows, or into a new one.
func (l *layout) add(i int, p part, v view) {
	n := &region{b: v.block, mode: p.mode, parts: []int{i}}
	if v.linear() {
		n.lo = v.off + p.rows.Lo*p.m.Stride + p.cols.Lo
		n.hi = v.off + (p.rows.Hi-1)*p.m.Stride + p.cols.Hi
		n.first, n.stride = n.lo, p.m.Stride
		n.whole = p.rows.Len() == 1 || p.m.Stride == p.cols.Len()
		if full := n.lo + p.rows.Len()*p.m.Stride; p.m.Stride == v.stride && n.lo%v.stride == 0 && p.cols.Len() == v.cols && full <= len(v.host) {
			n.hi, n.whole = full, true
		}
	} else {
		n.r0, n.r1 = v.off/v.stride+p.rows.Lo, v.off/v.stride+p.rows.Hi
		c0 := v.off%v.stride + p.cols.Lo
		c1 := c0 + p.cols.Len()
		n.c0, n.c1 = c0/v.tile*v.tile, min(roundUp(c1, v.tile), v.stride)
		n.whole = c0 == n.c0 && c1 >= min(n.c1, v.cols)
	}
	for k := 0; k < len(l.regions); k++ {
		if r := l.regions[k]; r.joins(n) {
			n.merge(r)
			l.regions = slices.Delete(l.regions, k, k+1)
			k = -1 // what has grown may join others
		}
	}
	l.regions = append(l.regions, n)
	for _, i := range n.parts {
		l.of[i] = n
	}
}

// merge makes n cover r too. Where one of them writes everything that the other covers,
// everything is written.
func (n *region) merge(r *region) {
	whole := r.mode&writes != 0 && r.whole && r.covers(n) || n.mode&writes != 0 && n.whole && n.covers(r)
	n.lo, n.hi, n.first = min(r.lo, n.lo), max(r.hi, n.hi), min(r.first, n.first)
	n.r0, n.r1 = min(r.r0, n.r0), max(r.r1, n.r1)
	n.c0, n.c1 = min(r.c0, n.c0), max(r.c1, n.c1)
	n.mode |= r.mode
	n.whole = whole
	n.parts = append(r.parts, n.parts...)
}

// joins says whether two parts must share a region: they lie in the same rows and tiles
// of the same block.
func (r *region) joins(n *region) bool {
	if r.b != n.b {
		return false
	}
	if r.b.linear() {
		d := r.first - n.first
		return r.stride == n.stride && d < r.stride && -d < r.stride || r.lo < n.hi && n.lo < r.hi
	}
	return r.r0 < n.r1 && n.r0 < r.r1 && r.c0 < n.c1 && n.c0 < r.c1
}

// rereads says whether a layout reads what another one writes, as steps over columns do
// that are no tiles: then it has to come back in between.
func (l *layout) rereads(before *layout) bool {
	for _, r := range l.regions {
		for _, w := range before.regions {
			if r.mode&reads == 0 || w.mode&writes == 0 || r.b != w.b {
				continue
			}
			if r.b.linear() && r.lo < w.hi && w.lo < r.hi || !r.b.linear() && r.r0 < w.r1 && w.r0 < r.r1 && r.c0 < w.c1 && w.c0 < r.c1 {
				return true
			}
		}
	}
	return false
}

// covers says whether all that n stages is part of r.
func (r *region) covers(n *region) bool {
	return r.lo <= n.lo && r.hi >= n.hi && r.r0 <= n.r0 && r.r1 >= n.r1 && r.c0 <= n.c0 && r.c1 >= n.c1
}

// place gives a region its bytes of the slot. Values keep their place within 64 bytes,
// so that the device chooses the same kernels as for a resident matrix.
func (l *layout) place(r *region) {
	if r.mode&writes != 0 && !r.whole {
		r.mode |= reads // what is not written goes back as it was
	}
	r.at = l.bytes
	if r.b.linear() {
		r.at += r.lo % kernels.Align * 4
		l.bytes += roundUp((r.hi-r.lo+kernels.Align)*4, grain)
		return
	}
	n := roundUp((r.r1-r.r0)*(r.c1-r.c0)*4, grain)
	r.stride, r.raw = r.c1-r.c0, r.at
	l.bytes += n
	if r.tiles() > 1 {
		r.raw = l.bytes
		l.bytes += n
	}
}

// mat is part i in a slot at an address.
func (l *layout) mat(i int, p part, slot uintptr) *kernels.Mat {
	if p.m == nil {
		return nil
	}
	out := &kernels.Mat{Rows: p.rows.Len(), Cols: p.cols.Len(), Stride: p.m.Stride}
	r := l.of[i]
	switch {
	case p.mode == scratch:
		out.Addr = slot + uintptr(l.scratch[i])
	case p.rows.Len() == 0 || p.cols.Len() == 0:
		out.Addr = slot + uintptr(i)*64 // rows that are not touched
		if Spilled(p.m) {
			out.Stride = max(p.m.Stride, p.cols.Len())
			break
		}
		fallthrough
	case r == nil: // resident, or of the host
		if p.cols.Lo == 0 && p.cols.Hi == p.m.Cols && (p.full || p.rows.Len() == p.m.Rows) {
			return p.m
		}
		out = p.m.Columns(p.cols.Lo, p.cols.Hi)
		if !p.full {
			out = out.Sub(p.rows)
		}
		return out
	case r.b.linear():
		at := l.views[i].off + p.rows.Lo*p.m.Stride + p.cols.Lo - r.lo
		out.Addr = slot + uintptr(r.at+at*4)
	default:
		v := l.views[i]
		out.Stride = r.stride
		at := (v.off/v.stride+p.rows.Lo-r.r0)*r.stride + v.off%v.stride + p.cols.Lo - r.c0
		out.Addr = slot + uintptr(r.at+at*4)
	}
	if p.full {
		out.Rows = p.m.Rows
		out.Addr -= uintptr(p.rows.Lo*out.Stride) * 4
	}
	return out
}

// chunks calls f for the contiguous parts of a region: where in the slot they go, and
// where they lie on the host.
func (r *region) chunks(f func(at int, host []float32)) {
	if r.b.linear() {
		f(r.at, r.b.host[r.lo:r.hi])
		return
	}
	at := r.raw
	for c := r.c0; c < r.c1; c += r.b.tile {
		host := r.b.chunk(c, r.r0, r.r1)
		f(at, host)
		at += len(host) * 4
	}
}

// tilesOf calls f for the tiles of a region of several: the tile as it crosses, and its
// place among the rows.
func (r *region) tilesOf(slot uintptr, f func(raw, rows *kernels.Mat)) {
	if r.b.linear() || r.tiles() == 1 {
		return
	}
	at, n := slot+uintptr(r.raw), r.r1-r.r0
	for c := r.c0; c < r.c1; c += r.b.tile {
		w := r.b.width(c)
		f(&kernels.Mat{Rows: n, Cols: w, Stride: w, Addr: at},
			&kernels.Mat{Rows: n, Cols: w, Stride: r.stride, Addr: slot + uintptr(r.at+(c-r.c0)*4)})
		at += uintptr(n*w) * 4
	}
}

// padding is what of a region's rows is padding of the block and was neither uploaded
// nor written; nil: nothing.
func (r *region) padding(slot uintptr) *kernels.Mat {
	if r.mode&reads != 0 {
		return nil
	}
	if r.b.linear() {
		if n := (r.hi - r.lo) / r.b.stride; r.stride == r.b.stride && r.stride > r.b.cols && n*r.stride == r.hi-r.lo {
			return &kernels.Mat{Rows: n, Cols: r.stride - r.b.cols, Stride: r.stride, Addr: slot + uintptr(r.at+r.b.cols*4)}
		}
		return nil
	}
	if r.c1 <= r.b.cols {
		return nil
	}
	c := max(r.b.cols, r.c0)
	return &kernels.Mat{Rows: r.r1 - r.r0, Cols: r.c1 - c, Stride: r.stride, Addr: slot + uintptr(r.at+(c-r.c0)*4)}
}

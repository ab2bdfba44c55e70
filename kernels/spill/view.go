package spill

import (
	"fmt"

	"dorylus/kernels"
)

// block is the memory of one spilled matrix.
type block struct {
	base               uintptr
	rows, cols, stride int
	tile               int
	host               []float32 // tile after tile
}

// linear says whether the values lie in host memory as Addr counts them.
func (b *block) linear() bool { return b.rows <= 1 || b.stride <= b.tile }

// width is the number of columns of the tile that begins at column c.
func (b *block) width(c int) int { return min(b.tile, b.stride-c) }

// chunk is rows [lo,hi) of the tile that begins at column c.
func (b *block) chunk(c, lo, hi int) []float32 {
	at, w := b.rows*c, b.width(c)
	return b.host[at+lo*w : at+hi*w]
}

// view is a matrix that lies in a block, from value off on.
type view struct {
	*block
	off int
	m   *kernels.Mat
}

// view finds the block of a spilled matrix.
func (m *Memory) view(mat *kernels.Mat) (view, error) {
	v := view{m: mat}
	if mat.Rows == 0 || mat.Cols == 0 {
		v.block = &block{rows: 1, tile: m.cfg.Tile}
		return v, nil
	}
	b, off, ok := m.find(mat.Addr)
	last := off + (mat.Rows-1)*mat.Stride + mat.Cols
	if !ok || last > len(b.host) {
		return v, fmt.Errorf("a matrix of %d x %d, stride %d, at %#x is not within a spilled matrix that is held", mat.Rows, mat.Cols, mat.Stride, mat.Addr)
	}
	v.block, v.off = b, off
	if !b.linear() && mat.Rows > 1 && mat.Stride != b.stride || !b.linear() && off%b.stride+mat.Cols > b.stride {
		return v, fmt.Errorf("a view of %d x %d, stride %d, of a spilled matrix of %d x %d: its rows must be parts of the matrix's", mat.Rows, mat.Cols, mat.Stride, b.rows, b.cols)
	}
	return v, nil
}

// row calls f for the parts of row r that lie together: their first column, and where
// they are.
func (v view) row(r int, f func(c int, values []float32)) {
	if v.linear() {
		at := v.off + r*v.m.Stride
		f(0, v.host[at:at+v.m.Cols])
		return
	}
	br, bc := v.off/v.stride+r, v.off%v.stride
	for c := 0; c < v.m.Cols; {
		t := (bc + c) / v.tile * v.tile
		skip := bc + c - t
		n := min(v.width(t)-skip, v.m.Cols-c)
		f(c, v.chunk(t, br, br+1)[skip:skip+n])
		c += n
	}
}

// read copies row r out, write copies it in.
func (v view) read(r int, to []float32) {
	v.row(r, func(c int, values []float32) { copy(to[c:], values) })
}

func (v view) write(r int, from []float32) {
	v.row(r, func(c int, values []float32) { copy(values, from[c:]) })
}

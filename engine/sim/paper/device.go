// Package paper is a device that exists on paper only: it has no memory and computes
// nothing, but counts what is allocated on it, by purpose, and how often ops read and
// write it. A run on it tells what a run on a GPU will take, by the code that will take it.
package paper

import (
	"fmt"
	"math"
	"sort"
	"sync"

	"dorylus/kernels"
)

// Device implements kernels.Device, PurposeAllocator and Keeper. Its matrices have no Host.
type Device struct {
	name string // of what is allocated through this view; "": that of its purpose
	*counts
}

// counts are those of all views of a device.
type counts struct {
	mu      sync.Mutex
	next    uintptr
	blocks  []*block // by address
	mats    map[*kernels.Mat]*block
	kept    map[*int32]*list
	graphs  map[*graph]bool
	streams int
	live    int64
	peak    int64
	paused  bool
}

// block is one matrix.
type block struct {
	name          string
	purpose       kernels.Purpose
	addr          uintptr
	rows          int
	bytes         int64
	read, written int64 // bytes, by ops
	gathered      bool
}

type list struct {
	bytes int64
	n     int
}

type graph struct {
	rows, cols, edges int
	bytes             int64
}

func (g *graph) Rows() int  { return g.rows }
func (g *graph) Cols() int  { return g.cols }
func (g *graph) Edges() int { return g.edges }

// New is a device that holds nothing.
func New() *Device {
	return &Device{counts: &counts{next: 1 << 40, mats: map[*kernels.Mat]*block{}, kept: map[*int32]*list{}, graphs: map[*graph]bool{}}}
}

// As is the same device, which calls by a name what is allocated through it for no
// purpose of its own.
func (d *Device) As(name string) *Device { return &Device{name, d.counts} }

// Name is "paper".
func (d *Device) Name() string { return "paper" }

// Alloc implements kernels.Device.
func (d *Device) Alloc(rows, cols int) (*kernels.Mat, error) {
	return d.AllocFor(kernels.Other, rows, cols)
}

// AllocFor implements kernels.PurposeAllocator.
func (d *Device) AllocFor(p kernels.Purpose, rows, cols int) (*kernels.Mat, error) {
	if rows < 0 || cols < 0 {
		return nil, fmt.Errorf("paper: allocate %d x %d: sizes must not be negative", rows, cols)
	}
	stride := kernels.PadCols(cols)
	if stride < cols || stride > 0 && rows > (math.MaxInt64>>16)/stride {
		return nil, fmt.Errorf("paper: allocate %d x %d: more values than memory can hold", rows, cols)
	}
	m := &kernels.Mat{Rows: rows, Cols: cols, Stride: stride}
	b := &block{name: d.name, purpose: p, rows: rows, bytes: 4 * int64(rows) * int64(stride)}
	if p != kernels.Other || d.name == "" {
		b.name = p.String()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if b.bytes > 0 {
		m.Addr, b.addr = d.next, d.next
		d.next += uintptr(b.bytes)
		d.blocks = append(d.blocks, b)
	}
	d.mats[m] = b
	d.hold(b.bytes)
	return m, nil
}

// hold counts memory. mu is held.
func (c *counts) hold(bytes int64) {
	c.live += bytes
	c.peak = max(c.peak, c.live)
}

// Free implements kernels.Device.
func (d *Device) Free(m *kernels.Mat) {
	if m == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	b := d.mats[m]
	if b == nil {
		panic(&kernels.ShapeError{Op: "Free", Msg: fmt.Sprintf("a matrix of %d x %d that paper does not hold", m.Rows, m.Cols)})
	}
	delete(d.mats, m)
	if b.bytes > 0 {
		i := sort.Search(len(d.blocks), func(i int) bool { return d.blocks[i].addr >= b.addr })
		d.blocks = append(d.blocks[:i], d.blocks[i+1:]...)
	}
	d.hold(-b.bytes)
}

// Load implements kernels.Device. It does not check g, which a real device does.
func (d *Device) Load(g *kernels.CSR) (kernels.Graph, error) {
	r := &graph{g.Rows(), g.Cols, g.Edges(), 8*int64(len(g.RowPtr)) + 4*int64(len(g.Col)) + 4*int64(len(g.Val))}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.graphs[r] = true
	d.hold(r.bytes)
	return r, nil
}

// Unload implements kernels.Device.
func (d *Device) Unload(g kernels.Graph) {
	r, ok := g.(*graph)
	if !ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.graphs[r] {
		delete(d.graphs, r)
		d.hold(-r.bytes)
	}
}

// Keep implements kernels.Keeper.
func (d *Device) Keep(v []int32) error {
	if len(v) == 0 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.kept[&v[0]]
	if l == nil {
		l = &list{bytes: 4 * int64(len(v))}
		d.kept[&v[0]] = l
		d.hold(l.bytes)
	}
	l.n++
	return nil
}

// Drop implements kernels.Keeper.
func (d *Device) Drop(v []int32) {
	if len(v) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.kept[&v[0]]; l != nil {
		if l.n--; l.n == 0 {
			delete(d.kept, &v[0])
			d.hold(-l.bytes)
		}
	}
}

// NewStream implements kernels.Device.
func (d *Device) NewStream() (kernels.Stream, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.streams++
	return &stream{c: d.counts}, nil
}

// Close implements kernels.Device: it says what is still held.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.mats)+len(d.graphs)+len(d.kept)+d.streams > 0 {
		return fmt.Errorf("close paper: %d matrices, %d graphs, %d lists and %d streams are still held", len(d.mats), len(d.graphs), len(d.kept), d.streams)
	}
	return nil
}

// Reaches implements kernels.Peer: rows pass between devices of paper.
func (d *Device) Reaches(src kernels.Device) bool {
	_, ok := src.(*Device)
	return ok
}

// CopyFrom implements kernels.Peer: nothing moves.
func (d *Device) CopyFrom(dst *kernels.Mat, _ kernels.Device, from *kernels.Mat) error {
	kernels.CheckCopyFrom(dst, from)
	return nil
}

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
	blocks  []*matrix // by address
	mats    map[*kernels.Mat]*matrix
	kept    map[*int32]*list
	lists   map[string]bool // of blocks, by content
	graphs  map[*graph]bool
	streams int
	live    int64
	peak    int64
	paused  bool
	apart   bool
	costs   Costs
	scratch int64 // the most that an op has taken

	// Of moments.go.
	now     map[kind]int64
	moments []map[kind]int64
	grew    bool
}

// matrix is what was allocated for one.
type matrix struct {
	name          string
	purpose       kernels.Purpose
	addr          uintptr
	rows          int
	bytes         int64
	takes         int64 // bytes of the device
	read, written int64 // bytes, by ops
	gathered      bool
	width         int
}

type list struct {
	len     int
	takes   int64
	n       int
	offsets map[offsets]bool // of rows, that are kept with it
}

// offsets are row offsets of a CSR.
type offsets struct {
	first *int64
	len   int
}

type graph struct {
	of                *kernels.CSR
	rows, cols, edges int
	takes             int64
	back              bool // its transpose is there, too
	chunks            map[chunking]int64
}

func (g *graph) Rows() int  { return g.rows }
func (g *graph) Cols() int  { return g.cols }
func (g *graph) Edges() int { return g.edges }

// New is a device that holds nothing.
// costs are what it takes besides; nil: nothing.
func New(costs Costs) *Device {
	if costs == nil {
		costs = bare{}
	}
	return &Device{counts: &counts{
		next: 1 << 40, mats: map[*kernels.Mat]*matrix{}, kept: map[*int32]*list{}, lists: map[string]bool{}, graphs: map[*graph]bool{}, now: map[kind]int64{}, costs: costs,
	}}
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
	b := &matrix{name: d.name, purpose: p, rows: rows, bytes: 4 * int64(rows) * int64(stride)}
	if p != kernels.Other || d.name == "" {
		b.name = p.String()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if b.bytes > 0 {
		m.Addr, b.addr = d.next, d.next
		d.next += uintptr(b.bytes)
		d.blocks = append(d.blocks, b)
		b.takes = d.costs.Block(b.bytes)
	}
	d.mats[m] = b
	d.hold(b.kind(), b.takes)
	return m, nil
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
	d.hold(b.kind(), -b.takes)
}

// Load implements kernels.Device. It does not check g, which a real device does.
func (d *Device) Load(g *kernels.CSR) (kernels.Graph, error) {
	r := &graph{of: g, rows: g.Rows(), cols: g.Cols, edges: g.Edges(), takes: d.costs.Graph(g), chunks: map[chunking]int64{}}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.graphs[r] = true
	d.hold(kind{name: Edges}, r.takes)
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
		d.hold(kind{name: Edges}, -r.takes)
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
		l = &list{len: len(v), takes: d.costs.Block(4 * int64(len(v)))}
		d.kept[&v[0]] = l
		d.hold(kind{name: Index}, l.takes)
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
			d.hold(kind{name: Index}, -l.takes)
		}
	}
}

// NewStream implements kernels.Device.
func (d *Device) NewStream() (kernels.Stream, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.streams++
	s := &stream{c: d.counts}
	if d.costs.Together() {
		return summing{s}, nil
	}
	return s, nil
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

// Block is what an allocation of n bytes takes.
func (d *Device) Block(n int64) int64 { return d.costs.Block(n) }

// SetApart says that it does not reach other devices.
func (d *Device) SetApart(apart bool) { d.apart = apart }

// Reaches implements kernels.Peer: rows pass between devices of paper.
func (d *Device) Reaches(src kernels.Device) bool {
	other, ok := src.(*Device)
	return ok && !d.apart && other.counts != d.counts
}

// CopyFrom implements kernels.Peer: nothing moves.
func (d *Device) CopyFrom(dst *kernels.Mat, _ kernels.Device, from *kernels.Mat) error {
	kernels.CheckCopyFrom(dst, from)
	return nil
}

// Package opaque is a device whose memory the host cannot address: a matrix of it has no
// Host, only an Addr that nothing but the device understands. It computes on a device of
// the host, which it wraps, so that whatever has to run on a GPU can be tested where there
// is none.
//
// It is stricter than a host device where a GPU is. Ops are queued and run in Wait, all
// together, so that results read too early are not there; a host matrix is accepted by
// Copy and GatherRows alone; a slice that is kept must not change; memory must not be freed
// before the ops that use it have run. It counts what crosses between host and device, and
// the memory that is held, and lets ops fail on demand.
package opaque

import (
	"errors"
	"fmt"
	"maps"
	"sort"
	"sync"

	"dorylus/kernels"
)

// Device is the wrapped device. It implements kernels.Device and kernels.Keeper.
type Device struct {
	host kernels.Device

	mu     sync.Mutex
	next   uintptr
	blocks []*block // by address
	mats   map[*kernels.Mat]*block
	kept   map[*int32]*keptList
	graphs map[kernels.Graph]int64 // bytes
	moved  map[string]int64
	ops    map[string]int
	waits  int
	live   Memory
	peak   int64
	faults map[string]*fault
	apart  bool
}

// Memory is what a device holds, in bytes, rows with their padding.
type Memory struct{ Mats, Graphs, Kept int64 }

// Total is the sum of all.
func (m Memory) Total() int64 { return m.Mats + m.Graphs + m.Kept }

// block is the memory of one Alloc.
type block struct {
	addr, size uintptr
	mat        *kernels.Mat // of the host device
	freed      bool
}

// gap is the room between two blocks, which belongs to nobody.
const gap = 4096

// Open is an opener of devices over those of host, for kerneltest.Run.
func Open(host func() (kernels.Device, error)) func() (kernels.Device, error) {
	return func() (kernels.Device, error) {
		d, err := host()
		if err != nil {
			return nil, err
		}
		return New(d), nil
	}
}

// New wraps a host device, which belongs to the new one from now on.
func New(host kernels.Device) *Device {
	return &Device{
		host: host, next: 1 << 40, mats: map[*kernels.Mat]*block{}, kept: map[*int32]*keptList{}, graphs: map[kernels.Graph]int64{},
		moved: map[string]int64{}, ops: map[string]int{}, faults: map[string]*fault{},
	}
}

// Name is "opaque" and the name of the host device.
func (d *Device) Name() string { return "opaque(" + d.host.Name() + ")" }

// Alloc implements kernels.Device.
func (d *Device) Alloc(rows, cols int) (*kernels.Mat, error) {
	if err := d.trip("Alloc"); err != nil {
		return nil, fmt.Errorf("%s: allocate %d x %d: %w", d.Name(), rows, cols, err)
	}
	h, err := d.host.Alloc(rows, cols)
	if err != nil {
		return nil, err
	}
	m := &kernels.Mat{Rows: h.Rows, Cols: h.Cols, Stride: h.Stride}
	b := &block{size: uintptr(len(h.Host)) * 4, mat: h}
	d.mu.Lock()
	defer d.mu.Unlock()
	if b.size > 0 {
		b.addr = d.next
		m.Addr = b.addr
		d.next += (b.size + 2*gap - 1) / gap * gap
		d.blocks = append(d.blocks, b)
	}
	d.mats[m] = b
	d.hold(Memory{Mats: int64(b.size)})
	return m, nil
}

// hold counts memory. mu is held.
func (d *Device) hold(m Memory) {
	d.live.Mats += m.Mats
	d.live.Graphs += m.Graphs
	d.live.Kept += m.Kept
	d.peak = max(d.peak, d.live.Total())
}

// Free implements kernels.Device.
func (d *Device) Free(m *kernels.Mat) {
	if m == nil {
		return
	}
	d.mu.Lock()
	b := d.mats[m]
	if b == nil {
		d.mu.Unlock()
		panic(&kernels.ShapeError{Op: "Free", Msg: fmt.Sprintf("a matrix of %d x %d that %s does not hold: freed twice, or a view", m.Rows, m.Cols, d.Name())})
	}
	delete(d.mats, m)
	b.freed = true
	if b.size > 0 {
		i := sort.Search(len(d.blocks), func(i int) bool { return d.blocks[i].addr >= b.addr })
		d.blocks = append(d.blocks[:i], d.blocks[i+1:]...)
	}
	d.hold(Memory{Mats: -int64(b.size)})
	d.mu.Unlock()
	d.host.Free(b.mat)
}

// Load implements kernels.Device.
func (d *Device) Load(g *kernels.CSR) (kernels.Graph, error) {
	if err := d.trip("Load"); err != nil {
		return nil, fmt.Errorf("%s: load a graph: %w", d.Name(), err)
	}
	r, err := d.host.Load(g)
	if err != nil {
		return nil, err
	}
	bytes := GraphBytes(g)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.graphs[r] = bytes
	d.moved["load"] += bytes
	d.hold(Memory{Graphs: bytes})
	return r, nil
}

// GraphBytes is what a graph takes on the device: offsets, columns and values.
func GraphBytes(g *kernels.CSR) int64 {
	return int64(8*len(g.RowPtr) + 4*len(g.Col) + 4*len(g.Val))
}

// Unload implements kernels.Device.
func (d *Device) Unload(g kernels.Graph) {
	d.mu.Lock()
	if bytes, ok := d.graphs[g]; ok {
		delete(d.graphs, g)
		d.hold(Memory{Graphs: -bytes})
	}
	d.mu.Unlock()
	d.host.Unload(g)
}

// Close implements kernels.Device.
func (d *Device) Close() error {
	var errs []error
	d.mu.Lock()
	if n := len(d.kept); n > 0 {
		errs = append(errs, fmt.Errorf("close %s: %d lists (%d bytes) were not dropped", d.Name(), n, d.live.Kept))
	}
	d.mu.Unlock()
	return errors.Join(append(errs, d.host.Close())...)
}

// Memory is what the device holds now, and the most that it has held at a time.
func (d *Device) Memory() (now Memory, peak int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.live, d.peak
}

// Moved is how many bytes have crossed between host and device since the last call of
// Reset, by what they were: "put", "get", and of Copy and GatherRows "rows up" and "rows
// down"; "load" of graphs and "keep" of kept lists; "ids" of lists that were not kept;
// "loss" and "targets" of the losses.
func (d *Device) Moved() map[string]int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.moved)
}

// Ops is how often each op has run since the last call of Reset, and waits how often a
// stream was waited for that had something to do.
func (d *Device) Ops() (ops map[string]int, waits int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.ops), d.waits
}

// Reset forgets what has been counted of moves and ops.
func (d *Device) Reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.moved)
	clear(d.ops)
	d.waits = 0
}

func (d *Device) count(what string, bytes int) {
	if bytes == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.moved[what] += int64(bytes)
}

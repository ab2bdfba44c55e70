//go:build cgo && amd64 && linux

package cpu

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"unsafe"

	native "dorylus/csrc/cpu"
	"dorylus/kernels"
)

// Memory is what a device holds, by purpose, in bytes.
type Memory struct {
	Matrices      int   // matrices not freed yet
	MatrixBytes   int64 // their memory, padding included
	Graphs        int   // graphs not unloaded yet
	TileBytes     int64 // tables made for graphs (the CSR itself is the caller's)
	ScratchBytes  int64 // of streams
	ReservedBytes int64 // mapped from the system
	PeakBytes     int64 // the most that all of these ever took together
}

// MemoryOf is what d holds; false if d is not a device of this package.
func MemoryOf(d kernels.Device) (Memory, bool) {
	c, ok := d.(*device)
	if !ok {
		return Memory{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.arena.mu.Lock()
	defer c.arena.mu.Unlock()
	m := c.mu.mem
	m.ReservedBytes, m.PeakBytes = c.arena.mu.reserved, c.arena.mu.peak
	return m, true
}

// A device is one instruction set of this processor. It counts what it has handed
// out, so that Close can name what is still held.
type device struct {
	table     *native.Table
	tileBytes int // 0: never tile
	arena     arena

	mu struct {
		sync.Mutex
		mats    map[*kernels.Mat][]byte
		graphs  map[*graph]struct{}
		streams int
		mem     Memory
	}
}

func newDevice(isa native.ISA, tileBytes int) *device {
	d := &device{table: native.Open(isa), tileBytes: tileBytes}
	d.mu.mats = make(map[*kernels.Mat][]byte)
	d.mu.graphs = make(map[*graph]struct{})
	return d
}

// Name is "cpu/" and the instruction set.
func (d *device) Name() string { return "cpu/" + d.table.ISA().String() }

// Alloc returns zeroed memory that starts on a 64-byte boundary.
func (d *device) Alloc(rows, cols int) (*kernels.Mat, error) {
	if rows < 0 || cols < 0 {
		return nil, fmt.Errorf("%s: allocate %d x %d: sizes must not be negative", d.Name(), rows, cols)
	}
	stride := kernels.PadCols(cols)
	if stride < cols || stride > 0 && rows > (math.MaxInt64>>16)/stride {
		return nil, fmt.Errorf("%s: allocate %d x %d: more values than memory can hold", d.Name(), rows, cols)
	}
	n := rows * stride
	b, err := d.arena.alloc(4 * n)
	if err != nil {
		return nil, fmt.Errorf("%s: allocate %d x %d: %w; use a smaller graph or fewer features, or a host with more memory", d.Name(), rows, cols, err)
	}
	m := &kernels.Mat{Rows: rows, Cols: cols, Stride: stride, Host: floats(b)}
	if m.Host == nil {
		m.Host = []float32{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.mats[m] = b
	d.mu.mem.Matrices++
	d.mu.mem.MatrixBytes += int64(len(b))
	return m, nil
}

func floats(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

// Free gives m's memory back; views of it must be gone.
func (d *device) Free(m *kernels.Mat) {
	if m == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	b, held := d.mu.mats[m]
	if !held {
		panic(&kernels.ShapeError{Op: "Free", Msg: fmt.Sprintf("a matrix of %d x %d that %s does not hold: freed twice, or a view", m.Rows, m.Cols, d.Name())})
	}
	delete(d.mu.mats, m)
	d.mu.mem.Matrices--
	d.mu.mem.MatrixBytes -= int64(len(b))
	if err := d.arena.release(b); err != nil {
		panic(fmt.Sprintf("%s: free %d x %d: %v", d.Name(), m.Rows, m.Cols, err))
	}
}

// NewStream is a stream of its own; it never fails.
func (d *device) NewStream() (kernels.Stream, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.streams++
	return &stream{dev: d, table: d.table}, nil
}

// Close reports what is still held.
func (d *device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	if n := len(d.mu.mats); n > 0 {
		var one *kernels.Mat
		for m := range d.mu.mats {
			one = m
			break
		}
		errs = append(errs, fmt.Errorf("%d matrices (%d bytes) were not freed, one of %d x %d", n, d.mu.mem.MatrixBytes, one.Rows, one.Cols))
	}
	for g := range d.mu.graphs {
		errs = append(errs, fmt.Errorf("a graph of %d rows and %d edges was not unloaded", g.Rows(), g.Edges()))
	}
	if d.mu.streams > 0 {
		errs = append(errs, fmt.Errorf("%d streams were not closed", d.mu.streams))
	}
	errs = append(errs, d.arena.close())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close %s: %w", d.Name(), err)
	}
	return nil
}

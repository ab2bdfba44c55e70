// Package ref computes every op in plain Go, with sums in float64 that are
// rounded once: the definition of correct that the fast devices are held to, and
// the device to train on where there is no C compiler.
//
// Its loops run along rows, so that small graphs train in seconds. Ops run when
// they are called and allocate nothing once a stream's scratch row has grown.
package ref

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"unsafe"

	"dorylus/kernels"
	"dorylus/kernels/invariant"
)

// device counts what it has handed out, so that Close can name what is still
// held.
type device struct {
	mu struct {
		sync.Mutex
		mats    map[*kernels.Mat]struct{}
		graphs  map[*graph]struct{}
		streams int
	}
}

// graph is a CSR as the caller gave it: ref needs no other form.
type graph struct{ *kernels.CSR }

func (g *graph) Cols() int { return g.CSR.Cols }

// Open is a new reference device. It never fails.
func Open() (kernels.Device, error) {
	d := &device{}
	d.mu.mats = make(map[*kernels.Mat]struct{})
	d.mu.graphs = make(map[*graph]struct{})
	return d, nil
}

// Name is "ref".
func (d *device) Name() string { return "ref" }

// Alloc returns zeroed host memory that starts on a 64-byte boundary.
func (d *device) Alloc(rows, cols int) (*kernels.Mat, error) {
	if rows < 0 || cols < 0 {
		return nil, fmt.Errorf("ref: allocate %d x %d: sizes must not be negative", rows, cols)
	}
	stride := kernels.PadCols(cols)
	if stride < cols || stride > 0 && rows > (math.MaxInt64>>16)/stride {
		return nil, fmt.Errorf("ref: allocate %d x %d: more values than memory can hold", rows, cols)
	}
	m := &kernels.Mat{Rows: rows, Cols: cols, Stride: stride, Host: aligned(rows * stride)}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.mats[m] = struct{}{}
	return m, nil
}

// aligned is n zeroed values from a 64-byte boundary on.
func aligned(n int) []float32 {
	buf := make([]float32, n+kernels.Align-1)
	skip := 0
	if past := int(uintptr(unsafe.Pointer(unsafe.SliceData(buf))) / 4 % kernels.Align); past > 0 {
		skip = kernels.Align - past
	}
	return buf[skip : skip+n : skip+n]
}

// Free forgets m. With invariants on, it first fills m with NaN, so that a use
// after Free shows.
func (d *device) Free(m *kernels.Mat) {
	if m == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, held := d.mu.mats[m]; !held {
		panic(&kernels.ShapeError{Op: "Free", Msg: fmt.Sprintf("a matrix of %d x %d that ref does not hold: freed twice, or a view", m.Rows, m.Cols)})
	}
	delete(d.mu.mats, m)
	if invariant.Enabled {
		nan := float32(math.NaN())
		for i := range m.Host {
			m.Host[i] = nan
		}
	}
}

// Load checks g and keeps its slices.
func (d *device) Load(g *kernels.CSR) (kernels.Graph, error) {
	if err := g.Validate(); err != nil {
		return nil, fmt.Errorf("ref: load: %w", err)
	}
	r := &graph{g}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.graphs[r] = struct{}{}
	return r, nil
}

// Unload forgets g; nil does nothing.
func (d *device) Unload(g kernels.Graph) {
	if g == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r, ok := g.(*graph)
	if _, held := d.mu.graphs[r]; !ok || !held {
		panic(&kernels.ShapeError{Op: "Unload", Msg: fmt.Sprintf("a graph of %d rows that ref does not hold", g.Rows())})
	}
	delete(d.mu.graphs, r)
}

// NewStream is a stream of its own; it never fails.
func (d *device) NewStream() (kernels.Stream, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.streams++
	return &stream{dev: d}, nil
}

// Close reports what is still held.
func (d *device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	if n := len(d.mu.mats); n > 0 {
		var values int
		var one *kernels.Mat
		for m := range d.mu.mats {
			values += m.Rows * m.Stride
			one = m
		}
		errs = append(errs, fmt.Errorf("%d matrices (%d bytes) were not freed, one of %d x %d", n, 4*values, one.Rows, one.Cols))
	}
	for g := range d.mu.graphs {
		errs = append(errs, fmt.Errorf("a graph of %d rows and %d edges was not unloaded", g.Rows(), g.Edges()))
	}
	if d.mu.streams > 0 {
		errs = append(errs, fmt.Errorf("%d streams were not closed", d.mu.streams))
	}
	if len(errs) > 0 {
		return fmt.Errorf("close ref: %w", errors.Join(errs...))
	}
	return nil
}

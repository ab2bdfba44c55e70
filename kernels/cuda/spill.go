package cuda

import (
	"errors"
	"fmt"
	"math/bits"
	"unsafe"

	"dorylus/kernels"
	"dorylus/kernels/spill"
)

// Apply makes the device hold what a plan says: matrices of purposes that it spills are
// allocated in pinned host memory from now on, and so is what no longer fits. The
// staging memory is taken at once. A plan that is resident may want streams that take
// blocks alone, and changes nothing else. It refuses one that is refused. It is called once, before matrices are allocated and
// streams are made.
func (d *Device) Apply(p *spill.Plan) error {
	if p.Verdict == spill.Refused {
		return p.Err()
	}
	bytes := p.Arena
	d.mu.Lock()
	again := d.spill != nil || d.mu.streams > 0
	if p.Verdict == spill.Resident && (!again || !p.Alone) {
		d.alone = p.Alone
		d.mu.Unlock()
		return nil
	}
	d.mu.Unlock()
	if again {
		return fmt.Errorf("%s: a memory plan comes before the first stream, and once", d.name)
	}
	if b := bits.Len64(uint64(bytes)); b > 13 { // as the pool hands it out, without rounding up
		bytes = bytes >> (b - 5) << (b - 5)
	}
	var arena address
	err := d.w.do(func(c context) (err error) {
		arena, err = d.pool.get(c, bytes, "staging of spilled matrices")
		return err
	})
	if err != nil {
		return err
	}
	m, err := spill.New(spill.Config{Arena: uintptr(arena), Bytes: bytes, Tile: p.Tile, Pin: d.pin, Unpin: d.unpin})
	if err != nil {
		d.pool.put(arena)
		return fmt.Errorf("%s: %w", d.name, err)
	}
	d.spill, d.plan = m, p
	return nil
}

// pin is zeroed pinned host memory of n values.
func (d *Device) pin(n int) ([]float32, error) {
	var p unsafe.Pointer
	err := d.w.do(func(context) (err error) {
		p, err = d.drv.HostAlloc(4 * n)
		return err
	})
	if err != nil {
		return nil, err
	}
	values := unsafe.Slice((*float32)(p), n)
	clear(values)
	return values, nil
}

func (d *Device) unpin(values []float32) error {
	return d.w.do(func(context) error { return d.drv.HostFree(unsafe.Pointer(unsafe.SliceData(values))) })
}

// AllocFor implements kernels.PurposeAllocator.
func (d *Device) AllocFor(p kernels.Purpose, rows, cols int) (*kernels.Mat, error) {
	if d.spill != nil && d.plan.Spills(p, int64(rows)*int64(kernels.PadCols(cols))*4) {
		m, err := d.spill.Alloc(rows, cols)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.name, err)
		}
		return m, nil
	}
	m, err := d.allocResident(rows, cols)
	if d.spill == nil || p == kernels.Weights || codeOf(err) != codeOutOfMemory {
		return m, err
	}
	m, late := d.spill.Alloc(rows, cols)
	if late != nil {
		return nil, errors.Join(err, fmt.Errorf("%s: %w", d.name, late))
	}
	return m, nil
}

// Alloc implements kernels.Device.
func (d *Device) Alloc(rows, cols int) (*kernels.Mat, error) {
	return d.AllocFor(kernels.Other, rows, cols)
}

// The lines of package spill.

// line is the stream of a line.
func (x *runner) line(l spill.Line) stream {
	switch l {
	case spill.In:
		return x.up
	case spill.Out:
		return x.down
	}
	return x.compute
}

// Upload implements spill.Lower.
func (q *queue) Upload(to uintptr, from []float32) {
	q.op("Upload").run(func(x *runner) error {
		return x.up.Upload(address(to), unsafe.Pointer(unsafe.SliceData(from)), int64(len(from))*4)
	})
}

// Download implements spill.Lower.
func (q *queue) Download(to []float32, from uintptr) {
	q.op("Download").run(func(x *runner) error {
		return x.down.Download(unsafe.Pointer(unsafe.SliceData(to)), address(from), int64(len(to))*4)
	})
}

// Mark implements spill.Lower: event n of those that the queue records before its end.
func (q *queue) Mark(l spill.Line) spill.Mark {
	m := q.marks
	q.marks++
	q.op("Mark").run(func(x *runner) error {
		e, err := x.event(int(m))
		if err != nil {
			return err
		}
		return e.Record(x.line(l))
	})
	return m
}

// Await implements spill.Lower.
func (q *queue) Await(l spill.Line, m spill.Mark) {
	q.op("Await").run(func(x *runner) error {
		e, err := x.event(int(m))
		if err != nil {
			return err
		}
		return x.line(l).Wait(e)
	})
}

// event is event n of a queue. Events are made once and used by every queue, of which
// one runs at a time.
func (x *runner) event(n int) (event, error) {
	for len(x.events) <= n {
		e, err := x.c.NewEvent(false)
		if err != nil {
			return nil, err
		}
		x.events = append(x.events, e)
	}
	return x.events[n], nil
}

// HostStep implements spill.Lower.
func (q *queue) HostStep(op string, f func() error) {
	q.op(op).run(func(x *runner) error {
		for _, s := range []stream{x.compute, x.up, x.down} {
			if err := s.Synchronize(); err != nil {
				return err
			}
		}
		return f()
	})
}

// EpilogueAt implements spill.Shifter.
func (q *queue) EpilogueAt(c int) { q.column = int32(c) }

package cuda

import (
	"errors"
	"fmt"
	"sync"

	"dorylus/kernels"
	"dorylus/kernels/spill"
)

// peers is how a device takes rows from others. It has a thread and a stream of its own,
// so that a copy waits for no op and no op for a copy; they are made when the first other
// device is asked for. Nothing between the devices but the copy is queued: what wrote the
// source has been waited for, and the copy is, before CopyFrom returns. The one thing that
// may still be under way is the zeroing of a matrix by Alloc, whose event the copy follows.
type peers struct {
	mu     sync.Mutex
	w      *worker
	stream stream
	here   context
	reach  map[*Device]bool
	closed bool
}

var _ kernels.Peer = (*Device)(nil)

// Reaches implements kernels.Peer: whether the driver lets this GPU read the other's
// memory. It is asked once for each other device.
func (d *Device) Reaches(src kernels.Device) bool {
	other, ok := src.(*Device)
	if !ok || other == d {
		return false
	}
	p := &d.peers
	p.mu.Lock()
	defer p.mu.Unlock()
	can, asked := p.reach[other]
	if asked || p.closed {
		return can
	}
	if p.reach == nil {
		p.reach = map[*Device]bool{}
	}
	p.reach[other] = d.connect(other) == nil
	return p.reach[other]
}

var errApart = errors.New("it does not reach that memory")

// connect makes other's memory reachable. The lock is held.
func (d *Device) connect(other *Device) error {
	can, err := d.drv.Reaches(d.opt.Ordinal, other.opt.Ordinal)
	if err == nil && !can {
		err = errApart
	}
	if err != nil {
		return err
	}
	p := &d.peers
	if p.w == nil {
		w, err := newWorker(d.drv, d.opt.Ordinal)
		if err != nil {
			return err
		}
		err = w.do(func(c context) (err error) {
			p.here = c
			p.stream, err = c.NewStream()
			return err
		})
		if err != nil {
			return errors.Join(err, w.close())
		}
		p.w = w
	}
	return p.w.do(func(c context) error { return c.Reach(other.x.c) })
}

// CopyFrom implements kernels.Peer.
func (d *Device) CopyFrom(dst *kernels.Mat, src kernels.Device, from *kernels.Mat) error {
	kernels.CheckCopyFrom(dst, from)
	if dst.Rows == 0 || dst.Cols == 0 {
		return nil
	}
	if onHost(dst) || onHost(from) {
		panic(&kernels.ShapeError{Op: "CopyFrom", Msg: fmt.Sprintf("a matrix of %d x %d in the host's memory", dst.Rows, dst.Cols)})
	}
	err := errApart
	if d.Reaches(src) {
		other := src.(*Device)
		if spill.Spilled(dst) || spill.Spilled(from) {
			err = d.copyByHost(dst, other, from)
		} else {
			err = d.peers.w.do(func(context) error { return d.copyPeer(dst, other, from) })
		}
	}
	if err != nil {
		return fmt.Errorf("%s: copy %d x %d from %s: %w", d.name, dst.Rows, dst.Cols, src.Name(), err)
	}
	return nil
}

// copyPeer runs on the thread of the copies.
func (d *Device) copyPeer(dst *kernels.Mat, other *Device, from *kernels.Mat) error {
	p := &d.peers
	if err := p.stream.Wait(d.x.zeroed); err != nil {
		return err
	}
	rows, cols := dst.Rows, dst.Cols
	if dst.Stride == cols && from.Stride == cols {
		rows, cols = 1, rows*cols
	}
	for r := range rows {
		to, at := address(dst.Addr)+address(4*r*dst.Stride), address(from.Addr)+address(4*r*from.Stride)
		if err := p.stream.CopyPeer(to, p.here, at, other.x.c, 4*int64(cols)); err != nil {
			return errors.Join(err, p.stream.Synchronize())
		}
	}
	return p.stream.Synchronize()
}

// copyByHost is for a matrix that a plan has left no room for on its device.
func (d *Device) copyByHost(dst *kernels.Mat, other *Device, from *kernels.Mat) error {
	rows := make([]float32, from.Rows*from.Cols)
	on := func(dev *Device, f func(kernels.Stream)) error {
		s, err := dev.NewStream()
		if err != nil {
			return err
		}
		f(s)
		return errors.Join(s.Wait(), s.Close())
	}
	if err := on(other, func(s kernels.Stream) { s.Get(rows, from) }); err != nil {
		return err
	}
	return on(d, func(s kernels.Stream) { s.Put(dst, rows) })
}

// close ends the copies.
func (p *peers) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	clear(p.reach)
	if p.w == nil {
		return nil
	}
	err := p.w.do(func(context) error { return p.stream.Destroy() })
	var lost *Error
	if errors.As(err, &lost) && lost.Lost() {
		err = nil // it has been told to whom it happened
	}
	return errors.Join(err, p.w.close())
}

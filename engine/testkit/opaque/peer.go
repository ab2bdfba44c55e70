package opaque

import (
	"fmt"

	"dorylus/kernels"
)

var _ kernels.Peer = (*Device)(nil)

// Reaches implements kernels.Peer: it reaches other devices of this package, unless Apart
// was called.
func (d *Device) Reaches(src kernels.Device) bool {
	_, ok := src.(*Device)
	d.mu.Lock()
	defer d.mu.Unlock()
	return ok && !d.apart
}

// Apart lets the device reach no other.
func (d *Device) Apart() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.apart = true
}

// CopyFrom implements kernels.Peer. Its bytes are counted as "peer".
func (d *Device) CopyFrom(dst *kernels.Mat, src kernels.Device, from *kernels.Mat) error {
	kernels.CheckCopyFrom(dst, from)
	other, ok := src.(*Device)
	if !ok || !d.Reaches(src) {
		return fmt.Errorf("%s: copy %d x %d from %s, which it does not reach", d.Name(), dst.Rows, dst.Cols, src.Name())
	}
	if err := d.trip("CopyFrom"); err != nil {
		return fmt.Errorf("%s: copy %d x %d from %s: %w", d.Name(), dst.Rows, dst.Cols, src.Name(), err)
	}
	to, at := &call{dev: d, op: "CopyFrom"}, &call{dev: other, op: "CopyFrom"}
	here, there := to.mat(dst), at.mat(from)
	d.count("peer", 4*dst.Rows*dst.Cols)
	for r := range here.Rows {
		copy(here.Row(r), there.Row(r))
	}
	return nil
}

package opaque

import "fmt"

// fault is an op that fails.
type fault struct {
	after int // calls that still work
	err   error
}

// Fail lets calls of an op, or of Alloc, Load, Keep or NewStream, fail with err once after
// more of them have worked; nil: no more.
func (d *Device) Fail(op string, after int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.faults, op)
	if err != nil {
		d.faults[op] = &fault{after, err}
	}
}

// trip counts a call of an op and is the error that it has to fail with.
func (d *Device) trip(op string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.faults[op]
	switch {
	case f == nil:
		return nil
	case f.after > 0:
		f.after--
		return nil
	}
	delete(d.faults, op)
	return fmt.Errorf("%w (on demand)", f.err)
}

package cuda

import (
	"errors"
	"fmt"

	"dorylus/kernels"
)

// Close implements kernels.Device.
func (d *Device) Close() error {
	if err := d.held(); err != nil {
		return fmt.Errorf("close %s: %w", d.name, err)
	}
	d.mu.Lock()
	again := d.mu.closed
	d.mu.closed = true
	d.mu.Unlock()
	if again {
		return nil
	}
	copies := d.peers.close()
	if d.lost() != nil {
		return d.w.close() // what was lost has been told to whom it happened
	}
	err := copies
	if d.spill != nil {
		err = errors.Join(err, d.spill.Close())
	}
	err = errors.Join(err, d.w.do(func(context) error { return errors.Join(d.x.finish(), d.x.close()) }))
	if err = errors.Join(err, d.w.close()); err != nil {
		return fmt.Errorf("close %s: %w", d.name, err)
	}
	return nil
}

// lost is the error after which the context is of no use, nil if it is.
func (d *Device) lost() error {
	select {
	case <-d.w.ended:
		return d.w.err
	default:
		return nil
	}
}

// held names what has not been given back.
func (d *Device) held() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	if n := len(d.mu.mats); n > 0 {
		var bytes int64
		var one *kernels.Mat
		for m := range d.mu.mats {
			bytes += 4 * int64(m.Rows) * int64(m.Stride)
			one = m
		}
		errs = append(errs, fmt.Errorf("%d matrices (%s) were not freed, one of %d x %d", n, bytesText(bytes), one.Rows, one.Cols))
	}
	if d.spill != nil && d.spill.Held() > 0 {
		errs = append(errs, fmt.Errorf("%d matrices in host memory (%s) were not freed", d.spill.Held(), bytesText(d.spill.Usage().Spilled)))
	}
	for g := range d.mu.graphs {
		errs = append(errs, fmt.Errorf("a graph of %d rows and %d edges was not unloaded", g.Rows(), g.Edges()))
	}
	if n := len(d.mu.kept); n > 0 {
		errs = append(errs, fmt.Errorf("%d lists were not dropped, one of %d values", n, len(d.mu.kept[0].v)))
	}
	if d.mu.streams > 0 {
		errs = append(errs, fmt.Errorf("%d streams were not closed", d.mu.streams))
	}
	return errors.Join(errs...)
}

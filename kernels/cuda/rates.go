package cuda

import (
	"errors"
	"fmt"
	"time"
)

// Rates is what a device and its host reach at the simplest tasks: the ceilings beside
// which a kernel's time is put. GB are 10^9 bytes.
type Rates struct {
	Bytes int64 `json:"bytes"` // of each copy
	// Copy and L2Copy count what is read and what is written: a copy of Bytes, and one of a
	// quarter of the L2 cache, again and again.
	Copy   float64 `json:"copy_gb_s"`
	L2Copy float64 `json:"l2_copy_gb_s"`
	// Add is dst = a + b over Bytes each, by our kernel.
	Add float64 `json:"add_gb_s"`
	// Between host and device.
	PinnedUp     float64 `json:"pinned_up_gb_s"`
	PinnedDown   float64 `json:"pinned_down_gb_s"`
	PageableUp   float64 `json:"pageable_up_gb_s"`
	PageableDown float64 `json:"pageable_down_gb_s"`
	// Launch is the device's time for a kernel that does next to nothing, one after the
	// other; Queue the host's for queuing it; Task a change to the worker and back. µs.
	Launch float64 `json:"launch_us"`
	Queue  float64 `json:"queue_us"`
	Task   float64 `json:"task_us"`
}

// L2 is the bytes of a device's level-2 cache.
func (d *Device) L2() int64 { return int64(d.info.L2) }

// Rates measures, with copies of some bytes (at least 64 KiB) and several rounds, of which
// the best counts. It takes three times as much of the device's memory, and as much
// pinned memory of the host's. Those of an emulated device mean nothing.
func (d *Device) Rates(bytes int64, rounds int) (Rates, error) {
	const unit = 64 << 10
	bytes = max(bytes/unit, 1) * unit
	r := Rates{Bytes: bytes}
	err := d.do(func(x *runner) error { return x.rates(&r, max(rounds, 1)) }, "measure rates with %s", bytesText(bytes))
	if err != nil {
		return r, err
	}
	const tasks = 200
	begun := time.Now()
	for range tasks {
		if err := d.w.do(func(context) error { return nil }); err != nil {
			return r, err
		}
	}
	r.Task = float64(time.Since(begun).Microseconds()) / tasks
	return r, nil
}

func (x *runner) rates(r *Rates, rounds int) error {
	from, err := x.c.NewEvent(true)
	if err != nil {
		return err
	}
	to, err := x.c.NewEvent(true)
	if err != nil {
		return errors.Join(err, from.Destroy())
	}
	err = x.measure(r, rounds, from, to)
	return errors.Join(err, x.compute.Synchronize(), from.Destroy(), to.Destroy())
}

func (x *runner) measure(r *Rates, rounds int, from, to event) error {
	n := r.Bytes
	a, err := x.scratch(3 * n)
	if err != nil {
		return err
	}
	b, c := a+address(n), a+address(2*n)
	pinned, err := x.d.drv.HostAlloc(int(n))
	if err != nil {
		return err
	}
	pageable := make([]byte, n)
	l2 := min(n, max(int64(x.d.info.L2)/4, 1<<16))
	const times = 20
	const cols = 256
	launches := 500
	if x.d.Emulated() {
		launches = 5 // which are slow, and mean nothing
	}
	rows := n / 4 / cols
	m := func(p address) mat { return mat{p, cols, int(rows), cols} }
	for _, part := range []struct {
		to    *float64
		bytes int64
		do    func() error
	}{
		{&r.Copy, 2 * n, func() error { return x.compute.Copy(b, a, n) }},
		{&r.L2Copy, 2 * l2 * times, func() (err error) {
			for i := 0; i < times && err == nil; i++ {
				err = x.compute.Copy(b, a, l2)
			}
			return err
		}},
		{&r.Add, 3 * n, func() error {
			return x.each("dk_add", int(rows), cols, m(c), m(a), m(b), rows, int32(cols), shiftOf(cols))
		}},
		{&r.PinnedUp, n, func() error { return x.compute.Upload(a, pinned, n) }},
		{&r.PinnedDown, n, func() error { return x.compute.Download(pinned, a, n) }},
		{&r.PageableUp, n, func() error { return x.c.Upload(a, pageable) }},
		{&r.PageableDown, n, func() error { return x.c.Download(pageable, a) }},
		{&r.Launch, int64(launches), func() error {
			begun := time.Now()
			for range launches {
				if err := x.launch("dk_zero", 1, mat{a, 4, 1, 1}, int64(1), int32(1), int32(0)); err != nil {
					return err
				}
			}
			r.Queue = time.Since(begun).Seconds() * 1e6 / float64(launches)
			return nil
		}},
	} {
		best := 0.0
		for range rounds + 1 { // the first warms up
			ms, err := x.between(from, to, part.do)
			if err != nil {
				return errors.Join(err, x.compute.Synchronize(), x.d.drv.HostFree(pinned))
			}
			if rate := float64(part.bytes) / max(ms, 1e-6) / 1e6; rate > best {
				best = rate
			}
		}
		*part.to = best
	}
	r.Launch = 1e-3 / r.Launch // from 10^9 launches a second to µs a launch
	if err := x.compute.Synchronize(); err != nil {
		return err
	}
	return x.d.drv.HostFree(pinned)
}

// between is the milliseconds between two events on the compute stream.
func (x *runner) between(from, to event, do func() error) (float64, error) {
	if err := x.compute.Synchronize(); err != nil {
		return 0, err
	}
	err := from.Record(x.compute)
	if err == nil {
		err = do()
	}
	if err == nil {
		err = to.Record(x.compute)
	}
	if err == nil {
		err = to.Synchronize()
	}
	if err != nil {
		return 0, fmt.Errorf("measure: %w", err)
	}
	return to.Since(from)
}

package cuda

import (
	"errors"
	"fmt"

	"dorylus/kernels"
	"dorylus/kernels/spill"
)

// Time is the milliseconds that a device takes for the ops that queue queues on s, a
// stream of a Device: between an event before the first and one after the last, on the
// compute stream. It waits for them, and for what was queued before. Times of an emulated
// device mean nothing.
func Time(s kernels.Stream, ops func()) (milliseconds float64, err error) {
	lower := any(s)
	if streamed, ok := s.(*spill.Stream); ok {
		lower = streamed.Lower
	}
	if all, ok := lower.(summing); ok {
		lower = all.queue
	}
	q, ok := lower.(*queue)
	if !ok {
		return 0, fmt.Errorf("time ops on a stream (%T) that is not one of a GPU", s)
	}
	var from, to event
	stamp := func(e *event) {
		q.op("Time").run(func(x *runner) (err error) {
			if *e, err = x.c.NewEvent(true); err == nil {
				err = (*e).Record(x.compute)
			}
			return err
		})
	}
	stamp(&from)
	ops()
	stamp(&to)
	err = s.Wait()
	if from == nil && to == nil {
		return 0, err
	}
	return milliseconds, errors.Join(err, q.dev.w.do(func(context) error {
		var errs []error
		if err == nil && from != nil && to != nil {
			var e error
			milliseconds, e = to.Since(from)
			errs = append(errs, e)
		}
		for _, e := range []event{from, to} {
			if e != nil {
				errs = append(errs, e.Destroy())
			}
		}
		return errors.Join(errs...)
	}))
}

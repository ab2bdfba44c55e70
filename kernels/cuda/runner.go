package cuda

import "errors"

// runner is what queued ops run with. It belongs to the worker: one queue runs at a time,
// and everything on the compute stream is in the order in which it was launched.
type runner struct {
	d    *Device
	c    context
	pool *pool

	compute, up, down stream
	uploaded, ready   event // of the stream up; of the compute stream, for the one down
	zeroed            event // of the compute stream: the matrix that Alloc gave last is zero
	stage             *staging

	products products // by cuBLAS; nil: by kernels

	module    module
	functions map[string]function
	boxes     []uint64
	letters   []byte

	arena   arena
	events  []event             // of Mark
	uploads map[listKey]address // int32 lists that this op has copied to the device
	lists   map[string]address  // by their content: see numbers
}

// newRunner makes what a device needs besides its context. After an error close gives
// back what was made.
func newRunner(d *Device, c context, image []byte) (*runner, error) {
	x := &runner{d: d, c: c, pool: d.pool, functions: map[string]function{}, uploads: map[listKey]address{}, lists: map[string]address{}}
	for _, s := range []*stream{&x.compute, &x.up, &x.down} {
		made, err := c.NewStream()
		if err != nil {
			return x, err
		}
		*s = made
	}
	for _, e := range []*event{&x.uploaded, &x.ready, &x.zeroed} {
		made, err := c.NewEvent(false)
		if err != nil {
			return x, err
		}
		*e = made
	}
	m, err := d.loadKernels(c, image)
	if err != nil {
		return x, err
	}
	x.module = m
	if x.stage, err = newStaging(d.drv, c, d.pool, d.chunk); err != nil || d.lib == nil {
		return x, err
	}
	space, err := d.pool.get(c, cublasWorkspace, "the workspace of cuBLAS")
	if err != nil {
		return x, err
	}
	made, err := d.lib.Products(x.compute, space, cublasWorkspace)
	if err != nil {
		return x, err
	}
	x.products = made
	return x, nil
}

func (x *runner) close() error {
	var errs []error
	if x.stage != nil {
		errs = append(errs, x.stage.close())
	}
	if x.products != nil {
		errs = append(errs, x.products.Close())
	}
	errs = append(errs, x.pool.close(x.c))
	if x.module != nil {
		errs = append(errs, x.module.Unload())
	}
	for _, e := range append(x.events, x.uploaded, x.ready, x.zeroed) {
		if e != nil {
			errs = append(errs, e.Destroy())
		}
	}
	x.events = nil
	for _, s := range []stream{x.compute, x.up, x.down} {
		if s != nil {
			errs = append(errs, s.Destroy())
		}
	}
	return errors.Join(errs...)
}

// finish waits for all that has been queued, hands the host what it gets, and begins
// anew.
func (x *runner) finish() error {
	var first error
	for _, s := range []stream{x.compute, x.up, x.down} {
		if err := s.Synchronize(); err != nil && first == nil {
			first = err
		}
	}
	x.stage.end(first)
	return first
}

// opDone gives back what an op has asked for while it ran.
func (x *runner) opDone() {
	x.arena.reset(x.pool)
	clear(x.uploads)
}

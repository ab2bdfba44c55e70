package cuda

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"dorylus/kernels"
	"dorylus/kernels/cuda/internal/watch"
	"dorylus/kernels/spill"
)

// Device is a GPU to compute on. It implements kernels.Device and kernels.Keeper; its
// matrices have no Host. All its methods may be called by several goroutines at once.
type Device struct {
	drv   driver
	name  string
	opt   Options
	info  deviceInfo
	about driverInfo
	ptx   string  // "sm_80"
	cubin *cubin  // what the kernels are loaded from; nil: PTX
	lib   library // makes products; nil: the kernels do
	alone bool    // streams do not sum over blocks
	w     *worker
	pool  *pool
	chunk int64   // bytes of a staging chunk
	x     *runner // the worker's
	peers peers

	// Set by Apply: what holds spilled matrices, and the plan. nil: all is resident.
	spill *spill.Memory
	plan  *spill.Plan

	mu struct {
		sync.Mutex
		mats    map[*kernels.Mat]address
		graphs  map[*graph]struct{}
		kept    []*kept // by address
		streams int
		closed  bool
	}
}

// Memory is a device's, in bytes.
type Memory struct {
	Limit int64 // the most that is taken of the device's
	Live  int64 // in use: matrices, graphs, lists, staging, scratch memory
	Peak  int64 // the most that has been in use at a time
	Taken int64 // allocated: what is in use and what is kept for reuse
	Free  int64 // the device's, of which others may take
	Total int64
	// Pinned and Spilled are of the host's memory: staging, and matrices for which the
	// device has no room.
	Pinned, Spilled int64
}

// longLoad is how long loading the kernels may take without a word.
const longLoad = time.Second

// Open opens a GPU. A program without GPU support says so (NotBuilt). It waits as long
// as the driver does: see Ask.
func Open(o Options) (*Device, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	d, err := openDriver(o.Driver)
	if err != nil {
		return nil, fmt.Errorf("open cuda:%d: %w", o.Ordinal, err)
	}
	chunk := int64(chunkBytes)
	if watch.Chunk != 0 {
		chunk = watch.Chunk
	}
	return open(d, o, image, chunk)
}

// open is Open on a driver; images has the kernels by target.
func open(drv driver, o Options, images func(target string) []byte, chunk int64) (*Device, error) {
	name := fmt.Sprintf("cuda:%d", o.Ordinal)
	if err := o.Cut.check(); err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	n, err := drv.Devices()
	if err == nil && n == 0 {
		err = &Error{Op: "count the devices", Code: codeNoDevice}
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	if o.Ordinal < 0 || o.Ordinal >= n {
		return nil, fmt.Errorf("open %s: the driver shows %d devices, numbered from 0", name, n)
	}
	d := &Device{drv: drv, name: name, opt: o, about: drv.Info(), chunk: chunk}
	if d.info, err = drv.Device(o.Ordinal); err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	ptx, problem := target(d.info.Major, d.info.Minor, d.about.Version)
	if problem != nil {
		return nil, fmt.Errorf("open %s (%s): %s", name, d.info.Name, problem)
	}
	if o.Precision != precisions[0] && ptx != "sm_80" {
		return nil, fmt.Errorf("open %s (%s %d.%d): precision %s needs capability 8.0 and a driver of CUDA 11; use --precision=fp32", name, d.info.Name, d.info.Major, d.info.Minor, o.Precision)
	}
	d.ptx = ptx
	var why string
	if d.cubin, why = findCubin(o.Cubins, kernelHash(), d.info.Major, d.info.Minor); why != "" {
		o.Announce(fmt.Sprintf("%s: %s", name, why))
	}
	if o.Products == CUBLASProducts {
		if d.lib, err = openCUBLAS(drv, o.CUBLAS); err != nil {
			return nil, fmt.Errorf("open %s: products by cuBLAS: %w", name, err)
		}
	}
	d.mu.mats, d.mu.graphs = map[*kernels.Mat]address{}, map[*graph]struct{}{}
	if d.w, err = newWorker(drv, o.Ordinal); err != nil {
		return nil, err
	}
	if err := d.w.do(func(c context) error { return d.start(c, images(ptx)) }); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", name, err), d.w.close())
	}
	return d, nil
}

// start makes what ops run with.
func (d *Device) start(c context, image []byte) error {
	free, _, err := c.Memory()
	if err != nil {
		return err
	}
	limit := d.opt.Memory
	if limit == 0 {
		limit = free / 10 * 9
	}
	d.pool = newPool(d.name, limit)
	late := time.AfterFunc(longLoad, func() {
		d.opt.Announce(fmt.Sprintf("%s: the driver compiles the kernels for %s, once; it keeps the result", d.name, d.info.Name))
	})
	x, err := newRunner(d, c, image)
	late.Stop()
	if err != nil {
		return errors.Join(err, x.close())
	}
	d.x = x
	return nil
}

// Name is "cuda:0".
func (d *Device) Name() string { return d.name }

// Emulated says that it is no GPU but the emulated device of the tests.
func (d *Device) Emulated() bool { return d.about.Emulated }

// Products is what makes products: "own", or "cublas 12.8.4".
func (d *Device) Products() string {
	if d.lib == nil {
		return OwnProducts
	}
	return CUBLASProducts + " " + d.lib.Version()
}

// Describe is "NVIDIA H200 9.0, driver 12.8, PTX sm_80", and what else the bits of a
// result depend on.
func (d *Device) Describe() string {
	text := fmt.Sprintf("%s %d.%d, driver %s, %s", d.info.Name, d.info.Major, d.info.Minor, versionText(d.about.Version), d.image())
	if d.lib != nil {
		text += ", products by cuBLAS " + d.lib.Version()
	}
	if d.Emulated() {
		text += ", emulated"
	}
	return text
}

// Memory is what is taken and what is free now. Free and Total are 0 where the driver
// does not answer any more.
func (d *Device) Memory() Memory {
	var m Memory
	_ = d.w.do(func(c context) (err error) {
		m.Free, m.Total, err = c.Memory()
		return err
	})
	d.pool.mu.Lock()
	defer d.pool.mu.Unlock()
	m.Limit, m.Live, m.Peak, m.Taken = d.pool.limit, d.pool.used, d.pool.peak, d.pool.taken
	m.Pinned = d.x.stage.pinned()
	if d.spill != nil {
		u := d.spill.Usage()
		m.Pinned, m.Spilled = m.Pinned+u.Pinned, u.Spilled
	}
	return m
}

// do runs f on the worker as a task that is no op: what names it.
func (d *Device) do(f func(x *runner) error, what string, args ...any) error {
	err := d.w.do(func(context) error {
		err := f(d.x)
		d.x.opDone()
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %s: %w", d.name, fmt.Sprintf(what, args...), err)
	}
	return nil
}

// allocResident is Alloc in the device's memory.
func (d *Device) allocResident(rows, cols int) (*kernels.Mat, error) {
	if rows < 0 || cols < 0 {
		return nil, fmt.Errorf("%s: allocate %d x %d: sizes must not be negative", d.name, rows, cols)
	}
	stride := kernels.PadCols(cols)
	if stride < cols || stride > 0 && rows > (math.MaxInt64>>16)/stride {
		return nil, fmt.Errorf("%s: allocate %d x %d: more values than memory can hold", d.name, rows, cols)
	}
	m := &kernels.Mat{Rows: rows, Cols: cols, Stride: stride}
	var block address
	if n := 4 * int64(rows) * int64(stride); n > 0 {
		err := d.w.do(func(c context) (err error) {
			if block, err = d.pool.get(c, n, fmt.Sprintf("a matrix of %d x %d", rows, cols)); err != nil {
				return err
			}
			err = d.x.compute.Fill(block, 0, n)
			if err == nil {
				err = d.x.zeroed.Record(d.x.compute) // copies of peers follow it
			}
			if err != nil {
				d.pool.put(block)
				return fmt.Errorf("%s: zero a matrix of %d x %d: %w", d.name, rows, cols, err)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		m.Addr = uintptr(block)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.mats[m] = block
	return m, nil
}

// Free implements kernels.Device.
func (d *Device) Free(m *kernels.Mat) {
	if m == nil || d.spill != nil && d.spill.Free(m) {
		return
	}
	d.mu.Lock()
	block, held := d.mu.mats[m]
	delete(d.mu.mats, m)
	d.mu.Unlock()
	if !held {
		panic(&kernels.ShapeError{Op: "Free", Msg: fmt.Sprintf("a matrix of %d x %d that %s does not hold: freed twice, or a view", m.Rows, m.Cols, d.name)})
	}
	d.pool.put(block)
}

// NewStream implements kernels.Device. Streams of one device share its compute stream:
// each runs what is queued when it is waited for, one after the other.
func (d *Device) NewStream() (kernels.Stream, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.closed {
		return nil, fmt.Errorf("%s: new stream: %w", d.name, errClosed)
	}
	d.mu.streams++
	q := &queue{dev: d}
	if d.spill != nil {
		return spill.NewStream(q, d.spill), nil
	}
	if d.lib == nil && !d.alone {
		return summing{q}, nil
	}
	return q, nil
}

package cuda

import (
	"errors"
	"fmt"
	"strings"

	"dorylus/kernels"
	"dorylus/kernels/spill"
)

// queue is a kernels.Stream. Ops are checked when they are called and run in Wait, all
// in one task of the worker.
type queue struct {
	dev    *Device
	ops    []*op
	err    error // of an op that could not be queued
	closed bool
	marks  spill.Mark // events that are queued
	column int32      // EpilogueAt
}

// op is a queued op.
type op struct {
	name string
	mats []mat // for messages
	q    *queue
	do   func(*runner) error
}

var errStreamClosed = errors.New("the stream is closed")

// op begins an op; o.run queues it. Between the two its operands are taken by o.mat and
// its like, which panic with a *kernels.ShapeError at what is not the device's.
func (q *queue) op(name string) *op { return &op{name: name, q: q} }

// mat is m, which has to be the device's; nil is null.
func (o *op) mat(m *kernels.Mat) mat {
	if m == nil {
		return mat{}
	}
	if onHost(m) {
		panic(&kernels.ShapeError{Op: o.name, Msg: fmt.Sprintf("a matrix of %d x %d in the host's memory; %s wants its own", m.Rows, m.Cols, o.q.dev.name)})
	}
	if spill.Spilled(m) {
		panic(&kernels.ShapeError{Op: o.name, Msg: fmt.Sprintf("a matrix of %d x %d in host memory (address %#x) on a stream that was made before the memory plan", m.Rows, m.Cols, m.Addr)})
	}
	v := mat{address(m.Addr), int64(m.Stride), m.Rows, m.Cols}
	o.mats = append(o.mats, v)
	return v
}

// onHost says that a matrix is of the host. One without values is nobody's.
func onHost(m *kernels.Mat) bool { return m.Host != nil && m.Rows > 0 && m.Cols > 0 }

// graph is g as the device has loaded it.
func (o *op) graph(g kernels.Graph) *graph {
	r, ok := g.(*graph)
	if !ok || r.dev != o.q.dev {
		panic(&kernels.ShapeError{Op: o.name, Msg: fmt.Sprintf("a graph (%T) that was not loaded on %s", g, o.q.dev.name)})
	}
	return r
}

// epilogue is ep for rows [rows.Lo,rows.Hi) of an op's output, of which ids are needed.
func (o *op) epilogue(ep *kernels.Epilogue, rows kernels.Span) epi {
	if ep == nil {
		return epi{}
	}
	e := epi{bias: o.mat(ep.Bias), mode: int32(ep.Act)}
	if ep.Drop.P > 0 {
		e.mode |= dropMode | o.q.column<<firstColumn
		e.ids = list{ep.Drop.IDs, rows.Lo, rows.Hi}
		e.key, e.drop, e.keep = ep.Drop.Key, uint64(ep.Drop.Threshold()), ep.Drop.KeepScale()
	}
	return e
}

// run queues what the op does; it may launch, and use x's scratch memory.
func (o *op) run(do func(x *runner) error) {
	q := o.q
	if q.closed && q.err == nil {
		q.err = fmt.Errorf("%s: %s: %w", q.dev.name, o.name, errStreamClosed)
	}
	if q.err != nil {
		return
	}
	o.do = do
	q.ops = append(q.ops, o)
}

// String is the op with the shapes of its matrices: "GEMM (3 x 4, 3 x 5, 5 x 4)".
func (o *op) String() string {
	if len(o.mats) == 0 {
		return o.name
	}
	var shapes []string
	for _, m := range o.mats {
		shapes = append(shapes, fmt.Sprintf("%d x %d", m.rows, m.cols))
	}
	return o.name + " (" + strings.Join(shapes, ", ") + ")"
}

// Wait implements kernels.Stream.
func (q *queue) Wait() error {
	ops, err := q.ops, q.err
	q.ops, q.err, q.marks = nil, nil, 0
	if len(ops) == 0 {
		return err
	}
	failed := q.dev.w.do(func(context) error { return q.dev.x.runAll(ops) })
	if failed != nil { // it came before what could not be queued
		err = failed
	}
	return err
}

// runAll runs ops until one fails, and waits for them.
func (x *runner) runAll(ops []*op) error {
	for _, o := range ops {
		err := o.do(x)
		x.opDone()
		if err == nil {
			continue
		}
		if e := x.finish(); e != nil && codeOf(e) != codeOf(err) { // an op before it, which may have lost the context
			return fmt.Errorf("%s: waiting for what comes before %s: %w (and the op itself: %w)", x.d.name, o, e, err)
		}
		err = fmt.Errorf("%s: %s: %w", x.d.name, o, err)
		return err
	}
	err := x.finish()
	switch {
	case err == nil:
		return nil
	case len(ops) == 1:
		return fmt.Errorf("%s: %s: %w", x.d.name, ops[0], err)
	}
	return fmt.Errorf("%s: one of %d ops, from %s to %s: %w", x.d.name, len(ops), ops[0], ops[len(ops)-1], err)
}

// Close implements kernels.Stream.
func (q *queue) Close() error {
	if q.closed {
		return nil
	}
	q.closed = true
	q.dev.mu.Lock()
	q.dev.mu.streams--
	q.dev.mu.Unlock()
	return q.Wait()
}

package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
)

// A worker is the one goroutine that talks to a device. The driver remembers the
// current context per thread, so the goroutine keeps its thread, makes the context
// current once, and runs whole tasks of others on it, one at a time and in the order
// in which they come.
//
// An error after which the context is lost (Error.Lost) sticks: the worker ends, every
// later task gets that error, and the goroutine leaves without giving its thread back,
// so that the thread, whose state nobody knows, dies with it. Other errors are their
// task's own business.
type worker struct {
	tasks chan workerTask
	quit  chan struct{} // closed by close
	ended chan struct{} // closed when the goroutine has ended; err is set before

	once sync.Once
	err  error // what ended the worker: what was lost, or errClosed
	last error // of giving the context up
}

type workerTask struct {
	run    func(context) error
	result chan error // of one place, so that the worker never waits
}

var errClosed = errors.New("the device is closed")

// newWorker retains device i's primary context and begins to take tasks.
func newWorker(d driver, i int) (*worker, error) {
	w := &worker{tasks: make(chan workerTask), quit: make(chan struct{}), ended: make(chan struct{})}
	started := make(chan error, 1)
	go w.loop(d, i, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("open cuda:%d: %w", i, err)
	}
	return w, nil
}

func (w *worker) loop(d driver, i int, started chan<- error) {
	runtime.LockOSThread()
	defer close(w.ended)
	ctx, err := d.Retain(i)
	if err == nil {
		if err = ctx.SetCurrent(); err != nil {
			err = errors.Join(err, ctx.Release())
		}
	}
	started <- err
	if err != nil {
		w.err = err
		return // with the thread: what is current on it is unknown
	}
	for {
		select {
		case t := <-w.tasks:
			err := t.run(ctx)
			var e *Error
			if errors.As(err, &e) && e.Lost() {
				w.err = err
				t.result <- err
				return // with the thread
			}
			t.result <- err
		case <-w.quit:
			w.err, w.last = errClosed, ctx.Release()
			runtime.UnlockOSThread()
			return
		}
	}
}

// do runs f on the worker's thread, with the context current, and returns its error. f
// should be a whole task: each call is a change of goroutine and back.
func (w *worker) do(f func(context) error) error {
	t := workerTask{f, make(chan error, 1)}
	select {
	case w.tasks <- t:
		return <-t.result
	case <-w.ended:
		return w.err
	}
}

// close gives the context up after the task that runs, and ends the worker. Nothing
// made in the context may be used after it. A worker that has ended by itself has
// nothing to give up.
func (w *worker) close() error {
	w.once.Do(func() { close(w.quit) })
	<-w.ended
	return w.last
}

package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"runtime"

	"dorylus/engine"
	"dorylus/lambda/wire"
	"dorylus/lambda/worker"
)

// ownMemory bounds what one of the graph server's own workers keeps, in bytes.
const ownMemory = 4 << 30

// alone does a task on the graph server's own cores, and says so.
func (f *Fleet) alone(ctx context.Context, t *workItem, cause error) (*result, error) {
	f.mu.Lock()
	noWorkers := f.mu.alone && errors.Is(cause, errNobody)
	if noWorkers {
		cause = f.noWorkersLocked()
	}
	if noWorkers && f.opt.OnNoWorkers == "fail" {
		f.mu.Unlock()
		return nil, fmt.Errorf("lambda fleet: do %v: %w", t.Task, cause)
	}
	f.mu.stats.Own++
	f.mu.lastOwn = engine.OwnCores{Task: t.Task, Tasks: f.mu.stats.Own, Cause: cause.Error()}
	if f.mu.ownTold = bits.OnesCount64(uint64(f.mu.stats.Own)) == 1; f.mu.ownTold {
		f.reports.add(f.mu.lastOwn)
	}
	for len(f.mu.own.links) < runtime.GOMAXPROCS(0) && !f.mu.closed {
		f.openOwnLocked()
	}
	f.mu.Unlock()
	l := f.acquire(ctx, &f.mu.own, t)
	if l == nil {
		why := errClosed
		if ctx.Err() != nil {
			why = context.Cause(ctx)
		}
		return nil, fmt.Errorf("lambda fleet: wait for the graph server's own cores to do %v: %w", t.Task, why)
	}
	defer f.release(l)
	res, err := l.do(context.WithoutCancel(ctx), ctx, t) // a block under way ends by itself
	if err != nil {
		return nil, fmt.Errorf("lambda fleet: do %v on the graph server's own cores: %w", t.Task, err)
	}
	return res, nil
}

// openOwnLocked adds a worker in this process.
func (f *Fleet) openOwnLocked() {
	here, there := wire.Pipe()
	w := worker.New(worker.Config{Device: f.opt.Device, Memory: ownMemory})
	l := newLink(f, &f.mu.own, here, wire.Hello{Device: f.opt.Device.Name()}, here.Close)
	l.own = true
	f.mu.own.links[l] = true
	f.wg.Go(func() {
		defer w.Close()
		defer there.Close()
		w.Serve(context.WithoutCancel(f.ctx), there, worker.Invitation{})
	})
	f.wg.Go(func() {
		if _, err := here.Recv(); err == nil { // its hello
			l.listen()
		}
	})
}

package fleet

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"dorylus/engine"
	"dorylus/lambda/wire"
	"dorylus/lambda/worker"
)

// ErrNever is wrapped by a Launcher's error that no other call will change: the function
// does not exist, the key is refused.
var ErrNever = errors.New("calling again is of no use")

// ErrTooLarge is wrapped by the error of a Conn's Send that leaves the stream as it was:
// the task that was sent does not fit, and no worker will do it.
var ErrTooLarge = errors.New("it is too large for Lambda")

// ErrNoWorkers is why a task has failed under Options.OnNoWorkers "fail".
var ErrNoWorkers = errors.New("no Lambda worker has come")

// Pauses before a worker is sent for again, after launches that came to nothing: twice
// as long each time, up to maxPause, and maxPauseAlone once the fleet works without.
const (
	firstPause    = 100 * time.Millisecond
	maxPause      = 2 * time.Second
	maxPauseAlone = 30 * time.Second
)

// guest is a worker that has been sent for.
type guest struct {
	number  int
	cancel  context.CancelFunc
	sent    time.Time
	came    bool
	settled bool
}

// callLocked sends for the workers that are missing. One whose task is beyond its limit
// does not count as there.
func (f *Fleet) callLocked() {
	for f.mu.away < 2*f.mu.workers && f.mu.away-f.mu.slow-f.mu.leaving < f.mu.workers && !f.mu.closed {
		f.mu.away++
		f.mu.next++
		in := worker.Invitation{Worker: f.mu.next, Token: token()}
		ctx, cancel := context.WithCancel(f.ctx)
		g := &guest{number: in.Worker, cancel: cancel, sent: time.Now()}
		f.mu.invited[in.Token] = g
		pause := time.Duration(0)
		if f.mu.fails > 0 {
			longest := maxPause
			if f.mu.alone {
				longest = maxPauseAlone
			}
			pause = min(firstPause<<min(f.mu.fails-1, 20), longest)
		}
		f.wg.Go(func() { f.launch(ctx, in, g, pause) })
	}
}

// launch runs one invocation. One that does not come within GiveUp is given up.
func (f *Fleet) launch(ctx context.Context, in worker.Invitation, g *guest, pause time.Duration) {
	defer g.cancel()
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		f.settle(in, g, ctx.Err())
		return
	}
	f.mu.Lock()
	g.sent = time.Now()
	f.mu.Unlock()
	late := time.AfterFunc(f.opt.GiveUp, func() { f.settleLate(in, g) })
	defer late.Stop()
	f.settle(in, g, f.opt.Launcher.Launch(ctx, in))
}

// settleLate gives up an invocation whose worker has not come.
func (f *Fleet) settleLate(in worker.Invitation, g *guest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !g.came {
		f.settleLocked(in, g, fmt.Errorf("it has not come within %v", f.opt.GiveUp))
		g.cancel()
	}
}

// Resize changes the number of workers that are wanted. Those that are too many leave as
// soon as they have nothing to do; those that are missing are called when tasks wait.
func (f *Fleet) Resize(workers int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.workers = max(workers, 1)
	f.thinOutLocked()
	if len(f.mu.crew.waiters) > 0 {
		f.callLocked()
	}
}

// thinOutLocked has idle workers leave that are too many.
func (f *Fleet) thinOutLocked() {
	crew := &f.mu.crew
	for len(crew.links) > f.mu.workers && !f.mu.closed {
		l := crew.best(func(_ *link, idle bool) bool { return idle })
		if l == nil {
			return
		}
		crew.drop(l)
		l.leaving = true
		f.mu.leaving++
		f.wg.Go(func() { l.leave(true, "there are more workers than needed", f.opt.Leave) })
	}
}

// settle accounts for an invocation that has ended, once.
func (f *Fleet) settle(in worker.Invitation, g *guest, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settleLocked(in, g, err)
}

func (f *Fleet) settleLocked(in worker.Invitation, g *guest, err error) {
	if g.settled {
		return
	}
	g.settled = true
	f.mu.away--
	delete(f.mu.invited, in.Token)
	if !g.came && !f.mu.closed {
		if err == nil {
			err = errors.New("its invocation has ended before it came")
		}
		f.failedLocked(g.sent, err)
		f.reports.add(engine.WorkerLeft{Worker: g.number, Why: err.Error(), Workers: len(f.mu.crew.links)})
		if errors.Is(err, ErrNever) {
			f.despairLocked(true)
		}
	}
	if len(f.mu.crew.waiters) > 0 {
		f.callLocked()
	}
}

// failedLocked counts a worker that was sent for in vain: it has not come, or has left
// without having done a task. workedLocked ends the count.
func (f *Fleet) failedLocked(sent time.Time, err error) {
	f.mu.lastErr = err
	if f.mu.fails == 0 {
		f.mu.vain = time.Now()
	}
	if sent.After(f.mu.failed) || f.mu.fails == 0 { // not one of several that failed together
		f.mu.fails++
		f.mu.failed = time.Now()
	}
}

// workedLocked notes that a worker has done its first task: others may be of use too.
func (f *Fleet) workedLocked() {
	f.mu.fails, f.mu.lastErr, f.mu.alone = 0, nil, false
}

// despairLocked lets tasks do without workers while none is there: from when one of them
// has waited long enough, or there is no hope, until a worker has done a task.
func (f *Fleet) despairLocked(now bool) {
	now = now || f.mu.fails > 0 && time.Since(f.mu.vain) >= f.opt.GiveUp
	if len(f.mu.crew.links) > 0 || !now && !f.mu.alone {
		return
	}
	if !f.mu.alone {
		f.mu.alone = true
		f.reports.add(engine.Warned{Message: fmt.Sprintf("%v: %s", f.noWorkersLocked(), map[string]string{
			"local": "the graph server's own cores do the tensor tasks until one does", "fail": "the run ends",
		}[f.opt.OnNoWorkers])})
	}
	f.mu.crew.dismiss()
}

// noWorkersLocked is ErrNoWorkers with the reason.
func (f *Fleet) noWorkersLocked() error {
	if f.mu.lastErr != nil {
		return fmt.Errorf("%w; the last one that was sent for: %w", ErrNoWorkers, f.mu.lastErr)
	}
	return fmt.Errorf("%w within %v", ErrNoWorkers, f.opt.GiveUp)
}

// remove forgets a worker that is gone, and calls for another if somebody waits.
func (f *Fleet) remove(l *link, why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.crew.drop(l)
	if l.leaving {
		f.mu.leaving--
	} else if l.tasks == 0 && !f.mu.closed {
		f.failedLocked(l.sent, why)
	}
	f.reports.add(engine.WorkerLeft{Worker: l.hello.Worker, Came: true, Why: why.Error(), Tasks: l.tasks, Workers: len(f.mu.crew.links)})
	if len(f.mu.crew.waiters) > 0 {
		f.callLocked()
	}
}

// Serve takes a worker's stream over: it returns when that has ended. stop has to end
// the stream at once, and with it Sends and Recvs that wait.
func (f *Fleet) Serve(conn wire.Conn, stop func()) error {
	if !f.enter() {
		return errors.New("lambda fleet: the run is over")
	}
	defer f.wg.Done()
	unseen := time.AfterFunc(f.opt.GiveUp, stop)
	defer unseen.Stop()
	m, err := conn.Recv()
	unseen.Stop()
	switch {
	case err != nil:
		return err
	case m.Hello == nil:
		return errors.New("lambda fleet: a stream did not begin with hello")
	case m.Hello.Version != wire.Version:
		return fmt.Errorf("lambda fleet: worker %d speaks version %d of the protocol, this is %d: deploy the worker of the same version", m.Hello.Worker, m.Hello.Version, wire.Version)
	}
	f.mu.Lock()
	g := f.mu.invited[m.Hello.Token]
	if g == nil || g.number != m.Hello.Worker || f.mu.closed {
		f.mu.Unlock()
		return fmt.Errorf("lambda fleet: worker %d was not sent for: its token is wrong, used up or too old", m.Hello.Worker)
	}
	delete(f.mu.invited, m.Hello.Token)
	g.came = true
	crew := &f.mu.crew
	l := newLink(f, crew, conn, *m.Hello, stop)
	l.sent = g.sent
	crew.links[l] = true
	f.mu.stats.Workers++
	f.reports.add(engine.WorkerCame{Worker: g.number, Device: m.Hello.Device, Took: time.Since(g.sent).Seconds(), Workers: len(crew.links)})
	crew.match(time.Now())
	f.mu.Unlock()
	err = l.listen()
	f.remove(l, err)
	return err
}

func token() string {
	b := make([]byte, 16)
	rand.Read(b)
	return hex.EncodeToString(b)
}

package fleet

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"dorylus/lambda/codec"
	"dorylus/lambda/shard"
	"dorylus/lambda/wire"
	"dorylus/lambda/worker"
)

// maxFails is how many launches in a row may come to nothing before the fleet stops
// calling for workers.
const maxFails = 8

var errSlow = errors.New("it took too long")

func (f *Fleet) nextAttempt() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.attempt++
	return f.mu.attempt
}

// shard is the message that brings a shard.
func (f *Fleet) shard(k roomKey, enc *codec.Encoder) (*wire.Message, error) {
	s := shard.Cut(f.program(), k.pass, k.interval, f.job.Blocks(k.pass, k.interval))
	head, parts, err := s.Encode(enc)
	if err != nil {
		return nil, fmt.Errorf("write the shard of interval %d: %w", k.interval, err)
	}
	return &wire.Message{Shard: &wire.Shard{Head: head}, Parts: parts}, nil
}

// attempt runs a task on a link that the caller has acquired. One that takes too long
// is cut off: its stream makes no sense any more.
func (f *Fleet) attempt(ctx context.Context, t *workItem, l *link) (*result, error) {
	limit := f.times.limit(t.step, f.opt.Patience, f.opt.Floor)
	if !l.opened {
		limit = max(limit, f.opt.Patience)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errSlow)
	defer cancel()
	stop := context.AfterFunc(ctx, l.stop)
	res, err := l.do(ctx, t)
	stop()
	if err != nil && l.dead() {
		f.remove(l)
	} else {
		f.release(l)
	}
	if err == nil {
		f.count(func(s *Stats) { s.Tasks++ })
	}
	return res, err
}

func (l *link) dead() bool {
	select {
	case <-l.gone:
		return true
	default:
		return false
	}
}

// acquire is an idle worker: one that holds the shard if there is one, else any. It
// calls for workers where fewer than wanted are there, and waits. nil: there is none,
// and none will come.
func (f *Fleet) acquire(ctx context.Context, k roomKey) *link {
	f.mu.Lock()
	var any *link
	for l, idle := range f.mu.links {
		if !idle {
			continue
		}
		if any == nil || l.hello.Worker < any.hello.Worker {
			any = l
		}
		if l.rooms[k] != nil {
			any = l
			break
		}
	}
	if any != nil {
		f.mu.links[any] = false
		f.mu.Unlock()
		return any
	}
	f.callLocked()
	if f.hopelessLocked() {
		f.mu.Unlock()
		return nil
	}
	wait := make(chan *link, 1)
	f.mu.waiters = append(f.mu.waiters, wait)
	f.mu.Unlock()
	select {
	case l := <-wait:
		return l
	case <-ctx.Done():
		f.forget(wait)
		return nil
	}
}

// hopelessLocked says that no worker is there or on its way.
func (f *Fleet) hopelessLocked() bool { return len(f.mu.links) == 0 && f.mu.away == 0 }

// callLocked launches the workers that are missing.
func (f *Fleet) callLocked() {
	for f.mu.away < f.opt.Workers && f.mu.fails < maxFails && !f.mu.closing {
		f.mu.away++
		f.mu.next++
		in := worker.Invitation{Worker: f.mu.next, Token: token()}
		f.mu.invited[in.Token] = in.Worker
		pause := time.Duration(0)
		if f.mu.fails > 0 {
			pause = 50 * time.Millisecond << f.mu.fails
		}
		f.wg.Go(func() { f.launch(in, pause) })
	}
}

func (f *Fleet) launch(in worker.Invitation, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	var err error
	select {
	case <-timer.C:
		err = f.opt.Launcher.Launch(f.ctx, in)
	case <-f.ctx.Done():
		err = f.ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.away--
	_, never := f.mu.invited[in.Token]
	delete(f.mu.invited, in.Token)
	if never && err != nil {
		f.mu.fails++
	}
	if len(f.mu.waiters) > 0 {
		f.callLocked()
	}
	if f.hopelessLocked() {
		f.sendAwayLocked()
	}
}

// sendAwayLocked tells all who wait that nobody will come.
func (f *Fleet) sendAwayLocked() {
	for _, w := range f.mu.waiters {
		w <- nil
	}
	f.mu.waiters = nil
}

func token() string {
	b := make([]byte, 16)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// forget takes a waiter back; a link that it has been given meanwhile goes to another.
func (f *Fleet) forget(wait chan *link) {
	f.mu.Lock()
	for i, w := range f.mu.waiters {
		if w == wait {
			f.mu.waiters = append(f.mu.waiters[:i], f.mu.waiters[i+1:]...)
			f.mu.Unlock()
			return
		}
	}
	f.mu.Unlock()
	if l := <-wait; l != nil {
		f.release(l)
	}
}

// release makes a link idle, or hands it to who waits.
func (f *Fleet) release(l *link) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l == f.mu.own {
		l.busy <- struct{}{}
		return
	}
	if _, there := f.mu.links[l]; !there {
		return
	}
	if len(f.mu.waiters) > 0 {
		f.mu.links[l] = false
		f.mu.waiters[0] <- l
		f.mu.waiters = f.mu.waiters[1:]
		return
	}
	f.mu.links[l] = true
}

// remove forgets a worker that is gone, and calls for another if somebody waits.
func (f *Fleet) remove(l *link) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.mu.links, l)
	if len(f.mu.waiters) > 0 {
		f.callLocked()
	}
	if f.hopelessLocked() {
		f.sendAwayLocked()
	}
}

// Serve takes a worker's stream over: it returns when that has ended. stop has to end
// the stream at once.
func (f *Fleet) Serve(conn wire.Conn, stop func()) error {
	m, err := conn.Recv()
	switch {
	case err != nil:
		return err
	case m.Hello == nil:
		return errors.New("lambda fleet: a stream did not begin with hello")
	case m.Hello.Version != wire.Version:
		return fmt.Errorf("lambda fleet: worker %d speaks version %d of the protocol, this is %d: deploy the worker of the same version", m.Hello.Worker, m.Hello.Version, wire.Version)
	}
	f.mu.Lock()
	number, ok := f.mu.invited[m.Hello.Token]
	delete(f.mu.invited, m.Hello.Token)
	if !ok || number != m.Hello.Worker || f.mu.closing {
		f.mu.Unlock()
		return fmt.Errorf("lambda fleet: worker %d was not sent for: its token is wrong or used up", m.Hello.Worker)
	}
	l := newLink(f, conn, *m.Hello, stop)
	f.mu.links[l] = false
	f.mu.fails = 0
	f.mu.stats.Workers++
	f.mu.Unlock()
	f.release(l)
	err = l.listen()
	f.remove(l)
	return err
}

// takeOwn is the worker in the graph server's own process.
func (f *Fleet) takeOwn(ctx context.Context) (*link, error) {
	f.mu.Lock()
	if f.mu.own == nil {
		f.mu.own = f.openOwn()
	}
	l := f.mu.own
	f.mu.Unlock()
	select {
	case <-l.busy:
		return l, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *Fleet) openOwn() *link {
	here, there := wire.Pipe()
	w := worker.New(worker.Config{Device: f.opt.Device, Memory: 1 << 62})
	f.wg.Go(func() {
		defer w.Close()
		defer there.Close()
		w.Serve(context.WithoutCancel(f.ctx), there, worker.Invitation{})
	})
	l := newLink(f, here, wire.Hello{Device: f.opt.Device.Name()}, here.Close)
	l.busy = make(chan struct{}, 1)
	l.busy <- struct{}{}
	f.wg.Go(func() { l.listen() })
	return l
}

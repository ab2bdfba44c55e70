package pserver

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dorylus/cluster/rpc"
	"dorylus/engine/testkit"
	"dorylus/kernels"
)

// slow is a device on which something happens during the first Alloc.
type slow struct {
	kernels.Device
	once sync.Once
	then func()
}

func (d *slow) Alloc(rows, cols int) (*kernels.Mat, error) {
	d.once.Do(func() {
		if d.then != nil {
			d.then()
		}
	})
	return d.Device.Alloc(rows, cols)
}

// TestTheStartIsMadeOnce: the leader sends what to start with again, on another stream,
// while the first is still being read.
func TestTheStartIsMadeOnce(t *testing.T) {
	testkit.Leaks(t)
	d := &slow{Device: device(t)}
	d.once.Do(func() {}) // the server's own look at the device
	x := serveAll(t, 1, func(c *ServerConfig) { c.Device = d })
	sh := x.servers[0].shard
	c, err := newClient(x.want(0, 1, 1, kernels.Span{Hi: 1}, optims[0]))
	check(t, err)
	defer c.cancel()
	_, err = sh.join(c.hello(c.links[0]), "here")
	check(t, err)
	m := c.begin(c.links[0])
	d.once, d.then = sync.Once{}, func() { check(t, sh.start(m)) }
	check(t, sh.start(m))
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if len(sh.kept) != 1 {
		t.Errorf("%d versions were made of one start", len(sh.kept))
	}
}

// TestALeftoverEnds: a server of an earlier attempt, whose run is over, gives way to
// another one, and who calls it gets through to that.
func TestALeftoverEnds(t *testing.T) {
	testkit.Leaks(t)
	x := serveAll(t, 1, func(c *ServerConfig) { c.Run = rpc.Attempt("test", 1) })
	w := x.want(0, 1, 1, kernels.Span{Hi: 1}, optims[0])
	w.Run = rpc.Attempt("test", 2)
	connected := make(chan *Client, 1)
	go func() {
		c, err := Connect(t.Context(), w)
		if err != nil {
			t.Error(err)
		}
		connected <- c
	}()
	err := <-x.ran[0]
	if err == nil || !strings.Contains(err.Error(), `graph server 0 at 127.0.0.1`) || !strings.Contains(err.Error(), `it belongs to run "test, attempt 2", which has begun; this server is left of run "test, attempt 1"`) {
		t.Errorf("the leftover ends with %v", err)
	}
	x.kill(0)
	s, err := NewServer(ServerConfig{Shards: 1, Device: device(t), Run: w.Run})
	check(t, err)
	l, err := rpc.Listen(x.addrs[0], rpc.Plaintext(), rpc.Options{})
	check(t, err)
	s.Handle(l)
	l.Serve()
	if c := <-connected; c != nil {
		check(t, c.Close())
	}
	check(t, s.Close())
	check(t, l.Close())
}

// TestALiveRunIsNoLeftover: a server with clients turns a later attempt away, by name, and
// goes on.
func TestALiveRunIsNoLeftover(t *testing.T) {
	testkit.Leaks(t)
	x := serveAll(t, 1, func(c *ServerConfig) { c.Run = "test" })
	c := joined(t, x.want(0, 1, 1, kernels.Span{Hi: 1}, optims[0]))[0]
	w := x.want(0, 1, 1, kernels.Span{Hi: 1}, optims[0])
	w.Run, w.Join = rpc.Attempt("test", 1), 100*time.Millisecond
	_, err := Connect(t.Context(), w)
	want := `parameter server 0 belongs to run "test", of which graph server 0 at 127.0.0.1`
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `to run "test, attempt 1"`) || !strings.Contains(err.Error(), x.addrs[0]) {
		t.Errorf("the newcomer hears %v, want %q", err, want)
	}
	if _, err := c.Snapshot(); err != nil {
		t.Errorf("the run has ended: %v", err)
	}
}

// TestAServerThatHasToGo: all clients hear it once, and what they say of the run's end the
// server knows.
func TestAServerThatHasToGo(t *testing.T) {
	testkit.Leaks(t)
	for _, again := range []bool{false, true} {
		x := serveAll(t, 2, nil)
		if !x.servers[0].Waiting() {
			t.Error("a server that nobody has called does not wait")
		}
		var told atomic.Int64
		heard := make(chan struct{}, 8)
		var wants []ClientConfig
		for rank := range 2 {
			w := x.want(rank, 2, 4, kernels.Span{Lo: 2 * rank, Hi: 2*rank + 2}, optims[0])
			w.Stop = func() { told.Add(1); heard <- struct{}{} }
			wants = append(wants, w)
		}
		clients := joined(t, wants...)
		if x.servers[0].Waiting() {
			t.Error("a server with clients says that it waits for them")
		}
		x.servers[1].Stop()
		x.servers[1].Stop()
		<-heard
		<-heard
		var wg sync.WaitGroup
		for rank, c := range clients {
			wg.Go(func() {
				if again && rank == 0 {
					c.Interrupted()
				}
				check(t, c.Close())
			})
		}
		wg.Wait()
		for k, s := range x.servers {
			if err := <-x.ran[k]; err != nil || s.Unfinished() != again {
				t.Errorf("server %d ends with %v, unfinished: %v, want %v", k, err, s.Unfinished(), again)
			}
		}
		if n := told.Load(); n != 2 {
			t.Errorf("%d clients were told, want each once", n)
		}
	}
}

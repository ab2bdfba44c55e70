package pserver

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"dorylus/cluster/rpc"
	"dorylus/engine"
	"dorylus/engine/optim"
	"dorylus/engine/params"
	"dorylus/engine/task"
	"dorylus/engine/testkit"
	"dorylus/kernels"
)

// set is parameter servers on sockets of this machine.
type set struct {
	t       *testing.T
	servers []*Server
	listens []*rpc.Server
	addrs   []string
	ran     []chan error // what Run has returned
	cancel  context.CancelFunc
}

func serveAll(t *testing.T, shards int, change func(*ServerConfig)) *set {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	x := &set{t: t, cancel: cancel}
	for k := range shards {
		cfg := ServerConfig{Shard: k, Shards: shards, Device: device(t), Grace: time.Minute, Join: time.Minute}
		if change != nil {
			change(&cfg)
		}
		s, err := NewServer(cfg)
		check(t, err)
		l, err := rpc.Listen("127.0.0.1:0", rpc.Plaintext(), rpc.Options{})
		check(t, err)
		s.Handle(l)
		l.Serve()
		x.servers, x.listens, x.addrs = append(x.servers, s), append(x.listens, l), append(x.addrs, l.Addr())
		ran := make(chan error, 1)
		go func() {
			err := s.Run(ctx)
			if err != nil {
				// As a process does; those who have not heard why would report something else.
				l.GRPC().Stop()
			}
			ran <- err
		}()
		x.ran = append(x.ran, ran)
	}
	t.Cleanup(x.close)
	return x
}

func (x *set) close() {
	x.cancel()
	for k, s := range x.servers {
		if err := s.Close(); err != nil {
			x.t.Error(err)
		}
		x.kill(k)
	}
}

// kill closes a server's port and streams.
func (x *set) kill(k int) {
	if l := x.listens[k]; l != nil {
		x.listens[k] = nil
		if err := l.Close(); err != nil {
			x.t.Error(err)
		}
	}
}

// want is what a client of the set asks for, to be changed by the test.
func (x *set) want(rank, graphs, blocks int, own kernels.Span, cfg optim.Config) ClientConfig {
	pc := params.Config{Specs: net, Optim: cfg, Blocks: blocks, Device: device(x.t)}
	if rank == 0 {
		pc.Init = params.InitParams(net, 1)
	}
	return ClientConfig{
		Rank: rank, Graphs: graphs, Blocks: own, Intervals: task.Range(own), Params: pc, Run: "test",
		Addrs: x.addrs, Identity: rpc.Plaintext(), Grace: time.Minute, Join: time.Minute,
	}
}

// joined connects clients, all at once.
func joined(t *testing.T, wants ...ClientConfig) []*Client {
	t.Helper()
	clients, errs := make([]*Client, len(wants)), make([]error, len(wants))
	var wg sync.WaitGroup
	for i, w := range wants {
		wg.Go(func() { clients[i], errs[i] = Connect(t.Context(), w) })
	}
	wg.Wait()
	check(t, errors.Join(errs...))
	t.Cleanup(func() {
		var wg sync.WaitGroup
		for _, c := range clients {
			wg.Go(func() { check(t, c.Close()) })
		}
		wg.Wait()
	})
	return clients
}

// train does the epochs of one graph server, as the pipeline does, and says what it was
// told. It evaluates after each epoch: the weights must be those of the update.
func train(ctx context.Context, c *Client, own kernels.Span, epochs, ahead int) ([]engine.Update, error) {
	var got []engine.Update
	hear := func() error {
		u, ok := <-c.Updates()
		if !ok {
			return fmt.Errorf("updates have ended: %w", c.Err())
		}
		got = append(got, u)
		w, err := c.Fetch(ctx, -1, u.Epoch)
		if err != nil {
			return err
		}
		if w.Version != u.Version {
			return fmt.Errorf("after the update of epoch %d version %d was fetched", u.Epoch, w.Version)
		}
		c.Release(-1, u.Epoch)
		return nil
	}
	for e := range epochs {
		for len(got) < e-ahead {
			if err := hear(); err != nil {
				return got, err
			}
		}
		for b := own.Lo; b < own.Hi; b++ {
			w, err := c.Fetch(ctx, b, e)
			if err != nil {
				return got, err
			}
			for step := range 2 {
				if err := c.Push(ctx, pushTask(c, e, b, step)); err != nil {
					return got, err
				}
				if again, err := c.Fetch(ctx, b, e); err != nil || again.Version != w.Version {
					return got, fmt.Errorf("interval %d had version %d, then %d: %w", b, w.Version, again.Version, err)
				}
			}
			c.Release(b, e)
		}
	}
	for len(got) < epochs {
		if err := hear(); err != nil {
			return got, err
		}
	}
	return got, nil
}

// TestOverSockets trains with gRPC between, sync and async, with 1 to 4 graph servers and 1
// to 7 parameter servers, and wants the bits of one process.
func TestOverSockets(t *testing.T) {
	testkit.Leaks(t)
	const epochs, blocks = 6, 8
	for i, sizes := range [][2]int{{1, 1}, {2, 4}, {3, 3}, {7, 2}} {
		for _, ahead := range []int{0, 2} {
			t.Run(fmt.Sprintf("%d shards %d clients %d ahead", sizes[0], sizes[1], ahead), func(t *testing.T) {
				cfg := optims[i]
				want := alone(t, cfg, blocks, epochs)
				spans := cuts(rand.New(rand.NewPCG(uint64(i), 3)), blocks, sizes[1])
				x := serveAll(t, sizes[0], nil)
				var wants []ClientConfig
				for r, own := range spans {
					wants = append(wants, x.want(r, len(spans), blocks, own, cfg))
				}
				clients := joined(t, wants...)
				got, errs := make([][]engine.Update, len(clients)), make([]error, len(clients))
				var wg sync.WaitGroup
				for r, c := range clients {
					wg.Go(func() { got[r], errs[r] = train(t.Context(), c, spans[r], epochs, ahead) })
				}
				for range 5 { // meanwhile
					st, err := clients[0].Snapshot()
					check(t, err)
					if b := bits(st); b != want.states[st.Version] {
						t.Errorf("the snapshot of version %d: %s", st.Version, first(b, want.states[st.Version]))
					}
				}
				wg.Wait()
				check(t, errors.Join(errs...))
				for r, c := range clients {
					for e, u := range got[r] {
						if !same(u, want.updates[e]) {
							t.Errorf("client %d heard %+v, want %+v", r, u, want.updates[e])
						}
					}
					st, err := c.Snapshot()
					check(t, err)
					if b := bits(st); b != want.states[epochs] {
						t.Errorf("client %d: %s", r, first(b, want.states[epochs]))
					}
					if kept := c.Stash(); len(kept) != 1 {
						t.Errorf("client %d still keeps %v", r, kept)
					}
				}
				for _, c := range clients {
					wg.Go(func() { check(t, c.Close()) })
				}
				wg.Wait()
				for k, ran := range x.ran {
					if err := <-ran; err != nil {
						t.Errorf("parameter server %d ended with %v", k, err)
					}
				}
			})
		}
	}
}

// TestHostedByTheLeader: the only parameter server is in the leader's process; it has it
// at hand, the others call.
func TestHostedByTheLeader(t *testing.T) {
	testkit.Leaks(t)
	const epochs, blocks = 4, 5
	want := alone(t, optims[1], blocks, epochs)
	x := serveAll(t, 1, nil)
	spans := []kernels.Span{{Lo: 0, Hi: 3}, {Lo: 3, Hi: 5}}
	near, far := x.want(0, 2, blocks, spans[0], optims[1]), x.want(1, 2, blocks, spans[1], optims[1])
	near.Local, near.Addrs = x.servers[0], nil
	far.Hosted = true
	clients := joined(t, near, far)
	var wg sync.WaitGroup
	for r, c := range clients {
		wg.Go(func() {
			if _, err := train(t.Context(), c, spans[r], epochs, 0); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	st, err := clients[0].Snapshot()
	check(t, err)
	if b := bits(st); b != want.states[epochs] {
		t.Error(first(b, want.states[epochs]))
	}
}

// TestConnectionsBreak cuts streams again and again while the run goes on.
func TestConnectionsBreak(t *testing.T) {
	testkit.Leaks(t)
	const epochs, blocks = 25, 6
	want := alone(t, optims[1], blocks, epochs)
	x := serveAll(t, 2, nil)
	spans := []kernels.Span{{Lo: 0, Hi: 1}, {Lo: 1, Hi: 6}}
	clients := make([]*Client, 2)
	for r := range clients {
		w := x.want(r, 2, blocks, spans[r], optims[1])
		c, err := newClient(w)
		check(t, err)
		rng := rand.New(rand.NewPCG(uint64(r), 8))
		var mu sync.Mutex
		c.open = func(ctx context.Context, shard int) (rpc.Stream, error) {
			ctx, cut := context.WithCancel(ctx)
			near, far := pipe(ctx)
			c.wg.Go(func() { far.end(x.servers[shard].serve(far)); cut() })
			mu.Lock()
			defer mu.Unlock()
			return &brittle{Stream: near, left: 3 + rng.IntN(12), cut: cut}, nil
		}
		clients[r] = c
	}
	var wg sync.WaitGroup
	for r, c := range clients {
		wg.Go(func() {
			if err := c.connect(t.Context()); err != nil {
				t.Error(err)
				return
			}
			got, err := train(t.Context(), c, spans[r], epochs, 1)
			if err != nil {
				t.Error(err)
			}
			for e, u := range got {
				if !same(u, want.updates[e]) {
					t.Errorf("client %d heard %+v, want %+v", r, u, want.updates[e])
				}
			}
			st, err := c.Snapshot()
			if err != nil {
				t.Error(err)
			} else if b := bits(st); b != want.states[epochs] {
				t.Errorf("client %d: %s", r, first(b, want.states[epochs]))
			}
		})
	}
	wg.Wait()
	for _, c := range clients {
		wg.Go(func() { check(t, c.Close()) })
	}
	wg.Wait()
}

// brittle is a stream that breaks after some messages, either way.
type brittle struct {
	rpc.Stream
	mu   sync.Mutex
	left int
	cut  func()
}

func (b *brittle) use() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left--; b.left < 0 {
		b.cut()
	}
}

func (b *brittle) Send(m *rpc.Message) error { b.use(); return b.Stream.Send(m) }

func (b *brittle) Recv() (*rpc.Message, error) { b.use(); return b.Stream.Recv() }

// TestALostGraphServerIsNamed: one goes away without a word; the others and the parameter
// servers end with its name.
func TestALostGraphServerIsNamed(t *testing.T) {
	testkit.Leaks(t)
	x := serveAll(t, 2, func(c *ServerConfig) { c.Grace = 300 * time.Millisecond })
	spans := []kernels.Span{{Lo: 0, Hi: 2}, {Lo: 2, Hi: 4}, {Lo: 4, Hi: 4}}
	var wants []ClientConfig
	for r, own := range spans {
		wants = append(wants, x.want(r, 3, 4, own, optims[0]))
	}
	clients := joined(t, wants...)
	clients[1].cancel() // as if its process were killed
	for _, r := range []int{0, 2} {
		_, err := train(t.Context(), clients[r], spans[r], 3, 0)
		if err == nil || !strings.Contains(err.Error(), "graph server 1") || !strings.Contains(err.Error(), "lost") || !strings.Contains(err.Error(), "gradients of epoch 0") {
			t.Errorf("client %d ends with %v", r, err)
		}
		var peer *rpc.PeerError
		if !errors.As(clients[r].Err(), &peer) {
			t.Errorf("client %d: %v is no PeerError", r, clients[r].Err())
		}
	}
	for _, ran := range x.ran {
		if err := <-ran; err == nil || !strings.Contains(err.Error(), "graph server 1") {
			t.Errorf("a parameter server ended with %v", err)
		}
	}
}

// TestALostParameterServerIsNamed: it is killed; all graph servers end with its name, and
// tell the other ones.
func TestALostParameterServerIsNamed(t *testing.T) {
	testkit.Leaks(t)
	x := serveAll(t, 2, nil)
	w := x.want(0, 1, 2, kernels.Span{Hi: 2}, optims[0])
	w.Grace = 300 * time.Millisecond
	c := joined(t, w)[0]
	x.kill(1)
	_, err := train(t.Context(), c, w.Blocks, 3, 0)
	if err == nil || !strings.Contains(err.Error(), "parameter server 1 at "+x.addrs[1]+": lost") || !strings.Contains(err.Error(), "awaited: version") {
		t.Errorf("the client ends with %v", err)
	}
	if err := <-x.ran[0]; err == nil || !strings.Contains(err.Error(), "graph server 0") || !strings.Contains(err.Error(), "parameter server 1") {
		t.Errorf("the other parameter server ended with %v", err)
	}
}

// TestTheCauseReachesAll: what one graph server ends with is what the others are told.
func TestTheCauseReachesAll(t *testing.T) {
	testkit.Leaks(t)
	for _, c := range []struct {
		spoil func(c *Client)
		want  string
	}{
		{func(c *Client) { c.Abort(errors.New("disk full")) }, "disk full"},
		{func(c *Client) {
			p := pushTask(c, 0, 3, 0)
			for _, g := range p.Grads {
				if g.Param == 0 {
					g.G.Row(70)[1] = float32(math.Inf(1))
				}
			}
			if err := c.Push(t.Context(), p); err != nil {
				t.Error(err)
			}
		}, "epoch 0: gradient of conv1.lin.weight (layer 1) is not finite: lower --lr"},
		{func(c *Client) {
			p := pushTask(c, 0, 3, 1)
			p.Losses[0].Loss = math.NaN()
			if err := c.Push(t.Context(), p); err != nil {
				t.Error(err)
			}
		}, "epoch 0: the loss is not finite"},
	} {
		x := serveAll(t, 3, nil)
		spans := []kernels.Span{{Lo: 0, Hi: 2}, {Lo: 2, Hi: 4}}
		clients := joined(t, x.want(0, 2, 4, spans[0], optims[0]), x.want(1, 2, 4, spans[1], optims[0]))
		c.spoil(clients[1])
		var wg sync.WaitGroup
		for r, own := range []kernels.Span{spans[0], {Lo: 2, Hi: 4}} {
			wg.Go(func() {
				if _, err := train(t.Context(), clients[r], own, 1, 0); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("client %d ends with %v, want %q", r, err, c.want)
				}
			})
		}
		wg.Wait()
	}
}

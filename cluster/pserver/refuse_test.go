package pserver

import (
	"context"
	"strings"
	"testing"
	"time"

	"dorylus/cluster/rpc"
	"dorylus/engine/model"
	"dorylus/engine/optim"
	"dorylus/engine/params"
	"dorylus/engine/testkit"
	"dorylus/kernels"
)

// TestStrangersAreRefused: who does not fit is told why, and the run goes on without it.
func TestStrangersAreRefused(t *testing.T) {
	testkit.Leaks(t)
	x := serveAll(t, 2, func(c *ServerConfig) { c.Run, c.Graphs = "test", 2 })
	good := x.want(0, 2, 4, kernels.Span{Hi: 2}, optims[0])
	ours := make(chan *Client, 1)
	go func() {
		c, err := Connect(t.Context(), good)
		if err != nil {
			t.Error(err)
		}
		ours <- c
	}()
	c := <-ours // the leader has the first version before others have come
	defer func() { c.Abort(context.Canceled); check(t, c.Close()) }()
	wider := append([]model.ParamSpec{}, net...)
	wider[3].Cols++
	for _, s := range []struct {
		change func(*ClientConfig)
		want   string
	}{
		{func(c *ClientConfig) { c.Run = "other" }, `it belongs to run "other", this server to run "test"`},
		{func(c *ClientConfig) { c.Graphs = 3 }, "it is one of 3 graph servers, this server expects 2"},
		{func(c *ClientConfig) { c.Addrs = x.addrs[:1] }, "it looks for parameter server 0 of 1, this is 0 of 2"},
		{func(c *ClientConfig) { c.Addrs = []string{x.addrs[1], x.addrs[0]} }, "is the list of addresses the same everywhere?"},
		{func(c *ClientConfig) { c.Params.Blocks = 5 }, "differ from those of graph server 0: blocks: 5, not 4"},
		{func(c *ClientConfig) { c.Params.Optim.LR = 0.5 }, "differ from those of graph server 0: optimizer"},
		{func(c *ClientConfig) { c.Params.Specs = wider }, "parameter 3: {Name:conv2.lin.weight"},
		{func(c *ClientConfig) { c.Ahead = 3 }, "epochs that gradients may be ahead: 3, not 1024"},
		{func(c *ClientConfig) { c.Blocks = kernels.Span{Lo: 1, Hi: 4} }, "it has blocks [1,4), but graph server 0 has [0,2)"},
		{func(c *ClientConfig) { c.Rank = 0; c.Params.Init = params.InitParams(net, 1) }, "graph server 0 has joined already, from"},
	} {
		w := x.want(1, 2, 4, kernels.Span{Lo: 2, Hi: 4}, optims[0])
		s.change(&w)
		if _, err := Connect(t.Context(), w); err == nil || !strings.Contains(err.Error(), s.want) || !strings.Contains(err.Error(), "parameter server") {
			t.Errorf("%v, want %q", err, s.want)
		}
	}
	// The one who belongs here still can come.
	two := joined(t, x.want(1, 2, 4, kernels.Span{Lo: 2, Hi: 4}, optims[0]))
	if two[0].First() != 0 {
		t.Errorf("it starts with version %d", two[0].First())
	}
}

// TestWhoMisbehavesIsNamed: a client that says what no client of ours says ends the run,
// with its name.
func TestWhoMisbehavesIsNamed(t *testing.T) {
	testkit.Leaks(t)
	enc := func(s *shard, m *kernels.Mat) [][]byte { return appendTensor(s.enc, nil, 1, m) }
	for _, c := range []struct {
		m    func(s *shard) *rpc.Message
		want string
	}{
		{func(*shard) *rpc.Message { return newMessage(kindPush, push{Epoch: 1 << 40}) }, "more than 1024 ahead"},
		{func(*shard) *rpc.Message { return newMessage(kindPush, push{Epoch: -1}) }, "gradients of epoch -1, the run starts with 0"},
		{func(*shard) *rpc.Message {
			return newMessage(kindPush, push{Grads: []grad{{Param: 9, Block: 2, Span: 1}}})
		}, "of parameter 9, of which shard 0 has no rows"},
		{func(*shard) *rpc.Message { return newMessage(kindPush, push{Grads: []grad{{Block: 1, Span: 1}}}) }, "the gradient of 1 blocks from 1, it has [2,4)"},
		{func(*shard) *rpc.Message {
			return newMessage(kindPush, push{Losses: []loss{{Block: 3, Span: 1 << 62}}})
		}, "it has [2,4)"},
		{func(s *shard) *rpc.Message {
			return newMessage(kindPush, push{Grads: []grad{{Block: 2, Span: 1}}}, enc(s, kernels.FromSlice(2, 2, make([]float32, 4)))...)
		}, "of conv1.lin.weight, blocks [2,3): decode frame: a tensor of 2 x 2 into"},
		{func(*shard) *rpc.Message { return newMessage(kindPush, push{Grads: []grad{{Block: 2, Span: 1}}}) }, "fewer parts than tensors"},
		{func(*shard) *rpc.Message { return newMessage(kindPush, push{}, []byte("x")) }, "1 parts follow"},
		{func(*shard) *rpc.Message { return newMessage(kindAck, ack{7}) }, "it says that it has version 7, the newest is 0"},
		{func(*shard) *rpc.Message { return newMessage(kindAsk, ask{3}) }, "it asks for version 3"},
		{func(*shard) *rpc.Message { return newMessage(kindNorm, norm{}) }, "which is for graph server 0 to send"},
		{func(*shard) *rpc.Message { return newMessage(kindState, state{}) }, "which no client sends"},
		{func(*shard) *rpc.Message { return &rpc.Message{Kind: kindAck, Head: []byte("{")} }, "read the head of a message of kind 5: unexpected end"},
	} {
		x := serveAll(t, 1, nil)
		clients := joined(t, x.want(0, 2, 4, kernels.Span{Hi: 2}, optims[0]), x.want(1, 2, 4, kernels.Span{Lo: 2, Hi: 4}, optims[0]))
		bad := clients[1]
		bad.mu.Lock()
		bad.links[0].push(0, c.m(x.servers[0].shard))
		bad.mu.Unlock()
		for r, k := range clients {
			_, ok := <-k.Updates()
			if err := k.Err(); ok || err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "graph server 1 at 127.0.0.1") {
				t.Errorf("client %d ends with %v, want %q of graph server 1", r, err, c.want)
			}
		}
		if err := <-x.ran[0]; err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("the parameter server ends with %v, want %q", err, c.want)
		}
	}
}

// TestWhoIsMissingIsNamed: after the deadline, with the reason if there is one.
func TestWhoIsMissingIsNamed(t *testing.T) {
	testkit.Leaks(t)
	x := serveAll(t, 1, func(c *ServerConfig) { c.Join = time.Second })
	c := joined(t, x.want(0, 4, 4, kernels.Span{Hi: 4}, optims[0]))[0]
	w := x.want(2, 4, 4, kernels.Span{Lo: 4, Hi: 4}, optim.Config{Name: "sgd"})
	if _, err := Connect(t.Context(), w); err == nil {
		t.Error("other settings were accepted")
	}
	<-c.Updates()
	want := "of 4 graph servers these have not joined within 1s: 1, 2 (refused: its settings differ from those of graph server 0: optimizer"
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("ended with %v, want %q", err, want)
	}
}

// TestWhoDoesNotReadIsLost: a client that takes nothing is not waited for.
func TestWhoDoesNotReadIsLost(t *testing.T) {
	testkit.Leaks(t)
	x := serveAll(t, 1, func(c *ServerConfig) { c.Stall, c.Grace = 200*time.Millisecond, 200*time.Millisecond })
	w := x.want(0, 1, 1, kernels.Span{Hi: 1}, optims[0])
	c, err := newClient(w)
	check(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	near, far := pipe(ctx)
	far.out = make(chan []byte) // no room
	ended := make(chan error, 1)
	go func() {
		err := x.servers[0].serve(far)
		far.end(err)
		ended <- err
	}()
	check(t, send(near, newMessage(kindHello, c.hello(c.links[0]))))
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "was not read for 200ms") {
		t.Errorf("the stream ends with %v", err)
	}
	if err := <-x.ran[0]; err == nil || !strings.Contains(err.Error(), "graph server 0 at this process: lost") {
		t.Errorf("the server ends with %v", err)
	}
	cancel()
	c.cancel()
}

// TestAServerStartedAnewIsRefused: it has lost what the run needs.
func TestAServerStartedAnewIsRefused(t *testing.T) {
	testkit.Leaks(t)
	x := serveAll(t, 1, nil)
	c := joined(t, x.want(0, 1, 1, kernels.Span{Hi: 1}, optims[0]))[0]
	addr := x.addrs[0]
	x.kill(0)
	cfg := ServerConfig{Shards: 1, Device: device(t)}
	s, err := NewServer(cfg)
	check(t, err)
	l, err := rpc.Listen(addr, rpc.Plaintext(), rpc.Options{})
	check(t, err)
	s.Handle(l)
	l.Serve()
	<-c.Updates()
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "started anew and has lost what it held: resume the run from its last checkpoint") {
		t.Errorf("ended with %v", err)
	}
	check(t, s.Close())
	check(t, l.Close())
}

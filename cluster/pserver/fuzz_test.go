package pserver

import (
	"context"
	"testing"

	"dorylus/cluster/rpc"
	"dorylus/engine/params"
	"dorylus/engine/task"
	"dorylus/kernels"
	"dorylus/kernels/ref"
)

// pair is a shard and its only client, joined, for messages of any kind.
func pair(t *testing.T) (*world, *wire) {
	w := newWorld(t, 1, 1, 2, []kernels.Span{{Hi: 2}}, optims[1], nil)
	w.settle(false)
	return w, w.wires[0]
}

// FuzzShard gives a shard whatever may come over the network: it takes it or says what is
// wrong with it.
func FuzzShard(f *testing.F) {
	dev, err := ref.Open()
	check(f, err)
	c, err := newClient(ClientConfig{Graphs: 1, Blocks: kernels.Span{Hi: 2}, Intervals: task.Range{Hi: 2}, Addrs: make([]string, 1),
		Params: params.Config{Specs: net, Init: params.InitParams(net, 1), Blocks: 2, Device: dev, Optim: optims[1]}})
	check(f, err)
	seed := func(m *rpc.Message) {
		b, err := m.Append(nil)
		check(f, err)
		f.Add(b)
	}
	seed(c.begin(c.links[0]))
	seed(newMessage(kindHello, c.hello(c.links[0])))
	seed(newMessage(kindPush, push{Grads: []grad{{Param: 1, Block: 0, Span: 2}}, Losses: []loss{{Block: 1, Span: 1, Bits: 3}}},
		appendTensor(c.enc, nil, 1, kernels.FromSlice(1, 13, make([]float32, 13)))...))
	seed(newMessage(kindAck, ack{0}))
	seed(newMessage(kindNorm, norm{}))
	seed(newMessage(kindAsk, ask{0}))
	seed(newMessage(kindBye, bye{}))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := rpc.Parse(b)
		if err != nil {
			return
		}
		w, x := pair(t)
		defer w.close()
		var h hello
		if readHead(m, kindHello, &h) == nil {
			_, _ = x.s.join(&h, "fuzz")
		}
		_ = x.s.handle(x.far, m)
	})
}

// FuzzClient is the same for what a client is told.
func FuzzClient(f *testing.F) {
	seed := func(m *rpc.Message) {
		b, err := m.Append(nil)
		check(f, err)
		f.Add(b)
	}
	seed(newMessage(kindWeights, weights{}))
	seed(newMessage(kindReady, ready{}, encodeSquares([][]float64{{1, 2}, nil})...))
	seed(newMessage(kindState, state{}))
	seed(newMessage(kindWelcome, welcome{Server: "x", Start: true}))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := rpc.Parse(b)
		if err != nil {
			return
		}
		w, x := pair(t)
		defer w.close()
		w.begin(0)
		_ = x.c.welcomed(x.l, x.c.hello(x.l), m)
		_ = x.c.handle(x.l, m)
	})
}

// TestLargeMessages go in frames, and what is too large for any model is refused.
func TestLargeMessages(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	near, far := pipe(ctx)
	m := newMessage(kindState, state{Version: 3})
	var all int64
	for i := range 11 {
		m.Parts = append(m.Parts, make([]byte, chunk-i))
		m.Parts[i][0] = byte(i)
		all += int64(chunk - i + 24)
	}
	for _, most := range []int64{all, all - 1} {
		go func() { _ = send(near, m) }()
		got, err := receive(far, most)
		if most < all {
			if err == nil {
				t.Error("more was taken than the limit")
			}
			continue
		}
		check(t, err)
		if len(got.Parts) != 11 || got.Parts[10][0] != 10 || string(got.Head) != string(m.Head) || got.Kind != m.Kind {
			t.Errorf("%d parts came, kind %d, head %s", len(got.Parts), got.Kind, got.Head)
		}
	}
}

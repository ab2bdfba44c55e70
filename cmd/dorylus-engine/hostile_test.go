package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"dorylus/cluster/certs"
	"dorylus/cluster/member"
	"dorylus/cluster/node"
	"dorylus/cluster/pserver"
	"dorylus/cluster/rpc"
	"dorylus/engine"
	"dorylus/engine/graph"
	"dorylus/engine/pipeline"
	"dorylus/engine/testkit"
	"dorylus/kernels/devices"
)

// liar sends other rows than those that it was asked to.
type liar struct {
	engine.Exchanger
	lie func(m *engine.RowMsg)
}

func (l liar) Send(ctx context.Context, m *engine.RowMsg) error {
	other := *m
	l.lie(&other)
	return l.Exchanger.Send(ctx, &other)
}

// A graph server that has proved who it is may still not send what nobody has asked for:
// it is refused by what it announces, and by name.
func TestAServerThatLiesIsNamed(t *testing.T) {
	testkit.Leaks(t)
	big := make([]float32, 8<<20)
	for says, lie := range map[string]func(m *engine.RowMsg){
		"524288 rows of 16 instead of": func(m *engine.RowMsg) { m.Step, m.Finished, m.Cols, m.Data = 1, false, 16, big },
		"rows of 4096 instead of":      func(m *engine.RowMsg) { m.Step, m.Finished, m.Cols, m.Data = 1, false, 4096, big },
		"pass publishes nothing in":    func(m *engine.RowMsg) { m.Step, m.Finished, m.Cols, m.Data = 0, false, 16, big },
		"has no interval 0 at server":  func(m *engine.RowMsg) { m.Interval = 0 },
	} {
		err := beside(t, time.Minute, func(ctx context.Context, n *node.Node, opt pipeline.Options) error {
			opt.Cluster.Exchange = liar{n.Exchanger(), lie}
			_, err := pipeline.Train(ctx, opt)
			return err
		})
		var p *rpc.PeerError
		if !errors.As(err, &p) || p.Who.Role != rpc.Graph || p.Who.Rank != 1 || !strings.Contains(err.Error(), "it sends what does not fit") || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want an error of graph server 1 with %q", err, says)
		}
	}
}

// A graph server that is there and does nothing is named when --stall-timeout is over.
func TestAServerThatDoesNothingIsNamed(t *testing.T) {
	testkit.Leaks(t)
	err := beside(t, 300*time.Millisecond, func(_ context.Context, n *node.Node, _ pipeline.Options) error {
		<-n.Down()
		return n.Err()
	})
	var p *rpc.PeerError
	if !errors.As(err, &p) || p.Who.Role != rpc.Graph || p.Who.Rank != 1 || !strings.Contains(err.Error(), "gave nothing for 300ms") {
		t.Errorf("%v, want an error of graph server 1, that gave nothing", err)
	}
}

// beside trains on two graph servers, and is the error of the first. What the second does
// is for the test to say; its opt is what it would train with.
func beside(t *testing.T, stall time.Duration, second func(ctx context.Context, n *node.Node, opt pipeline.Options) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	authority, err := certs.New(certs.DevRun, time.Hour)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(err)
	seats := make([]*seat, 2)
	var graphs []string
	for rank := range seats {
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		check(err)
		id, err := authority.Identity(rpc.Graph, rank)
		check(err)
		graphs = append(graphs, lis.Addr().String())
		seats[rank] = &seat{flags: &serveFlags{job: "lies", ready: time.Minute, peer: time.Minute, stall: stall}, id: id, listener: lis, w: io.Discard}
	}
	id, err := authority.Identity(rpc.Param, 0)
	check(err)
	server, err := rpc.Listen("127.0.0.1:0", id, rpc.Options{})
	check(err)
	dev, err := devices.Open("auto")
	check(err)
	ps, err := pserver.NewServer(pserver.ServerConfig{Shards: 1, Graphs: 2, Run: "lies", Device: dev})
	check(err)
	ps.Handle(server)
	server.Serve()
	defer func() { check(errors.Join(ps.Close(), server.Finish(farewell), dev.Close())) }()

	c := engine.DefaultConfig("gcn")
	c.Data, c.Epochs, c.Threads, c.Progress = "cora", 5, 1, "none"
	a := newApp(os.Stdout, os.Stderr, nil)
	st, err := a.loadData(ctx, &c, true)
	check(err)
	defer st.Close()
	split, err := splitOf(st, &c, 0)
	check(err)
	for rank, s := range seats {
		s.Membership = member.Membership{Role: member.Graph, Rank: rank, Graphs: graphs, Params: []string{server.Addr()}}
	}
	train := func(rank int) error {
		device, err := devices.Open("auto")
		if err != nil {
			return err
		}
		opt := pipeline.Options{Config: c, Seed: 1, Store: st, Split: split, Listener: engine.Listeners{}, Device: device, Version: versionText()}
		id, err := pipeline.Identify(&c, st, split, 1)
		if err != nil {
			return err
		}
		s := seats[rank]
		if rank == 0 {
			_, err = s.train(ctx, opt, id, device.Name(), nil)
			return errors.Join(err, device.Close())
		}
		n, err := node.Join(ctx, node.Config{Rank: rank, Graphs: graphs, Identity: s.id, Job: s.attempt(), Settings: alike(&c, id, device.Name()), RPC: rpc.Options{Listener: s.listener}})
		if err != nil {
			return err
		}
		opt.Cluster = &pipeline.Cluster{
			Group: n.Group(), Exchange: n.Exchanger(), Blocks: graph.Partition(st, split.Train, len(graphs)),
			Connect: func(ctx context.Context, j pipeline.ParamJob) (pipeline.Server, error) {
				return s.connect(ctx, j, c.Staleness, nil)
			},
		}
		err = second(ctx, n, opt)
		n.Fail(err)
		return errors.Join(err, n.Close(), device.Close())
	}
	errs := make([]error, len(seats))
	var wg sync.WaitGroup
	for rank := range seats {
		wg.Go(func() { errs[rank] = train(rank) })
	}
	wg.Wait()
	if errs[1] == nil {
		t.Error("the second ends well")
	}
	return errs[0]
}

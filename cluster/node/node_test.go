package node_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"dorylus/cluster/clustertest"
	"dorylus/cluster/node"
	"dorylus/cluster/rpc"
	"dorylus/engine"
	"dorylus/engine/testkit"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// join has servers join, all but those that are left out.
func join(configs []node.Config, without ...int) ([]*node.Node, []error) {
	nodes, errs := make([]*node.Node, len(configs)), make([]error, len(configs))
	var wg sync.WaitGroup
	for rank := range configs {
		wg.Go(func() {
			for _, w := range without {
				if w == rank {
					return
				}
			}
			nodes[rank], errs[rank] = node.Join(context.Background(), configs[rank])
		})
	}
	wg.Wait()
	return nodes, errs
}

func closeAll(t *testing.T, nodes []*node.Node) {
	t.Helper()
	var wg sync.WaitGroup
	for rank, n := range nodes {
		if n != nil {
			wg.Go(func() {
				if err := n.Close(); err != nil && n.Err() == nil {
					t.Errorf("graph server %d leaves: %v", rank, err)
				}
			})
		}
	}
	wg.Wait()
}

func TestJoinAndLeave(t *testing.T) {
	testkit.Leaks(t)
	for _, n := range []int{1, 2, 5} {
		for _, tls := range []bool{false, true} {
			var mu sync.Mutex
			tables := make(map[int][]node.Row) // the last
			c := clustertest.Start(t, clustertest.Options{Graphs: n, TLS: tls, Tune: func(rank int, c *node.Config) {
				c.Report = func(table []node.Row) {
					mu.Lock()
					defer mu.Unlock()
					tables[rank] = table
				}
			}})
			for rank, node := range c.Nodes {
				if g := node.Group(); g.Rank() != rank || g.Size() != n {
					t.Errorf("%d of %d is %d of %d", rank, n, g.Rank(), g.Size())
				}
				if len(tables[rank]) != n {
					t.Fatalf("%d reports %+v, want a row for each of %d", rank, tables[rank], n)
				}
				for i, row := range tables[rank] {
					if row.Role != rpc.Graph || row.Rank != i || row.Addr == "" || !row.Ready || row.State == "" {
						t.Errorf("%d reports of %d: %+v", rank, i, row)
					}
				}
			}
			for rank, err := range c.Close() {
				if err != nil {
					t.Errorf("%d leaves: %v", rank, err)
				}
			}
			for _, node := range c.Nodes { // the ports are free
				lis, err := net.Listen("tcp", node.Addr())
				check(t, err)
				lis.Close()
			}
		}
	}
}

func TestJoinNamesTheMissing(t *testing.T) {
	testkit.Leaks(t)
	configs, _ := clustertest.Configs(t, clustertest.Options{Graphs: 4, Tune: func(_ int, c *node.Config) { c.ReadyTimeout = 300 * time.Millisecond }})
	configs[2].RPC.Listener.Close() // nobody is there
	nodes, errs := join(configs, 2)
	closeAll(t, nodes)
	for _, rank := range []int{0, 1, 3} {
		if err := errs[rank]; err == nil || !strings.Contains(err.Error(), "graph server 2 at "+configs[0].Graphs[2]) {
			t.Errorf("%d: %v, want an error that names graph server 2 at %s", rank, err, configs[0].Graphs[2])
		}
	}
}

func TestOtherSettingsAreNamed(t *testing.T) {
	testkit.Leaks(t)
	for says, tune := range map[string]func(c *node.Config){
		`job "`:              func(c *node.Config) { c.Job = "other" },
		"learning rate is ":  func(c *node.Config) { c.Settings = map[string]string{"learning rate": "0.01"} },
		`"0.02"`:             func(c *node.Config) { c.Settings = nil },
		"wire precision is ": func(c *node.Config) { c.WirePrecision = "bf16" },
		"it is of a run of ": func(c *node.Config) { c.Graphs = append(c.Graphs[:2:2], "127.0.0.1:9") },
		"is the list of addresses in the order of the ran": func(c *node.Config) { c.Graphs = []string{c.Graphs[1], c.Graphs[0]}; c.Listen = c.Graphs[0] },
	} {
		configs, _ := clustertest.Configs(t, clustertest.Options{Graphs: 2, Tune: func(rank int, c *node.Config) {
			c.Settings = map[string]string{"learning rate": "0.02"}
			c.ReadyTimeout = 5 * time.Second
			if rank == 1 {
				tune(c)
			}
		}})
		nodes, errs := join(configs)
		closeAll(t, nodes)
		said := 0
		for rank, err := range errs {
			switch {
			case err == nil:
				t.Errorf("%d: no error, want one with %q", rank, says)
			case strings.Contains(err.Error(), says):
				said++
			case !strings.Contains(err.Error(), fmt.Sprintf("missing: graph server %d at ", 1-rank)):
				// One that was refused may have gone before the other could call it.
				t.Errorf("%d: %v, want an error with %q, or that the other is missing", rank, err, says)
			}
		}
		if said == 0 {
			t.Errorf("neither says %q: %v", says, errs)
		}
	}
}

func TestBadConfigs(t *testing.T) {
	testkit.Leaks(t)
	configs, authority := clustertest.Configs(t, clustertest.Options{Graphs: 2, TLS: true})
	param, err := authority.Identity(rpc.Param, 0)
	check(t, err)
	for says, tune := range map[string]func(c *node.Config){
		"no addresses":                               func(c *node.Config) { c.Graphs = nil },
		"rank 2 of 2 graph servers":                  func(c *node.Config) { c.Rank = 2 },
		"want host:port":                             func(c *node.Config) { c.Graphs = []string{"a", "b:1"} },
		"0 and 1 have the same address a:1":          func(c *node.Config) { c.Graphs = []string{"a:1", "a:1"} },
		"no certificates":                            func(c *node.Config) { c.Identity = nil },
		"plain text were asked for":                  func(c *node.Config) { c.Insecure = true },
		"is that of parameter server 0":              func(c *node.Config) { c.Identity = param },
		"is that of graph server 0, this is graph s": func(c *node.Config) { c.Rank = 1 },
		"the run has no id":                          func(c *node.Config) { c.Job = "" },
		"fp64":                                       func(c *node.Config) { c.WirePrecision = "fp64" },
		"loopback addresses only": func(c *node.Config) {
			c.Identity, c.Insecure, c.Graphs = nil, true, []string{c.Graphs[0], "10.0.0.1:80"}
		},
	} {
		c := configs[0]
		c.RPC.Listener = nil
		c.Listen = "127.0.0.1:0"
		tune(&c)
		n, err := node.Join(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want an error with %q", err, says)
		}
		if n != nil {
			n.Close()
		}
	}
}

// A run ends at all servers, by the name of who is lost, when one dies or when two cannot
// reach each other although the others can.
func TestALostPeerEndsTheRunEverywhere(t *testing.T) {
	testkit.Leaks(t)
	for _, c := range []struct {
		a, b int
	}{{1, 2}, {0, 2}} {
		network := &clustertest.Net{}
		cl := clustertest.Start(t, clustertest.Options{Graphs: 4, Net: network, Tune: func(_ int, c *node.Config) { c.PeerTimeout = time.Second }})
		network.Block(c.a, c.b)
		for rank, n := range cl.Nodes {
			<-n.Down()
			_, recv := n.Exchanger().Recv(clustertest.Context(t))
			_, gather := n.Group().Gather(clustertest.Context(t), "k", nil)
			for what, err := range map[string]error{"receiving": recv, "gathering": gather, "the node": n.Err()} {
				if p := lostPeer(err, rank); p == nil || p.Who.Role != rpc.Graph || p.Who.Rank != c.a && p.Who.Rank != c.b || p.Addr != cl.Nodes[p.Who.Rank].Addr() {
					t.Errorf("%d and %d are apart; %s at %d: %v", c.a, c.b, what, rank, err)
				}
			}
		}
		cl.Close()
	}
}

// lostPeer is who is lost according to what the server rank says: it may have noticed by
// itself, or have heard from a third one, which counts for it, that it is itself given up
// by another.
func lostPeer(err error, rank int) *rpc.PeerError {
	var p, told *rpc.PeerError
	if !errors.As(err, &p) {
		return nil
	}
	if errors.As(p.Err, &told) && told.Who == (rpc.Who{Role: rpc.Graph, Rank: rank}) && strings.Contains(p.Err.Error(), "it says that this server is lost") {
		return told
	}
	return p
}

// A network that comes back in time is no loss.
func TestABrokenNetworkMends(t *testing.T) {
	testkit.Leaks(t)
	network := &clustertest.Net{}
	c := clustertest.Start(t, clustertest.Options{Graphs: 3, TLS: true, Net: network})
	for round := range 6 {
		a, b := round%3, (round+1)%3
		network.Block(a, b)
		key := fmt.Sprintf("round %d", round)
		var wg sync.WaitGroup
		wg.Go(func() { c.Each(func(rank int, n *node.Node) error { return exchange(t, n, key, round) }) })
		network.Unblock(a, b)
		wg.Wait()
		if network.Cut(a, b) < 2 {
			t.Errorf("round %d: no connection was made again", round)
		}
	}
}

// exchange sends a row to each of the others, reads theirs and gathers.
func exchange(t *testing.T, n *node.Node, key string, round int) error {
	ctx := clustertest.Context(t)
	g := n.Group()
	for to := range g.Size() {
		if to != g.Rank() {
			if err := n.Exchanger().Send(ctx, &engine.RowMsg{From: g.Rank(), To: to, Epoch: round, Cols: 1, Data: []float32{float32(g.Rank())}}); err != nil {
				return err
			}
		}
	}
	for range g.Size() - 1 {
		m, err := n.Exchanger().Recv(ctx)
		if err != nil {
			return err
		}
		if m.Epoch != round || m.Data[0] != float32(m.From) {
			return fmt.Errorf("got %+v in round %d", m, round)
		}
	}
	_, err := g.Gather(ctx, key, []byte{1})
	return err
}

// What one has failed by, the others hear.
func TestFailIsTold(t *testing.T) {
	testkit.Leaks(t)
	for rank := range 3 {
		c := clustertest.Start(t, clustertest.Options{Graphs: 3})
		c.Nodes[rank].Fail(errors.New("write a checkpoint: no space left"))
		check2 := func(i int, err error) {
			var p *rpc.PeerError
			if !errors.As(err, &p) || p.Who.Rank != rank || !strings.Contains(err.Error(), "it has failed: write a checkpoint: no space left") {
				t.Errorf("%d failed, %d hears %v", rank, i, err)
			}
		}
		for i, n := range c.Nodes {
			if i != rank {
				<-n.Down()
				check2(i, n.Err())
			}
		}
		check(t, c.Nodes[rank].Close())
	}
	// The loss of a server of another kind is told as it is.
	c := clustertest.Start(t, clustertest.Options{Graphs: 2})
	c.Nodes[1].Fail(&rpc.PeerError{Who: rpc.Who{Role: rpc.Param, Rank: 3}, Addr: "10.0.0.4:1", Awaited: "weights of version 7", Err: errors.New("gone")})
	<-c.Nodes[0].Down()
	if err := c.Nodes[0].Err(); !strings.Contains(err.Error(), "parameter server 3 at 10.0.0.4:1: gone (awaited: weights of version 7)") {
		t.Errorf("%v", err)
	}
}

// Others can add services, and the node's identity calls servers of other roles.
func TestRegisterAndDial(t *testing.T) {
	testkit.Leaks(t)
	c := clustertest.Start(t, clustertest.Options{Graphs: 2, TLS: true, Tune: func(rank int, c *node.Config) {
		c.Register = func(s *rpc.Server) {
			s.Handle(rpc.Service{Name: "test.Hi", Roles: []rpc.Role{rpc.Graph}, Calls: map[string]func(context.Context, *rpc.Message) (*rpc.Message, error){
				"Hi": func(context.Context, *rpc.Message) (*rpc.Message, error) {
					return &rpc.Message{Kind: uint16(rank + 1)}, nil
				},
			}})
		}
	}})
	cc, err := c.Nodes[0].Dial(c.Nodes[1].Addr(), rpc.Who{Role: rpc.Graph, Rank: 1})
	check(t, err)
	defer cc.Close()
	m, err := rpc.Call(clustertest.Context(t), cc, "/test.Hi/Hi", &rpc.Message{})
	if err != nil || m.Kind != 2 {
		t.Errorf("%+v, %v", m, err)
	}
}

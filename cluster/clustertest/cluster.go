// Package clustertest is a whole cluster of graph servers in one process, over loopback,
// with faults by seed: for tests.
package clustertest

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"dorylus/cluster/certs"
	"dorylus/cluster/link"
	"dorylus/cluster/node"
	"dorylus/cluster/rpc"
)

// Patience bounds what a test waits for: long, for machines with much else to do.
const Patience = 2 * time.Minute

// Options of a cluster.
type Options struct {
	Graphs int
	TLS    bool // else plain text
	// Faults are injected into the links; nil: none.
	Faults link.Faults
	// Net breaks connections; nil: nobody does.
	Net *Net
	// Tune changes a server's settings before it joins; nil: none.
	Tune func(rank int, c *node.Config)
}

// Cluster is graph servers in one process.
type Cluster struct {
	t     testing.TB
	Nodes []*node.Node // by rank
	// Authority signs certificates of the run; nil in plain text.
	Authority *certs.Authority
}

// Configs are the settings with which the servers of o join: all at addresses of
// loopback that are open already.
func Configs(t testing.TB, o Options) ([]node.Config, *certs.Authority) {
	t.Helper()
	var authority *certs.Authority
	if o.TLS {
		var err error
		if authority, err = certs.New(certs.DevRun, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	all := make([]node.Config, o.Graphs)
	var addrs []string
	for rank := range all {
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { lis.Close() }) // of one that never joins
		addrs = append(addrs, lis.Addr().String())
		all[rank].RPC.Listener = lis
	}
	for rank := range all {
		c := &all[rank]
		c.Rank, c.Graphs, c.Job, c.Faults = rank, addrs, "test", o.Faults
		c.ReadyTimeout, c.PeerTimeout, c.StallTimeout, c.GatherTimeout, c.LeaveTimeout = Patience, Patience, Patience, Patience, 2*time.Second
		c.Insecure = !o.TLS
		if o.TLS {
			id, err := authority.Identity(rpc.Graph, rank)
			if err != nil {
				t.Fatal(err)
			}
			c.Identity = id
		}
		if o.Net != nil {
			c.RPC.Dialer = o.Net.dialer(rank, addrs)
		}
		if o.Tune != nil {
			o.Tune(rank, c)
		}
	}
	return all, authority
}

// Start is a cluster whose servers have all joined. The test fails if they cannot. At
// its end they leave.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	configs, authority := Configs(t, o)
	c := &Cluster{t: t, Nodes: make([]*node.Node, o.Graphs), Authority: authority}
	errs := make([]error, o.Graphs)
	var wg sync.WaitGroup
	for rank := range configs {
		wg.Go(func() { c.Nodes[rank], errs[rank] = node.Join(context.Background(), configs[rank]) })
	}
	wg.Wait()
	t.Cleanup(func() {
		for rank, err := range c.Close() {
			if err != nil && c.Nodes[rank].Err() == nil {
				t.Errorf("graph server %d leaves: %v", rank, err)
			}
		}
	})
	for rank, err := range errs {
		if err != nil {
			t.Fatalf("graph server %d: %v", rank, err)
		}
	}
	return c
}

// Close lets all servers leave at once, and returns what each says of it. Those that
// have left say the same again.
func (c *Cluster) Close() []error {
	errs := make([]error, len(c.Nodes))
	var wg sync.WaitGroup
	for rank, n := range c.Nodes {
		if n != nil {
			wg.Go(func() { errs[rank] = n.Close() })
		}
	}
	wg.Wait()
	return errs
}

// Each runs f for all servers at the same time, and fails the test by their errors.
func (c *Cluster) Each(f func(rank int, n *node.Node) error) {
	c.t.Helper()
	errs := make([]error, len(c.Nodes))
	var wg sync.WaitGroup
	for rank, n := range c.Nodes {
		wg.Go(func() { errs[rank] = f(rank, n) })
	}
	wg.Wait()
	for rank, err := range errs {
		if err != nil {
			c.t.Errorf("graph server %d: %v", rank, err)
		}
	}
}

// Context ends with the test, or after Patience.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), Patience, fmt.Errorf("the test has waited for %v", Patience))
	t.Cleanup(cancel)
	return ctx
}

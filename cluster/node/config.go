// Package node makes a process a graph server of a run: it listens, connects to all
// others, and hands out the ports of the engine.
package node

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"time"

	"dorylus/cluster/ghost"
	"dorylus/cluster/group"
	"dorylus/cluster/link"
	"dorylus/cluster/rpc"
	"dorylus/lambda/codec"
)

// Config is what a graph server has to know of its run.
type Config struct {
	Rank int
	// Graphs are the addresses ("host:port") of all graph servers by rank.
	Graphs []string
	// Listen is the address to listen on; "": all interfaces at the port of
	// Graphs[Rank], or that address itself in plain text.
	Listen string
	// Identity proves who this is; Insecure asks for plain text instead, which is allowed
	// on loopback addresses only.
	Identity *rpc.Identity
	Insecure bool

	// Job is another for every run, Settings what all servers must have the same: a
	// server with others is refused by a message that says which differ.
	Job      string
	Settings map[string]string

	// WirePrecision of rows: "fp32" (or ""), "bf16", "fp16".
	WirePrecision string
	// Rows are the other settings of the exchange; its Wire is set by WirePrecision.
	Rows ghost.Config
	// Window bounds the bytes of rows under way to each server; 0: 32 MiB.
	Window int64

	// ReadyTimeout is how long all may take to be there; 0: 5 min. PeerTimeout is how
	// long one whose connection is broken may stay away; 0: 30 s; one that falls silent
	// counts as broken after 10 to 20 s. StallTimeout is how long
	// one may take nothing; 0: 5 min. GatherTimeout bounds the waiting for what all have
	// to give; 0: 15 min. LeaveTimeout is how long a farewell may take; 0: 5 s.
	ReadyTimeout, PeerTimeout, StallTimeout, GatherTimeout, LeaveTimeout time.Duration

	// Report gets the table of who is there, whenever something in it changes while the
	// run comes together; nil: nobody.
	Report func(table []Row)
	// Register adds services to the server before it begins to serve; nil: none.
	Register func(s *rpc.Server)

	// RPC are settings of sockets. Its Traffic, if any, counts what others have opened;
	// what this server has opened is counted by peer (Counters).
	RPC rpc.Options
	// Faults are injected by tests.
	Faults link.Faults
}

// Row says how a server stands.
type Row struct {
	Role  rpc.Role
	Rank  int
	Addr  string
	Ready bool
	State string
}

// validate completes c, and says all that is wrong with it.
func (c Config) validate() (Config, error) {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(c.Graphs) == 0 {
		bad("no addresses of graph servers")
	}
	if c.Rank < 0 || c.Rank >= len(c.Graphs) {
		bad("rank %d of %d graph servers: ranks are 0 to %d", c.Rank, len(c.Graphs), len(c.Graphs)-1)
	}
	seen := make(map[string]int)
	for rank, addr := range c.Graphs {
		if host, port, err := net.SplitHostPort(addr); err != nil || host == "" || port == "" || port == "0" {
			bad("address %q of graph server %d: want host:port", addr, rank)
		}
		if other, ok := seen[addr]; ok {
			bad("graph servers %d and %d have the same address %s", other, rank, addr)
		}
		seen[addr] = rank
	}
	switch {
	case c.Insecure && c.Identity != nil && !c.Identity.Plain():
		bad("certificates and plain text were asked for: want one of them")
	case c.Insecure:
		c.Identity = rpc.Plaintext()
	case c.Identity == nil:
		bad("no certificates: give them, or ask for plain text on loopback addresses")
	case !c.Identity.Plain():
		if who := c.Identity.Who(); who.Role != rpc.Graph || who.Rank >= 0 && who.Rank != c.Rank {
			bad("the certificate is that of %v, this is graph server %d", who, c.Rank)
		}
	}
	if c.Job == "" {
		bad("the run has no id, which all its servers must have the same")
	}
	if c.WirePrecision == "" {
		c.WirePrecision = codec.FP32.String()
	}
	wire, err := codec.ParseWire(c.WirePrecision)
	if err != nil {
		errs = append(errs, err)
	}
	c.Rows.Wire = wire
	c.Settings = maps.Clone(c.Settings)
	if c.Settings == nil {
		c.Settings = make(map[string]string)
	}
	c.Settings["wire precision"] = c.WirePrecision
	if c.Listen == "" && len(errs) == 0 {
		c.Listen = c.Graphs[c.Rank]
		if !c.Identity.Plain() {
			_, port, err := net.SplitHostPort(c.Listen)
			if err != nil {
				return c, err
			}
			c.Listen = net.JoinHostPort("", port)
		}
	}
	if c.ReadyTimeout <= 0 {
		c.ReadyTimeout = 5 * time.Minute
	}
	if err := errors.Join(errs...); err != nil {
		return c, fmt.Errorf("join the cluster: %w", err)
	}
	return c, nil
}

func (c *Config) base(peers map[int]link.Peer) link.Base {
	return link.Base{Rank: c.Rank, Size: len(c.Graphs), Peers: peers, Job: link.Job{ID: c.Job, Settings: c.Settings}, Window: c.Window,
		// The node's own deadline ends the waiting at first, with a table of all.
		ReadyTimeout: c.ReadyTimeout + time.Minute,
		PeerTimeout:  c.PeerTimeout, StallTimeout: c.StallTimeout, LeaveTimeout: c.LeaveTimeout, Faults: c.Faults}
}

func (c *Config) group() group.Config { return group.Config{Timeout: c.GatherTimeout} }

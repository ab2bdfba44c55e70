package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"dorylus/cluster/ghost"
	"dorylus/cluster/group"
	"dorylus/cluster/link"
	"dorylus/cluster/rpc"
	"dorylus/engine"
)

// farewell is how long the ends of streams may take to reach the others.
const farewell = time.Second

// Node is a graph server's place in the run. If a peer is lost, its ports end with an
// *rpc.PeerError, here and at all others.
type Node struct {
	c       Config
	server  *rpc.Server
	conns   []*grpc.ClientConn
	traffic map[int]*rpc.Traffic // of connections to a peer, by rank
	rows    *ghost.Exchanger
	group   *group.Group
	ended   chan struct{} // closed by Close
	closing sync.Once
	closed  error
	working sync.WaitGroup

	mu struct {
		sync.Mutex
		err error // of Fail
	}
}

// Join makes this process the graph server c.Rank, and returns when all are there. It
// leaves nothing behind if it fails; the error says who is missing, at which address.
func Join(ctx context.Context, c Config) (*Node, error) {
	c, err := c.validate()
	if err != nil {
		return nil, err
	}
	n, err := listen(c)
	if err != nil {
		return nil, err
	}
	n.rows.Links().Start()
	n.group.Start()
	n.working.Go(n.watch)
	if err := n.ready(ctx); err != nil {
		err = fmt.Errorf("join the cluster as graph server %d: %w", c.Rank, err)
		n.Fail(err)
		return nil, errors.Join(err, n.release(ctx, rpc.Text(err)))
	}
	return n, nil
}

// listen opens the server and all connections.
func listen(c Config) (*Node, error) {
	n := &Node{c: c, traffic: make(map[int]*rpc.Traffic), ended: make(chan struct{})}
	var err error
	if n.server, err = rpc.Listen(c.Listen, c.Identity, c.RPC); err != nil {
		return nil, err
	}
	fail := func(err error) (*Node, error) {
		for _, cc := range n.conns {
			cc.Close()
		}
		n.server.Close()
		return nil, err
	}
	peers := make(map[int]link.Peer)
	for rank, addr := range c.Graphs {
		if rank == c.Rank {
			continue
		}
		o := c.RPC
		o.Traffic = &rpc.Traffic{}
		who := rpc.Who{Role: rpc.Graph, Rank: rank}
		cc, err := rpc.Dial(addr, c.Identity, who, o)
		if err != nil {
			return fail(err)
		}
		n.conns = append(n.conns, cc)
		n.traffic[rank] = o.Traffic
		peers[rank] = link.Peer{Who: who, Addr: addr, Conn: cc}
	}
	base := c.base(peers)
	if n.group, err = group.New(c.group(), base, c.Graphs[c.Rank]); err != nil {
		return fail(err)
	}
	if n.rows, err = ghost.New(c.Rows, base, nil); err != nil {
		return fail(err)
	}
	n.server.Handle(n.group.Links().Service())
	n.server.Handle(n.rows.Links().Service())
	if c.Register != nil {
		c.Register(n.server)
	}
	n.server.Serve()
	return n, nil
}

// watch lets the loss of a peer, wherever it is noticed, end everything.
func (n *Node) watch() {
	select {
	case <-n.rows.Links().Down():
		n.group.Abort(n.rows.Links().Err())
	case <-n.group.Down():
		n.rows.Links().Fail(n.group.Err())
	case <-n.ended:
	}
}

// ready waits for all, and reports how they stand.
func (n *Node) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, n.c.ReadyTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		err := n.rows.Links().Ready(ctx)
		if err == nil {
			err = n.group.Links().Ready(ctx)
		}
		done <- err
	}()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	var last []Row
	report := func() {
		now := n.Table()
		if n.c.Report != nil && !slices.Equal(now, last) {
			n.c.Report(now)
		}
		last = now
	}
	report()
	for {
		select {
		case err := <-done:
			report()
			if why := n.Err(); why != nil {
				return why // it says more than that somebody is missing
			}
			return err
		case <-tick.C:
			report()
		}
	}
}

// Table is how all graph servers stand, by rank.
func (n *Node) Table() []Row {
	table := make([]Row, len(n.c.Graphs))
	table[n.c.Rank] = Row{rpc.Graph, n.c.Rank, n.c.Graphs[n.c.Rank], true, "this server"}
	control := make(map[int]link.State)
	for _, s := range n.group.Links().States() {
		control[s.Who.Rank] = s
	}
	for _, s := range n.rows.Links().States() {
		if c, ok := control[s.Who.Rank]; ok && s.Ready && !c.Ready {
			s = c
		}
		table[s.Who.Rank] = Row{s.Who.Role, s.Who.Rank, s.Addr, s.Ready, s.State}
	}
	return table
}

// Exchanger moves rows between the partitions.
func (n *Node) Exchanger() engine.Exchanger { return n.rows }

// Group is all graph servers.
func (n *Node) Group() engine.Group { return n.group }

// Server is the gRPC server, whose address is Addr.
func (n *Node) Server() *rpc.Server { return n.server }

// Addr is where this server listens.
func (n *Node) Addr() string { return n.server.Addr() }

// Dial is a connection to a server of another role, such as a parameter server, by the
// same identity. The caller closes it.
func (n *Node) Dial(addr string, want rpc.Who) (*grpc.ClientConn, error) {
	return rpc.Dial(addr, n.c.Identity, want, n.c.RPC)
}

// Down is closed when the run cannot go on: a peer is lost, or one has failed. Err says
// which.
func (n *Node) Down() <-chan struct{} { return n.group.Down() }

// Err is why the run cannot go on; nil while it can.
func (n *Node) Err() error {
	if err := n.group.Err(); err != nil {
		return err
	}
	return n.rows.Links().Err()
}

// Fail ends the run for all servers: this one has failed by err. Of an *rpc.PeerError,
// such as the loss of a parameter server, they hear what it says.
func (n *Node) Fail(err error) {
	if err == nil {
		return
	}
	n.mu.Lock()
	if n.mu.err == nil {
		n.mu.err = err
	}
	n.mu.Unlock()
	n.group.Abort(err)
	n.rows.Links().Fail(err)
}

// Traffic of the sockets that this server has opened to a peer.
type Traffic struct {
	Peer           int
	Sent, Received int64 // bytes, those of TLS and HTTP/2 included
}

// Counters are what has been moved so far.
type Counters struct {
	Rows    ghost.Snapshot
	Sockets []Traffic // by peer; rows go out on them, and what acknowledges comes in
}

// Counters is what has been moved so far.
func (n *Node) Counters() Counters {
	c := Counters{Rows: n.rows.Counters()}
	for rank := range n.c.Graphs {
		if t := n.traffic[rank]; t != nil {
			c.Sockets = append(c.Sockets, Traffic{rank, t.Sent(), t.Received()})
		}
	}
	return c
}

// Close leaves the run. In good order it waits until the others have taken what was sent
// to them; where the run has ended by an error, or Fail was called, they hear why. No
// goroutine, connection or port is left.
func (n *Node) Close() error {
	n.mu.Lock()
	err := n.mu.err
	n.mu.Unlock()
	if err == nil {
		err = n.Err()
	}
	return n.release(context.Background(), rpc.Text(err))
}

func (n *Node) release(ctx context.Context, why string) error {
	n.closing.Do(func() {
		close(n.ended)
		n.working.Wait()
		var rows, control error
		var wg sync.WaitGroup
		wg.Go(func() { rows = n.rows.Links().Leave(ctx, why) })
		wg.Go(func() { control = n.group.Leave(ctx, why) })
		wg.Wait()
		for _, cc := range n.conns {
			if err := cc.Close(); err != nil {
				rows = errors.Join(rows, err)
			}
		}
		n.closed = errors.Join(rows, control, n.server.Finish(farewell))
	})
	return n.closed
}

package pserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"dorylus/cluster/rpc"
	"dorylus/engine"
	"dorylus/engine/params"
	"dorylus/engine/task"
	"dorylus/kernels"
	"dorylus/lambda/codec"
)

// ClientConfig says what a graph server wants of the parameter servers.
type ClientConfig struct {
	// Rank is the graph server's, of Graphs. Rank 0 is the leader.
	Rank, Graphs int
	// Blocks are those whose gradients are pushed here. The ranges of all graph servers
	// together are the blocks of the graph; one may be empty.
	Blocks kernels.Span
	// Intervals are those that fetch here, by their numbers in the one order.
	Intervals task.Range
	// Params has Specs, Optim, Blocks and Device, all but the last the same on all graph
	// servers. The leader's Init, From and FirstEpoch are what the run starts with; those
	// of others, and Intervals and Gate, are not looked at.
	Params params.Config
	// Ahead bounds by how many epochs gradients may be ahead of the newest version, the same
	// on all graph servers: what is further is refused. Default 1024; staleness + 2 is enough.
	Ahead int
	// Run names the run; all must give the same.
	Run string
	// Addrs are the parameter servers, by rank. Local, where set, is the only one, in this
	// process.
	Addrs []string
	Local *Server
	// Hosted says that the only address is the leader's, whose process is the parameter
	// server too.
	Hosted bool
	// Identity proves who this is. It is not looked at with Local.
	Identity *rpc.Identity
	RPC      rpc.Options
	// Stop hears that a parameter server has to go, so that the run should stop; nil:
	// nobody.
	Stop func()
	// Join is how long a parameter server may take to be reached first; default 5 minutes.
	// Grace is how long it may be out of reach later; default 20 s. Stall is how long a
	// message may take to be sent; default 60 s.
	Join, Grace, Stall time.Duration
	// Link is the speed of the network in bytes per second; see ServerConfig.
	Link float64
}

// Client is a graph server's side of the parameter servers: engine.Params, and Snapshot and
// Copy. It is safe for concurrent use.
type Client struct {
	cfg     ClientConfig
	replica *params.Replica // once the first version is there, which Connect waits for
	job     job
	process string
	enc     *codec.Encoder
	open    func(ctx context.Context, shard int) (rpc.Stream, error)
	conns   []*grpc.ClientConn
	traffic traffic

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	ready  chan struct{} // replica is there
	failed chan struct{}
	asking sync.Mutex // one Snapshot at a time
	// installing is held from before a version is announced until it is complete: who has
	// heard of it finds it in a Snapshot. It comes before mu.
	installing sync.Mutex

	mu       sync.Mutex
	links    []*link // by shard
	coming   map[int]*coming
	first    int
	complete int            // the newest version of all shards, -1 for none
	spare    []*kernels.Mat // for the next version to be put together in
	squares  [][]float64
	squared  []bool // by shard
	epoch    int    // of squares
	snap     *snapshot
	err      error
	closing  bool
	again    bool
}

// snapshot is a state that is being put together.
type snapshot struct {
	state *params.State
	from  []bool
	left  int
	done  chan struct{}
}

// Connect joins a run and waits for its first version. ctx bounds that, and nothing else.
func Connect(ctx context.Context, cfg ClientConfig) (*Client, error) {
	c, err := newClient(cfg)
	if err != nil {
		return nil, fmt.Errorf("join the parameter servers: %w", err)
	}
	if cfg.Local == nil {
		for k, addr := range cfg.Addrs {
			cc, err := rpc.Dial(addr, cfg.Identity, cfg.who(k), cfg.RPC)
			if err != nil {
				return nil, errors.Join(fmt.Errorf("join the parameter servers: %w", err), c.Close())
			}
			c.conns = append(c.conns, cc)
		}
	}
	if err := c.connect(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// who answers at an address: parameter servers, or the leader if it hosts the only one.
func (c *ClientConfig) who(shard int) rpc.Who {
	if c.Hosted {
		return graph(0)
	}
	return rpc.Who{Role: rpc.Param, Rank: shard}
}

func newClient(cfg ClientConfig) (*Client, error) {
	p := &cfg.Params
	shards := len(cfg.Addrs)
	if cfg.Local != nil {
		shards = 1
	}
	if cfg.Ahead == 0 {
		cfg.Ahead = 1024
	}
	if cfg.Link == 0 {
		cfg.Link = 1.25e8
	}
	def(&cfg.Join, 5*time.Minute)
	def(&cfg.Grace, 20*time.Second)
	def(&cfg.Stall, time.Minute)
	switch {
	case shards == 0:
		return nil, errors.New("no address")
	case cfg.Local != nil && len(cfg.Addrs) > 0:
		return nil, errors.New("a server in this process, and addresses of others")
	case cfg.Hosted && len(cfg.Addrs) != 1:
		return nil, fmt.Errorf("the leader hosts the only parameter server, and there are %d addresses", len(cfg.Addrs))
	case cfg.Rank < 0 || cfg.Rank >= cfg.Graphs:
		return nil, fmt.Errorf("rank %d of %d", cfg.Rank, cfg.Graphs)
	case cfg.Rank == 0 && (p.Init == nil) == (p.From == nil) && len(p.Specs) > 0:
		return nil, errors.New("the leader starts with Init or From, exactly one of them")
	}
	enc, err := codec.NewEncoder(codec.Options{Link: cfg.Link})
	if err != nil {
		return nil, err
	}
	c := &Client{
		cfg: cfg, process: rand.Text(), enc: enc,
		job:   job{Specs: p.Specs, Optim: p.Optim.WithDefaults(), Blocks: p.Blocks, Graphs: cfg.Graphs, Shards: shards, Ahead: cfg.Ahead},
		ready: make(chan struct{}), failed: make(chan struct{}), coming: map[int]*coming{}, complete: -1, epoch: -1,
	}
	if cfg.Rank == 0 {
		if err := c.checkStart(); err != nil {
			return nil, err
		}
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.open = c.dial
	for k, s := range Layout(p.Specs, shards) {
		c.links = append(c.links, &link{shard: k, slices: s, have: -1, wake: make(chan struct{}, 1)})
	}
	return c, nil
}

// checkStart says what does not fit in what the leader starts with.
func (c *Client) checkStart() error {
	p := &c.cfg.Params
	groups, names := [][]*kernels.Mat{p.Init}, []string{"the weights"}
	if p.From != nil {
		groups[0] = p.From.Weights
		slots := c.job.Optim.Slots()
		if p.From.Optim == nil || len(p.From.Optim.Slots) != len(slots) {
			return fmt.Errorf("what to go on from does not have the moments of %s: %v", c.job.Optim.Name, slots)
		}
		groups, names = append(groups, p.From.Optim.Slots...), append(names, slots...)
	}
	for i, mats := range groups {
		if len(mats) != len(p.Specs) {
			return fmt.Errorf("%s are of %d parameters, the model has %d", names[i], len(mats), len(p.Specs))
		}
		for k, spec := range p.Specs {
			if m := mats[k]; m == nil || m.Host == nil || m.Rows != spec.Rows || m.Cols != spec.Cols {
				return fmt.Errorf("%s of %s are not %d x %d in host memory", names[i], spec.Name, spec.Rows, spec.Cols)
			}
		}
	}
	return nil
}

// connect starts the links and waits for the first version.
func (c *Client) connect(ctx context.Context) error {
	for _, l := range c.links {
		c.wg.Go(func() { c.keep(l) })
	}
	select {
	case <-c.ready:
		return nil
	case <-c.failed:
	case <-ctx.Done():
		c.fail(fmt.Errorf("join the parameter servers: %w; awaited: %s", context.Cause(ctx), c.awaited()))
	}
	err := c.cause()
	return errors.Join(err, c.Close())
}

// awaited says which shards have not given the version that comes next.
func (c *Client) awaited() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := fmt.Sprintf("version %d", c.complete+1)
	if c.complete < 0 {
		text = "the first version"
	}
	sep := " of parameter server "
	for _, l := range c.links {
		if l.have <= c.complete {
			text += fmt.Sprintf("%s%d", sep, l.shard)
			sep = ", "
		}
	}
	return text
}

// First is the version that the run has started with at this graph server.
func (c *Client) First() int { return c.first }

// begin is what the leader tells a shard to start with. mu is held.
func (c *Client) begin(l *link) *rpc.Message {
	p := &c.cfg.Params
	h := start{Version: p.FirstEpoch}
	st := &params.State{Weights: p.Init}
	if p.From != nil {
		st = p.From
		h = start{Version: st.Version, Step: st.Optim.Step, Moments: true}
	}
	m := newMessage(kindStart, h)
	for i, x := range sliceState(st, l.slices) {
		m.Parts = appendTensor(c.enc, m.Parts, codec.Key(1<<40+i), x)
	}
	return m
}

// push sends sums to the shards that have their rows, and losses to all.
func (c *Client) push(s *params.Sums) error {
	for _, l := range c.links {
		h := push{Epoch: s.Epoch}
		var parts [][]byte
		for _, x := range l.slices {
			for _, g := range s.Grads {
				if g.Param != x.Param {
					continue
				}
				h.Grads = append(h.Grads, grad{Param: g.Param, Block: g.Block, Span: g.Span, Nil: g.G == nil})
				if g.G != nil {
					parts = appendTensor(c.enc, parts, codec.Key(2<<40+g.Param), g.G.Sub(x.Rows))
				}
			}
		}
		for _, b := range s.Losses {
			h.Losses = append(h.Losses, loss{Block: b.Block, Span: b.Span, Bits: math.Float64bits(b.Loss)})
		}
		if len(h.Grads) == 0 && len(h.Losses) == 0 {
			continue
		}
		m := newMessage(kindPush, h, parts...)
		c.mu.Lock()
		l.push(s.Epoch, m)
		c.mu.Unlock()
	}
	return nil
}

// fail makes err the end of the client, which it tells all shards, unless it has one.
func (c *Client) fail(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	c.err = err
	close(c.failed)
	for _, l := range c.links {
		l.bye = &bye{Why: rpc.Text(err)}
		l.tell()
	}
	if c.replica != nil {
		c.replica.Fail(err)
	}
	return err
}

func (c *Client) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Err is why Updates has ended before Close; nil while nothing is wrong.
func (c *Client) Err() error { return c.cause() }

// Abort ends the run for all graph servers, for a reason. Close follows.
func (c *Client) Abort(why error) { c.fail(why) }

// Interrupted says that the run has stopped before its end, which the parameter servers
// hear. Close follows.
func (c *Client) Interrupted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.again = true
}

// Fetch implements engine.Params, as params.Replica does.
func (c *Client) Fetch(ctx context.Context, interval, epoch int) (engine.Weights, error) {
	return c.replica.Fetch(ctx, interval, epoch)
}

// Release implements engine.Params.
func (c *Client) Release(interval, epoch int) { c.replica.Release(interval, epoch) }

// Buffer implements engine.Params.
func (c *Client) Buffer(param int) *kernels.Mat { return c.replica.Buffer(param) }

// Push implements engine.Params. It does not wait for the network: what it completes is
// kept and sent, again if need be, until the shards have made use of it.
func (c *Client) Push(ctx context.Context, p *engine.Push) error {
	err := c.replica.Push(ctx, p)
	if cause := c.replica.Err(); cause != nil {
		return c.fail(cause)
	}
	return err
}

// Updates implements engine.Params. It ends early when something is wrong: Err says what.
func (c *Client) Updates() <-chan engine.Update { return c.replica.Updates() }

// Copy copies fetched weights, which must still be pinned, into host memory.
func (c *Client) Copy(w engine.Weights) ([]*kernels.Mat, error) { return c.replica.Copy(w) }

// Stash lists the versions that are kept here, the newest last.
func (c *Client) Stash() []params.VersionInfo { return c.replica.Stash() }

// Snapshot is the newest version that all shards have given, with its moments. Any graph
// server may ask at any time; no update is made meanwhile that would need what it reads.
func (c *Client) Snapshot() (*params.State, error) {
	c.asking.Lock()
	defer c.asking.Unlock()
	c.installing.Lock()
	c.mu.Lock()
	if c.err != nil || c.closing {
		defer c.installing.Unlock()
		defer c.mu.Unlock()
		return nil, errors.Join(c.err, errClosing(c.closing))
	}
	s := c.startSnapshot()
	c.mu.Unlock()
	c.installing.Unlock()
	select {
	case <-s.done:
		return s.state, nil
	case <-c.failed:
		return nil, c.cause()
	case <-c.ctx.Done():
		return nil, errClosing(true)
	}
}

// startSnapshot asks all shards for the newest version. mu is held.
func (c *Client) startSnapshot() *snapshot {
	specs := c.cfg.Params.Specs
	s := &snapshot{
		state: &params.State{Version: c.complete, Weights: newMats(specs), Optim: newMoments(c.job.Optim, specs, -1)},
		from:  make([]bool, len(c.links)), left: len(c.links), done: make(chan struct{}),
	}
	c.snap = s
	c.tellAll()
	return s
}

func errClosing(yes bool) error {
	if yes {
		return errors.New("parameter servers: closed")
	}
	return nil
}

// tellAll wakes all links. mu is held.
func (c *Client) tellAll() {
	for _, l := range c.links {
		l.tell()
	}
}

// Counters are what has been sent and received.
func (c *Client) Counters() Counters { return c.traffic.counters() }

// PeakMemory is the most memory that each parameter server had had when it answered the
// last Snapshot, in bytes, by rank; 0 where that is not known.
func (c *Client) PeakMemory() []int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	peaks := make([]int64, len(c.links))
	for i, l := range c.links {
		peaks[i] = l.peak
	}
	return peaks
}

// leave is how long the shards may take to answer a goodbye.
const leave = 10 * time.Second

// Close says goodbye to the shards and frees all memory, as params.Server does. A second
// Close does nothing.
func (c *Client) Close() error {
	c.mu.Lock()
	if !c.closing {
		c.closing = true
		for _, l := range c.links {
			if l.bye == nil {
				l.bye = &bye{Again: c.again}
			}
			l.tell()
		}
	}
	c.mu.Unlock()
	late := time.AfterFunc(leave, c.cancel)
	c.wg.Wait()
	late.Stop()
	c.cancel()
	var errs []error
	for _, cc := range c.conns {
		if err := cc.Close(); err != nil && status.Code(err) != codes.Canceled {
			errs = append(errs, err)
		}
	}
	if c.replica != nil {
		errs = append(errs, c.replica.Close())
	}
	return errors.Join(errs...)
}

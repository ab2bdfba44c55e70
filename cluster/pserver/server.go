package pserver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"dorylus/cluster/rpc"
	"dorylus/kernels"
)

// service is what a shard offers to graph servers: one stream each.
const (
	service = "dorylus.cluster.v1.Params"
	stream  = "Serve"
	method  = "/" + service + "/" + stream
)

// ServerConfig says what a parameter server is. What it serves, the leader tells it.
type ServerConfig struct {
	// Shard is its rank, of Shards.
	Shard, Shards int
	// Graphs is how many graph servers there are; 0: as many as the first of them says.
	Graphs int
	// Addrs are where graph servers listen, by rank: errors name them by these; nil: by the
	// ports that they call from.
	Addrs []string
	// Run names the run, and is "" or what all graph servers say.
	Run string
	// Device has the rows and moments, in host memory. The bits of a run are those of its
	// instruction set.
	Device kernels.Device
	// Join is how long all graph servers may take to appear; default 5 minutes.
	Join time.Duration
	// Grace is how long a graph server may be away whose connection broke; default 20 s.
	Grace time.Duration
	// Stall is how long a message may take to be sent; default 60 s. Whoever does not read
	// for as long has lost its connection.
	Stall time.Duration
	// Link is the speed of the network in bytes per second, by which it is decided what
	// is worth compressing; default 1.25e8, of a 1 Gbit/s network.
	Link float64
	// PeakMemory is the most memory that this process has had, in bytes, for the reports
	// of the run; nil: unknown.
	PeakMemory func() int64

	ctx context.Context
}

func (c *ServerConfig) check() error {
	var errs []error
	if c.Shards < 1 || c.Shard < 0 || c.Shard >= c.Shards {
		errs = append(errs, fmt.Errorf("shard %d of %d", c.Shard, c.Shards))
	}
	if c.Graphs < 0 || c.Graphs > maxGraphs {
		errs = append(errs, fmt.Errorf("%d graph servers", c.Graphs))
	}
	if c.Device == nil {
		errs = append(errs, errors.New("no device"))
	} else if m, err := c.Device.Alloc(1, 1); err != nil {
		errs = append(errs, err)
	} else {
		if m.Host == nil {
			errs = append(errs, fmt.Errorf("the memory of %s is not the host's: a parameter server runs on a processor", c.Device.Name()))
		}
		c.Device.Free(m)
	}
	def(&c.Join, 5*time.Minute)
	def(&c.Grace, 20*time.Second)
	def(&c.Stall, time.Minute)
	if c.Link == 0 {
		c.Link = 1.25e8
	}
	return errors.Join(errs...)
}

func def(d *time.Duration, to time.Duration) {
	if *d <= 0 {
		*d = to
	}
}

// Server is one parameter server. Make it with NewServer, offer it with Handle, and Run it.
type Server struct {
	shard   *shard
	traffic traffic
	cancel  context.CancelFunc

	mu      sync.Mutex
	closed  bool
	streams sync.WaitGroup // grows while not closed
}

// traffic counts the bytes of messages.
type traffic struct{ sent, received atomic.Int64 }

// Counters are bytes of messages, without what gRPC and TLS add.
type Counters struct{ Sent, Received int64 }

func (t *traffic) counters() Counters { return Counters{t.sent.Load(), t.received.Load()} }

// NewServer is a server that waits for graph servers. Close frees what it holds.
func NewServer(cfg ServerConfig) (*Server, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("parameter server: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cfg.ctx = ctx
	sh, err := newShard(cfg)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("parameter server: %w", err)
	}
	return &Server{shard: sh, cancel: cancel}, nil
}

// Handle offers the server to graph servers on r, before r serves: an r of its own, or a
// graph server's, whose process then is a parameter server too.
func (s *Server) Handle(r *rpc.Server) {
	r.Handle(rpc.Service{Name: service, Roles: []rpc.Role{rpc.Graph}, Streams: map[string]func(rpc.Stream) error{stream: s.serve}})
}

// Run waits until all graph servers have said goodbye. Before, it ends with an error that
// says what is wrong, such as who is lost, and which all graph servers get too; so they do
// when ctx ends.
func (s *Server) Run(ctx context.Context) error {
	join := time.NewTimer(s.shard.cfg.Join)
	defer join.Stop()
	for {
		select {
		case <-s.shard.ended:
			return nil
		case <-s.shard.failed:
			s.stop() // when this returns the port may be closed: all shall have heard why
			return fmt.Errorf("parameter server %d: %w", s.shard.cfg.Shard, s.shard.cause())
		case <-join.C:
			if err := s.shard.missing(); err != nil {
				s.shard.fail(err)
			}
		case <-ctx.Done():
			s.shard.fail(fmt.Errorf("it is being stopped: %w", context.Cause(ctx)))
		}
	}
}

// Waiting says that no graph server has joined yet.
func (s *Server) Waiting() bool {
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	return s.shard.job == nil
}

// Stop asks the graph servers to end the run, as this server has to go: they stop it with
// a checkpoint and say goodbye.
func (s *Server) Stop() { s.shard.stop() }

// Unfinished says that the run was stopped before its end, as graph servers have said in
// their goodbyes.
func (s *Server) Unfinished() bool {
	s.shard.mu.Lock()
	defer s.shard.mu.Unlock()
	return s.shard.again
}

// Close ends what streams there are, waits for them and frees all memory. Those who have
// an answer to come get it first, unless they do not read.
func (s *Server) Close() error {
	select {
	case <-s.shard.ended:
	default:
		s.shard.fail(errors.New("it has been closed"))
	}
	s.stop()
	s.cancel()
	return s.shard.close()
}

// stop takes no more streams and waits for those that there are.
func (s *Server) stop() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.streams.Wait()
}

// Counters are what has been sent and received.
func (s *Server) Counters() Counters { return s.traffic.counters() }

// serve is a graph server's stream.
func (s *Server) serve(st rpc.Stream) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		if cause := s.shard.cause(); cause != nil {
			return rpc.Refuse("%s", rpc.Text(cause))
		}
		return rpc.Refuse("parameter server %d has ended", s.shard.cfg.Shard)
	}
	s.streams.Add(1)
	s.mu.Unlock()
	defer s.streams.Done()
	type first struct {
		m   *rpc.Message
		err error
	}
	hi := make(chan first, 1)
	s.streams.Go(func() {
		m, err := receive(st, 1<<20)
		hi <- first{m, err}
	})
	patience := time.NewTimer(s.shard.cfg.Stall)
	defer patience.Stop()
	var f first
	select {
	case f = <-hi:
	case <-patience.C:
		return rpc.Refuse("nothing was said for %v", s.shard.cfg.Stall)
	case <-s.shard.failed:
		return rpc.Refuse("%v", rpc.Text(s.shard.cause()))
	}
	if f.err != nil {
		return f.err
	}
	var h hello
	if err := readHead(f.m, kindHello, &h); err != nil {
		return rpc.Refuse("%v", err)
	}
	if err := rpc.Claim(st.Context(), graph(h.Rank)); err != nil {
		return err
	}
	c, err := s.shard.join(&h, s.shard.cfg.addr(h.Rank, addrOf(st.Context())))
	if status.Code(err) == codes.Unavailable { // it may call again
		return err
	}
	if err != nil {
		return rpc.Refuse("%s", rpc.Text(err))
	}
	s.shard.letGo() // it may have the version that all waited for it to have
	return s.talk(st, c)
}

// addr is where a graph server listens, as far as is known.
func (c *ServerConfig) addr(rank int, seen string) string {
	if rank >= 0 && rank < len(c.Addrs) {
		return c.Addrs[rank]
	}
	return seen
}

func addrOf(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok {
		return p.Addr.String()
	}
	return "this process"
}

// talk serves a client until its stream ends, or has to.
func (s *Server) talk(st rpc.Stream, c *client) error {
	sh := s.shard
	sh.mu.Lock()
	number, kick, wake := c.stream, c.kick, c.wake
	sh.mu.Unlock()
	defer sh.left(c, number)
	ends := make(chan error, 2)
	over := make(chan struct{})
	defer close(over)
	s.streams.Go(func() { ends <- s.listen(st, c, over) })
	s.streams.Go(func() { ends <- s.speak(st, c, number, wake, over) })
	left := 2
	select {
	case err := <-ends:
		if left--; sh.cause() == nil {
			return err
		}
	case <-sh.failed:
	case <-kick:
		return errors.New("the graph server has come back on another stream")
	}
	// Speaking ends with the cause, listening when the client has heard it.
	t := time.NewTimer(min(linger, sh.cfg.Stall))
	defer t.Stop()
	for left > 0 {
		select {
		case <-ends:
			left--
		case <-t.C:
			left = 0
		}
	}
	return rpc.Refuse("%s", rpc.Text(sh.cause()))
}

// linger is how long a client may take to hear why the run has ended.
const linger = 2 * time.Second

// listen takes a client's messages until there are no more.
func (s *Server) listen(st rpc.Stream, c *client, over <-chan struct{}) error {
	most := limit(s.shard.specsOf())
	for {
		m, err := receive(st, most)
		if err != nil {
			select {
			case <-over: // the stream has ended for another reason
				return err
			default:
			}
			if !rpc.Passing(err) {
				return s.shard.blame(c, err)
			}
			return err
		}
		s.traffic.received.Add(size(m))
		if s.shard.cause() != nil {
			continue // until the client has heard that the run has ended, and hangs up
		}
		if err := s.shard.handle(c, m); err != nil {
			_ = s.shard.blame(c, err)
		}
	}
}

// speak sends what there is for a client.
func (s *Server) speak(st rpc.Stream, c *client, number int, wake, over <-chan struct{}) error {
	for {
		m, last := s.shard.next(c, number)
		if m == nil {
			select {
			case <-wake:
				continue
			case <-over:
				return nil
			}
		}
		if err := timed(&s.streams, st, m, s.shard.cfg.Stall); err != nil {
			return err
		}
		s.traffic.sent.Add(size(m))
		if last {
			return nil
		}
	}
}

// timed sends m, or says that its receiver does not read. The stream must end then, which
// ends what was left of the sending.
func timed(wg *sync.WaitGroup, st rpc.Stream, m *rpc.Message, patience time.Duration) error {
	sent := make(chan error, 1)
	wg.Go(func() { sent <- send(st, m) })
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case err := <-sent:
		return err
	case <-t.C:
		return status.Errorf(codes.Unavailable, "a message was not read for %v", patience)
	}
}

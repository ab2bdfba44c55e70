package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// closePatience bounds how long callers may take to read their last answers.
const closePatience = 5 * time.Second

// Service is a running Lambda service.
type Service struct {
	opt       Options
	functions map[string]*function
	confine   *confiner
	spawner   *spawner
	book      book

	listener net.Listener
	server   *http.Server
	active   sync.Map // net.Conn of requests that are counted in handlers
	handlers gate
	chaos    atomic.Pointer[Chaos]
	requests atomic.Uint64 // numbered for chaos
	queued   atomic.Int64  // asynchronous calls not finished

	// running counts goroutines other than handlers; handlers and goroutines that it
	// counts may add to it, and nothing else after closing is set.
	running  sync.WaitGroup
	stopping chan struct{}
	closed   sync.Once
	unwatch  func() bool

	logMu  sync.Mutex
	events sync.Mutex

	mu struct {
		sync.Mutex
		running int // calls
		closing bool
	}
}

// Start checks the options and serves until Close is called or ctx ends. After
// ctx has ended Close still waits for everything to be gone.
func Start(ctx context.Context, o Options) (*Service, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("local Lambda service: %w", err)
	}
	s := &Service{opt: o.withDefaults(), functions: make(map[string]*function), stopping: make(chan struct{})}
	s.chaos.Store(&s.opt.Chaos)
	for name, f := range s.opt.Functions {
		s.functions[name] = s.newFunction(name, f)
	}
	var err error
	if s.confine, err = newConfiner(s.opt.Cgroup); err != nil {
		return nil, fmt.Errorf("local Lambda service: %w", err)
	}
	if s.listener, err = net.Listen("tcp", s.opt.Listen); err != nil {
		s.confine.close()
		return nil, fmt.Errorf("local Lambda service: listen on %s: %w", s.opt.Listen, err)
	}
	s.spawner = newSpawner()
	s.server = &http.Server{Handler: s.api(), ConnState: s.follow}
	s.running.Go(func() { _ = s.server.Serve(s.listener) }) // ends by Close
	s.unwatch = context.AfterFunc(ctx, func() {
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
		defer cancel()
		_ = s.Close(patience)
	})
	return s, nil
}

// Endpoint is the base address for the SDK, such as "http://127.0.0.1:35561".
func (s *Service) Endpoint() string { return "http://" + s.listener.Addr().String() }

// SetChaos changes the faults from the next request on, whose number goes on
// counting: for a time in which everything is throttled, say.
func (s *Service) SetChaos(c Chaos) error {
	if err := c.Validate(); err != nil {
		return err
	}
	c = c.withDefaults()
	s.chaos.Store(&c)
	return nil
}

// Close refuses new calls, kills every worker, and answers calls in progress with
// 500 ServiceException. When it returns no process, goroutine or port is left. If
// ctx ends before the callers have taken their answers, their connections are cut.
func (s *Service) Close(ctx context.Context) error {
	var err error
	s.closed.Do(func() {
		s.unwatch()
		idle := s.takeIdle()
		close(s.stopping)
		if e := s.listener.Close(); e != nil && !errors.Is(e, net.ErrClosed) {
			err = fmt.Errorf("close the local Lambda service: %w", e)
		}
		for _, e := range idle {
			e.end("the service closes")
		}
		s.drain(ctx)
		_ = s.server.Close() // the listener's error is known by now
		s.running.Wait()
		s.spawner.stop()
		s.confine.close()
	})
	return err
}

// follow counts connections from a request's first bytes until its answer has
// been sent off, which is after the handler's end.
func (s *Service) follow(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateActive:
		if _, counted := s.active.Load(c); !counted && s.handlers.enter() {
			s.active.Store(c, true)
		}
	case http.StateIdle, http.StateClosed, http.StateHijacked:
		if _, counted := s.active.LoadAndDelete(c); counted {
			s.handlers.leave()
		}
	}
}

// drain waits until all answers are sent, with patience until ctx ends.
func (s *Service) drain(ctx context.Context) {
	answered := make(chan struct{})
	go func() {
		s.handlers.shut()
		close(answered)
	}()
	select {
	case <-answered:
	case <-ctx.Done():
		_ = s.server.Close()
		<-answered
	}
}

// loopback says what is wrong with an address to listen on: the service runs
// programs for whoever can reach it.
func loopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("listen on %q: %w", address, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("listen on %q: calls are not authenticated, so only loopback addresses such as 127.0.0.1:0 will do", address)
	}
	return nil
}

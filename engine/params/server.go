// Package params is the parameter server in the process: weight versions and their
// stash, the sum of gradients, the optimiser's steps.
package params

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"dorylus/engine"
	"dorylus/engine/model"
	"dorylus/engine/optim"
	"dorylus/kernels"
)

// Config says what a Server serves.
type Config struct {
	Specs []model.ParamSpec
	// Init are the weights to start with: host matrices by parameter, copied.
	// Exactly one of Init and From is set.
	Init []*kernels.Mat
	// From is where a checkpoint left off.
	From *State
	// FirstEpoch is the epoch that starts with Init, and Init's version. It may be
	// 0 with From, which has its own.
	FirstEpoch int
	Optim      optim.Config
	// Blocks is the number of blocks of the whole graph: each adds to every
	// gradient and to the loss once an epoch.
	Blocks int
	// Intervals is the number of intervals that fetch weights. Negative ones may
	// fetch too: they are evaluations.
	Intervals int
	Device    kernels.Device
	// Gate, where set, decides when updates are made, and hears of them instead of
	// Updates: this server has some rows of the parameters only.
	Gate Gate
}

// Server implements engine.Params. Weights are versioned: version e+1 appears when
// every block's gradients and loss of epoch e have arrived, each counted once.
//
// Nothing here waits for another caller. A Push adds what it brings to what is
// already there, in the fixed tree of tree.go: the later of two siblings adds both.
// The Push that completes an epoch makes the update, and those of the epochs after
// it that are complete by then; a Push that comes meanwhile leaves it to that one.
//
// A version is kept while somebody has pinned it, and the newest always. A pin
// belongs to (interval, epoch), so no repeat of a task can pin twice, and none that
// comes after the interval has finished the epoch can pin at all.
type Server struct {
	cfg     Config
	shape   shape
	adder   adder
	updates chan engine.Update
	wake    chan struct{} // there are updates to deliver
	closing chan struct{}
	pumped  sync.WaitGroup

	// step is held while the optimiser works or is read, so that weights and
	// moments are of one version. It is taken before mu.
	step sync.Mutex
	opt  *optim.Optimizer

	mu struct {
		sync.Mutex
		pool
		stash    []*version // ascending; the last is the newest
		pins     map[pin]*version
		released []int             // by interval: the newest epoch released
		epochs   map[int]*epochSum // not complete yet, by epoch
		updating bool
		queue    []engine.Update
		err      error // the first failure; nothing works after it
		active   int   // calls under way
		closed   bool
		quiet    *sync.Cond // active fell to 0
	}
}

// errClosed is what calls after Close get.
var errClosed = errors.New("parameter server: closed")

// New starts a server at the weights of cfg. Close gives back what it holds.
func New(cfg Config) (*Server, error) {
	cfg.Optim = cfg.Optim.WithDefaults()
	weights, err := cfg.check()
	if err != nil {
		return nil, fmt.Errorf("parameter server: %w", err)
	}
	s := &Server{
		cfg: cfg, shape: newShape(cfg.Blocks),
		updates: make(chan engine.Update), wake: make(chan struct{}, 1), closing: make(chan struct{}),
	}
	first := cfg.FirstEpoch
	var from *optim.State
	if cfg.From != nil {
		first, from = cfg.From.Version, cfg.From.Optim
	}
	s.mu.pool = newPool(cfg.Device, len(cfg.Specs))
	s.adder = adder{&s.mu, &s.mu.pool, cfg.Specs, s.shape, kernels.Span{Hi: cfg.Blocks}}
	s.mu.pins = map[pin]*version{}
	s.mu.epochs = map[int]*epochSum{}
	s.mu.quiet = sync.NewCond(&s.mu)
	s.mu.released = make([]int, cfg.Intervals)
	for i := range s.mu.released {
		s.mu.released[i] = first - 1
	}
	if s.opt, err = optim.New(cfg.Optim, cfg.Specs, cfg.Device, from); err != nil {
		return nil, fmt.Errorf("parameter server: %w", err)
	}
	if err := s.load(first, weights); err != nil {
		s.opt.Close()
		return nil, errors.Join(fmt.Errorf("parameter server: load weights: %w", err), s.mu.free())
	}
	s.pumped.Go(s.pump)
	return s, nil
}

// check reports every problem of c at once and is the weights to start with.
func (c *Config) check() ([]*kernels.Mat, error) {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Blocks < 1 || c.Blocks > math.MaxInt32 {
		bad("%d blocks: want 1 or more", c.Blocks)
	}
	if c.Intervals < 0 {
		bad("%d intervals: want 0 or more", c.Intervals)
	}
	if c.Device == nil {
		bad("no device")
	}
	weights := c.Init
	switch {
	case (c.Init == nil) == (c.From == nil) && len(c.Specs) > 0:
		bad("weights come from Init or From, exactly one of them")
	case c.From != nil:
		weights = c.From.Weights
		if c.FirstEpoch != 0 && c.FirstEpoch != c.From.Version {
			bad("epoch %d does not start with version %d", c.FirstEpoch, c.From.Version)
		}
		if c.From.Version < 0 {
			bad("version %d is negative", c.From.Version)
		}
	case c.FirstEpoch < 0:
		bad("first epoch %d is negative", c.FirstEpoch)
	}
	if len(weights) != len(c.Specs) {
		bad("weights of %d parameters, the model has %d", len(weights), len(c.Specs))
		return nil, errors.Join(errs...)
	}
	for p, spec := range c.Specs {
		if w := weights[p]; w == nil || w.Rows != spec.Rows || w.Cols != spec.Cols {
			bad("the weights of %s are not %d x %d", spec.Name, spec.Rows, spec.Cols)
		}
	}
	return weights, errors.Join(errs...)
}

// load makes the first version.
func (s *Server) load(first int, weights []*kernels.Mat) error {
	stream, err := s.mu.stream()
	if err != nil {
		return err
	}
	v := &version{number: first}
	for p, w := range weights {
		m, err := s.mu.take(p, s.cfg.Specs[p])
		if err != nil {
			return err
		}
		v.mats = append(v.mats, m)
		stream.Put(m, optim.Packed(w))
	}
	if err := stream.Wait(); err != nil {
		return err
	}
	s.mu.putStream(stream)
	s.mu.stash = []*version{v}
	return nil
}

// enter begins a call, unless the server has failed or is closed.
func (s *Server) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return errClosed
	}
	if s.mu.err != nil {
		return s.mu.err
	}
	s.mu.active++
	return nil
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.active--
	if s.mu.active == 0 {
		s.mu.quiet.Broadcast()
	}
}

// fail makes err the server's end, unless it has one, and is that end.
func (s *Server) fail(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.err == nil {
		s.mu.err = err
	}
	return s.mu.err
}

// Updates delivers each new version once, in order. Nobody waits for its reader:
// what is not read yet is kept. Close ends it, unread updates included.
func (s *Server) Updates() <-chan engine.Update { return s.updates }

// pump moves updates from the queue to the channel.
func (s *Server) pump() {
	defer close(s.updates)
	for {
		s.mu.Lock()
		queue := s.mu.queue
		s.mu.queue = nil
		s.mu.Unlock()
		for _, u := range queue {
			select {
			case s.updates <- u:
			case <-s.closing:
				return
			}
		}
		select {
		case <-s.wake:
		case <-s.closing:
			return
		}
	}
}

// Close waits for calls under way and gives all memory back: that of weights still
// pinned and of buffers still out as well, which nobody may touch any more. A
// second Close does nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.mu.closed {
		s.mu.Unlock()
		s.pumped.Wait()
		return nil
	}
	s.mu.closed = true
	close(s.closing)
	for s.mu.active > 0 {
		s.mu.quiet.Wait()
	}
	err := s.mu.free()
	s.mu.stash, s.mu.pins, s.mu.epochs = nil, nil, nil
	s.mu.Unlock()
	s.pumped.Wait()
	s.opt.Close()
	if err != nil {
		return fmt.Errorf("parameter server: close: %w", err)
	}
	return nil
}

package params

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"dorylus/engine"
	"dorylus/engine/optim"
	"dorylus/engine/task"
	"dorylus/kernels"
)

// Shared is one Server for partitions of one process that have a device each: it lives on
// the first one's, and each has a Replica on its own. Every version goes to each device
// once. Gradients leave a device as sums over the largest subtrees of blocks that are its
// own, so that the bits are those of one Server.
type Shared struct {
	seats []*Seat

	mu     sync.Mutex
	server *Server
	ready  chan struct{}  // closed when the server is there
	dev    kernels.Device // of On
	joined int
	all    chan struct{} // closed when all have joined
	down   chan struct{} // closed with err
	err    error
}

// Seat is what one partition has of a Shared: engine.Params, and what of a Server the
// partition that writes checkpoints needs.
type Seat struct {
	*Replica
	shared *Shared
	dev    kernels.Device
}

// NewShared is for n partitions.
func NewShared(n int) *Shared {
	return &Shared{seats: make([]*Seat, n), ready: make(chan struct{}), all: make(chan struct{}), down: make(chan struct{})}
}

// On has the server live on a device of its own, before anybody joins.
func (s *Shared) On(dev kernels.Device) { s.dev = dev }

// Join gives partition rank its seat, and waits for all others. The server is made of
// partition 0's cfg; of the others' the device counts. own and intervals are the
// partition's.
func (s *Shared) Join(ctx context.Context, rank int, cfg Config, own kernels.Span, intervals task.Range) (*Seat, error) {
	if rank == 0 {
		central := cfg
		central.Gate = s
		if s.dev != nil {
			central.Device = s.dev
		}
		server, err := New(central)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		s.server = server
		s.mu.Unlock()
		close(s.ready)
	}
	if err := s.await(ctx, s.ready); err != nil {
		return nil, err
	}
	first, weights := s.server.start()
	seat := &Seat{shared: s, dev: cfg.Device}
	var err error
	seat.Replica, err = NewReplica(ReplicaConfig{
		Specs: cfg.Specs, Blocks: cfg.Blocks, Own: own, Intervals: intervals, Device: cfg.Device,
		Version: first, Weights: weights, Send: s.push, Near: cfg.Device == s.server.cfg.Device,
	})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.seat(rank, seat), s.await(ctx, s.all)); err != nil {
		return nil, errors.Join(err, seat.Replica.Close())
	}
	return seat, nil
}

// seat notes that a partition has joined.
func (s *Shared) seat(rank int, seat *Seat) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil // await says it
	}
	if s.seats[rank] != nil {
		return fmt.Errorf("partition %d has joined before", rank)
	}
	s.seats[rank] = seat
	if s.joined++; s.joined == len(s.seats) {
		close(s.all)
	}
	return nil
}

// await waits until something is there.
func (s *Shared) await(ctx context.Context, there <-chan struct{}) error {
	select {
	case <-there:
		return nil
	case <-s.down:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.err
	case <-ctx.Done():
		return fmt.Errorf("wait for the other partitions: %w", context.Cause(ctx))
	}
}

// start is the version that a server begins with and its weights.
func (s *Server) start() (int, []*kernels.Mat) {
	if s.cfg.From != nil {
		return s.cfg.From.Version, s.cfg.From.Weights
	}
	return s.cfg.FirstEpoch, s.cfg.Init
}

// DeviceError is a failure of one partition's device, met by whoever brought something
// there: its own session or another's.
type DeviceError struct {
	Rank int
	Err  error
}

// Error is that of Err.
func (e *DeviceError) Error() string { return e.Err.Error() }

// Unwrap is Err.
func (e *DeviceError) Unwrap() error { return e.Err }

// push brings a partition's sums to the server, on the first device.
func (s *Shared) push(sums *Sums) error {
	if err := s.pushThere(sums); err != nil {
		return &DeviceError{0, err}
	}
	return nil
}

func (s *Shared) pushThere(sums *Sums) error {
	p := &engine.Push{ID: task.ID{Epoch: sums.Epoch}, Losses: sums.Losses}
	for _, g := range sums.Grads {
		p.Grads = append(p.Grads, engine.BlockGrad{Param: g.Param, Block: g.Block, Span: g.Span})
	}
	if err := s.server.fetch(p.Grads, sums.Grads); err != nil {
		return fmt.Errorf("epoch %d: bring gradients to %s: %w", sums.Epoch, s.server.cfg.Device.Name(), err)
	}
	return s.server.Push(context.Background(), p)
}

// fetch copies gradients of the host or of the server's device into buffers.
func (s *Server) fetch(to, from []engine.BlockGrad) error {
	s.mu.Lock()
	stream, err := s.mu.stream()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	for i, g := range from {
		switch {
		case g.G == nil:
		case g.G.Host != nil:
			to[i].G = s.Buffer(g.Param)
			stream.Put(to[i].G, optim.Packed(g.G))
		default:
			to[i].G = s.Buffer(g.Param)
			stream.Copy(to[i].G, g.G)
		}
	}
	if err := stream.Wait(); err != nil {
		return err
	}
	s.mu.Lock()
	s.mu.putStream(stream)
	s.mu.Unlock()
	return nil
}

// Ready implements Gate: the server has all of the parameters, so its update is made.
func (s *Shared) Ready(epoch int, squares [][]float64) {
	if err := s.server.Go(epoch, optim.Norm(squares)); err != nil {
		s.Fail(&DeviceError{0, err})
	}
}

// Made implements Gate: it brings a version to all devices.
func (s *Shared) Made(u engine.Update) {
	if err := s.spread(u); err != nil {
		s.Fail(err)
	}
}

// spread copies the newest version, which is u's until it returns.
func (s *Shared) spread(u engine.Update) error {
	failed := func(rank int, err error) error {
		if err == nil {
			return nil
		}
		return &DeviceError{rank, fmt.Errorf("spread version %d of the weights: %w", u.Version, err)}
	}
	w, err := s.server.Fetch(context.Background(), -1, u.Epoch)
	if err != nil {
		return failed(0, err)
	}
	defer s.server.Release(-1, u.Epoch)
	host := w.Mats
	for _, seat := range s.seats { // all of them: nobody pushes before the last has joined
		if seat.dev != s.server.cfg.Device && len(host) > 0 && host[0].Host == nil {
			if host, err = s.server.Copy(w); err != nil {
				return failed(0, err)
			}
			break
		}
	}
	errs := make([]error, len(s.seats))
	var wg sync.WaitGroup
	for rank, seat := range s.seats {
		mats := host
		if seat.dev == s.server.cfg.Device {
			mats = w.Mats
		}
		wg.Go(func() { errs[rank] = failed(rank, seat.Install(mats, u)) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Central is the server that all seats share, if it lives on the seat's device; else nil.
func (s *Seat) Central() *Server {
	if s.shared.server.cfg.Device != s.dev {
		return nil
	}
	return s.shared.server
}

// Snapshot copies the newest weights and the moments that go with them.
func (s *Seat) Snapshot() (*State, error) { return s.shared.server.Snapshot() }

// Fail ends the work of all partitions by err; the first one counts.
func (s *Shared) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	s.err = err
	close(s.down)
	for _, seat := range s.seats {
		if seat != nil {
			seat.Replica.Fail(err)
		}
	}
}

// Close ends the server, once all seats are closed.
func (s *Shared) Close() error {
	if s.server == nil {
		return nil
	}
	return s.server.Close()
}

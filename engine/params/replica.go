package params

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"dorylus/engine"
	"dorylus/engine/model"
	"dorylus/engine/optim"
	"dorylus/engine/task"
	"dorylus/kernels"
)

// ReplicaConfig says what a Replica holds.
type ReplicaConfig struct {
	Specs []model.ParamSpec
	// Blocks is the number of blocks of the whole graph, Own are those that push here.
	Blocks int
	Own    kernels.Span
	// Intervals are those that fetch here. Negative ones may fetch too: they are
	// evaluations.
	Intervals task.Range
	Device    kernels.Device
	// Version and Weights are what there is to start with, copied: matrices of the host
	// or of the Device.
	Version int
	Weights []*kernels.Mat
	// Send takes the sums over blocks of Own. It is called by Push while no lock is held,
	// by several at a time.
	Send func(*Sums) error
	// Near says that Send takes sums where they are, in the memory of the Device, and not
	// in the host's.
	Near bool
}

// Sums are sums over aligned subtrees of blocks, the largest that lie in Own: no sum of
// others' blocks can be added to a part of them. Their matrices are in host memory, unless
// ReplicaConfig.Near, and may be read until Send returns.
type Sums struct {
	Epoch  int
	Grads  []engine.BlockGrad
	Losses []engine.BlockLoss
}

// Replica is what a graph server has of parameter servers elsewhere: engine.Params but
// for the network. Install brings versions in; Send takes gradients out, summed in the
// same fixed tree that the servers go on with, so that the bits are those of one Server.
//
// A version is kept while somebody has pinned it, and from when it is the newest until
// the update after it has been taken from Updates: an evaluation after epoch e, which
// fetches before it takes another update, finds version e+1 on every graph server,
// whatever has arrived there since.
type Replica struct {
	cfg     ReplicaConfig
	shape   shape
	adder   adder
	updates chan engine.Update
	wake    chan struct{} // there are updates to deliver
	closing chan struct{}
	pumped  sync.WaitGroup

	mu struct {
		sync.Mutex
		pool
		stash    []*version // ascending; the last is the newest
		taken    int        // the version whose update was taken last
		pins     map[pin]*version
		released []int            // by own interval: the newest epoch released
		epochs   map[int]*partial // whose updates have not come yet
		queue    []engine.Update
		err      error // the first failure; nothing works after it
		active   int   // calls under way
		closed   bool
		quiet    *sync.Cond // active fell to 0
	}
}

// NewReplica holds the first version of cfg. Close gives back what it holds.
func NewReplica(cfg ReplicaConfig) (*Replica, error) {
	switch {
	case cfg.Blocks < 1 || cfg.Own.Lo < 0 || cfg.Own.Hi < cfg.Own.Lo || cfg.Own.Hi > cfg.Blocks:
		return nil, fmt.Errorf("replica of the weights: blocks [%d,%d) of %d", cfg.Own.Lo, cfg.Own.Hi, cfg.Blocks)
	case cfg.Intervals.Lo < 0 || cfg.Intervals.Hi < cfg.Intervals.Lo:
		return nil, fmt.Errorf("replica of the weights: intervals [%d,%d)", cfg.Intervals.Lo, cfg.Intervals.Hi)
	case cfg.Device == nil || cfg.Send == nil:
		return nil, errors.New("replica of the weights: no device, or nobody to send to")
	}
	r := &Replica{
		cfg: cfg, shape: newShape(cfg.Blocks),
		updates: make(chan engine.Update), wake: make(chan struct{}, 1), closing: make(chan struct{}),
	}
	r.mu.pool = newPool(cfg.Device, len(cfg.Specs))
	r.adder = adder{&r.mu, &r.mu.pool, cfg.Specs, r.shape, cfg.Own}
	r.mu.pins, r.mu.epochs = map[pin]*version{}, map[int]*partial{}
	r.mu.quiet = sync.NewCond(&r.mu)
	r.mu.taken = cfg.Version
	r.mu.released = make([]int, cfg.Intervals.Len())
	for i := range r.mu.released {
		r.mu.released[i] = cfg.Version - 1
	}
	v, err := r.load(cfg.Version, cfg.Weights)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("replica of the weights: %w", err), r.mu.free())
	}
	r.mu.stash = []*version{v}
	r.cfg.Weights = nil
	r.pumped.Go(r.pump)
	return r, nil
}

// load puts weights on the device.
func (r *Replica) load(number int, weights []*kernels.Mat) (*version, error) {
	if len(weights) != len(r.cfg.Specs) {
		return nil, fmt.Errorf("version %d has %d parameters, the model %d", number, len(weights), len(r.cfg.Specs))
	}
	v := &version{number: number}
	r.mu.Lock()
	stream, err := r.mu.stream()
	for p, spec := range r.cfg.Specs {
		if w := weights[p]; w == nil || w.Rows != spec.Rows || w.Cols != spec.Cols {
			err = fmt.Errorf("version %d of %s is not %d x %d", number, spec.Name, spec.Rows, spec.Cols)
		}
		if err != nil {
			break
		}
		var m *kernels.Mat
		m, err = r.mu.take(p, spec)
		v.mats = append(v.mats, m)
	}
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	for p, w := range weights {
		if w.Host != nil {
			stream.Put(v.mats[p], optim.Packed(w))
		} else {
			stream.Copy(v.mats[p], w)
		}
	}
	if err := stream.Wait(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.mu.putStream(stream)
	r.mu.Unlock()
	return v, nil
}

// Install brings in the version after the newest; u is announced by Updates. The
// matrices, of the host or of the Device, are copied.
func (r *Replica) Install(weights []*kernels.Mat, u engine.Update) error {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.leave()
	v, err := r.load(u.Version, weights)
	if err != nil {
		return r.Fail(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if newest := r.newest().number; u.Version != newest+1 {
		return fmt.Errorf("version %d comes after %d", u.Version, newest)
	}
	delete(r.mu.epochs, u.Epoch) // all of it has been sent
	r.mu.stash = append(r.mu.stash, v)
	r.mu.queue = append(r.mu.queue, u)
	r.prune()
	select {
	case r.wake <- struct{}{}:
	default: // the pump is about to look anyway
	}
	return nil
}

// Newest is the number of the newest version.
func (r *Replica) Newest() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closed {
		return -1
	}
	return r.newest().number
}

// enter begins a call, unless the replica has failed or is closed.
func (r *Replica) enter() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closed {
		return errClosed
	}
	if r.mu.err != nil {
		return r.mu.err
	}
	r.mu.active++
	return nil
}

func (r *Replica) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.active--
	if r.mu.active == 0 {
		r.mu.quiet.Broadcast()
	}
}

// Fail makes err what all calls get from now on, unless there is such an error already,
// and is that error. Updates ends when those before have been taken.
func (r *Replica) Fail(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.err == nil {
		r.mu.err = err
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return r.mu.err
}

// Err is why Updates has ended before Close; nil while nothing is wrong.
func (r *Replica) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.err
}

// Updates delivers each new version once, in order. Nobody waits for its reader: what is
// not read yet is kept. Close and Fail end it.
func (r *Replica) Updates() <-chan engine.Update { return r.updates }

// pump moves updates from the queue to the channel.
func (r *Replica) pump() {
	defer close(r.updates)
	for {
		r.mu.Lock()
		queue, err := r.mu.queue, r.mu.err
		r.mu.queue = nil
		r.mu.Unlock()
		for _, u := range queue {
			select {
			case r.updates <- u:
				r.took(u.Version)
			case <-r.closing:
				return
			}
		}
		if err != nil {
			return
		}
		select {
		case <-r.wake:
		case <-r.closing:
			return
		}
	}
}

// took notes that the update to a version is in its reader's hands.
func (r *Replica) took(number int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.taken = number
	if !r.mu.closed {
		r.prune()
	}
}

// Copy copies fetched weights, which must still be pinned, into host memory.
func (r *Replica) Copy(w engine.Weights) ([]*kernels.Mat, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.leave()
	r.mu.Lock()
	stream, err := r.mu.stream()
	r.mu.Unlock()
	if err != nil {
		return nil, r.Fail(fmt.Errorf("copy weights %d: %w", w.Version, err))
	}
	mats, err := toHost(stream, w.Mats)
	if err != nil {
		return nil, r.Fail(fmt.Errorf("copy weights %d: %w", w.Version, err))
	}
	r.mu.Lock()
	r.mu.putStream(stream)
	r.mu.Unlock()
	return mats, nil
}

// Close waits for calls under way and gives all memory back: that of weights still
// pinned and of buffers still out as well, which nobody may touch any more. A second
// Close does nothing.
func (r *Replica) Close() error {
	r.mu.Lock()
	if r.mu.closed {
		r.mu.Unlock()
		r.pumped.Wait()
		return nil
	}
	r.mu.closed = true
	close(r.closing)
	for r.mu.active > 0 {
		r.mu.quiet.Wait()
	}
	err := r.mu.free()
	r.mu.stash, r.mu.pins, r.mu.epochs = nil, nil, nil
	r.mu.Unlock()
	r.pumped.Wait()
	if err != nil {
		return fmt.Errorf("replica of the weights: close: %w", err)
	}
	return nil
}

// Fetch gives an interval the newest weights the first time it asks in an epoch, and the
// same ones until Release. After Release it is an error, as with Server. A negative
// interval, an evaluation after the epoch, gets the version that the epoch has made. It
// never waits.
func (r *Replica) Fetch(_ context.Context, interval, epoch int) (engine.Weights, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.mu.closed:
		return engine.Weights{}, errClosed
	case r.mu.err != nil:
		return engine.Weights{}, r.mu.err
	case interval >= 0 && !r.cfg.Intervals.Has(interval):
		return engine.Weights{}, fmt.Errorf("fetch weights: interval %d, this graph server has [%d,%d)", interval, r.cfg.Intervals.Lo, r.cfg.Intervals.Hi)
	}
	key := pin{interval, epoch}
	v := r.mu.pins[key]
	if v == nil {
		var err error
		if v, err = r.due(interval, epoch); err != nil {
			return engine.Weights{}, err
		}
		v.pins++
		r.mu.pins[key] = v
	}
	return engine.Weights{Version: v.number, Mats: v.mats}, nil
}

// due is the version that an interval gets which asks for the first time. mu is held.
func (r *Replica) due(interval, epoch int) (*version, error) {
	if interval >= 0 {
		if epoch <= r.mu.released[interval-r.cfg.Intervals.Lo] {
			return nil, fmt.Errorf("fetch weights: interval %d has finished epoch %d: this task is a late repeat", interval, epoch)
		}
		return r.newest(), nil
	}
	for _, v := range r.mu.stash {
		if v.number == epoch+1 {
			return v, nil
		}
	}
	return nil, fmt.Errorf("fetch weights after epoch %d: version %d is not kept, those from %d to %d are", epoch, epoch+1, r.mu.stash[0].number, r.newest().number)
}

// Release ends what Fetch pinned: the interval has finished the epoch, or will not go on
// with it. It may be repeated.
func (r *Replica) Release(interval, epoch int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closed || interval >= 0 && !r.cfg.Intervals.Has(interval) {
		return
	}
	if interval >= 0 {
		at := interval - r.cfg.Intervals.Lo
		r.mu.released[at] = max(r.mu.released[at], epoch)
	}
	key := pin{interval, epoch}
	v := r.mu.pins[key]
	if v == nil {
		return
	}
	delete(r.mu.pins, key)
	v.pins--
	r.prune()
}

// newest is the newest version. mu is held.
func (r *Replica) newest() *version { return r.mu.stash[len(r.mu.stash)-1] }

// prune gives back the versions that nobody has pinned and no evaluation can want. mu is
// held.
func (r *Replica) prune() {
	kept := r.mu.stash[:0]
	for _, v := range r.mu.stash {
		if v.pins > 0 || v.number >= r.mu.taken {
			kept = append(kept, v)
			continue
		}
		for p, m := range v.mats {
			r.mu.put(p, m)
		}
	}
	clear(r.mu.stash[len(kept):])
	r.mu.stash = kept
}

// Stash lists the versions that are kept, the newest last.
func (r *Replica) Stash() []VersionInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []VersionInfo
	for _, v := range r.mu.stash {
		list = append(list, VersionInfo{v.number, v.pins})
	}
	return list
}

package link

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"dorylus/cluster/rpc"
)

// errTold: the stream has ended, and who reads it knows why.
var errTold = errors.New("the stream has ended")

var (
	errEarly = status.Error(codes.Unavailable, "the stream has ended too early")
	errMute  = status.Error(codes.Unavailable, "it does not answer")
	errCut   = status.Error(codes.Unavailable, "the stream was cut by a test")
)

// speak sends what the peer has not got until the stream or the link ends: items above
// have, those up to again for another time.
func (o *out) speak(ctx context.Context, s *rpc.ClientStream, have, again uint64) error {
	for _, seq := range o.order(have, again) {
		if it := o.item(seq); it != nil { // else it was taken meanwhile
			if err := o.carry(ctx, s, seq, it); err != nil {
				return err
			}
		}
	}
	for seq := max(have, again) + 1; ; {
		if it := o.item(seq); it != nil {
			if err := o.carry(ctx, s, seq, it); err != nil {
				return err
			}
			seq++
			continue
		}
		if o.ended() {
			return errTold
		}
		if o.flushed() {
			if err := s.Send(&rpc.Message{Kind: kindBye}); err != nil {
				return errTold
			}
			if err := s.CloseSend(); err != nil {
				return errTold
			}
			return nil
		}
		select {
		case <-o.wake:
		case <-ctx.Done():
			return errTold
		}
	}
}

// order is the numbers of the items to send again.
func (o *out) order(have, again uint64) []uint64 {
	var all []uint64
	for seq := have + 1; seq <= again; seq++ {
		all = append(all, seq)
	}
	if o.env.faults == nil || len(all) == 0 {
		return all
	}
	p := o.env.faults.Order(o.env.rank, o.to, len(all))
	if p == nil {
		return all
	}
	shuffled := make([]uint64, len(all))
	for i, j := range p {
		shuffled[i] = all[j]
	}
	return shuffled
}

// item is the item with a number, nil where there is none to send.
func (o *out) item(seq uint64) Item {
	o.mu.Lock()
	defer o.mu.Unlock()
	if seq <= o.mu.acked || seq-o.mu.acked > uint64(len(o.mu.items)) {
		return nil
	}
	if seq > o.mu.high {
		o.mu.high, o.mu.sent = seq, 0
	}
	return o.mu.items[seq-o.mu.acked-1]
}

// carry sends one item.
func (o *out) carry(ctx context.Context, s *rpc.ClientStream, seq uint64, it Item) error {
	n := it.Chunks()
	i := 0
	var err error
	it.Encode(func(m *rpc.Message) bool {
		err = o.message(ctx, s, it, place{seq, i, n}, m)
		i++
		return err == nil
	})
	return err
}

// message sends one message, and lets a test spoil it.
func (o *out) message(ctx context.Context, s *rpc.ClientStream, it Item, p place, m *rpc.Message) error {
	m = p.wrap(m)
	times := 1
	if o.env.faults != nil {
		f := o.env.faults.Message(o.env.rank, o.to)
		if f.Delay > 0 {
			timer := time.NewTimer(f.Delay)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
		}
		if f.Cut {
			return errCut
		}
		if f.Twice {
			times = 2
		}
	}
	for range times {
		if err := s.Send(m); err != nil {
			return errTold
		}
		o.mu.Lock()
		again := p.seq < o.mu.high || p.at < o.mu.sent
		if again {
			o.mu.stats.Again++
		} else {
			o.mu.stats.Messages++
			o.mu.sent = p.at + 1
		}
		o.mu.Unlock()
		o.env.sent(o.to, it, p.at, m, again)
	}
	return nil
}

// watch ends the link when the peer takes nothing for too long. stop ends the watch.
func (o *out) watch() (stop func()) {
	var t *time.Timer
	stopped := false // guarded by o.mu, as is t
	o.mu.Lock()
	defer o.mu.Unlock()
	t = time.AfterFunc(o.env.stall, func() {
		o.mu.Lock()
		idle := time.Since(o.mu.since)
		if len(o.mu.items) == 0 {
			idle = 0
		}
		if stopped || idle < o.env.stall {
			if !stopped {
				t.Reset(o.env.stall - idle)
			}
			o.mu.Unlock()
			return
		}
		o.mu.Unlock()
		o.env.lost(o.to, o.fault("it is connected, but has taken nothing for %v", o.env.stall))
	})
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		stopped = true
		t.Stop()
	}
}

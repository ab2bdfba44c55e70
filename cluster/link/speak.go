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
			if err := o.carry(ctx, s, seq, it, true); err != nil {
				return err
			}
		}
	}
	for seq := max(have, again) + 1; ; {
		if it := o.item(seq); it != nil {
			if err := o.carry(ctx, s, seq, it, false); err != nil {
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
	o.mu.high = max(o.mu.high, seq)
	return o.mu.items[seq-o.mu.acked-1]
}

// carry sends one item.
func (o *out) carry(ctx context.Context, s *rpc.ClientStream, seq uint64, it Item, again bool) error {
	n := it.Chunks()
	i := 0
	var err error
	it.Encode(func(m *rpc.Message) bool {
		err = o.message(ctx, s, it, place{seq, i, n}.wrap(m), again)
		i++
		return err == nil
	})
	return err
}

// message sends one message, and lets a test spoil it.
func (o *out) message(ctx context.Context, s *rpc.ClientStream, it Item, m *rpc.Message, again bool) error {
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
	for k := range times {
		if err := s.Send(m); err != nil {
			return errTold
		}
		again := again || k > 0
		o.mu.Lock()
		if again {
			o.mu.stats.Again++
		} else {
			o.mu.stats.Messages++
		}
		o.mu.Unlock()
		o.env.sent(o.to, it, m, again)
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

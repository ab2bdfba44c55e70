package inproc

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"dorylus/engine"
	"dorylus/kernels"
)

// window bounds the bytes of rows under way from one partition to another; one message
// always may be.
const window = 64 << 20

// Most is how many bytes of rows from others a device holds at a time, about, with so many
// others: those that wait, and as many that are being published.
func Most(others int) int64 { return 2 * window * int64(others) }

// Exchange moves rows between partitions.
type Exchange struct {
	devices []kernels.Device
	rooms   []*room

	mu      sync.Mutex
	boxes   []box
	sent    []Sent
	err     error
	changed chan struct{} // closed, and replaced, when somebody should look again
}

// box is what waits for one partition.
type box struct {
	queue []*engine.RowMsg
	held  []int64 // bytes of it, by sender
	left  bool
}

// Sent is what a partition has sent to others.
type Sent struct {
	Values int64 // bytes of rows
	Peer   int64 // those of them that went from device to device
	Msgs   int64 // with rows
}

// NewExchange is between partitions, by rank, of which each has a device. Close gives back
// what it holds of the devices.
func NewExchange(devices []kernels.Device) *Exchange {
	x := &Exchange{devices: devices, boxes: make([]box, len(devices)), sent: make([]Sent, len(devices)), changed: make(chan struct{})}
	for rank, dev := range devices {
		x.rooms = append(x.rooms, newRoom(dev, Most(len(devices)-1)))
		x.boxes[rank].held = make([]int64, len(devices))
	}
	return x
}

// Port is the exchange as partition rank sees it. It implements engine.Exchanger and
// engine.Ferry.
func (x *Exchange) Port(rank int) *Port { return &Port{x, rank} }

// Port is one partition's end.
type Port struct {
	x    *Exchange
	rank int
}

var (
	_ engine.Exchanger = (*Port)(nil)
	_ engine.Ferry     = (*Port)(nil)
)

// Ferries implements engine.Ferry.
func (p *Port) Ferries(to int) bool {
	if to < 0 || to >= len(p.x.devices) || to == p.rank {
		return false
	}
	peer, ok := p.x.devices[to].(kernels.Peer)
	return ok && peer.Reaches(p.x.devices[p.rank])
}

// Room implements engine.Ferry.
func (p *Port) Room(rows, cols int) (*kernels.Mat, error) { return p.x.rooms[p.rank].take(rows, cols) }

// Free implements engine.Ferry.
func (p *Port) Free(m *kernels.Mat) { p.x.rooms[p.rank].put(m) }

// Send implements engine.Exchanger. Each message arrives once.
func (p *Port) Send(ctx context.Context, m *engine.RowMsg) error {
	x := p.x
	if m.From != p.rank || m.To < 0 || m.To >= len(x.boxes) || m.To == p.rank {
		return fmt.Errorf("send rows of interval %d from %d to %d: this is partition %d of %d", m.Interval, m.From, m.To, p.rank, len(x.boxes))
	}
	bytes := sizeOf(m)
	if left, err := p.admit(ctx, m, bytes); err != nil || left {
		return err
	}
	if m.Mat != nil {
		there, err := x.carry(m)
		if err != nil {
			return fmt.Errorf("send rows of interval %d, epoch %d from %s to %s: %w", m.Interval, m.Epoch, x.devices[m.From].Name(), x.devices[m.To].Name(), err)
		}
		m = there
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.boxes[m.To].left {
		x.rooms[m.To].put(m.Mat)
		return nil
	}
	x.boxes[m.To].queue = append(x.boxes[m.To].queue, m)
	if bytes > 0 {
		s := &x.sent[m.From]
		s.Values += bytes
		s.Msgs++
		if m.Mat != nil {
			s.Peer += bytes
		}
	}
	x.notifyLocked()
	return nil
}

// admit waits until the window has room. It says whether the receiver has left.
func (p *Port) admit(ctx context.Context, m *engine.RowMsg, bytes int64) (left bool, err error) {
	x := p.x
	for {
		x.mu.Lock()
		b := &x.boxes[m.To]
		switch {
		case x.err != nil:
			err := x.err
			x.mu.Unlock()
			return false, err
		case b.left:
			x.mu.Unlock()
			return true, nil
		case b.held[p.rank] == 0 || b.held[p.rank]+bytes <= window:
			b.held[p.rank] += bytes
			x.mu.Unlock()
			return false, nil
		}
		changed := x.changed
		x.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return false, fmt.Errorf("send rows to partition %d: %w", m.To, ctx.Err())
		}
	}
}

// carry is m with its rows on the receiver's device.
func (x *Exchange) carry(m *engine.RowMsg) (*engine.RowMsg, error) {
	to, ok := x.devices[m.To].(kernels.Peer)
	if !ok {
		return nil, errors.New("rows in the memory of a device that the other does not reach")
	}
	there, err := x.rooms[m.To].take(m.Mat.Rows, m.Mat.Cols)
	if err != nil {
		return nil, err
	}
	if err := to.CopyFrom(there, x.devices[m.From], m.Mat); err != nil {
		x.rooms[m.To].put(there)
		return nil, err
	}
	copied := *m
	copied.Mat = there
	return &copied, nil
}

func sizeOf(m *engine.RowMsg) int64 {
	if m.Mat != nil {
		return 4 * int64(m.Mat.Rows) * int64(m.Mat.Cols)
	}
	return 4 * int64(len(m.Data))
}

// Recv implements engine.Exchanger. The Mat of a message goes back by Free.
func (p *Port) Recv(ctx context.Context) (*engine.RowMsg, error) {
	x := p.x
	for {
		x.mu.Lock()
		b := &x.boxes[p.rank]
		if len(b.queue) > 0 {
			m := b.queue[0]
			b.queue[0] = nil
			b.queue = b.queue[1:]
			if n := sizeOf(m); n > 0 {
				b.held[m.From] -= n
				x.notifyLocked()
			}
			x.mu.Unlock()
			return m, nil
		}
		err, changed := x.err, x.changed
		x.mu.Unlock()
		if err != nil {
			return nil, fmt.Errorf("wait for rows: %w", err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for rows: %w", ctx.Err())
		}
	}
}

// Leave says that this partition takes nothing any more: what is sent to it is dropped.
func (p *Port) Leave() {
	x := p.x
	x.mu.Lock()
	defer x.mu.Unlock()
	b := &x.boxes[p.rank]
	b.left = true
	for _, m := range b.queue {
		x.rooms[p.rank].put(m.Mat)
	}
	b.queue = nil
	x.notifyLocked()
}

// Sent is what this partition has sent so far.
func (p *Port) Sent() Sent {
	p.x.mu.Lock()
	defer p.x.mu.Unlock()
	return p.x.sent[p.rank]
}

// Fail ends the exchange for all by err; the first one counts.
func (x *Exchange) Fail(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err == nil {
		x.err = err
		x.notifyLocked()
	}
}

// Close gives back the devices' memory, once nobody sends or reads any more.
func (x *Exchange) Close() {
	for _, r := range x.rooms {
		r.close()
	}
}

func (x *Exchange) notifyLocked() {
	close(x.changed)
	x.changed = make(chan struct{})
}

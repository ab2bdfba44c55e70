package ghost

import (
	"sync"
	"time"

	"dorylus/cluster/link"
	"dorylus/cluster/rpc"
	"dorylus/engine"
	"dorylus/lambda/codec"
)

// Count is what went one way, in one pass. What was sent again, or came again, is not
// in it.
type Count struct {
	Messages int64 // RowMsgs
	Chunks   int64 // messages on the wire
	Values   int64 // rows x width x 4: the least that fp32 needs, in bytes
	Payload  int64 // bytes of frames without their headers
	Framing  int64 // bytes around them: heads, frame headers, gRPC's prefix
	// Waited is the time spent in Send or Recv; of Recv, for what came from this peer in
	// the end.
	Waited time.Duration
}

// Peer counts what one peer has to do with.
type Peer struct {
	Peer           int
	Sent, Received [engine.Passes]Count
	// SentAgain and ReceivedAgain are bytes of messages that were sent or came more than
	// once.
	SentAgain, ReceivedAgain int64
	Out                      link.OutStats
	In                       link.InStats
}

// Snapshot is the state of all counters, by peer.
type Snapshot struct{ Peers []Peer }

// Total is the sum over peers of one pass.
func (s Snapshot) Total(p engine.Pass) (sent, received Count) {
	for i := range s.Peers {
		sent.add(&s.Peers[i].Sent[p])
		received.add(&s.Peers[i].Received[p])
	}
	return sent, received
}

func (c *Count) add(d *Count) {
	c.Messages += d.Messages
	c.Chunks += d.Chunks
	c.Values += d.Values
	c.Payload += d.Payload
	c.Framing += d.Framing
	c.Waited += d.Waited
}

// prefix is what gRPC puts before a message.
const prefix = 5

// message counts a message on the wire, and with one of them the RowMsg m that it is of.
func (c *Count) message(m *engine.RowMsg, msg *rpc.Message, payload int, whole bool) {
	c.Chunks++
	c.Payload += int64(payload)
	c.Framing += int64(msg.Size() + prefix - payload)
	if whole {
		c.Messages++
		c.Values += 4 * int64(len(m.Data))
	}
}

func payloadOf(msg *rpc.Message) int {
	n := 0
	for _, p := range msg.Parts {
		n += max(len(p)-codec.HeaderSize, 0)
	}
	return n
}

// counts guards the counters of all peers.
type counts struct {
	mu    sync.Mutex
	peers []Peer
}

func newCounts(size int) *counts {
	c := &counts{peers: make([]Peer, size)}
	for i := range c.peers {
		c.peers[i].Peer = i
	}
	return c
}

func (c *counts) sent(to int, m *engine.RowMsg, msg *rpc.Message, first, again bool) {
	payload := payloadOf(msg)
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &c.peers[to]
	if again {
		p.SentAgain += int64(msg.Size() + prefix)
		return
	}
	p.Sent[m.Pass].message(m, msg, payload, first)
}

func (c *counts) got(from int, m *engine.RowMsg, msg *rpc.Message, last bool) {
	payload := payloadOf(msg)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.peers[from].Received[m.Pass].message(m, msg, payload, last)
}

func (c *counts) repeat(from int, msg *rpc.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.peers[from].ReceivedAgain += int64(msg.Size() + prefix)
}

func (c *counts) waited(peer int, p engine.Pass, d time.Duration, send bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := &c.peers[peer].Received[p]
	if send {
		at = &c.peers[peer].Sent[p]
	}
	at.Waited += d
}

func (c *counts) snapshot(self int) Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	var s Snapshot
	for i := range c.peers {
		if i != self {
			s.Peers = append(s.Peers, c.peers[i])
		}
	}
	return s
}

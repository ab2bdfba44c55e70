package pserver

import (
	"math"

	"dorylus/cluster/rpc"
	"dorylus/kernels"
)

// link is what a client has to say to one shard: a state machine without I/O. What is said
// once may be lost with the stream that it was said on, so all of it is kept until the
// shard's own messages show that it has arrived, and is said again on the next stream: the
// shard drops what it has. Its owner locks it.
type link struct {
	shard  int
	slices []Slice

	server string // the shard's process, once it has answered
	have   int    // its newest version that has come
	out    []pushed
	norm   *norm
	bye    *bye
	ended  bool  // the shard has answered bye
	peak   int64 // memory of the shard's process, as of the last snapshot

	// Of the stream that there is now.
	sent   int // of out
	acked  int // the version acknowledged
	normed int // the epoch whose norm was sent
	asked  int // the version asked for
	start  bool
	byed   bool

	wake chan struct{}
}

// pushed is a push that its shard may not have.
type pushed struct {
	epoch int
	m     *rpc.Message
}

func (l *link) tell() {
	select {
	case l.wake <- struct{}{}:
	default: // it is about to look anyway
	}
}

// opened begins a stream on which nothing was said yet, but for hello, which acknowledges
// a version. first says that the shard wants to be told what to start with.
func (l *link) opened(acked int, first bool) {
	l.sent, l.acked, l.normed, l.asked = 0, acked, math.MinInt, -1
	l.start, l.byed = first, false
}

// arrived notes a version of the shard: its update has been made, so what was pushed for
// it is needed no more.
func (l *link) arrived(version int) {
	l.have = version
	kept, sent := l.out[:0], 0
	for i, p := range l.out {
		if p.epoch < version {
			continue
		}
		if i < l.sent {
			sent++
		}
		kept = append(kept, p)
	}
	clear(l.out[len(kept):])
	l.out, l.sent = kept, sent
}

// push adds what is to be sent for an epoch, unless its version has come.
func (l *link) push(epoch int, m *rpc.Message) {
	if epoch >= l.have {
		l.out = append(l.out, pushed{epoch, m})
		l.tell()
	}
}

// next is what to send now, nil for nothing. acked is the version that may be
// acknowledged, asked the one whose state is wanted, -1 for none.
func (l *link) next(acked, asked int, begin func(*link) *rpc.Message) *rpc.Message {
	switch {
	case l.start:
		l.start = false
		return begin(l)
	case acked > l.acked:
		l.acked = acked
		return newMessage(kindAck, ack{acked})
	case l.norm != nil && l.norm.Epoch > l.normed:
		l.normed = l.norm.Epoch
		return newMessage(kindNorm, l.norm)
	case asked >= 0 && asked != l.asked:
		l.asked = asked
		return newMessage(kindAsk, ask{asked})
	case l.sent < len(l.out):
		l.sent++
		return l.out[l.sent-1].m
	case l.bye != nil && !l.byed:
		l.byed = true
		return newMessage(kindBye, l.bye)
	}
	return nil
}

// coming is a version of which not all shards' slices have come.
type coming struct {
	mats []*kernels.Mat
	from []bool // by shard
	left int
	head *weights
}

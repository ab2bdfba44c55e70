package link

import (
	"time"

	"google.golang.org/grpc"

	"dorylus/cluster/rpc"
)

// Item is something to carry. It must not change once it has been handed over.
type Item interface {
	// Size counts against the window, in bytes.
	Size() int64
	// Chunks is the number of messages it travels in, at least 1.
	Chunks() int
	// Encode yields these messages. It may be called again, after a connection broke,
	// and must then yield the same cut.
	Encode(yield func(*rpc.Message) bool)
	// String says what it is, in errors.
	String() string
}

// Decoder puts items together again.
type Decoder[T any] interface {
	// Size is the Item's Size as its first message tells. It reserves no memory, and
	// refuses what nobody wants.
	Size(from int, first *rpc.Message) (int64, error)
	// Add takes message i of n, which come in order, into v, which is the zero value at
	// first. The message is Add's to keep.
	Add(from int, v T, i, n int, m *rpc.Message) (T, error)
}

// Peer is another server.
type Peer struct {
	Who  rpc.Who
	Addr string
	Conn *grpc.ClientConn
}

// Job is what both ends of a link must agree on.
type Job struct {
	// ID is another for every run.
	ID string
	// Settings are compared one by one, so that a refusal can say which differ.
	Settings map[string]string
}

// Base is what all meshes of a server have in common.
type Base struct {
	// Rank is this server's, of Size.
	Rank, Size int
	// Peers by rank, those that this server has links with.
	Peers map[int]Peer
	Job   Job

	// Window bounds the bytes under way to each peer; an item larger than it goes
	// alone. 0: 32 MiB.
	Window int64
	// ReadyTimeout is how long peers may take to be there at first; 0: 5 min.
	ReadyTimeout time.Duration
	// PeerTimeout is how long a peer whose connection is broken may stay away; 0: 30 s.
	PeerTimeout time.Duration
	// StallTimeout is how long a peer may take no item although some wait for it; 0:
	// 5 min.
	StallTimeout time.Duration
	// LeaveTimeout is how long peers may take to hear that this server leaves; 0: 5 s.
	LeaveTimeout time.Duration
	// Faults are injected by tests; nil: none.
	Faults Faults
}

// Config of a Mesh.
type Config[T any] struct {
	Base
	// Service is the name of the gRPC service, different for each mesh of a server.
	Service string
	Decoder Decoder[T]

	// Open is closed once items may be taken in; until then they wait on their way. It is
	// asked for each message. nil: they may.
	Open func() <-chan struct{}

	// Lost hears of each peer that is lost or has misbehaved, from goroutines of the mesh.
	// Left hears, in Recv, of each that has left in good order, after the last of its
	// items. nil: nobody.
	Lost func(peer int, err error)
	Left func(peer int)
	// Sent hears of each message, number i of its item; again: it was sent before. Got
	// hears of each that comes; again: it is a repeat, and dropped. nil: nobody.
	Sent func(to int, it Item, i int, m *rpc.Message, again bool)
	Got  func(from int, m *rpc.Message, again bool)
}

// Faults make trouble on purpose. The calls for one pair come one at a time.
type Faults interface {
	// Message says what befalls a message that is about to be sent.
	Message(from, to int) Fault
	// Order is a permutation of the n items that are sent again on a new stream; nil:
	// as they were.
	Order(from, to, n int) []int
}

// Fault is what befalls a message.
type Fault struct {
	Delay time.Duration // before it is sent
	Cut   bool          // the stream breaks before it
	Twice bool          // it is sent twice
}

func (c *Config[T]) defaults() {
	if c.Window <= 0 {
		c.Window = 32 << 20
	}
	for _, d := range []struct {
		at *time.Duration
		to time.Duration
	}{{&c.ReadyTimeout, 5 * time.Minute}, {&c.PeerTimeout, 30 * time.Second}, {&c.StallTimeout, 5 * time.Minute}, {&c.LeaveTimeout, 5 * time.Second}} {
		if *d.at <= 0 {
			*d.at = d.to
		}
	}
	if c.Open == nil {
		open := make(chan struct{})
		close(open)
		c.Open = func() <-chan struct{} { return open }
	}
	if c.Lost == nil {
		c.Lost = func(int, error) {}
	}
	if c.Left == nil {
		c.Left = func(int) {}
	}
	if c.Sent == nil {
		c.Sent = func(int, Item, int, *rpc.Message, bool) {}
	}
	if c.Got == nil {
		c.Got = func(int, *rpc.Message, bool) {}
	}
}

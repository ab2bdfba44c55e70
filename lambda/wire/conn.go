package wire

import "sync"

// Conn is one side of a stream of messages. Send and Recv may be called at the same
// time, each by one goroutine. Recv ends with io.EOF where the other side has closed
// in good order.
type Conn interface {
	Send(m *Message) error
	Recv() (*Message, error)
}

// Counter counts the bytes and messages of a Conn.
type Counter struct {
	mu  sync.Mutex
	sum Count
}

// Count is traffic, of one direction each.
type Count struct{ SentBytes, RecvBytes, Sent, Recv int64 }

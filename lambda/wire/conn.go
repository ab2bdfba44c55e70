package wire

// Conn is one side of a stream of messages. Send and Recv may be called at the same
// time, each by one goroutine. Recv ends with io.EOF where the other side has closed
// in good order.
type Conn interface {
	Send(m *Message) error
	Recv() (*Message, error)
}

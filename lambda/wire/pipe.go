package wire

import (
	"io"
	"sync"
)

// Pipe is a stream within the process: what one side sends the other receives.
// Closing either side ends both, after what has been sent already.
func Pipe() (a, b *PipeConn) {
	down, up := make(chan []byte, 16), make(chan []byte, 16)
	end := &ending{done: make(chan struct{})}
	return &PipeConn{in: up, out: down, end: end}, &PipeConn{in: down, out: up, end: end}
}

// PipeConn is one side of a Pipe.
type PipeConn struct {
	in, out chan []byte
	end     *ending
}

type ending struct {
	once sync.Once
	done chan struct{}
}

// Send implements Conn. The message goes through its encoding, as on any stream.
func (c *PipeConn) Send(m *Message) error {
	b, err := m.Append(make([]byte, 0, m.Size()))
	if err != nil {
		return err
	}
	select {
	case <-c.end.done:
		return io.ErrClosedPipe
	default:
	}
	select {
	case c.out <- b:
		return nil
	case <-c.end.done:
		return io.ErrClosedPipe
	}
}

// Recv implements Conn.
func (c *PipeConn) Recv() (*Message, error) {
	select {
	case b := <-c.in:
		return Parse(b)
	case <-c.end.done:
	}
	select {
	case b := <-c.in:
		return Parse(b)
	default:
		return nil, io.EOF
	}
}

// Close ends the stream.
func (c *PipeConn) Close() { c.end.once.Do(func() { close(c.end.done) }) }

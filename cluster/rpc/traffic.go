package rpc

import (
	"net"
	"sync/atomic"
)

// Traffic counts bytes on sockets.
type Traffic struct{ sent, received atomic.Int64 }

// Sent is the number of bytes written so far.
func (t *Traffic) Sent() int64 { return t.sent.Load() }

// Received is the number of bytes read so far.
func (t *Traffic) Received() int64 { return t.received.Load() }

type countedConn struct {
	net.Conn
	t *Traffic
}

// Read implements net.Conn.
func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.t.received.Add(int64(n))
	return n, err
}

// Write implements net.Conn.
func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.t.sent.Add(int64(n))
	return n, err
}

type countedListener struct {
	net.Listener
	t *Traffic
}

// Accept implements net.Listener.
func (l *countedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &countedConn{c, l.t}, nil
}

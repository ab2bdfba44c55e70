package rpc

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"dorylus/engine/testkit"
)

// A client that goes silent at any point of its way in does not hold up the server's
// end, and learns of it.
func TestCloseDoesNotWaitForTheSilent(t *testing.T) {
	testkit.Leaks(t)
	cert, text, err := Certificate([]string{"127.0.0.1"}, time.Hour)
	check(t, err)
	trust, err := Trust(text)
	check(t, err)
	trust.NextProtos = []string{"h2"}
	for _, x := range []struct {
		name string
		come func(net.Conn) net.Conn // as far as the client gets
	}{
		{"before the first byte", func(c net.Conn) net.Conn { return c }},
		{"within the handshake", func(c net.Conn) net.Conn {
			_, err := c.Write([]byte{0x16, 3, 1, 2, 0}) // a record of 512 bytes, which do not come
			check(t, err)
			return c
		}},
		{"behind the handshake", func(c net.Conn) net.Conn {
			s := tls.Client(c, trust)
			check(t, s.Handshake())
			return s
		}},
	} {
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		check(t, err)
		s := Listen(lis, cert, echo)
		host, _, err := net.SplitHostPort(lis.Addr().String())
		check(t, err)
		trust.ServerName = host
		raw, err := net.Dial("tcp", lis.Addr().String())
		check(t, err)
		c := x.come(raw)
		s.wait(t, 1)
		closed := make(chan error, 1)
		go func() { closed <- s.Close() }()
		select {
		case err := <-closed:
			check(t, err)
		case <-time.After(10 * time.Second):
			t.Errorf("%s: the server still waits for the client after 10 s", x.name)
			raw.Close()
			<-closed
		}
		for buf := make([]byte, 1<<10); err == nil; { // settings of HTTP/2 may come first
			_, err = c.Read(buf)
		}
		if n := s.wait(t, 0); n != 0 {
			t.Errorf("%s: %d connections are still counted", x.name, n)
		}
		raw.Close()
	}
}

// wait returns when so many connections are inside, or with how many are after 10 s.
func (s *Server) wait(t *testing.T, want int) int {
	t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		s.door.mu.Lock()
		n := len(s.door.mu.inside)
		s.door.mu.Unlock()
		if n == want {
			return n
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Errorf("%d connections are inside after 10 s, want %d", n, want)
			return n
		}
	}
}

package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

const (
	window     = 16 << 20 // bytes in flight per stream and per connection
	buffer     = 256 << 10
	maxStreams = 1024 // per connection
	// dialTime bounds an attempt to open a socket. Where packets vanish TCP asks again
	// after 1, 2, 4 and more seconds: a new attempt soon finds a host that has come back.
	dialTime = 3 * time.Second
)

// Options of Listen and Dial. The zero value is good.
type Options struct {
	// Keepalive is how long a connection may be silent before the peer is asked for a
	// sign of life, and how long the answer may take; 0: 10 s. A client asks no more
	// often than every 10 s.
	Keepalive time.Duration
	// Traffic counts the bytes on the sockets, those of TLS and HTTP/2 included.
	Traffic *Traffic
	// Listener replaces the socket that Listen would open, Dialer that of Dial: tests.
	Listener net.Listener
	Dialer   func(ctx context.Context, addr string) (net.Conn, error)
}

func (o Options) keepalive() time.Duration {
	if o.Keepalive > 0 {
		return o.Keepalive
	}
	return 10 * time.Second
}

func (o Options) server(id *Identity) []grpc.ServerOption {
	var c credentials.TransportCredentials = insecure.NewCredentials()
	if !id.plain {
		c = newCreds(id, nil)
	}
	return []grpc.ServerOption{
		grpc.Creds(c),
		grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxSendMsgSize(MaxMessage),
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window),
		grpc.ReadBufferSize(buffer), grpc.WriteBufferSize(buffer),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.ConnectionTimeout(10 * time.Second),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: o.keepalive(), Timeout: o.keepalive()}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.WaitForHandlers(true),
	}
}

func (o Options) client(id *Identity, want Who) []grpc.DialOption {
	var c credentials.TransportCredentials = insecure.NewCredentials()
	if !id.plain {
		c = newCreds(id, &want)
	}
	return []grpc.DialOption{
		grpc.WithTransportCredentials(c),
		grpc.WithDefaultCallOptions(grpc.CallContentSubtype(codecName), grpc.MaxCallRecvMsgSize(MaxMessage), grpc.MaxCallSendMsgSize(MaxMessage)),
		grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window),
		grpc.WithReadBufferSize(buffer), grpc.WithWriteBufferSize(buffer),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: o.keepalive(), Timeout: o.keepalive(), PermitWithoutStream: true}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithContextDialer(o.dial),
		grpc.WithIdleTimeout(0),
	}
}

// dial opens a socket, and looks the address up each time: names of servers that are
// still being started come into being late.
func (o Options) dial(ctx context.Context, addr string) (net.Conn, error) {
	open := o.Dialer
	if open == nil {
		open = func(ctx context.Context, addr string) (net.Conn, error) {
			return (&net.Dialer{Timeout: dialTime}).DialContext(ctx, "tcp", addr)
		}
	}
	c, err := open(ctx, addr)
	if err != nil || o.Traffic == nil {
		return c, err
	}
	return &countedConn{c, o.Traffic}, nil
}

var errNoIdentity = errors.New("no identity: give certificates, or ask for plain text on loopback addresses")

// plainOnly refuses plain text on an address that others could listen to.
func plainOnly(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("plain text is allowed on loopback addresses only (127.0.0.1, ::1, localhost), and %q is none: give certificates", host)
}

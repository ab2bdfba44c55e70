package rpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"dorylus/lambda/wire"
)

const (
	method = "/dorylus.lambda.v1.Tensor/Serve"
	window = 16 << 20 // bytes in flight per stream
	// maxDown bounds a message to a worker, which trusts its graph server: a weight, or a
	// block of very wide rows, is one. Shards come in chunks of at most wire.MaxMessage.
	maxDown = 1 << 30
)

var desc = grpc.ServiceDesc{
	ServiceName: "dorylus.lambda.v1.Tensor",
	HandlerType: (*any)(nil),
	Streams: []grpc.StreamDesc{{
		StreamName: "Serve", ServerStreams: true, ClientStreams: true,
		Handler: func(srv any, s grpc.ServerStream) error { return srv.(*Server).stream(s) },
	}},
}

// Handler takes a worker's stream over and returns when it has ended. stop ends it at
// once, from any goroutine.
type Handler func(conn wire.Conn, stop func()) error

// Server accepts workers.
type Server struct {
	handler Handler
	door    *door
	grpc    *grpc.Server
	served  chan error
	streams sync.WaitGroup
}

// Listen serves on lis until Close.
func Listen(lis net.Listener, cert tls.Certificate, handler Handler) *Server {
	s := &Server{handler: handler, door: newDoor(lis), served: make(chan error, 1)}
	s.grpc = grpc.NewServer(
		grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13})),
		grpc.MaxRecvMsgSize(wire.MaxMessage), grpc.MaxSendMsgSize(maxDown),
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window),
		grpc.ConnectionTimeout(greeting),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 20 * time.Second, Timeout: 20 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
	)
	s.grpc.RegisterService(&desc, s)
	go func() { s.served <- s.grpc.Serve(s.door) }()
	return s
}

func (s *Server) stream(g grpc.ServerStream) error {
	stopped := make(chan struct{})
	var once sync.Once
	done := make(chan error, 1)
	s.streams.Go(func() {
		done <- s.handler(&conn{stream: g}, func() { once.Do(func() { close(stopped) }) })
	})
	select {
	case err := <-done:
		return refusal(err)
	case <-stopped:
		return status.Error(codes.Canceled, "the graph server has ended the stream")
	}
}

// refusal tells the worker why its stream ends.
func refusal(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return nil
	}
	return status.Error(codes.FailedPrecondition, err.Error())
}

// Close ends all connections and waits until nobody serves their streams any more.
func (s *Server) Close() error {
	s.door.cut()
	s.grpc.Stop()
	err := <-s.served
	s.streams.Wait()
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// messages is what a stream of either side has.
type messages interface {
	SendMsg(m any) error
	RecvMsg(m any) error
}

// conn is wire.Conn on a stream. Sending is guarded: a farewell may cross a task.
type conn struct {
	mu     sync.Mutex
	stream messages
}

// Send implements wire.Conn.
func (c *conn) Send(m *wire.Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stream.SendMsg(m)
}

// Recv implements wire.Conn.
func (c *conn) Recv() (*wire.Message, error) {
	m := &wire.Message{}
	if err := c.stream.RecvMsg(m); err != nil {
		return nil, err
	}
	return m, nil
}

// Dial opens a worker's stream to the first of addrs that answers. The server must have
// a certificate that roots vouch for. hang ends the stream and the connection.
func Dial(ctx context.Context, addrs []string, roots *tls.Config) (c wire.Conn, hang func(), err error) {
	var errs []error
	for _, addr := range addrs {
		c, hang, err := dial(ctx, addr, roots)
		if err == nil {
			return c, hang, nil
		}
		errs = append(errs, fmt.Errorf("call the graph server at %s: %w", addr, err))
	}
	if len(addrs) == 0 {
		return nil, nil, errors.New("call the graph server: the invitation has no address")
	}
	return nil, nil, errors.Join(errs...)
}

func dial(ctx context.Context, addr string, roots *tls.Config) (wire.Conn, func(), error) {
	cc, err := grpc.NewClient(addr,
		grpc.WithTransportCredentials(credentials.NewTLS(roots)),
		grpc.WithDefaultCallOptions(grpc.CallContentSubtype(codecName), grpc.MaxCallRecvMsgSize(maxDown), grpc.MaxCallSendMsgSize(wire.MaxMessage)),
		grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 20 * time.Second}),
	)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	s, err := cc.NewStream(ctx, &desc.Streams[0], method)
	if err != nil {
		cancel()
		cc.Close()
		return nil, nil, err
	}
	return &conn{stream: s}, func() { cancel(); cc.Close() }, nil
}

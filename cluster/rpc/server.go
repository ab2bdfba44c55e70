package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// Stream is one side of a stream of messages. Send and Recv may be called at the same
// time, each by one goroutine at a time. Recv ends with io.EOF where the other side has
// closed in good order.
type Stream interface {
	Context() context.Context
	Send(m *Message) error
	Recv() (*Message, error)
}

// Service is what a server offers under "/NAME/METHOD".
type Service struct {
	Name string // such as "dorylus.cluster.v1.Rows"
	// Roles may call it.
	Roles   []Role
	Calls   map[string]func(ctx context.Context, m *Message) (*Message, error)
	Streams map[string]func(s Stream) error
}

// Server answers calls. Make it with Listen, add services with Handle, then Serve.
type Server struct {
	grpc    *grpc.Server
	health  *health.Server
	lis     net.Listener
	served  chan error
	serving bool
}

// Listen opens addr ("host:port"; port 0 picks one). Connections wait until Serve.
func Listen(addr string, id *Identity, o Options) (*Server, error) {
	if id == nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, errNoIdentity)
	}
	lis := o.Listener
	if lis == nil {
		if id.plain {
			if err := plainOnly(addr); err != nil {
				return nil, fmt.Errorf("listen on %s: %w", addr, err)
			}
		}
		var err error
		if lis, err = net.Listen("tcp", addr); err != nil {
			return nil, fmt.Errorf("listen on %s: %w", addr, err)
		}
	} else if a, ok := lis.Addr().(*net.TCPAddr); ok && id.plain && !a.IP.IsLoopback() {
		return nil, fmt.Errorf("listen on %s: %w", a, plainOnly(a.String()))
	}
	if o.Traffic != nil {
		lis = &countedListener{lis, o.Traffic}
	}
	s := &Server{grpc: grpc.NewServer(o.server(id)...), health: health.NewServer(), lis: lis, served: make(chan error, 1)}
	grpc_health_v1.RegisterHealthServer(s.grpc, s.health)
	return s, nil
}

// Addr is where the server listens, with the port it has got.
func (s *Server) Addr() string { return s.lis.Addr().String() }

// GRPC is the server beneath: for services of other kinds, before Serve.
func (s *Server) GRPC() *grpc.Server { return s.grpc }

// Handle adds a service, before Serve.
func (s *Server) Handle(svc Service) {
	d := &grpc.ServiceDesc{ServiceName: svc.Name, HandlerType: (*any)(nil)}
	for name, call := range svc.Calls {
		d.Methods = append(d.Methods, grpc.MethodDesc{MethodName: name, Handler: func(_ any, ctx context.Context, read func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			if err := svc.allows(ctx); err != nil {
				return nil, err
			}
			m := &Message{}
			if err := read(m); err != nil {
				return nil, err
			}
			answer, err := call(ctx, m)
			if err != nil {
				return nil, toStatus(err)
			}
			return answer, nil
		}})
	}
	for name, serve := range svc.Streams {
		d.Streams = append(d.Streams, grpc.StreamDesc{StreamName: name, ServerStreams: true, ClientStreams: true, Handler: func(_ any, g grpc.ServerStream) error {
			if err := svc.allows(g.Context()); err != nil {
				return err
			}
			return toStatus(serve(&stream{g}))
		}})
	}
	s.grpc.RegisterService(d, s)
	s.health.SetServingStatus(svc.Name, grpc_health_v1.HealthCheckResponse_SERVING)
}

// allows says why the caller's role may not use the service.
func (svc *Service) allows(ctx context.Context) error {
	who, ok := Caller(ctx)
	if ok && !slices.Contains(svc.Roles, who.Role) {
		return denied("%v may not call %s: it is for %v", who, svc.Name, svc.Roles)
	}
	return nil
}

// SetServing changes what the health service says of a service of this server.
func (s *Server) SetServing(service string, serving bool) {
	state := grpc_health_v1.HealthCheckResponse_NOT_SERVING
	if serving {
		state = grpc_health_v1.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus(service, state)
}

// Serve begins to answer.
func (s *Server) Serve() {
	s.serving = true
	go func() { s.served <- s.grpc.Serve(s.lis) }()
}

// Close ends all calls and streams, whose contexts end, waits for their handlers, and
// frees the port.
func (s *Server) Close() error {
	s.health.Shutdown()
	s.grpc.Stop()
	if !s.serving {
		return s.lis.Close()
	}
	if err := <-s.served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serve on %s: %w", s.Addr(), err)
	}
	return nil
}

// Finish is Close after calls and streams that are ending have come to their end, such as
// a refusal that is on its way; for so long.
func (s *Server) Finish(patience time.Duration) error {
	if s.serving {
		s.health.Shutdown()
		late := time.AfterFunc(patience, s.grpc.Stop)
		s.grpc.GracefulStop()
		late.Stop()
	}
	return s.Close()
}

// stream is a Stream on gRPC's of either side.
type stream struct {
	grpc interface {
		Context() context.Context
		SendMsg(m any) error
		RecvMsg(m any) error
	}
}

// Context implements Stream.
func (s *stream) Context() context.Context { return s.grpc.Context() }

// Send implements Stream.
func (s *stream) Send(m *Message) error { return s.grpc.SendMsg(m) }

// Recv implements Stream.
func (s *stream) Recv() (*Message, error) {
	m := &Message{}
	if err := s.grpc.RecvMsg(m); err != nil {
		return nil, err
	}
	return m, nil
}

package rpc

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// Dial is a connection to the server at addr ("host:port"), which must prove to be want
// (its Run is not looked at: it must be ours). Dial does not wait: the connection is made
// when it is used, and made again when it breaks.
func Dial(addr string, id *Identity, want Who, o Options) (*grpc.ClientConn, error) {
	if id == nil {
		return nil, fmt.Errorf("call %v at %s: %w", want, addr, errNoIdentity)
	}
	if id.plain && o.Dialer == nil {
		if err := plainOnly(addr); err != nil {
			return nil, fmt.Errorf("call %v at %s: %w", want, addr, err)
		}
	}
	cc, err := grpc.NewClient("passthrough:///"+addr, o.client(id, want)...)
	if err != nil {
		return nil, fmt.Errorf("call %v at %s: %w", want, addr, err)
	}
	return cc, nil
}

// Call sends m to method ("/NAME/METHOD") and returns the answer. It fails at once while
// there is no connection, unless opts has grpc.WaitForReady. ctx needs a deadline.
func Call(ctx context.Context, cc *grpc.ClientConn, method string, m *Message, opts ...grpc.CallOption) (*Message, error) {
	answer := &Message{}
	if err := cc.Invoke(ctx, method, m, answer, opts...); err != nil {
		return nil, err
	}
	return answer, nil
}

// ClientStream is a Stream that can say that nothing more will be sent. It ends when its
// context does.
type ClientStream struct {
	stream
	g grpc.ClientStream
}

// CloseSend tells the server that nothing more will be sent.
func (s *ClientStream) CloseSend() error { return s.g.CloseSend() }

var streamDesc = grpc.StreamDesc{ServerStreams: true, ClientStreams: true}

// Open opens a stream to method ("/NAME/METHOD"), which ends with ctx.
func Open(ctx context.Context, cc *grpc.ClientConn, method string, opts ...grpc.CallOption) (*ClientStream, error) {
	g, err := cc.NewStream(ctx, &streamDesc, method, opts...)
	if err != nil {
		return nil, err
	}
	return &ClientStream{stream{g}, g}, nil
}

// Healthy asks the server of cc whether it serves a service ("": the server as a whole),
// and waits for a connection until ctx ends. It says why not.
func Healthy(ctx context.Context, cc *grpc.ClientConn, service string) error {
	r, err := grpc_health_v1.NewHealthClient(cc).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: service},
		grpc.WaitForReady(true), grpc.CallContentSubtype("proto"))
	if err != nil {
		return err
	}
	if r.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		return fmt.Errorf("it answers that it is %v", r.Status)
	}
	return nil
}

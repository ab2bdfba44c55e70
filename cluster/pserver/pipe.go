package pserver

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc/status"

	"dorylus/cluster/rpc"
)

// pipe is a stream within the process. It ends with ctx, at both ends, or when the far one
// is ended. What has been sent before arrives, as long as somebody asks for it.
func pipe(ctx context.Context) (near, far *pipeEnd) {
	inner, cancel := context.WithCancelCause(ctx)
	up, down := make(chan []byte, 16), make(chan []byte, 16)
	return &pipeEnd{inner, cancel, down, up}, &pipeEnd{inner, cancel, up, down}
}

// pipeEnd implements rpc.Stream. Messages go through their frames, as on any stream.
type pipeEnd struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	in, out chan []byte
}

// end ends both, for the reason that a handler gives.
func (p *pipeEnd) end(err error) {
	if err == nil {
		err = io.EOF
	}
	p.cancel(err)
}

// why the stream has ended.
func (p *pipeEnd) why() error {
	err := context.Cause(p.ctx)
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err).Err()
	}
	return err
}

// Context implements rpc.Stream.
func (p *pipeEnd) Context() context.Context { return p.ctx }

// Send implements rpc.Stream.
func (p *pipeEnd) Send(m *rpc.Message) error {
	b, err := m.Append(make([]byte, 0, m.Size()))
	if err != nil {
		return err
	}
	if p.ctx.Err() != nil {
		return io.EOF
	}
	select {
	case p.out <- b:
		return nil
	case <-p.ctx.Done():
		return io.EOF
	}
}

// Recv implements rpc.Stream.
func (p *pipeEnd) Recv() (*rpc.Message, error) {
	select {
	case b := <-p.in:
		return rpc.Parse(b)
	case <-p.ctx.Done():
	}
	select {
	case b := <-p.in:
		return rpc.Parse(b)
	default:
		return nil, p.why()
	}
}

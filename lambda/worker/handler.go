package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"dorylus/lambda/rpc"
	"dorylus/lambda/wire"
)

// Invoke handles one invocation: payload is an Invitation, the answer the worker's
// farewell or, where the invitation has brought the work, an Answer, all as JSON. It
// implements aws-lambda-go's lambda.Handler.
func (w *Worker) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var in Invitation
	if err := json.Unmarshal(payload, &in); err != nil {
		return nil, fmt.Errorf("read the invitation: %w", err)
	}
	if in.Messages != nil {
		return w.inline(ctx, in)
	}
	roots, err := rpc.Trust(in.Certificate)
	if err != nil {
		return nil, err
	}
	conn, hang, err := rpc.Dial(ctx, in.Addresses, roots)
	if err != nil {
		return nil, err
	}
	line := &line{Conn: conn, hang: sync.OnceFunc(hang)}
	defer line.Close()
	bye, err := w.Serve(ctx, line, in)
	if err != nil {
		return nil, err
	}
	return json.Marshal(bye)
}

// line is a stream to a graph server.
type line struct {
	wire.Conn
	hang func()
}

// Close implements Stream.
func (l *line) Close() { l.hang() }

// inline does the work that an invitation has brought.
func (w *Worker) inline(ctx context.Context, in Invitation) ([]byte, error) {
	msgs, err := wire.Unpack(in.Messages)
	if err != nil {
		return nil, fmt.Errorf("read the invitation: %w", err)
	}
	c := &script{in: msgs}
	if _, err := w.Serve(ctx, c, in); err != nil {
		return nil, err
	}
	var a Answer
	if a.Messages, err = wire.Pack(c.out[1:]); err != nil { // without the hello
		return nil, err
	}
	return json.Marshal(a)
}

// script is a stream whose messages are all there, and that keeps what is sent.
type script struct{ in, out []*wire.Message }

// Send implements wire.Conn.
func (c *script) Send(m *wire.Message) error {
	c.out = append(c.out, m)
	return nil
}

// Recv implements wire.Conn.
func (c *script) Recv() (*wire.Message, error) {
	if len(c.in) == 0 {
		return nil, io.EOF
	}
	m := c.in[0]
	c.in = c.in[1:]
	return m, nil
}

// Close implements Stream: Recv never waits.
func (c *script) Close() {}

// Package rpc carries wire messages between graph servers and Lambda workers: one gRPC
// stream per invocation, opened by the worker, with TLS 1.3.
package rpc

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"

	"dorylus/lambda/wire"
)

// frames is the gRPC codec of wire.Message. The parts of a message, which are most of
// it, are not copied on their way out.
type frames struct{}

const codecName = "dorylus-frames"

func init() { encoding.RegisterCodecV2(frames{}) }

// Name implements encoding.CodecV2.
func (frames) Name() string { return codecName }

// Marshal implements encoding.CodecV2.
func (frames) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(*wire.Message)
	if !ok {
		return nil, fmt.Errorf("send %T: only wire messages go over this stream", v)
	}
	pieces, err := m.Pieces()
	if err != nil {
		return nil, err
	}
	out := make(mem.BufferSlice, len(pieces))
	for i, p := range pieces {
		out[i] = mem.SliceBuffer(p)
	}
	return out, nil
}

// Unmarshal implements encoding.CodecV2.
func (frames) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(*wire.Message)
	if !ok {
		return fmt.Errorf("receive %T: only wire messages come over this stream", v)
	}
	read, err := wire.Parse(data.Materialize()) // a copy: data is gRPC's own
	if err != nil {
		return err
	}
	*m = *read
	return nil
}

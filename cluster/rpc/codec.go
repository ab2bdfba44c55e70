package rpc

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// frames is the gRPC codec of Message. Parts are not copied on their way out.
type frames struct{}

const codecName = "dorylus-cluster"

func init() { encoding.RegisterCodecV2(frames{}) }

// Name implements encoding.CodecV2.
func (frames) Name() string { return codecName }

// Marshal implements encoding.CodecV2.
func (frames) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(*Message)
	if !ok {
		return nil, fmt.Errorf("send %T: only messages of this package go this way", v)
	}
	front, err := m.front()
	if err != nil {
		return nil, err
	}
	out := make(mem.BufferSlice, 1, 1+len(m.Parts))
	out[0] = mem.SliceBuffer(front)
	for _, p := range m.Parts {
		if len(p) > 0 {
			out = append(out, mem.SliceBuffer(p))
		}
	}
	return out, nil
}

// Unmarshal implements encoding.CodecV2.
func (frames) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(*Message)
	if !ok {
		return fmt.Errorf("receive %T: only messages of this package come this way", v)
	}
	read, err := Parse(data.Materialize()) // a copy: data is gRPC's own
	if err != nil {
		return err
	}
	*m = *read
	return nil
}

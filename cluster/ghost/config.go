package ghost

import (
	"fmt"

	"dorylus/lambda/codec"
)

// Defaults of Config.
const (
	DefaultLink  = 625e6 // bytes per second: half of 10 Gbit/s, as others use it too
	DefaultChunk = 1 << 20
	DefaultMax   = 4 << 30
)

// Config is how rows travel.
type Config struct {
	// Wire is the precision of rows on the wire; the zero value is FP32. All servers of a
	// run have the same.
	Wire codec.DType
	// Codec compresses rows where that makes them smaller; the zero value probes.
	Codec codec.Codec
	// Link is the speed of the network in bytes per second, by which probing weighs bytes
	// against time; 0: DefaultLink.
	Link float64
	// Chunk is the number of bytes of values in a message; 0: DefaultChunk.
	Chunk int
	// Max is the number of bytes that the rows of one RowMsg may need in memory; 0:
	// DefaultMax.
	Max int64
	// Await lets nothing in before Expect has said what is wanted. Else all that comes is
	// wanted until Expect has said otherwise.
	Await bool
}

func (c Config) withDefaults() (Config, error) {
	if c.Link == 0 {
		c.Link = DefaultLink
	}
	if c.Chunk == 0 {
		c.Chunk = DefaultChunk
	}
	if c.Max == 0 {
		c.Max = DefaultMax
	}
	if c.Chunk < 0 || c.Chunk > 16<<20 || c.Max < 0 {
		return c, fmt.Errorf("exchange rows in messages of %d bytes, at most %d in all: want 1 to %d, and no negative bound", c.Chunk, c.Max, 16<<20)
	}
	if c.Wire != codec.FP32 && c.Wire != codec.BF16 && c.Wire != codec.FP16 {
		return c, fmt.Errorf("exchange rows as %v: want fp32, bf16 or fp16", c.Wire)
	}
	return c, codec.Options{Wire: c.Wire, Codec: c.Codec, Link: c.Link}.Validate()
}

// Package codec is the wire frame of tensor shards: rows of a float32 matrix (as
// they are, or shortened to bf16 or fp16), int32 indices and labels, or bytes,
// with shape, codec and checksums before the payload. FORMAT.md describes the
// bytes.
//
// An Encoder appends frames to a buffer and chooses the codec of each stream of
// tensors by probing; Decode, DecodeInt32 and DecodeBytes read whole tensors; an
// Assembler puts a tensor together from chunks in any order. A receiver first asks
// ReadHeader for the shape, within its Limits, and allocates by the answer.
//
// Frames come from other machines: every length is bounded before memory is
// reserved by it, and no input makes this package panic.
package codec

import (
	"errors"
	"fmt"
)

// Errors by which a receiver decides what to do; every error of this package about
// a frame's contents wraps one of them. All else is a mistake of the caller, such as
// a destination of another shape.
var (
	// ErrVersion: the sender is of another release; sending again does not help.
	ErrVersion = errors.New("frame of another version")
	// ErrCorrupt: the bytes are not what was sent; ask for them again.
	ErrCorrupt = errors.New("corrupt frame")
	// ErrLimit: the tensor is larger than the receiver accepts.
	ErrLimit = errors.New("frame over the limit")
)

// DType is how values travel. The zero value is FP32.
type DType uint8

// What travels. BF16 and FP16 round to nearest, ties to even, and are widened again
// by the receiver; the others keep every bit.
const (
	FP32 DType = iota
	BF16
	FP16
	Int32
	Bytes
)

var dtypes = [...]string{"fp32", "bf16", "fp16", "int32", "bytes"}

// String is the name that ParseWire reads.
func (d DType) String() string { return name(dtypes[:], int(d), "dtype") }

// width is the number of bytes of one value on the wire.
func (d DType) width() int { return [...]int{4, 2, 2, 4, 1}[d] }

// memory is the number of bytes of one value at the receiver.
func (d DType) memory() int { return [...]int{4, 4, 4, 4, 1}[d] }

// float says whether values become a float32 matrix.
func (d DType) float() bool { return d <= FP16 }

// ParseWire reads the precision of floats on the wire: fp32, bf16 or fp16.
func ParseWire(s string) (DType, error) {
	for d := FP32; d <= FP16; d++ {
		if s == d.String() {
			return d, nil
		}
	}
	return 0, fmt.Errorf("wire precision %q: want fp32, bf16 or fp16", s)
}

// Codec is the compressor of a payload. Auto, the zero value, stands in Options
// only: the encoder picks one of the others.
type Codec uint8

// The compressors, cheapest first.
const (
	Auto Codec = iota
	None
	S2
	ZSTD
)

var codecs = [...]string{"auto", "none", "s2", "zstd"}

// String is the compressor's name.
func (c Codec) String() string { return name(codecs[:], int(c), "codec") }

// Filter is what was done to the values before the compressor saw them.
type Filter uint8

// Filters, which combine. Bytes have none.
const (
	// Shuffle stores the first bytes of all values, then all second ones, and so on.
	Shuffle Filter = 1 << iota
	// Sparse stores one bit per value and then only the values that are not zero (all
	// bits clear: -0 is kept).
	Sparse

	allFilters = Shuffle | Sparse
)

var filters = [...]string{"plain", "shuffle", "sparse", "sparse+shuffle"}

// String names the filters, "plain" for none.
func (f Filter) String() string { return name(filters[:], int(f), "filter") }

func name(of []string, i int, kind string) string {
	if i < len(of) {
		return of[i]
	}
	return fmt.Sprintf("%s(%d)", kind, i)
}

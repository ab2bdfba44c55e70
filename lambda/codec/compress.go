package codec

import (
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// Encoders and decoders of zstd hold tables of megabytes: they are pooled, and each
// works on its caller's goroutine alone.
var (
	zstdEncoders = sync.Pool{New: func() any {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithAllLitEntropyCompression(true), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
		if err != nil {
			panic(fmt.Sprintf("codec: open a zstd encoder: %v", err)) // an option of ours is wrong
		}
		return e
	}}
	zstdDecoders = sync.Pool{New: func() any {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true),
			zstd.WithDecoderMaxMemory(uint64(filteredMax(Sparse, maxPacked, 2))), zstd.WithDecoderMaxWindow(64<<20))
		if err != nil {
			panic(fmt.Sprintf("codec: open a zstd decoder: %v", err))
		}
		return d
	}}
	scratches = sync.Pool{New: func() any { return new([]byte) }}
)

// scratch lends n bytes of undefined contents until put back.
func scratch(n int) *[]byte {
	b := scratches.Get().(*[]byte)
	*b = slices.Grow((*b)[:0], n)[:n]
	return b
}

// compressMax is the capacity that compress needs to reserve nothing.
func compressMax(c Codec, n int) int {
	if c == S2 {
		return max(s2.MaxEncodedLen(n), 0)
	}
	return n + n/128 + 64*maxSections
}

// compress compresses src, of which cuts are the lengths of parts unlike each other, into
// dst's memory or, where that is too short, new memory. zstd makes a frame of each part, so
// that one part's statistics do not spoil another's; s2 has none.
func compress(c Codec, dst, src []byte, cuts []int) []byte {
	if c == S2 {
		return s2.Encode(dst[:cap(dst)], src)
	}
	e := zstdEncoders.Get().(*zstd.Encoder)
	defer zstdEncoders.Put(e)
	dst = dst[:0]
	for _, n := range cuts {
		dst = e.EncodeAll(src[:n], dst)
		src = src[n:]
	}
	return dst
}

// decompress fills dst from src and returns the bytes written, at most len(dst).
func decompress(c Codec, dst, src []byte) (int, error) {
	if c == S2 {
		n, err := s2.DecodedLen(src)
		if err != nil {
			return 0, fmt.Errorf("s2: %w", err)
		}
		if n > len(dst) {
			return 0, fmt.Errorf("s2: %d bytes, room for %d", n, len(dst))
		}
		if _, err := s2.Decode(dst[:n:n], src); err != nil {
			return 0, fmt.Errorf("s2: %w", err)
		}
		return n, nil
	}
	d := zstdDecoders.Get().(*zstd.Decoder)
	defer zstdDecoders.Put(d)
	out, err := d.DecodeAll(src, dst[:0:len(dst)])
	if err != nil {
		return 0, fmt.Errorf("zstd: %w", err)
	}
	if len(out) > 0 && unsafe.SliceData(out) != unsafe.SliceData(dst) {
		copy(dst, out)
	}
	return len(out), nil
}

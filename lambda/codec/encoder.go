package codec

import (
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"math"
	"slices"

	"dorylus/kernels"
)

// DefaultLink is the link speed that the zero Options assume, in bytes per second: the
// 600 Mbit/s that one Lambda function sees.
const DefaultLink = 75e6

// Key names a stream of tensors that are alike, such as the activations of one layer:
// the codec that suited one of them is used for the next.
type Key uint64

// Options configure an Encoder.
type Options struct {
	// Wire is the precision of floats on the wire: FP32, the default, keeps every bit;
	// BF16 and FP16 halve the bytes and round. Int32 and bytes are always exact.
	Wire DType
	// Codec compresses all payloads, where that makes them smaller. Auto, the default,
	// picks a codec or none for each stream by what a sample costs on the link and in the
	// processor.
	Codec Codec
	// Link is the speed of one stream in bytes per second, by which Auto weighs bytes
	// against processor time. 0: DefaultLink. A slow link makes it compress for little
	// gain; a link of more than 1e9 makes it send almost all as it is.
	Link float64
}

// Validate says what is wrong with o.
func (o Options) Validate() error {
	var errs []error
	if !o.Wire.float() {
		errs = append(errs, fmt.Errorf("encoder options: floats as %v; want fp32, bf16 or fp16", o.Wire))
	}
	if int(o.Codec) >= len(codecs) {
		errs = append(errs, fmt.Errorf("encoder options: unknown %v; want auto, none, s2 or zstd", o.Codec))
	}
	if !(o.Link >= 0) || math.IsInf(o.Link, 1) {
		errs = append(errs, fmt.Errorf("encoder options: a link of %v bytes per second; want more than 0", o.Link))
	}
	return errors.Join(errs...)
}

// Encoder makes frames. It is safe for concurrent use.
//
// A frame's values are first packed to where an uncompressed payload lies, so that
// "none" is one copy and one checksum; a compressed payload that is not smaller is
// dropped. So no frame is longer than HeaderSize and its packed values.
type Encoder struct {
	opts  Options
	plans plans
}

// NewEncoder is an Encoder of valid options.
func NewEncoder(o Options) (*Encoder, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Link == 0 {
		o.Link = DefaultLink
	}
	return &Encoder{opts: o}, nil
}

// Append appends one frame of all of m, a host matrix, to dst. The memory it reserves
// at the end of dst is that of the uncompressed frame.
func (e *Encoder) Append(dst []byte, key Key, m *kernels.Mat) []byte {
	return e.AppendRows(dst, key, m, kernels.Span{Hi: m.Rows})
}

// AppendRows appends one frame of rows [s.Lo,s.Hi) of m: a chunk of m, which an
// Assembler puts back, unless it is all of it. It panics with a *kernels.ShapeError if
// m is not in host memory or has no such rows.
func (e *Encoder) AppendRows(dst []byte, key Key, m *kernels.Mat, s kernels.Span) []byte {
	kernels.CheckHost("codec.AppendRows", m)
	if n := extent(m); s.Lo < 0 || s.Hi < s.Lo || s.Hi > m.Rows || m.Rows > 1 && m.Stride < m.Cols || n > len(m.Host) {
		panic(&kernels.ShapeError{Op: "codec.AppendRows", Msg: fmt.Sprintf("rows [%d,%d) of %d x %d, stride %d, %d values in memory",
			s.Lo, s.Hi, m.Rows, m.Cols, m.Stride, len(m.Host))})
	}
	h := Header{DType: e.opts.Wire, Total: m.Rows, First: s.Lo, Rows: s.Len(), Cols: m.Cols}
	return e.frame(dst, key, h, func(raw []byte) { packRows(raw, m, s, h.DType) })
}

// AppendInt32 appends a frame of the vector v.
func (e *Encoder) AppendInt32(dst []byte, key Key, v []int32) []byte {
	h := Header{DType: Int32, Total: len(v), Rows: len(v), Cols: 1}
	return e.frame(dst, key, h, func(raw []byte) { copyWords(raw, view(v)) })
}

// AppendBytes appends a frame of b.
func (e *Encoder) AppendBytes(dst []byte, key Key, b []byte) []byte {
	h := Header{DType: Bytes, Total: len(b), Rows: len(b), Cols: 1}
	return e.frame(dst, key, h, func(raw []byte) { copy(raw, b) })
}

// Chunks yields frames of m of at most size bytes of packed values each, or one row
// where that is more, in row order; one frame of no rows if m has none. Each frame is
// memory of its own, which belongs to the receiver of the sequence.
func (e *Encoder) Chunks(key Key, m *kernels.Mat, size int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for s := range Split(m.Rows, m.Cols*e.opts.Wire.width(), size) {
			if !yield(e.AppendRows(nil, key, m, s)) {
				return
			}
		}
	}
}

// Split cuts rows of rowBytes each into spans of at most size bytes, and at least one
// row. No rows are one empty span.
func Split(rows, rowBytes, size int) iter.Seq[kernels.Span] {
	per := max(rows, 1)
	if rowBytes > 0 {
		per = min(per, max(size/rowBytes, 1))
	}
	return func(yield func(kernels.Span) bool) {
		for lo := 0; lo == 0 || lo < rows; lo += per {
			if !yield(kernels.Span{Lo: lo, Hi: min(lo+per, rows)}) {
				return
			}
		}
	}
}

// frame appends the frame of h, whose values pack writes.
func (e *Encoder) frame(dst []byte, key Key, h Header, pack func(raw []byte)) []byte {
	width := h.DType.width()
	h.Raw = h.Rows * h.Cols * width
	start := len(dst)
	dst = slices.Grow(dst, HeaderSize+h.Raw)[:start+HeaderSize+h.Raw]
	frame := dst[start:]
	raw := frame[HeaderSize:]
	pack(raw)
	h.Codec, h.Encoded = None, h.Raw
	h.Content = crc32.Checksum(raw, castagnoli)
	crc := h.Content
	if p := e.plan(streamKey{key, h.DType}, raw); p.plan != asIs {
		out := scratch(0)
		defer scratches.Put(out)
		*out, _ = encodePayload(*out, raw, width, p.plan)
		if n := len(*out); n < h.Raw {
			h.Codec, h.Filter, h.Encoded = p.codec, p.filter, n
			copy(raw, *out)
			crc = crc32.Checksum(raw[:n], castagnoli)
		}
		if float64(len(*out)) > (p.ratio+drift)*float64(h.Raw) {
			e.plans.drifted(streamKey{key, h.DType})
		}
	}
	h.put(frame, crc)
	return dst[:start+HeaderSize+h.Encoded]
}

// plan is how the packed values raw of a stream are to be encoded.
func (e *Encoder) plan(k streamKey, raw []byte) stream {
	if e.opts.Codec == None || len(raw) < minBytes || len(raw) > maxPacked {
		return stream{plan: asIs}
	}
	if s, ok := e.plans.next(k); ok {
		return s
	}
	s := probe(raw, k.dtype.width(), e.opts.Codec, 1e9/e.opts.Link)
	e.plans.keep(k, s)
	return s
}

// encodePayload makes the payload of raw by p in out's memory or new memory, and
// returns also the bytes that the filters left.
func encodePayload(out, raw []byte, width int, p plan) (payload []byte, filtered int) {
	src := raw
	if p.filter != 0 {
		buf, tmp := scratch(filteredMax(p.filter, len(raw), width)), scratch(len(raw))
		defer scratches.Put(buf)
		defer scratches.Put(tmp)
		src = apply(p.filter, *buf, *tmp, raw, width)
	}
	if p.codec == None {
		return append(out[:0], src...), len(src)
	}
	out = slices.Grow(out[:0], compressMax(p.codec, len(src)))
	return compress(p.codec, out, src, sections(p.filter, len(raw)/width, len(src), width)), len(src)
}

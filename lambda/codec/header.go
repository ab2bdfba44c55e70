package codec

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/bits"
)

// Version is the frame version that this package writes, and the only one it reads.
const Version = 1

// HeaderSize is the number of bytes before a frame's payload: what a frame costs
// over its values.
const HeaderSize = 64

// DefaultMaxBytes is the limit of the zero Limits: 256 MiB.
const DefaultMaxBytes = 256 << 20

// maxPacked is the most bytes of values that are compressed: 1 GiB. Larger frames
// go as they are; cut such tensors into chunks.
const maxPacked = 1 << 30

var magic = [4]byte{'D', 'Y', 'T', 'F'}

// castagnoli is the CRC with instructions of its own on amd64 and arm64: measured
// twice as fast as xxhash64 from 4 KiB to 4 MiB, and no slower on 64 bytes.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Header is what a frame says about its payload.
type Header struct {
	DType  DType
	Codec  Codec
	Filter Filter
	// Total is the number of rows of the tensor; this frame holds Rows of them, from
	// row First on. Vectors have one column.
	Total, First, Rows, Cols int
	// Raw is the number of bytes of the frame's values packed in DType, Encoded that of
	// the payload; Encoded <= Raw.
	Raw, Encoded int
	// Content is the CRC-32C of the packed values, whatever codec they travel in.
	Content uint32
	// Sum is the CRC-32C of payload and header.
	Sum uint32
}

// Whole says whether the frame holds all rows of its tensor.
func (h Header) Whole() bool { return h.First == 0 && h.Rows == h.Total }

// MemoryBytes is the size of the whole tensor at the receiver, unpadded.
func (h Header) MemoryBytes() int64 { return int64(h.Total) * int64(h.Cols) * int64(h.DType.memory()) }

// String is one line for logs.
func (h Header) String() string {
	return fmt.Sprintf("%s rows [%d,%d) of %d x %d, %s %s, %d of %d bytes",
		h.DType, h.First, h.First+h.Rows, h.Total, h.Cols, h.Codec, h.Filter, h.Encoded, h.Raw)
}

// Limits is what a receiver accepts.
type Limits struct {
	// MaxBytes is the most memory the whole tensor may need at the receiver, in bytes; a
	// row counts as one byte at least. 0: DefaultMaxBytes.
	MaxBytes int64
}

// ReadHeader reads the header of a frame, checks that its numbers fit each other, the
// length of the frame and the limits, and reserves nothing. It does not read the
// payload: the decoders check the sums.
func ReadHeader(frame []byte, lim Limits) (Header, error) {
	h, err := parse(frame)
	if err != nil {
		return Header{}, err
	}
	most := lim.MaxBytes
	if most == 0 {
		most = DefaultMaxBytes
	}
	if need := max(h.MemoryBytes(), int64(h.Total)); need > most {
		return Header{}, fmt.Errorf("read frame: the tensor of %d x %d %s needs %d bytes, the limit is %d; raise it or send fewer rows: %w",
			h.Total, h.Cols, h.DType, need, most, ErrLimit)
	}
	return h, nil
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("read frame: "+format+": %w", append(args, ErrCorrupt)...)
}

// parse reads the header and checks it against itself and the frame's length.
func parse(frame []byte) (Header, error) {
	if len(frame) < HeaderSize {
		return Header{}, corrupt("%d bytes are no frame: the header alone has %d", len(frame), HeaderSize)
	}
	if [4]byte(frame) != magic {
		return Header{}, corrupt("it starts with %q, want %q", frame[:4], magic[:])
	}
	if frame[4] != Version {
		return Header{}, fmt.Errorf("read frame: version %d, but this program reads version %d; run the same release on both sides: %w",
			frame[4], Version, ErrVersion)
	}
	h := Header{DType: DType(frame[5]), Codec: Codec(frame[6]), Filter: Filter(frame[7])}
	for i, to := range []*int{&h.Total, &h.First, &h.Rows, &h.Cols, &h.Raw, &h.Encoded} {
		n := binary.LittleEndian.Uint64(frame[8+8*i:])
		if n > math.MaxInt {
			return Header{}, corrupt("%s is %d", [...]string{"total", "first", "rows", "cols", "raw", "encoded"}[i], n)
		}
		*to = int(n)
	}
	h.Content = binary.LittleEndian.Uint32(frame[56:])
	h.Sum = binary.LittleEndian.Uint32(frame[60:])
	if err := h.check(); err != nil {
		return Header{}, err
	}
	if len(frame)-HeaderSize != h.Encoded {
		return Header{}, corrupt("%d bytes of payload, the header says %d", len(frame)-HeaderSize, h.Encoded)
	}
	return h, nil
}

// check says which number of h contradicts another.
func (h *Header) check() error {
	switch {
	case int(h.DType) >= len(dtypes):
		return corrupt("unknown %v", h.DType)
	case h.Codec == Auto || int(h.Codec) >= len(codecs):
		return corrupt("unknown codec %d", uint8(h.Codec))
	case h.Filter&^allFilters != 0 || h.DType == Bytes && h.Filter != 0:
		return corrupt("filter %d on %v", uint8(h.Filter), h.DType)
	case h.Rows > h.Total || h.First > h.Total-h.Rows:
		return corrupt("%d rows from row %d on, of %d", h.Rows, h.First, h.Total)
	case h.Rows == 0 && h.Total > 0:
		return corrupt("no row of %d", h.Total)
	case !h.DType.float() && h.Cols != 1:
		return corrupt("%d columns of %v, want 1", h.Cols, h.DType)
	}
	if over, cells := bits.Mul64(uint64(h.Total), uint64(h.Cols)); over != 0 || cells > math.MaxInt/8 {
		return corrupt("%d x %d values", h.Total, h.Cols)
	}
	switch {
	case h.Raw != h.Rows*h.Cols*h.DType.width():
		return corrupt("%d x %d %v in %d bytes, want %d", h.Rows, h.Cols, h.DType, h.Raw, h.Rows*h.Cols*h.DType.width())
	case h.Encoded > h.Raw || h.Codec == None && h.Filter&Sparse == 0 && h.Encoded != h.Raw:
		return corrupt("%d bytes are encoded in %d by %v %v", h.Raw, h.Encoded, h.Codec, h.Filter)
	case h.Codec != None && h.Raw > maxPacked:
		return corrupt("%v over %d bytes, at most %d are compressed", h.Codec, h.Raw, maxPacked)
	}
	return nil
}

// put writes h before its payload, and the sum over both into it. crc is the payload's
// CRC-32C.
func (h *Header) put(frame []byte, crc uint32) {
	copy(frame, magic[:])
	frame[4], frame[5], frame[6], frame[7] = Version, byte(h.DType), byte(h.Codec), byte(h.Filter)
	for i, n := range [...]int{h.Total, h.First, h.Rows, h.Cols, h.Raw, h.Encoded} {
		binary.LittleEndian.PutUint64(frame[8+8*i:], uint64(n))
	}
	binary.LittleEndian.PutUint32(frame[56:], h.Content)
	h.Sum = crc32.Update(crc, castagnoli, frame[:60])
	binary.LittleEndian.PutUint32(frame[60:], h.Sum)
}

// verify compares the sum of payload and header with the one that was sent, and
// returns the payload.
func (h *Header) verify(frame []byte) ([]byte, error) {
	payload := frame[HeaderSize:]
	crc := crc32.Checksum(payload, castagnoli)
	if sum := crc32.Update(crc, castagnoli, frame[:60]); sum != h.Sum {
		return nil, corrupt("%v: checksum %08x, want %08x", h, sum, h.Sum)
	}
	if h.Codec == None && h.Filter == 0 && crc != h.Content {
		return nil, corrupt("%v: values' checksum %08x, want %08x", h, crc, h.Content)
	}
	return payload, nil
}

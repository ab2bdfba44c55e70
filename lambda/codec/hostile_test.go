package codec

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// Each lie of a header has an error that names it.
func TestReadHeaderRefuses(t *testing.T) {
	good := encoder(t, Options{}).Append(nil, 0, fill(newMat(4, 3, 0), 0, rng(1)))
	at := func(i int, n uint64) func([]byte) []byte {
		return func(f []byte) []byte { binary.LittleEndian.PutUint64(f[i:], n); return f }
	}
	for _, c := range []struct {
		change func([]byte) []byte
		want   string
		is     error
	}{
		{func(f []byte) []byte { return nil }, "0 bytes are no frame", ErrCorrupt},
		{func(f []byte) []byte { return f[:63] }, "63 bytes are no frame", ErrCorrupt},
		{func(f []byte) []byte { f[0] = 'P'; return f }, `starts with "PYTF"`, ErrCorrupt},
		{func(f []byte) []byte { f[4] = 2; return f }, "version 2, but this program reads version 1; run the same release", ErrVersion},
		{func(f []byte) []byte { f[5] = 5; return f }, "unknown dtype(5)", ErrCorrupt},
		{func(f []byte) []byte { f[6] = 0; return f }, "unknown codec 0", ErrCorrupt},
		{func(f []byte) []byte { f[6] = 4; return f }, "unknown codec 4", ErrCorrupt},
		{func(f []byte) []byte { f[7] = 4; return f }, "filter 4 on fp32", ErrCorrupt},
		{at(8, 1<<63), "total is 9223372036854775808", ErrCorrupt},
		{at(8, 3), "4 rows from row 0 on, of 3", ErrCorrupt},
		{at(16, 1), "4 rows from row 1 on, of 4", ErrCorrupt},
		{at(16, math.MaxInt64), "from row 9223372036854775807 on", ErrCorrupt},
		{at(24, 0), "no row of 4", ErrCorrupt},
		{at(32, math.MaxInt64), "4 x 9223372036854775807 values", ErrCorrupt},
		{at(32, 4), "4 x 4 fp32 in 48 bytes, want 64", ErrCorrupt},
		{at(40, 44), "in 44 bytes, want 48", ErrCorrupt},
		{at(48, 49), "48 bytes are encoded in 49", ErrCorrupt},
		{at(48, 47), "48 bytes are encoded in 47 by none plain", ErrCorrupt},
		{func(f []byte) []byte { return append(f, 0) }, "49 bytes of payload, the header says 48", ErrCorrupt},
		{func(f []byte) []byte { f[5] = byte(Int32); return f }, "3 columns of int32", ErrCorrupt},
	} {
		_, err := ReadHeader(c.change(slices.Clone(good)), Limits{})
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	for _, c := range []struct {
		h   Header
		lim int64
	}{
		{Header{DType: BF16, Codec: None, Total: 100, Rows: 100, Cols: 10, Raw: 2000}, 3999}, // 4 bytes each at the receiver
		{Header{Codec: ZSTD, Total: 1 << 40, Rows: 1, Cols: 1, Raw: 4}, 0},
		{Header{Codec: None, Total: 1 << 40, Rows: 1 << 40}, 0}, // no columns
	} {
		f := forge(c.h, make([]byte, 2000))
		if c.h.Rows != 100 {
			f = forge(c.h, make([]byte, c.h.Raw))
		}
		if _, err := ReadHeader(f, Limits{MaxBytes: c.lim}); !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "the limit is") {
			t.Errorf("%v under %d: %v", c.h, c.lim, err)
		}
	}
	if _, err := ReadHeader(good, Limits{MaxBytes: 48}); err != nil {
		t.Errorf("48 bytes under a limit of 48: %v", err)
	}
}

// Every flipped bit is found.
func TestFlippedBits(t *testing.T) {
	for k := range kinds {
		m := fill(newMat(16, 20, 0), k, rng(1))
		frame := encoder(t, Options{Codec: Auto, Link: 1e7}).Append(nil, 0, m)
		got := newMat(16, 20, 0)
		for bit := range 8 * len(frame) {
			frame[bit/8] ^= 1 << (bit % 8)
			if err := Decode(frame, got); err == nil {
				t.Fatalf("%s: bit %d of byte %d flipped: decoded all the same", kinds[k].name, bit%8, bit/8)
			}
			frame[bit/8] ^= 1 << (bit % 8)
		}
	}
}

// Payloads that would grow beyond their header's size, or not fill it, with valid sums:
// refused, and no memory is reserved for what they claim.
func TestBombs(t *testing.T) {
	zeros := make([]byte, 64<<20)
	zw, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer zw.Close()
	bomb := zw.EncodeAll(zeros, nil)
	short := zw.EncodeAll(zeros[:100], nil)
	s2long := append(binary.AppendUvarint(nil, 1<<32-1), 0, 1, 2, 3)
	h := func(c Codec, f Filter) Header {
		return Header{Codec: c, Filter: f, Total: 60, Rows: 60, Cols: 100, Raw: 24000, Content: crc32.Checksum(zeros[:24000], castagnoli)}
	}
	dst := newMat(60, 100, 1)
	run := func(name string, frame []byte, want string) {
		t.Helper()
		if err := Decode(frame, dst); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	for f := range allFilters + 1 {
		run("zstd bomb", forge(h(ZSTD, f), bomb), "zstd")
		run("s2 bomb", forge(h(S2, f), s2long), "room for")
		run("no payload", forge(h(ZSTD, f), nil), "")
		run("garbage", forge(h(S2, f), []byte{200, 1, 255, 255}), "")
	}
	run("short zstd", forge(h(ZSTD, 0), short), "100 bytes decoded")
	run("short s2", forge(h(S2, Shuffle), s2.Encode(nil, zeros[:100])), "100 bytes decoded")
	run("bits without values", forge(h(None, Sparse), append([]byte{1}, zeros[:749]...)), "1 bits are set, but 0 bytes of values follow")
	run("too few bits", forge(h(None, Sparse), zeros[:749]), "749 bytes where the bits of 6000 values need 750")
	odd := Header{Codec: None, Filter: Sparse, Total: 1, Rows: 1, Cols: 9, Raw: 36}
	if err := Decode(forge(odd, []byte{0, 2, 0, 0, 0, 0}), newMat(1, 9, 0)); err == nil || !strings.Contains(err.Error(), "after the last of 9 values") {
		t.Errorf("a bit behind the values: %v", err)
	}
	lie := h(ZSTD, 0)
	lie.Content++
	run("other values than promised", forge(lie, zw.EncodeAll(zeros[:24000], nil)), "values' checksum")
	frame := forge(h(ZSTD, 0), bomb)
	if n := testing.AllocsPerRun(20, func() { _ = Decode(frame, dst) }); n > 60 {
		t.Errorf("a bomb costs %v allocations", n)
	}
}

func TestDecodeNamesShapes(t *testing.T) {
	frame := encoder(t, Options{}).Append(nil, 0, newMat(4, 3, 0))
	if err := Decode(frame, newMat(3, 4, 0)); err == nil || !strings.Contains(err.Error(), "a tensor of 4 x 3 into a matrix of 3 x 4") {
		t.Errorf("%v", err)
	}
	short := newMat(4, 3, 0)
	short.Host = short.Host[:11]
	if err := Decode(frame, short); err == nil || !strings.Contains(err.Error(), "has 11 values in host memory, want 12") {
		t.Errorf("%v", err)
	}
}

package codec

import (
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// realFrames seeds a fuzzer with frames of all kinds of values and the golden ones.
func realFrames(f *testing.F) (frames [][]byte) {
	for wire := FP32; wire <= FP16; wire++ {
		for k := range kinds {
			e := encoder(f, Options{Wire: wire, Link: 1e7})
			frames = append(frames, e.Append(nil, 0, fill(newMat(9, 33, 0), k, rng(uint64(k)))))
		}
	}
	e := encoder(f, Options{Link: 1e7})
	frames = append(frames, e.AppendInt32(nil, 0, make([]int32, 300)), e.AppendBytes(nil, 0, make([]byte, 300)))
	golden, err := filepath.Glob("testdata/v*/*.frame")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range golden {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		frames = append(frames, b)
	}
	return frames
}

// decodeAny decodes a frame by what its header says, as a receiver would.
func decodeAny(frame []byte) error {
	h, err := ReadHeader(frame, Limits{MaxBytes: 1 << 20})
	if err != nil {
		return err
	}
	switch h.DType {
	case Int32:
		return DecodeInt32(frame, make([]int32, h.Total))
	case Bytes:
		return DecodeBytes(frame, make([]byte, h.Total))
	}
	dst := newMat(h.Total, h.Cols, 1)
	if h.Whole() {
		return Decode(frame, dst)
	}
	_, _, err = NewAssembler(dst).Add(frame)
	return err
}

func FuzzDecode(f *testing.F) {
	for _, frame := range realFrames(f) {
		f.Add(frame)
	}
	f.Fuzz(func(t *testing.T, frame []byte) { _ = decodeAny(frame) })
}

// FuzzPayload mends the sum of payload and header, and so reaches the codecs.
func FuzzPayload(f *testing.F) {
	for _, frame := range realFrames(f) {
		f.Add(frame)
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		h, err := ReadHeader(frame, Limits{MaxBytes: 1 << 20})
		if err != nil {
			return
		}
		frame = slices.Clone(frame)
		h.put(frame, crc32.Checksum(frame[HeaderSize:], castagnoli))
		_ = decodeAny(frame)
	})
}

func FuzzReadHeader(f *testing.F) {
	for _, frame := range realFrames(f) {
		f.Add(frame)
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		h, err := ReadHeader(frame, Limits{MaxBytes: 1 << 20})
		if err != nil {
			return
		}
		if h.MemoryBytes() > 1<<20 || h.Total > 1<<20 || h.Raw > 1<<20 || h.Encoded > len(frame) || h.First+h.Rows > h.Total {
			t.Errorf("accepted %v", h)
		}
	})
}

// FuzzRoundTrip: the same bits for any shape, stride, wire type, codec and link.
func FuzzRoundTrip(f *testing.F) {
	f.Add(uint64(1), uint8(0), uint8(0), uint8(0), uint8(0), uint8(0), uint8(0), []byte{})
	f.Add(uint64(2), uint8(1), uint8(1), uint8(3), uint8(1), uint8(1), uint8(1), []byte{0, 0, 0xa0, 0x7f})
	f.Add(uint64(3), uint8(33), uint8(7), uint8(0), uint8(2), uint8(3), uint8(2), []byte{1})
	f.Add(uint64(4), uint8(90), uint8(41), uint8(9), uint8(0), uint8(2), uint8(5), []byte{2, 3, 4})
	f.Fuzz(func(t *testing.T, seed uint64, rows, cols, pad, wire, codec, kind uint8, bits []byte) {
		o := Options{Wire: DType(wire % 3), Codec: Codec(codec % 4), Link: math.Exp2(float64(seed % 40))}
		m := fill(newMat(int(rows), int(cols), int(pad)), int(kind)%len(kinds), rng(seed))
		for i := 0; i+4 <= len(bits) && m.Rows*m.Cols > 0; i += 4 {
			v := uint32(bits[i]) | uint32(bits[i+1])<<8 | uint32(bits[i+2])<<16 | uint32(bits[i+3])<<24
			m.Row(i / 4 % m.Rows)[i/4/m.Rows%m.Cols] = math.Float32frombits(v)
		}
		e := encoder(t, o)
		frame := e.Append(nil, 0, m)
		if most := HeaderSize + m.Rows*m.Cols*o.Wire.width(); len(frame) > most {
			t.Errorf("%d bytes, want at most %d", len(frame), most)
		}
		got, parts := newMat(m.Rows, m.Cols, int(seed%5)), newMat(m.Rows, m.Cols, 0)
		if err := Decode(frame, got); err != nil {
			t.Fatal(err)
		}
		if err := same(got, m, o.Wire); err != nil {
			t.Error(err)
		}
		a := NewAssembler(parts)
		for chunk := range e.Chunks(1, m, int(seed%2000)) {
			if _, fresh, err := a.Add(chunk); err != nil || !fresh {
				t.Fatalf("a chunk: fresh %v, %v", fresh, err)
			}
		}
		if err := a.Err(); err != nil {
			t.Fatal(err)
		}
		if err := same(parts, m, o.Wire); err != nil {
			t.Errorf("from chunks: %v", err)
		}
	})
}

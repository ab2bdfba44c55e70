package codec

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dorylus/kernels"
)

// goldenMat is the tensor of testdata/golden.py.
func goldenMat() *kernels.Mat {
	special := map[int]uint32{1: 0x80000000, 2: 0x7fa00001, 4: 0x7f800000, 5: 1, 7: 0x477fefff, 8: 0xff800000}
	m := newMat(40, 21, 0)
	for i := range 40 * 21 {
		b, ok := special[i]
		if !ok && i%3 != 0 {
			x := uint32(uint64(i)*2654435761) >> 8
			b = math.Float32bits((float32(x) - 0x1p23) / 0x1p20)
		}
		m.Host[i] = math.Float32frombits(b)
	}
	return m
}

func goldenFrame(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "v1", name+".frame"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Frames that another implementation wrote by FORMAT.md are read, and those that are not
// compressed are written byte by byte the same.
func TestGolden(t *testing.T) {
	m := goldenMat()
	for name, h := range map[string]Header{
		"fp32-none":                {DType: FP32, Codec: None},
		"fp32-none-sparse":         {DType: FP32, Codec: None, Filter: Sparse},
		"fp32-none-sparse-shuffle": {DType: FP32, Codec: None, Filter: Sparse | Shuffle},
		"fp32-zstd-shuffle":        {DType: FP32, Codec: ZSTD, Filter: Shuffle},
		"fp32-zstd-sparse-shuffle": {DType: FP32, Codec: ZSTD, Filter: Sparse | Shuffle},
		"bf16-none":                {DType: BF16, Codec: None},
		"bf16-zstd-sparse":         {DType: BF16, Codec: ZSTD, Filter: Sparse},
		"fp16-none-sparse-shuffle": {DType: FP16, Codec: None, Filter: Sparse | Shuffle},
	} {
		frame := goldenFrame(t, name)
		got, err := ReadHeader(frame, Limits{})
		if err != nil || got.DType != h.DType || got.Codec != h.Codec || got.Filter != h.Filter {
			t.Errorf("%s: %v, %v", name, got, err)
			continue
		}
		dst := newMat(40, 21, 3)
		if err := Decode(frame, dst); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if err := same(dst, m, h.DType); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if h.Codec != None {
			continue
		}
		e := encoder(t, Options{Wire: h.DType})
		e.plans.keep(streamKey{1, h.DType}, stream{plan: plan{h.Codec, h.Filter}, ratio: 1, left: 1})
		if again := e.Append(nil, 1, m); !bytes.Equal(again, frame) {
			t.Errorf("%s: written in other bytes: %v, want %v", name, again[:HeaderSize], frame[:HeaderSize])
		}
	}
	chunk := encoder(t, Options{Codec: None}).AppendRows(nil, 0, m, kernels.Span{Lo: 10, Hi: 25})
	dst := newMat(40, 21, 0)
	s, fresh, err := NewAssembler(dst).Add(goldenFrame(t, "chunk"))
	if err != nil || !fresh || s != (kernels.Span{Lo: 10, Hi: 25}) || same(dst.Sub(s), m.Sub(s), FP32) != nil {
		t.Errorf("chunk: rows %v, fresh %v, %v", s, fresh, err)
	}
	if !bytes.Equal(chunk, goldenFrame(t, "chunk")) {
		t.Error("chunk: written in other bytes")
	}
	ints, labels := make([]int32, 50), make([]byte, 100)
	if err := errors.Join(DecodeInt32(goldenFrame(t, "int32-none"), ints), DecodeBytes(goldenFrame(t, "bytes-s2"), labels)); err != nil {
		t.Fatal(err)
	}
	for i, v := range ints {
		if v != int32(i*i-100) {
			t.Errorf("int32-none: value %d is %d, want %d", i, v, i*i-100)
		}
	}
	for i, v := range labels {
		if v != byte(i%4) {
			t.Errorf("bytes-s2: value %d is %d, want %d", i, v, i%4)
		}
	}
}

// A frame of the next release is refused by name, not decoded by guess.
func TestOtherVersions(t *testing.T) {
	for _, v := range []byte{0, Version + 1, 255} {
		frame := goldenFrame(t, "fp32-none")
		frame[4] = v
		err := Decode(frame, newMat(40, 21, 0))
		if !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), "this program reads version 1") {
			t.Errorf("version %d: %v", v, err)
		}
		if _, _, err := NewAssembler(newMat(40, 21, 0)).Add(frame); !errors.Is(err, ErrVersion) {
			t.Errorf("version %d in an assembler: %v", v, err)
		}
	}
}

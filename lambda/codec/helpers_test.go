package codec

import (
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"testing"

	"dorylus/kernels"
)

func rng(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// guard fills the padding of test matrices.
var guard = math.Float32frombits(0x7fc0dead)

// newMat is a matrix with padded rows and guards in all that is not a value, also
// before and behind it.
func newMat(rows, cols, pad int) *kernels.Mat {
	stride := cols + pad
	data := make([]float32, rows*stride+2)
	for i := range data {
		data[i] = guard
	}
	return &kernels.Mat{Rows: rows, Cols: cols, Stride: stride, Host: data[1:]}
}

// kinds are ways to fill a matrix, by what the encoder makes of them.
var kinds = []struct {
	name string
	at   func(r *rand.Rand, row, col int) float32
}{
	{"normal", func(r *rand.Rand, _, _ int) float32 { return float32(r.NormFloat64()) }},
	{"relu", func(r *rand.Rand, _, _ int) float32 { return max(0, float32(r.NormFloat64())) }},
	{"words", func(r *rand.Rand, _, _ int) float32 {
		if r.IntN(77) == 0 {
			return 1
		}
		return 0
	}},
	{"gradient", func(r *rand.Rand, _, _ int) float32 { return float32(r.NormFloat64() * 1e-5) }},
	{"bits", func(r *rand.Rand, _, _ int) float32 { return math.Float32frombits(r.Uint32()) }},
	{"zeros", func(r *rand.Rand, row, col int) float32 { return float32(math.Copysign(0, float64((row+col)%7)-3)) }},
	{"constant", func(*rand.Rand, int, int) float32 { return 3.25 }},
}

func fill(m *kernels.Mat, kind int, r *rand.Rand) *kernels.Mat {
	for i := range m.Rows {
		for j := range m.Row(i) {
			m.Row(i)[j] = kinds[kind].at(r, i, j)
		}
	}
	return m
}

// rounded is v as it comes out of wire type d.
func rounded(v float32, d DType) float32 {
	switch d {
	case BF16:
		return fromBF16(bf16(v))
	case FP16:
		return fromFP16(fp16(v))
	}
	return v
}

// same compares bits: got must be want as it comes out of wire type d, and its guards
// must be whole.
func same(got, want *kernels.Mat, d DType) error {
	if got.Rows != want.Rows || got.Cols != want.Cols {
		return fmt.Errorf("%d x %d, want %d x %d", got.Rows, got.Cols, want.Rows, want.Cols)
	}
	for i := range want.Rows {
		for j := range want.Cols {
			g, w := math.Float32bits(got.Row(i)[j]), math.Float32bits(rounded(want.Row(i)[j], d))
			if g != w {
				return fmt.Errorf("value %d,%d is %08x, want %08x", i, j, g, w)
			}
		}
		for j := got.Cols; j < got.Stride && i*got.Stride+j < len(got.Host); j++ {
			if math.Float32bits(got.Host[i*got.Stride+j]) != math.Float32bits(guard) {
				return fmt.Errorf("padding %d of row %d was written", j, i)
			}
		}
	}
	return nil
}

func encoder(t testing.TB, o Options) *Encoder {
	t.Helper()
	e, err := NewEncoder(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// forge is a frame with whatever header and payload, under a valid sum.
func forge(h Header, payload []byte) []byte {
	frame := append(make([]byte, HeaderSize), payload...)
	h.Encoded = len(payload)
	h.put(frame, crc32.Checksum(payload, castagnoli))
	return frame
}

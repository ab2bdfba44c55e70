package codec

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"strings"
	"sync"
	"testing"

	"dorylus/kernels"
)

// Every shape, kind of values, wire type and codec comes back bit by bit, in frames
// never longer than "none" makes them.
func TestRoundTrip(t *testing.T) {
	shapes := []struct{ rows, cols, pad int }{
		{0, 0, 0}, {0, 7, 0}, {5, 0, 0}, {5, 0, 3}, {1, 1, 0}, {1, 41, 5}, {3, 1, 0}, {33, 1, 15}, {17, 41, 7}, {64, 128, 0}, {200, 602, 6},
	}
	for _, wire := range []DType{FP32, BF16, FP16} {
		for c := Auto; c <= ZSTD; c++ {
			e := encoder(t, Options{Wire: wire, Codec: c})
			for i, s := range shapes {
				for k := range kinds {
					m := fill(newMat(s.rows, s.cols, s.pad), k, rng(uint64(i)))
					what := fmt.Sprintf("%v, codec %v, %s, %d x %d stride %d (seed %d)", wire, c, kinds[k].name, s.rows, s.cols, m.Stride, i)
					frame := e.Append([]byte("before"), Key(100*i+k), m)
					frame, ok := bytes.CutPrefix(frame, []byte("before"))
					if !ok {
						t.Fatalf("%s: the bytes before the frame were written", what)
					}
					h, err := ReadHeader(frame, Limits{})
					if err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					if most := HeaderSize + s.rows*s.cols*wire.width(); len(frame) > most {
						t.Errorf("%s: %d bytes, want at most %d", what, len(frame), most)
					}
					if c == None && (h.Codec != None || h.Filter != 0) {
						t.Errorf("%s: encoded as %v", what, h)
					}
					for _, pad := range []int{0, 3} {
						got := newMat(h.Total, h.Cols, pad)
						if err := Decode(frame, got); err != nil {
							t.Fatalf("%s: %v", what, err)
						}
						if err := same(got, m, wire); err != nil {
							t.Errorf("%s: %v, %v", what, h, err)
						}
					}
				}
			}
		}
	}
}

// Each filter under each codec, also where probing would not choose it.
func TestEveryPlan(t *testing.T) {
	for _, d := range []DType{FP32, BF16, Int32} {
		for k := range kinds {
			for _, n := range []int{1, 7, 8, 9, 300} {
				m := fill(newMat(n, 13, 0), k, rng(uint64(n)))
				raw := make([]byte, n*13*d.width())
				packRows(raw, m, kernels.Span{Hi: n}, d)
				for c := None; c <= ZSTD; c++ {
					for f := range allFilters + 1 {
						payload, _ := encodePayload(nil, raw, d.width(), plan{c, f})
						h := Header{DType: d, Codec: c, Filter: f, Rows: n, Cols: 13, Raw: len(raw), Content: crc32.Checksum(raw, castagnoli)}
						got := bytes.Repeat([]byte{0xaa}, len(raw))
						if err := h.values(payload, got); err != nil || !bytes.Equal(got, raw) {
							t.Fatalf("%v %s of %d values by %v %v: %v, same bytes: %v", d, kinds[k].name, 13*n, c, f, err, bytes.Equal(got, raw))
						}
					}
				}
			}
		}
	}
}

func TestVectors(t *testing.T) {
	for c := Auto; c <= ZSTD; c++ {
		e := encoder(t, Options{Codec: c, Wire: BF16})
		r := rng(7)
		for _, n := range []int{0, 1, 3, 1000, 50_000} {
			ints, b := make([]int32, n), make([]byte, n)
			at := int32(0)
			for i := range ints {
				at += r.Int32N(9)
				ints[i], b[i] = at, byte(r.IntN(41))
			}
			if n > 1 {
				ints[0], ints[n-1] = math.MinInt32, -1
			}
			fi, fb := e.AppendInt32(nil, 1, ints), e.AppendBytes(nil, 2, b)
			gotI, gotB := make([]int32, n), make([]byte, n)
			if err := errors.Join(DecodeInt32(fi, gotI), DecodeBytes(fb, gotB)); err != nil {
				t.Fatalf("codec %v, %d values: %v", c, n, err)
			}
			if fmt.Sprint(gotI) != fmt.Sprint(ints) || !bytes.Equal(gotB, b) {
				t.Errorf("codec %v, %d values came back changed", c, n)
			}
			if len(fi) > HeaderSize+4*n || len(fb) > HeaderSize+n {
				t.Errorf("codec %v, %d values: frames of %d and %d bytes", c, n, len(fi), len(fb))
			}
			if n == 50_000 && (c != None && len(fi) > 3*n || c == ZSTD && len(fb) > n*9/10) {
				t.Errorf("codec %v: %d rising ints in %d bytes, %d labels in %d", c, n, len(fi), n, len(fb))
			}
			if err := DecodeBytes(fi, gotB); n > 0 && (err == nil || !strings.Contains(err.Error(), "int32 into")) {
				t.Errorf("ints read as bytes: %v", err)
			}
		}
	}
}

// What the encoder chooses by itself, per kind of tensor.
func TestAuto(t *testing.T) {
	most := map[string]float64{"normal": 1, "relu": 0.55, "words": 0.03, "gradient": 1, "bits": 1, "zeros": 0.05, "constant": 0.01}
	for k, kind := range kinds {
		for _, link := range []float64{0, 2e6, 1e12} {
			e := encoder(t, Options{Link: link})
			m := fill(newMat(512, 128, 0), k, rng(3))
			frame := e.Append(nil, Key(k), m)
			h, err := ReadHeader(frame, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			ratio := float64(h.Encoded) / float64(h.Raw)
			switch {
			case link == 0 && ratio > most[kind.name]:
				t.Errorf("%s: %v, ratio %.3f, want at most %.2f", kind.name, h, ratio, most[kind.name])
			case link == 2e6 && kind.name == "normal" && ratio > 0.9:
				t.Errorf("a slow link: %v, want shuffled and compressed", h)
			case link == 1e12 && h.Codec != None:
				t.Errorf("a link faster than memory: %v, want no compression", h)
			}
		}
	}
	e := encoder(t, Options{})
	if h, _ := ReadHeader(e.Append(nil, 1, fill(newMat(512, 128, 0), 4, rng(1))), Limits{}); h.Codec != None || h.Filter != 0 {
		t.Errorf("random bits: %v, want them as they are", h)
	}
}

// A stream is probed again after reprobe tensors, and at once when a tensor comes out
// worse than the probe promised.
func TestReprobe(t *testing.T) {
	e := encoder(t, Options{})
	dense, words := fill(newMat(64, 128, 0), 4, rng(1)), fill(newMat(64, 128, 0), 2, rng(1))
	codecOf := func(m *kernels.Mat) Codec {
		h, err := ReadHeader(e.Append(nil, 5, m), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return h.Codec
	}
	for i := range reprobe + 1 {
		if c := codecOf(dense); c != None {
			t.Fatalf("random bits %d: codec %v", i, c)
		}
	}
	if c := codecOf(words); c == None {
		t.Fatalf("words after %d dense tensors go as they are: not probed again", reprobe+1)
	}
	codecOf(dense)
	if s := e.plans.streams[streamKey{5, FP32}]; s.left != 0 {
		t.Fatalf("dense values in a stream of words: next probe after %d tensors, want now", s.left)
	}
	for i := range 2 * maxStreams {
		e.AppendBytes(nil, Key(i), make([]byte, minBytes))
	}
	if n := len(e.plans.streams); n > maxStreams {
		t.Errorf("%d streams remembered, want at most %d", n, maxStreams)
	}
}

func TestEncoderIsConcurrent(t *testing.T) {
	e := encoder(t, Options{})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 20 {
				m := fill(newMat(40, 64, g), i%len(kinds), rng(uint64(i)))
				got := newMat(40, 64, 1)
				if err := Decode(e.Append(nil, Key(i%3), m), got); err != nil {
					t.Errorf("goroutine %d, tensor %d: %v", g, i, err)
				} else if err := same(got, m, FP32); err != nil {
					t.Errorf("goroutine %d, tensor %d: %v", g, i, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestOptions(t *testing.T) {
	_, err := NewEncoder(Options{Wire: Int32, Codec: 9, Link: math.NaN()})
	for _, want := range []string{"floats as int32", "unknown codec(9)", "a link of NaN"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("options: %v, want also %q", err, want)
		}
	}
	for d := FP32; d <= FP16; d++ {
		if got, err := ParseWire(d.String()); got != d || err != nil {
			t.Errorf("ParseWire(%v) = %v, %v", d, got, err)
		}
	}
	if _, err := ParseWire("int32"); err == nil {
		t.Error("ParseWire takes int32")
	}
}

func TestAppendRefusesDeviceMemory(t *testing.T) {
	defer func() {
		if _, ok := recover().(*kernels.ShapeError); !ok {
			t.Error("a matrix in device memory was encoded")
		}
	}()
	encoder(t, Options{}).Append(nil, 0, &kernels.Mat{Rows: 2, Cols: 2, Stride: 2, Addr: 64})
}

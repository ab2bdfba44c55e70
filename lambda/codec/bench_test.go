package codec

import (
	"fmt"
	"hash/crc32"
	"testing"

	"dorylus/kernels"
)

// benchKinds are the first four kinds: normal, relu, words, gradient.
const benchKinds = 4

// BenchmarkFrame encodes and decodes 1024 x 602 values. MB/s are of packed values;
// ratio is that of bytes on the wire to those of "none" in the same wire type and run.
func BenchmarkFrame(b *testing.B) {
	for _, wire := range []DType{FP32, BF16, FP16} {
		for k := range benchKinds {
			m := fill(newMat(1024, 602, 6), k, rng(1))
			none := len(encoder(b, Options{Wire: wire, Codec: None}).Append(nil, 1, m))
			for _, c := range []Codec{None, Auto, S2, ZSTD} {
				e := encoder(b, Options{Wire: wire, Codec: c})
				frame := e.Append(nil, 1, m)
				h, err := ReadHeader(frame, Limits{})
				if err != nil {
					b.Fatal(err)
				}
				how := fmt.Sprintf("%v/%s/%v=%v,%v", wire, kinds[k].name, c, h.Codec, h.Filter)
				ratio := float64(len(frame)) / float64(none)
				b.Run(how+"/encode", func(b *testing.B) {
					b.SetBytes(int64(h.Raw))
					for b.Loop() {
						frame = e.Append(frame[:0], 1, m)
					}
					b.ReportMetric(ratio, "ratio")
				})
				got := newMat(1024, 602, 6)
				b.Run(how+"/decode", func(b *testing.B) {
					b.SetBytes(int64(h.Raw))
					for b.Loop() {
						if err := Decode(frame, got); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}

// BenchmarkPlan measures what plan.go takes as the costs of filters and compressors:
// nanoseconds per packed byte for encoding and decoding, without checksums.
func BenchmarkPlan(b *testing.B) {
	for k := range benchKinds {
		m := fill(newMat(512, 602, 0), k, rng(1))
		raw := make([]byte, 4*512*602)
		packRows(raw, m, kernels.Span{Hi: 512}, FP32)
		got, out := make([]byte, len(raw)), []byte(nil)
		for c := None; c <= ZSTD; c++ {
			for f := range allFilters + 1 {
				if c == None && f&Sparse == 0 {
					continue
				}
				b.Run(fmt.Sprintf("%s/%v,%v", kinds[k].name, c, f), func(b *testing.B) {
					out, _ = encodePayload(out, raw, 4, plan{c, f})
					h := Header{Codec: c, Filter: f, Rows: 512, Cols: 602, Raw: len(raw)}
					h.Content = crc32.Checksum(raw, castagnoli)
					for b.Loop() {
						out, _ = encodePayload(out, raw, 4, plan{c, f})
						if err := h.values(out, got); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(raw)), "ns/byte")
					b.ReportMetric(float64(len(out))/float64(len(raw)), "ratio")
				})
			}
		}
	}
}

package codec

import (
	"encoding/binary"
	"sync"
)

// A plan is how the payload of one stream of tensors is made.
type plan struct {
	codec  Codec
	filter Filter
}

var asIs = plan{codec: None}

// Nanoseconds per byte for encoding and decoding together, as BenchmarkPlan measures
// them. They are constants, not timings of the run, so that the same tensors make the
// same frames.
const (
	scanCost    = 0.4 // Sparse, per byte of values
	keepCost    = 1.5 // Sparse, per byte that it leaves
	shuffleCost = 1.0 // per byte that Sparse leaves
	s2Cost      = 1.0 // per byte that the filters leave
	zstdCost    = 4.0
)

// Probing: a sample of sampleBytes in samplePieces from all over the tensor is encoded
// in each way; the choice holds for the next reprobe tensors of the stream, unless one
// of them comes out worse than the sample by more than drift.
const (
	sampleBytes  = 32 << 10
	samplePieces = 4
	minBytes     = 256 // shorter tensors go as they are
	reprobe      = 64
	drift        = 0.1
	maxStreams   = 4096
)

// plans remembers the plan of each stream.
type plans struct {
	mu      sync.Mutex
	streams map[streamKey]*stream
}

type streamKey struct {
	key   Key
	dtype DType
}

type stream struct {
	plan
	ratio float64 // bytes on the wire over packed bytes, of the sample
	left  int     // tensors until the next probe
}

// next is the remembered plan of a stream, if it still holds.
func (p *plans) next(k streamKey) (stream, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.streams[k]
	if s == nil || s.left <= 0 {
		return stream{}, false
	}
	s.left--
	return *s, true
}

// keep remembers the plan that a probe chose. Streams beyond maxStreams make it forget
// all, so that a caller with too many keys costs probes, not memory.
func (p *plans) keep(k streamKey, s stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.streams == nil || len(p.streams) >= maxStreams {
		p.streams = make(map[streamKey]*stream)
	}
	p.streams[k] = &s
}

// drifted makes the next tensor of the stream be probed.
func (p *plans) drifted(k streamKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.streams[k]; s != nil {
		s.left = 0
	}
}

// candidates are the plans that codec c allows for values of the given width, of which
// a share of zeros is zero.
func candidates(c Codec, width int, zeros float64) []plan {
	if c == None {
		return []plan{asIs}
	}
	fs := []Filter{0}
	if width > 1 {
		fs = append(fs, Shuffle)
		if zeros > 1.0/32 { // else the bits cost more than the zeros
			fs = append(fs, Sparse, Sparse|Shuffle)
		}
	}
	all := []plan{asIs}
	for _, f := range fs {
		if c == Auto && f == Sparse {
			all = append(all, plan{None, f})
		}
		for _, with := range []Codec{S2, ZSTD} {
			if c == Auto || c == with {
				all = append(all, plan{with, f})
			}
		}
	}
	return all
}

// probe encodes a sample of the packed values raw in each allowed way, and picks the
// least time: on the wire at nsPerByte, plus (for Auto) in the processor.
func probe(raw []byte, width int, c Codec, nsPerByte float64) stream {
	piece := sample(raw, width)
	defer scratches.Put(piece)
	src := *piece
	best, least := stream{plan: asIs, ratio: 1}, nsPerByte*float64(len(src))
	out := scratch(0)
	defer scratches.Put(out)
	for _, p := range candidates(c, width, zeroShare(src, width))[1:] {
		var filtered int
		*out, filtered = encodePayload(*out, src, width, p)
		ns := nsPerByte * float64(len(*out))
		if c == Auto {
			ns += cost(p, len(src), filtered)
		}
		if ns < least {
			best, least = stream{plan: p, ratio: float64(len(*out)) / float64(len(src))}, ns
		}
	}
	best.left = reprobe
	return best
}

// cost is the processor's time for p over raw bytes of which the filters leave filtered,
// in nanoseconds.
func cost(p plan, raw, filtered int) float64 {
	ns, kept := 0.0, float64(filtered)
	if p.filter&Sparse != 0 {
		ns += scanCost*float64(raw) + keepCost*kept
	}
	if p.filter&Shuffle != 0 {
		ns += shuffleCost * kept
	}
	switch p.codec {
	case S2:
		ns += s2Cost * kept
	case ZSTD:
		ns += zstdCost * kept
	}
	return ns
}

// sample lends pieces of raw, cut between values and spread evenly.
func sample(raw []byte, width int) *[]byte {
	if len(raw) <= sampleBytes {
		b := scratch(len(raw))
		copy(*b, raw)
		return b
	}
	const piece = sampleBytes / samplePieces
	b := scratch(0)
	for i := range samplePieces {
		at := (len(raw) - piece) / (samplePieces - 1) * i / width * width
		*b = append(*b, raw[at:at+piece]...)
	}
	return b
}

// zeroShare is the share of values that are zero.
func zeroShare(src []byte, width int) float64 {
	n := 0
	switch width {
	case 4:
		for i := 0; i+4 <= len(src); i += 4 {
			if binary.LittleEndian.Uint32(src[i:]) == 0 {
				n++
			}
		}
	case 2:
		for i := 0; i+2 <= len(src); i += 2 {
			if binary.LittleEndian.Uint16(src[i:]) == 0 {
				n++
			}
		}
	}
	return float64(n*width) / float64(len(src))
}

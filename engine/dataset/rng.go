package dataset

import "math/bits"

// rng is splitmix64: tiny, and the same numbers on every machine and Go version,
// which the seeds in reports rely on.
type rng struct{ state uint64 }

// newRNG is a generator for one purpose: streams of the same seed are independent.
func newRNG(seed, stream uint64) *rng {
	r := &rng{state: seed}
	r.state = r.next() ^ (stream * 0xd1342543de82ef95)
	r.next()
	return r
}

func (r *rng) next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// intn is uniform in [0,n), but for a bias below n/2^64.
func (r *rng) intn(n int) int {
	hi, _ := bits.Mul64(r.next(), uint64(n))
	return int(hi)
}

// float is uniform in [0,1).
func (r *rng) float() float64 { return float64(r.next()>>11) / (1 << 53) }

// shuffle permutes ids.
func (r *rng) shuffle(ids []int32) {
	for i := len(ids) - 1; i > 0; i-- {
		j := r.intn(i + 1)
		ids[i], ids[j] = ids[j], ids[i]
	}
}

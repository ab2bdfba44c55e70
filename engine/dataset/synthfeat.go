package dataset

import (
	"context"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"dorylus/kernels"
)

// separation is the distance between two class centroids.
const separation = 3.0

// fillFeatures gives raw dense features: centroid of the vertex's class plus noise.
// Sums of products are written so that no machine may fuse them: the bits are the
// same everywhere.
func (s synthSpec) fillFeatures(ctx context.Context, raw *Raw, class []int32) error {
	f := s.features
	// Coordinates are ±a. Two random centroids differ in half of them, by 2a each.
	a := float32(separation / math.Sqrt(2*float64(f)))
	centroids := make([]float32, s.classes*f)
	r := newRNG(s.seed, streamCentroids)
	for i := range centroids {
		centroids[i] = a
		if r.next()&1 == 0 {
			centroids[i] = -a
		}
	}
	raw.Dense = kernels.FromSlice(s.n, f, make([]float32, s.n*f))
	unit := float32(s.noise / normalDeviation)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			const step = 1024
			for lo := int(next.Add(step)) - step; lo < s.n && ctx.Err() == nil; lo = int(next.Add(step)) - step {
				for v := lo; v < min(lo+step, s.n); v++ {
					r := newRNG(s.seed, streamFeatures+uint64(v)<<8)
					mean := centroids[int(class[v])*f:]
					row := raw.Dense.Row(v)
					for i := range row {
						row[i] = mean[i] + float32(unit*r.normal())
					}
				}
			}
		})
	}
	wg.Wait()
	return ctx.Err()
}

// normalDeviation is the standard deviation of rng.normal.
const normalDeviation = 37837.227 // 65536/sqrt(3): four uniform numbers of variance 65536²/12

// normal is a whole number, near normally distributed around 0 with deviation
// normalDeviation: the sum of four uniform ones, exact in float32.
func (r *rng) normal() float32 {
	x := r.next()
	sum := int32(x&0xffff) + int32(x>>16&0xffff) + int32(x>>32&0xffff) + int32(x>>48)
	return float32(sum - 131070)
}

// paretoWeight is a thousand times a number from 1 to 50 that follows a power law of
// exponent 3. Square roots are exact, so all machines agree.
func paretoWeight(r *rng) uint64 {
	u := max(r.float(), 1.0/2500)
	return uint64(1000 / math.Sqrt(u))
}

// threshold is p as a limit for 63 random bits.
func threshold(p float64) uint64 { return uint64(p * (1 << 63)) }

// alias picks numbers with given weights in constant time (Vose's method, in whole numbers).
type alias struct {
	total uint64   // of the weights
	keep  []uint64 // slot i stays itself for draws in [0,keep[i]) out of total
	other []int32  // and is this one otherwise
}

func newAlias(weight []uint64) *alias {
	n := uint64(len(weight))
	a := &alias{keep: make([]uint64, n), other: make([]int32, n)}
	for _, w := range weight {
		a.total += w
	}
	var small, large []int32
	for i, w := range weight {
		a.keep[i], a.other[i] = w*n, int32(i)
		if a.keep[i] < a.total {
			small = append(small, int32(i))
		} else {
			large = append(large, int32(i))
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		a.other[s] = l
		a.keep[l] -= a.total - a.keep[s]
		if a.keep[l] < a.total {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	return a
}

func (a *alias) pick(r *rng) int {
	i := r.intn(len(a.keep))
	if uint64(r.intn(int(a.total))) < a.keep[i] {
		return i
	}
	return int(a.other[i])
}

package local

import "time"

// bucket lets size tokens be taken at once and refills at size per window; it
// saves up no more than size.
type bucket struct {
	size   float64
	window time.Duration
	left   float64
	at     time.Time // when left was computed
}

func newBucket(size int, window time.Duration, now time.Time) *bucket {
	return &bucket{size: float64(size), window: window, left: float64(size), at: now}
}

// take removes a token if there is one. Otherwise it says after which time there
// will be.
func (b *bucket) take(now time.Time) (ok bool, wait time.Duration) {
	perToken := float64(b.window) / b.size
	if passed := now.Sub(b.at); passed > 0 {
		b.left = min(b.size, b.left+float64(passed)/perToken)
		b.at = now
	}
	// A token that is there but for rounding is there.
	if b.left < 1-1e-9 {
		return false, time.Duration((1 - b.left) * perToken)
	}
	b.left--
	return true, 0
}

// pacer spreads bytes over time: after the first free ones, rate bytes a second.
type pacer struct {
	clock Clock
	rate  int64 // 0: no limit
	free  int64
	due   time.Time // when what was let through so far has passed
}

// wait blocks until n more bytes have passed, or until one of the channels closes.
func (p *pacer) wait(n int64, until ...<-chan struct{}) {
	if p.rate == 0 {
		return
	}
	skip := min(n, p.free)
	p.free -= skip
	if n -= skip; n == 0 {
		return
	}
	now := p.clock.Now()
	if p.due.Before(now) {
		p.due = now
	}
	p.due = p.due.Add(time.Duration(float64(n) / float64(p.rate) * float64(time.Second)))
	pause(p.clock, p.due.Sub(now), until...)
}

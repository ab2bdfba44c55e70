package local

import (
	"sync"
	"testing"
	"time"
)

// fakeClock stands still until a test moves it. Timers of at most auto fire at
// once and move it by what they wait for.
type fakeClock struct {
	auto time.Duration

	mu     sync.Mutex
	now    time.Time
	timers map[*fakeTimer]bool
	added  chan struct{} // closed and replaced with each timer
}

type fakeTimer struct {
	clock *fakeClock
	at    time.Time
	f     func()
}

// newFakeClock starts at the real time, with which workers compare deadlines.
func newFakeClock() *fakeClock {
	return &fakeClock{now: time.Now(), timers: make(map[*fakeTimer]bool), added: make(chan struct{})}
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) AfterFunc(d time.Duration, f func()) Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &fakeTimer{clock: c, at: c.now.Add(d), f: f}
	if d <= c.auto {
		if t.at.After(c.now) {
			c.now = t.at
		}
		go f()
		return t
	}
	c.timers[t] = true
	close(c.added)
	c.added = make(chan struct{})
	return t
}

func (t *fakeTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	was := t.clock.timers[t]
	delete(t.clock.timers, t)
	return was
}

// waitTimer waits until somebody waits for d.
func (c *fakeClock) waitTimer(t *testing.T, d time.Duration) {
	ctx := testContext(t)
	for {
		c.mu.Lock()
		for timer := range c.timers {
			if timer.at.Sub(c.now) == d {
				c.mu.Unlock()
				return
			}
		}
		more := c.added
		c.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			t.Fatalf("nobody waits for %v", d)
		}
	}
}

// advance moves the clock and fires what is due, in order.
func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	end := c.now.Add(d)
	for {
		var next *fakeTimer
		for t := range c.timers {
			if !t.at.After(end) && (next == nil || t.at.Before(next.at)) {
				next = t
			}
		}
		if next == nil {
			break
		}
		delete(c.timers, next)
		if next.at.After(c.now) {
			c.now = next.at
		}
		c.mu.Unlock()
		next.f()
		c.mu.Lock()
	}
	c.now = end
	c.mu.Unlock()
}

// TestPacer: free bytes pass at once, the rest at the rate, pieces add up.
func TestPacer(t *testing.T) {
	c := newFakeClock()
	c.auto = time.Hour
	began := c.Now()
	p := &pacer{clock: c, rate: 1000, free: 500}
	for range 10 {
		p.wait(250)
	}
	if took := c.Now().Sub(began); took != 2*time.Second {
		t.Errorf("2500 bytes at 1000 a second, 500 of them free, took %v, want 2s", took)
	}
}

// TestBucket: a burst of the whole size, then the rate; nothing saved up beyond.
func TestBucket(t *testing.T) {
	now := time.Unix(0, 0)
	b := newBucket(1000, 10*time.Second, now)
	take := func() (n int) {
		for {
			ok, _ := b.take(now)
			if !ok {
				return n
			}
			n++
		}
	}
	if n := take(); n != 1000 {
		t.Errorf("a fresh bucket gave %d tokens, want 1000", n)
	}
	if _, wait := b.take(now); wait != 10*time.Millisecond {
		t.Errorf("the next token comes after %v, want 10ms", wait)
	}
	now = now.Add(time.Second)
	if n := take(); n != 100 {
		t.Errorf("after 1 s it gave %d tokens, want 100", n)
	}
	now = now.Add(time.Hour)
	if n := take(); n != 1000 {
		t.Errorf("after an hour it gave %d tokens, want 1000", n)
	}
}

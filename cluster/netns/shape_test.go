package netns

import (
	"math"
	"testing"
	"time"
)

func TestLineDelaysByRateAndDistance(t *testing.T) {
	l := newLine(Shape{Rate: 8e6, Delay: 5 * time.Millisecond, Queue: 3000}, 1, 1) // a byte takes 1 µs
	for i, c := range []struct {
		now  time.Duration
		size int
		due  time.Duration
		ok   bool
	}{
		{0, 1000, 6 * time.Millisecond, true},
		{0, 1000, 7 * time.Millisecond, true},
		{0, 1000, 8 * time.Millisecond, true},
		{0, 1000, 0, false}, // 3000 bytes wait
		{time.Millisecond, 1000, 9 * time.Millisecond, true},
		{time.Second, 500, time.Second + 5500*time.Microsecond, true},
	} {
		if due, ok := l.admit(c.now, c.size); due != c.due || ok != c.ok {
			t.Errorf("packet %d at %v: due %v, %v; want %v, %v", i, c.now, due, ok, c.due, c.ok)
		}
	}
	if want := (Count{Packets: 5, Bytes: 4500, Full: 1}); l.count != want {
		t.Errorf("counted %+v, want %+v", l.count, want)
	}
}

func TestLineLosesBySeed(t *testing.T) {
	const n = 100000
	fates := func(seed uint64, cut int) (all []bool) {
		l := newLine(Shape{Loss: 0.01}, seed, 7)
		for i := range n {
			l.cut = i < cut
			_, ok := l.admit(0, 100)
			all = append(all, ok)
		}
		return all
	}
	a, b, other := fates(3, 0), fates(3, 1000), fates(4, 0)
	lost, same := 0, 0
	for i := range a {
		if !a[i] {
			lost++
		}
		if i < 1000 && b[i] {
			t.Fatalf("packet %d passed a link that is cut", i)
		}
		if i >= 1000 && a[i] != b[i] {
			t.Fatalf("packet %d: %v, and %v after a cut; the seed is the same", i, a[i], b[i])
		}
		if !a[i] && !other[i] {
			same++
		}
	}
	if math.Abs(float64(lost)/n-0.01) > 0.002 {
		t.Errorf("%d of %d lost, want about 1 %%", lost, n)
	}
	if same > lost/4 {
		t.Errorf("seeds 3 and 4 both lose %d packets of %d", same, lost)
	}
}

package sched

import (
	"math"
	"testing"
)

// A core that waits whenever it may waits for the share of the time and no more, and for
// no longer than the share of an epoch at once.
func TestPatienceIsAShareOfTheTime(t *testing.T) {
	for _, share := range []float64{0, 0.1, 0.5, 0.9} {
		p := NewPatience(share)
		p.Epoch(2)
		now, waited, longest := 0.0, 0.0, 0.0
		for range 2000 {
			now += 0.3 // of work
			began := now
			for {
				enough, longer := p.Ask(now, 1)
				if enough {
					break
				}
				if longer <= 0 {
					t.Fatalf("share %v: not enough, but nothing is left", share)
				}
				now += longer
			}
			waited += now - began
			longest = max(longest, now-began)
			if enough, longer := p.Ask(now, 0); enough || longer != 0 {
				t.Fatalf("share %v: nobody waits, and it is told %v, %v", share, enough, longer)
			}
		}
		if math.Abs(waited/now-share) > 0.01 {
			t.Errorf("share %v: it waited for %.3f of the time", share, waited/now)
		}
		// What may be left at first, and what comes in while it is used up.
		if most := share * 2 / (1 - share); longest > most+1e-9 {
			t.Errorf("share %v: it waited for %v s at once, more than %v", share, longest, most)
		}
	}
}

// Time that nobody waited in is kept, but not more of it than the share of an epoch.
func TestPatienceKeepsWhatIsNotUsed(t *testing.T) {
	p := NewPatience(0.25)
	p.Epoch(4)
	if enough, longer := p.Ask(1000, 2); enough || math.Abs(longer-4./3) > 1e-9 {
		t.Errorf("after a long time without waiting: %v, %v, want 1 s of an epoch of 4, and what comes in meanwhile", enough, longer)
	}
	if enough, longer := p.Ask(1000.5, 0); enough || longer != 0 {
		t.Errorf("what was waited for is there: %v, %v", enough, longer)
	}
	if enough, longer := p.Ask(1000.5, 1); enough || math.Abs(longer-(1-0.375)/0.75) > 1e-9 {
		t.Errorf("half a second later: %v, %v, want 1 s less 0.75 of 0.5 s", enough, longer)
	}
}

// Whoever has all the time waits for good.
func TestPatienceWithoutEnd(t *testing.T) {
	p := NewPatience(1)
	for now := range 100 {
		if enough, longer := p.Ask(float64(now), 1); enough || longer != 0 {
			t.Fatalf("at %d: %v, %v", now, enough, longer)
		}
	}
}

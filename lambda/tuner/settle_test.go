package tuner

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
)

// The two places where a run can be held up: tensor tasks that take long, so that the
// cores starve without many workers, and a network that all workers share. With 60 ms a
// task four cores need some 27 workers; a network of 120 tasks a second is full with 8 to 16.
var (
	slowTasks   = sim{intervals: 64, cores: 4, graph: 0.010, compute: 0.005, latency: 0.060, bytes: 1e6, bandwidth: 2e9, cold: 0.2, jitter: 0.3}
	slowNetwork = sim{intervals: 64, cores: 4, graph: 0.010, compute: 0.005, latency: 0.060, bytes: 1e6, bandwidth: 120e6, cold: 0.2, jitter: 0.3}
)

// after runs a scenario and watches the last part of it.
func after(t *testing.T, s sim, c Config, seed uint64, settle, watch float64) *sim {
	t.Helper()
	if err := s.begin(c, seed); err != nil {
		t.Fatal(err)
	}
	s.run(settle)
	s.reset()
	s.run(settle + watch)
	return &s
}

// From any start the tuner ends near the same number of workers, stays there, and loses
// little of the speed that all workers together have.
func TestSettles(t *testing.T) {
	const settle, watch = 60, 60
	for name, s := range map[string]sim{"slow tasks": slowTasks, "slow network": slowNetwork} {
		for _, barriers := range []bool{false, true} {
			for seed := range uint64(3) {
				s.sync = barriers
				_, best := after(t, s, Config{Fixed: s.intervals}, seed, settle, watch).mean()
				least, most, line := math.Inf(1), 0.0, ""
				for _, start := range []int{1, 32, 64} {
					r := after(t, s, Config{Start: start}, seed, settle, watch)
					workers, rate := r.mean()
					least, most = min(least, workers), max(most, workers)
					tell(t, name, barriers, seed, start, best, r)
					line += fmt.Sprintf("; from %d: %.1f in [%d,%d], %.0f tasks/s", start, workers, r.lo, r.hi, rate)
					late := 0
					for _, d := range r.moves {
						if d.At.Seconds() > settle {
							late++
						}
					}
					if band := max(2, int(0.25*workers)); r.hi-r.lo > band || late > 3 {
						t.Errorf("%s, barriers %v, seed %d, from %d: still moves, %d times in [%d,%d]\n%s", name, barriers, seed, start, late, r.lo, r.hi, text(r.moves))
					}
					if rate < 0.75*best {
						t.Errorf("%s, barriers %v, seed %d, from %d: %.0f tasks a second with %.1f workers, %.0f with all\n%s", name, barriers, seed, start, rate, workers, best, text(r.moves))
					}
				}
				if most-least > max(3, 0.35*most) {
					t.Errorf("%s, barriers %v, seed %d: the starts end far apart: %s", name, barriers, seed, line)
				}
				t.Logf("%s, barriers %v, seed %d: %.0f tasks/s with 64 workers%s", name, barriers, seed, best, line)
			}
		}
	}
}

// tell lets `go test -json` know where a start has led: bench/lambda keeps it.
func tell(t *testing.T, scenario string, barriers bool, seed uint64, start int, best float64, r *sim) {
	t.Helper()
	workers, rate := r.mean()
	data, err := json.Marshal(map[string]any{
		"scenario": scenario, "barriers": barriers, "seed": seed, "start": start,
		"workers": workers, "least": r.lo, "most": r.hi, "tasks_per_second": rate, "tasks_per_second_at_most": best,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Attr("settled", string(data))
}

// Where the load changes, the number follows, and comes back with it.
func TestFollowsTheLoad(t *testing.T) {
	s := slowTasks
	if err := s.begin(Config{}, 5); err != nil {
		t.Fatal(err)
	}
	part := func(what string, lo, hi float64) {
		t.Helper()
		s.run(s.now + 60)
		s.reset()
		s.run(s.now + 40)
		if w, _ := s.mean(); w < lo || w > hi {
			t.Errorf("%s: %.1f workers, want %v to %v\n%s", what, w, lo, hi, text(s.moves))
		}
	}
	part("at first", 25, 33)
	s.graph = 0.020
	part("graph tasks take twice as long", 12, 18)
	s.graph = 0.010
	part("and as long as before", 25, 33)
	s.bandwidth = 120e6
	part("a slow network", 8, 18)
	s.bandwidth = 2e9
	part("a fast one again", 25, 33)
}

// A limit of the service is found, kept to, and left when it has gone; refused launches
// get rarer.
func TestThrottled(t *testing.T) {
	s := slowTasks
	s.limit = 15
	if err := s.begin(Config{}, 5); err != nil {
		t.Fatal(err)
	}
	s.run(100)
	s.reset()
	before := s.refused
	s.run(300)
	if w, _ := s.mean(); w < 13.5 || w > 15.5 || s.refused-before > 5 {
		t.Errorf("15 are granted, %.1f are wanted and %d launches were refused in 200 s\n%s", w, s.refused-before, text(s.moves))
	}
	s.limit = 0
	s.run(1200)
	s.reset()
	s.run(1300)
	if w, _ := s.mean(); w < 25 || w > 33 {
		t.Errorf("no limit any more: %.1f workers, want 25 to 33\n%s", w, text(s.moves))
	}
}

// A service that refuses everything for ten seconds costs little more than those.
func TestAllRefused(t *testing.T) {
	s := slowTasks
	s.shut = true
	if err := s.begin(Config{}, 5); err != nil {
		t.Fatal(err)
	}
	s.run(10)
	if n := s.t.Wanted(); n > 32 || s.refused > 11 {
		t.Errorf("%d are wanted after %d refusals\n%s", n, s.refused, text(s.moves))
	}
	s.shut = false
	s.run(60)
	s.reset()
	s.run(100)
	if w, _ := s.mean(); w < 25 || w > 33 {
		t.Errorf("%.1f workers afterwards, want 25 to 33\n%s", w, text(s.moves))
	}
}

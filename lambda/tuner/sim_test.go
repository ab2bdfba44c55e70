package tuner

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"
)

// sim is a graph server and its workers in virtual time: intervals go round from the
// cores to the workers and back.
type sim struct {
	intervals, cores int
	graph            float64 // seconds of a graph task
	compute, latency float64 // seconds of a tensor task besides its transfer
	bytes, bandwidth float64 // of a tensor task; of all workers together, a second
	jitter           float64 // share by which times vary, either way
	sync             bool    // an epoch begins when all intervals have ended the last one
	limit            int     // workers that the service grants; 0: any number
	shut             bool    // the service refuses every launch
	cold             float64 // seconds until a launched worker is there
	rng              *rand.Rand

	t         *Tuner
	now       float64
	graphQ    int
	graphRun  []float64 // ends
	tensorQ   int
	running   []flight
	rest      int // intervals that wait for the next epoch
	workers   int
	launching []float64 // when they are there
	retry     float64   // when launches are tried again
	done      int64
	busy      float64
	refused   int64
	moves     []Decision
	wanted    float64 // times seconds, since mark
	mark      float64
	markDone  int64
	lo, hi    int // of the numbers wanted since mark
}

// flight is a tensor task with a worker: first it is under way until a moment, then it
// has bytes left to send.
type flight struct{ start, until, left float64 }

func (s *sim) vary(x float64) float64 {
	if s.jitter == 0 {
		return x
	}
	return x * (1 + s.jitter*(2*s.rng.Float64()-1))
}

// begin puts all intervals before the cores.
func (s *sim) begin(c Config, seed uint64) error {
	c.Intervals, c.Cores = s.intervals, s.cores
	t, err := New(c)
	s.t, s.graphQ, s.rng = t, s.intervals, rand.New(rand.NewPCG(seed, 1))
	s.reset()
	return err
}

// reset begins a new time over which the number wanted is watched.
func (s *sim) reset() {
	s.mark, s.markDone, s.wanted = s.now, s.done, 0
	if s.t != nil {
		s.lo, s.hi = s.t.Wanted(), s.t.Wanted()
	}
}

// mean is the number wanted, and the rate of tensor tasks, since reset.
func (s *sim) mean() (workers, rate float64) {
	return s.wanted / (s.now - s.mark), float64(s.done-s.markDone) / (s.now - s.mark)
}

// run goes on until a moment.
func (s *sim) run(until float64) {
	for s.now < until {
		s.launch()
		for s.graphQ > 0 && len(s.graphRun) < s.cores {
			s.graphQ--
			s.graphRun = append(s.graphRun, s.now+s.vary(s.graph))
		}
		for s.tensorQ > 0 && len(s.running) < min(s.workers, s.t.Wanted()) {
			s.tensorQ--
			s.running = append(s.running, flight{start: s.now, until: s.now + s.vary(s.latency+s.compute), left: s.vary(s.bytes)})
		}
		d, moved := s.t.Observe(Sample{
			At: seconds(s.now), GraphWaiting: s.graphQ, GraphRunning: len(s.graphRun), TensorWaiting: s.tensorQ, TensorRunning: len(s.running),
			Workers: s.workers, Done: s.done, Busy: seconds(s.busy), Refused: s.refused,
		})
		if moved {
			s.moves = append(s.moves, d)
			s.lo, s.hi = min(s.lo, d.Workers), max(s.hi, d.Workers)
		}
		s.step(until)
	}
}

func seconds(x float64) time.Duration { return time.Duration(x * float64(time.Second)) }

// launch brings as many workers as are wanted, and lets idle ones go.
func (s *sim) launch() {
	arrived := s.launching[:0]
	for _, at := range s.launching {
		if at <= s.now {
			s.workers++
		} else {
			arrived = append(arrived, at)
		}
	}
	s.launching = arrived
	want := s.t.Wanted()
	s.workers = min(s.workers, max(want, len(s.running)))
	for s.now >= s.retry && s.workers+len(s.launching) < want {
		if s.shut || s.limit > 0 && s.workers+len(s.launching) >= s.limit {
			s.refused++
			s.retry = s.now + 1
			return
		}
		s.launching = append(s.launching, s.now+s.cold)
	}
}

// step goes to the next moment at which something happens.
func (s *sim) step(until float64) {
	next, sending := until, 0
	soon := func(at float64) {
		if at > s.now {
			next = min(next, at)
		}
	}
	least := math.Inf(1)
	for _, f := range s.running {
		if f.until <= s.now {
			sending++
			least = min(least, f.left)
		} else {
			soon(f.until)
		}
	}
	if sending > 0 {
		next = min(next, s.now+max(least, 0)*float64(sending)/s.bandwidth)
	}
	for _, at := range s.graphRun {
		soon(at)
	}
	for _, at := range s.launching {
		soon(at)
	}
	if s.workers+len(s.launching) < s.t.Wanted() {
		soon(s.retry)
	}
	dt := next - s.now
	s.wanted += dt * float64(s.t.Wanted())
	kept := s.running[:0]
	for _, f := range s.running {
		if f.until <= s.now {
			f.left -= dt * s.bandwidth / float64(sending)
		}
		if f.until <= next && f.left <= 1e-6*s.bytes+1e-9 {
			s.done++
			s.busy += next - f.start
			s.back()
			continue
		}
		kept = append(kept, f)
	}
	s.running = kept
	s.now = next
	ends := s.graphRun[:0]
	for _, at := range s.graphRun {
		if at <= s.now {
			s.tensorQ++
		} else {
			ends = append(ends, at)
		}
	}
	s.graphRun = ends
}

// back is an interval's return from the workers.
func (s *sim) back() {
	if !s.sync {
		s.graphQ++
		return
	}
	if s.rest++; s.rest == s.intervals {
		s.rest, s.graphQ = 0, s.graphQ+s.intervals
	}
}

// text is the moves, a line each.
func text(moves []Decision) string {
	var b strings.Builder
	for _, d := range moves {
		fmt.Fprintln(&b, d)
	}
	return b.String()
}

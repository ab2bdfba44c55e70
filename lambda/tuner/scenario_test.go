package tuner

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"dorylus/engine/testkit/dd"
)

// TestScenarios runs testdata/*.txt. The commands:
//
//	new intervals=N cores=N [epoch=TASKS] [start=N] [min=N] [max=N] [fixed=N]
//	for SECONDS [graph=WAITING] [use=PERCENT] [wait=N] [run=N] [rate=TASKS] [ms=EACH] [workers=N]
//	    samples of a steady state, ten a second; rate is of tensor tasks a second
//	refuse N    launches
//
//	sim intervals=N cores=N graph=MS compute=MS latency=MS kb=N mbps=N [jitter=PERCENT] [limit=N] [barriers]
//	    intervals that go round in virtual time, for "run" and "set"
//	run SECONDS
//	set KEY=VALUE...
//
// All print the decisions, and run the number wanted and the rate over its last half.
func TestScenarios(t *testing.T) {
	dd.Files(t, "testdata/*.txt", func(t *testing.T) func(*dd.Block) string {
		s := &scenario{}
		return func(b *dd.Block) string { return s.run(t, b) }
	})
}

type scenario struct {
	t   *Tuner
	c   Config
	now Sample
	sim sim
}

func (s *scenario) run(t *testing.T, b *dd.Block) string {
	switch b.Cmd {
	case "new":
		s.c = Config{
			Intervals: b.Int("intervals", 0), Cores: b.Int("cores", 0), PerEpoch: b.Int("epoch", 0),
			Start: b.Int("start", 0), Min: b.Int("min", 0), Max: b.Int("max", 0), Fixed: b.Int("fixed", 0),
		}
		var err error
		if s.t, err = New(s.c); err != nil {
			return err.Error()
		}
		s.now = Sample{}
		return fmt.Sprintf("%d workers", s.t.Wanted())
	case "for":
		return s.steady(b, number(t, b))
	case "refuse":
		s.now.Refused += int64(number(t, b))
		return s.observe()
	case "sim":
		s.sim = sim{intervals: b.Int("intervals", 0), cores: b.Int("cores", 0), cold: 0.2}
		s.set(b)
		if err := s.sim.begin(Config{Start: b.Int("start", 0), Fixed: b.Int("fixed", 0)}, 1); err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%d workers", s.sim.t.Wanted())
	case "set":
		s.set(b)
		return "ok"
	case "run":
		length, from := float64(number(t, b)), len(s.sim.moves)
		s.sim.run(s.sim.now + length/2)
		s.sim.reset()
		s.sim.run(s.sim.now + length/2)
		workers, rate := s.sim.mean()
		return text(s.sim.moves[from:]) + fmt.Sprintf("%.0fs: %.1f workers, %.0f tensor tasks a second", s.sim.now, workers, rate)
	}
	t.Fatalf("%s: unknown command %q", b.Pos, b.Cmd)
	return ""
}

func number(t *testing.T, b *dd.Block) int {
	t.Helper()
	if len(b.Words) == 0 {
		t.Fatalf("%s: %s: give a number", b.Pos, b.Cmd)
	}
	n, err := strconv.Atoi(b.Words[0])
	if err != nil {
		t.Fatalf("%s: %q is no number", b.Pos, b.Words[0])
	}
	return n
}

func (s *scenario) set(b *dd.Block) {
	x := &s.sim
	for key, to := range map[string]*float64{"graph": &x.graph, "compute": &x.compute, "latency": &x.latency} {
		*to = float64(b.Int(key, int(1000**to+0.5))) / 1000
	}
	x.bytes = 1e3 * float64(b.Int("kb", int(x.bytes/1e3)))
	x.bandwidth = 1e6 * float64(b.Int("mbps", int(x.bandwidth/1e6))) // megabytes
	x.jitter = float64(b.Int("jitter", int(100*x.jitter+0.5))) / 100
	x.limit = b.Int("limit", x.limit)
	for _, w := range b.Words {
		x.sync = x.sync || w == "barriers"
	}
	if x.rng == nil {
		x.rng = rand.New(rand.NewPCG(1, 1))
	}
}

// steady feeds samples of the same state.
func (s *scenario) steady(b *dd.Block, length int) string {
	n := &s.now
	n.GraphWaiting, n.TensorWaiting, n.TensorRunning = b.Int("graph", 0), b.Int("wait", 0), b.Int("run", 0)
	n.Workers = b.Int("workers", s.t.Wanted())
	var lines []string
	for i := range 10 * length {
		n.GraphRunning = 0
		if (i*37)%100 < b.Int("use", 100) {
			n.GraphRunning = s.c.Cores
		}
		n.At += 100 * time.Millisecond
		tasks := int64(b.Int("rate", 0)) / 10
		n.Done += tasks
		n.Busy += time.Duration(tasks) * time.Duration(b.Int("ms", 50)) * time.Millisecond
		if line := s.observe(); line != "still" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return "still"
	}
	return strings.Join(lines, "\n")
}

func (s *scenario) observe() string {
	if d, ok := s.t.Observe(s.now); ok {
		return d.String()
	}
	return "still"
}

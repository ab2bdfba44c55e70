package fleet

import (
	"fmt"
	"testing"

	"dorylus/engine"
	"dorylus/engine/prepare"
	"dorylus/lambda/plan"
)

// On a graph of Reddit's shape, a tenth of its vertices, the naive protocol moves many
// times the bytes of an epoch. What is planned is what is measured.
func TestNaiveProtocolMovesFourTimesTheBytes(t *testing.T) {
	vertices, small := "20000", testing.Short()
	if raceEnabled {
		t.Skip("the race detector sees the same in the other tests, and sooner")
	}
	if small { // so small that gradients are most of what moves
		vertices = "4000"
	}
	st := graph(t, "synth:sbm,vertices="+vertices+",degree=20,classes=41,features=602", prepare.Options{Order: "natural"})
	dev := device(t)
	run := func(codec string, dropout float64, epochs int) (Stats, plan.Savings) {
		f := (&inProcess{dev: dev}).start(t, Options{Workers: 3, Codec: codec})
		train(t, options(t, st, dev, func(c *engine.Config) {
			c.Hidden, c.InputDropout, c.Intervals, c.EvalEvery, c.Epochs = 128, dropout, 8, 0, epochs
		}), f)
		return f.Stats(), f.Savings()
	}
	for _, c := range []struct {
		codec   string
		dropout float64 // of the features: above 0 no gather of them is kept
		least   float64
	}{{"none", 0, 8}, {"none", 0.5, 2.8}, {"auto", 0.5, 3.9}} {
		one, s := run(c.codec, c.dropout, 1)
		two, _ := run(c.codec, c.dropout, 2)
		moved := func(x Stats) int64 { return x.SentBytes - x.ShardBytes + x.ReceivedBytes }
		epoch := moved(two) - moved(one)
		factor := float64(s.Naive) / float64(epoch)
		what := fmt.Sprintf("codec %s, input dropout %v", c.codec, c.dropout)
		t.Logf("%s: %.2f MB an epoch measured, a factor of %.1f; shards %.2f MB a run\n%v", what, float64(epoch)/1e6, factor, float64(one.ShardBytes)/1e6, s)
		if factor < c.least && !small {
			t.Errorf("%s: the naive protocol moves %.1f times as much, want at least %v", what, factor, c.least)
		}
		if off := float64(epoch)/float64(s.Planned) - 1; c.codec == "none" && (off < -0.05 || off > 0.15) {
			t.Errorf("%s: %d bytes an epoch were measured, %d planned: %.0f %% off", what, epoch, s.Planned, 100*off)
		}
	}
}

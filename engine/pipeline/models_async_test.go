package pipeline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"dorylus/engine/backend"
)

// An async run of every model, over workers of uneven speed, reads no rows older
// than the bound, completes every epoch and learns. Rates of dropout are low: the
// losses of so small a graph would tell of dropped values more than of learning.
// Attention goes without: what its forward and its backward half gather may be of two
// epochs, whose dropped values differ by more than what was learnt between them.
func TestEveryModelRunsAsync(t *testing.T) {
	const epochs = 20
	bounds := []int{0, 1, 3}
	everyModel(t, func(t *testing.T, m modelCase, seed uint64) {
		for _, s := range bounds {
			if testing.Short() && s != 3 {
				continue
			}
			o := m.options(t, seed, func(o *Options) {
				c := &o.Config
				c.Pipeline, c.Staleness, c.Epochs, c.EvalEvery = "async", s, epochs, 5
				c.AsyncWait = 0
				c.Intervals, c.Threads, c.Hidden, c.LR = 6, 3, 16, 0.01
				c.Dropout, c.InputDropout, c.AttentionDropout = min(c.Dropout, 0.2), min(c.InputDropout, 0.2), min(c.AttentionDropout, 0.2)
				if m.model == "gat" {
					c.Dropout, c.InputDropout, c.AttentionDropout = 0, 0, 0
				}
				local := backend.NewLocal(o.Device)
				t.Cleanup(func() { local.Close() })
				o.Backend = &dawdler{Backend: local, rng: rand.New(rand.NewPCG(seed, 7))}
			})
			mustTrain(t, o)
			what := fmt.Sprintf("S=%d, seed %d", s, seed)
			ages, losses := events(o).ages(), events(o).losses()
			if len(ages) > s+2 {
				t.Errorf("%s: rows %d epochs old were read, at most %d may be: %v", what, len(ages)-1, s+1, ages)
			}
			if len(losses) != epochs {
				t.Fatalf("%s: %d epochs, want %d", what, len(losses), epochs)
			}
			first, last := mean(losses[:2]), mean(losses[epochs-4:])
			if m.model == "gat" && s > 0 { // it may rise again after its best
				last = slices.Min(losses)
			}
			if !(last < 0.95*first) {
				t.Errorf("%s: the loss went from %.4f to %.4f: %.4f", what, first, last, losses)
			}
		}
	})
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / math.Max(float64(len(x)), 1)
}

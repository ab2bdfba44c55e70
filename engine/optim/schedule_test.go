package optim

import (
	"encoding/json"
	"math"
	"testing"
)

// TestRatesByHand holds the schedules to values worked out by hand.
func TestRatesByHand(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want []float64
	}{
		{Config{LR: 0.3}, []float64{0.3, 0.3, 0.3}},
		{Config{LR: 0.3, Schedule: "constant", Warmup: 3}, []float64{0.1, 0.2, 0.3, 0.3}},
		{Config{LR: 2, Schedule: "cosine", Epochs: 4}, []float64{2, 1 + math.Sqrt2/2, 1, 1 - math.Sqrt2/2}},
		{Config{LR: 2, Schedule: "cosine", Epochs: 6, Warmup: 2}, []float64{1, 2, 2, 1 + math.Sqrt2/2, 1, 1 - math.Sqrt2/2}},
		{Config{LR: 8, Schedule: "step", Every: 2}, []float64{8, 8, 0.8, 0.8, 0.08}},
		{Config{LR: 8, Schedule: "step", Every: 1, Gamma: 0.5, Warmup: 1}, []float64{8, 8, 4, 2, 1}},
		{Config{LR: 8, Schedule: "exponential", Gamma: 0.5}, []float64{8, 4, 2, 1}},
		{Config{LR: 1, Schedule: "exponential"}, []float64{1, 0.99, 0.9801}},
	} {
		cfg := c.cfg.WithDefaults()
		if err := cfg.Validate(); err != nil {
			t.Errorf("%+v: %v", c.cfg, err)
			continue
		}
		for epoch, want := range c.want {
			if got := cfg.Rate(epoch); math.Abs(got-want) > 1e-15*c.cfg.LR {
				t.Errorf("%+v: the rate of epoch %d is %v, want %v", c.cfg, epoch, got, want)
			}
		}
	}
}

// TestRatesFollowPyTorch advances PyTorch's schedulers step by step, by the recursive
// formulas of its documentation, which never see an epoch's number.
func TestRatesFollowPyTorch(t *testing.T) {
	const epochs, lr = 50, 0.05
	for _, c := range []struct {
		cfg  Config
		next func(rate float64, e int) float64 // the rate after e+1 steps from that after e
	}{
		{Config{Schedule: "cosine", Epochs: epochs}, func(rate float64, e int) float64 {
			return rate * (1 + math.Cos(math.Pi*float64(e+1)/epochs)) / (1 + math.Cos(math.Pi*float64(e)/epochs))
		}},
		{Config{Schedule: "step", Every: 7, Gamma: 0.3}, func(rate float64, e int) float64 {
			if (e+1)%7 == 0 {
				return rate * 0.3
			}
			return rate
		}},
		{Config{Schedule: "exponential", Gamma: 0.9}, func(rate float64, _ int) float64 { return rate * 0.9 }},
		{Config{Warmup: 10}, func(rate float64, e int) float64 { // LinearLR(start_factor=1/10, total_iters=9)
			if e+1 > 9 {
				return rate
			}
			return rate * (1 + (1-0.1)/(9*0.1+float64(e)*(1-0.1)))
		}},
	} {
		c.cfg.LR = lr
		cfg := c.cfg.WithDefaults()
		rate := cfg.Rate(0)
		for e := range epochs - 1 {
			rate = c.next(rate, e)
			if got := cfg.Rate(e + 1); math.Abs(got-rate) > 1e-13*lr {
				t.Fatalf("%+v: the rate of epoch %d is %v, PyTorch's recursion gives %v", cfg, e+1, got, rate)
			}
		}
	}
}

// TestScheduleIsPartOfIdentity: what shapes the rates makes two configurations differ,
// what does not, does not; and constant rates look as they did before schedules.
func TestScheduleIsPartOfIdentity(t *testing.T) {
	text := func(c Config) string {
		data, err := json.Marshal(c.WithDefaults())
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	const plain = `{"name":"sgd","lr":0.01,"weight_decay":0,"weight_decay_scope":"first"}`
	for _, c := range []Config{{}, {Schedule: "constant"}, {Schedule: "constant", Epochs: 200}} {
		c.Name = "sgd"
		if got := text(c); got != plain {
			t.Errorf("%+v is written as %s, want %s", c, got, plain)
		}
	}
	cosine := Config{Schedule: "cosine", Epochs: 200}
	for _, other := range []Config{
		{}, {Schedule: "cosine", Epochs: 100}, {Schedule: "cosine", Epochs: 200, Warmup: 1}, {Schedule: "cosine", Epochs: 200, ClipNorm: 1},
	} {
		if text(other) == text(cosine) {
			t.Errorf("%+v and %+v are written alike", cosine, other)
		}
	}
	a, b := Config{Schedule: "step", Every: 5, Epochs: 10}, Config{Schedule: "step", Every: 5, Gamma: 0.1, Epochs: 20}
	if text(a) != text(b) {
		t.Errorf("the same steps are written as %s and %s", text(a), text(b))
	}
}

package pipeline

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"dorylus/engine"
	"dorylus/engine/model"
	"dorylus/engine/params"
	"dorylus/kernels"
)

// Every parameter of every model and option gets a gradient in the first epoch and
// has left its start after three.
func TestEveryParameterLearns(t *testing.T) {
	for _, name := range []string{"gcn", "gat", "sage", "sage max", "gin", "sgc", "appnp", "mlp"} {
		t.Run(name, func(t *testing.T) {
			for layers := 1; layers <= 3; layers++ {
				for choice := range uint(1 << 5) {
					if layers == 1 && choice > 7 || layers != 2 && testing.Short() {
						continue // one layer has neither residual nor norm
					}
					m, what := learner(name, layers, choice)
					parametersLearn(t, what, m, uint64(choice))
				}
			}
		})
	}
}

// learner is a model with one of 32 choices of options.
func learner(name string, layers int, choice uint) (m modelCase, what string) {
	has := func(i int) bool { return choice>>i&1 == 1 }
	norm := "none"
	if has(4) {
		norm = []string{"layer", "batch"}[bits.OnesCount(choice)%2]
	}
	m = modelCase{name: name, model: name, data: toyGraph{directed: true, weighted: has(0), sparse: has(1)}, set: func(c *engine.Config) {
		c.Layers, c.Heads, c.OutHeads, c.Bias, c.WeightDecay = layers, 2, layers, !has(0), 0
		c.Residual, c.Norm = has(3), norm
		if has(2) {
			c.InputDropout = 0
		}
		if name == "sage max" {
			c.Aggregator = "max"
		}
	}}
	if name == "sage max" {
		m.model = "sage"
	}
	return m, fmt.Sprintf("%s, %d layers, weights %t, sparse %t, no input dropout %t, residual %t, norm %s, seed %d",
		name, layers, has(0), has(1), has(2), has(3), norm, choice)
}

// parametersLearn looks at Adam's first moment after one epoch, which is a share of
// the gradient where nothing decays, and at the weights after three.
func parametersLearn(t *testing.T, what string, m modelCase, seed uint64) {
	t.Helper()
	o := m.options(t, seed, func(o *Options) { o.Config.Epochs, o.Config.EvalEvery = 3, 3 })
	var one *State
	o.Config.CheckpointEvery = 1
	o.Save = func(s *State) error {
		if s.Params.Version == 1 {
			one = s
		}
		return nil
	}
	three := mustTrain(t, o)
	start := params.InitParams(three.Specs, seed)
	for p, spec := range three.Specs {
		if o.Config.Norm == "batch" && spec.Layer < o.Config.Layers && spec.Bias && !strings.HasPrefix(spec.Name, "norm") {
			continue // what is added to all rows is taken from them again
		}
		if g := one.Params.Optim.Slots[0][p]; !finite(g) || !spec.Stat && !slices.ContainsFunc(g.Host, func(x float32) bool { return x != 0 }) {
			t.Errorf("%s: the first gradient of %s is %v", what, spec.Name, head(g))
		}
		w := three.State.Params.Weights[p]
		if !finite(w) || firstDiffering(start[p], w) == "" {
			t.Errorf("%s: %s is %v after three epochs, was %v", what, spec.Name, head(w), head(start[p]))
		}
	}
}

func finite(m *kernels.Mat) bool {
	for r := range m.Rows {
		for _, x := range m.Row(r) {
			if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
				return false
			}
		}
	}
	return true
}

// head is the begin of a matrix, for messages.
func head(m *kernels.Mat) []float32 { return m.Row(0)[:min(m.Cols, 6)] }

// No option of a model is taken and ignored: each changes what the model computes,
// or is refused.
func TestEveryModelOptionHasAnEffect(t *testing.T) {
	stacked := []string{"gcn", "gat", "sage", "gin", "appnp", "mlp"}
	options := []struct {
		name   string
		models []string
		set    func(c *engine.Config)
	}{
		{"hidden", stacked, func(c *engine.Config) { c.Hidden = 7 }},
		{"layers", stacked, func(c *engine.Config) { c.Layers = 3 }},
		{"bias", model.Names(), func(c *engine.Config) { c.Bias = false }},
		{"activation", stacked, func(c *engine.Config) { c.Activation = "tanh" }},
		{"dropout", stacked, func(c *engine.Config) { c.Dropout = 0.1 }},
		{"input-dropout", model.Names(), func(c *engine.Config) { c.InputDropout = 0.1 }},
		{"residual", stacked, func(c *engine.Config) { c.Residual = true }},
		{"norm=layer", stacked, func(c *engine.Config) { c.Norm = "layer" }},
		{"norm=batch", stacked, func(c *engine.Config) { c.Norm = "batch" }},
		{"jumping-knowledge", stacked, func(c *engine.Config) { c.JumpingKnowledge = true }},
		{"heads", []string{"gat"}, func(c *engine.Config) { c.Heads = 3 }},
		{"out-heads", []string{"gat"}, func(c *engine.Config) { c.OutHeads = 2 }},
		{"attention-dropout", []string{"gat"}, func(c *engine.Config) { c.AttentionDropout = 0 }},
		{"aggregator", []string{"sage"}, func(c *engine.Config) { c.Aggregator = "max" }},
		{"hops", []string{"sgc", "appnp"}, func(c *engine.Config) { c.Hops = 4 }},
		{"alpha", []string{"appnp"}, func(c *engine.Config) { c.Alpha = 0.5 }},
		{"class-weights", model.Names(), func(c *engine.Config) { c.ClassWeights = "balanced" }},
	}
	plain := map[string]*Result{}
	for _, opt := range options {
		for _, name := range opt.models {
			m := modelCase{model: name, data: toyGraph{directed: true}, set: func(c *engine.Config) { c.Heads = 2; c.Epochs = 3 }}
			if plain[name] == nil {
				plain[name] = mustTrain(t, m.options(t, 5))
			}
			got := mustTrain(t, m.options(t, 5, func(o *Options) { opt.set(&o.Config) }))
			if firstDiffering(plain[name].Logits, got.Logits) == "" {
				t.Errorf("%s: --%s changes no logit", name, opt.name)
			}
		}
	}
}

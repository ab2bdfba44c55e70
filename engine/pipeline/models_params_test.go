package pipeline

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"dorylus/engine"
	"dorylus/engine/params"
	"dorylus/kernels"
)

// Every parameter of every model and option gets a gradient in the first epoch and
// has left its start after three.
func TestEveryParameterLearns(t *testing.T) {
	depths := []int{1, 2, 3}
	if testing.Short() {
		depths = []int{2}
	}
	for _, name := range []string{"gcn", "gat", "sage", "sage max", "gin", "sgc", "appnp", "mlp"} {
		t.Run(name, func(t *testing.T) {
			for _, layers := range depths {
				for bits := range 1 << 5 {
					has := func(i int) bool { return bits>>i&1 == 1 }
					m := modelCase{name: name, model: name, data: toyGraph{directed: true, weighted: has(0), sparse: has(1)}, set: func(c *engine.Config) {
						c.Layers, c.Heads, c.OutHeads, c.Bias, c.WeightDecay = layers, 2, layers, !has(0), 0
						c.Residual = has(3)
						if has(2) {
							c.InputDropout = 0
						}
						if has(4) {
							c.Norm = "layer"
						}
					}}
					if name == "sage max" {
						m.model = "sage"
						set := m.set
						m.set = func(c *engine.Config) { set(c); c.Aggregator = "max" }
					}
					what := fmt.Sprintf("%s, %d layers, weights %t, sparse %t, no input dropout %t, residual %t, layer norm %t, seed %d",
						name, layers, has(0), has(1), has(2), has(3), has(4), bits)
					parametersLearn(t, what, m, uint64(bits))
				}
			}
		})
	}
}

// parametersLearn looks at Adam's first moment after one epoch, which is a share of
// the gradient where nothing decays, and at the weights after three.
func parametersLearn(t *testing.T, what string, m modelCase, seed uint64) {
	t.Helper()
	run := func(epochs int) *Result {
		return mustTrain(t, m.options(t, seed, func(o *Options) { o.Config.Epochs, o.Config.EvalEvery = epochs, epochs }))
	}
	one, three := run(1), run(3)
	start := params.InitParams(one.Specs, seed)
	for p, spec := range one.Specs {
		if g := one.State.Params.Optim.Slots[0][p]; !finite(g) || !slices.ContainsFunc(g.Host, func(x float32) bool { return x != 0 }) {
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
	options := []struct {
		name   string
		models []string
		set    func(c *engine.Config)
	}{
		{"hidden", []string{"gcn", "gat", "sage", "gin", "appnp", "mlp"}, func(c *engine.Config) { c.Hidden = 7 }},
		{"layers", []string{"gcn", "gat", "sage", "gin", "appnp", "mlp"}, func(c *engine.Config) { c.Layers = 3 }},
		{"bias", []string{"gcn", "gat", "sage", "gin", "sgc", "appnp", "mlp"}, func(c *engine.Config) { c.Bias = false }},
		{"activation", []string{"gcn", "gat", "sage", "gin", "appnp", "mlp"}, func(c *engine.Config) { c.Activation = "tanh" }},
		{"dropout", []string{"gcn", "gat", "sage", "gin", "appnp", "mlp"}, func(c *engine.Config) { c.Dropout = 0.1 }},
		{"input-dropout", []string{"gcn", "gat", "sage", "gin", "sgc", "appnp", "mlp"}, func(c *engine.Config) { c.InputDropout = 0.1 }},
		{"residual", []string{"gcn", "gat", "sage", "gin"}, func(c *engine.Config) { c.Residual = true }},
		{"norm", []string{"gcn", "gat", "sage", "gin"}, func(c *engine.Config) { c.Norm = "layer" }},
		{"heads", []string{"gat"}, func(c *engine.Config) { c.Heads = 3 }},
		{"out-heads", []string{"gat"}, func(c *engine.Config) { c.OutHeads = 2 }},
		{"attention-dropout", []string{"gat"}, func(c *engine.Config) { c.AttentionDropout = 0 }},
		{"aggregator", []string{"sage"}, func(c *engine.Config) { c.Aggregator = "max" }},
		{"hops", []string{"sgc", "appnp"}, func(c *engine.Config) { c.Hops = 4 }},
		{"alpha", []string{"appnp"}, func(c *engine.Config) { c.Alpha = 0.5 }},
		{"class-weights", []string{"gcn", "gat", "sage", "gin", "sgc", "appnp", "mlp"}, func(c *engine.Config) { c.ClassWeights = "balanced" }},
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

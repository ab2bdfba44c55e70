package pipeline

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"dorylus/engine"
	"dorylus/engine/store"
	"dorylus/engine/testkit"
	"dorylus/kernels"
)

// What mathematics says about changes of the input, from edge records to logits: two
// steps of gradient descent, whose weights show every gradient, then the logits
// of all vertices. Adam would not do: it makes steps of full length from gradients
// that are nothing but rounding.

// calm is a run without randomness.
func calm(o *Options) {
	c := &o.Config
	c.Dropout, c.InputDropout, c.AttentionDropout = 0, 0, 0
	c.Optimizer, c.LR, c.Epochs, c.EvalEvery = "sgd", 0.01, 2, 2
}

// calmly are the logits of a case after training calmly on a store.
func calmly(t *testing.T, m modelCase, st *store.Store, seed uint64) *kernels.Mat {
	t.Helper()
	return mustTrain(t, m.optionsOn(t, st, seed, calm)).Logits
}

// onEachGraph runs f for the case on directed and undirected graphs, with weights and
// without.
func onEachGraph(t *testing.T, f func(t *testing.T, m modelCase, seed uint64)) {
	everyModel(t, func(t *testing.T, m modelCase, seed uint64) {
		for kind := range 4 {
			if testing.Short() && kind%3 != 0 {
				continue
			}
			m.data.directed, m.data.weighted = kind&1 != 0, kind&2 != 0
			t.Run(fmt.Sprintf("directed=%t/weights=%t", m.data.directed, m.data.weighted), func(t *testing.T) { f(t, m, seed) })
		}
	})
}

const mathTolerance = 1e-5

func TestEveryModelRelabelledVerticesPermuteTheLogits(t *testing.T) {
	onEachGraph(t, func(t *testing.T, m modelCase, seed uint64) {
		raw := m.data.raw(seed)
		to := shuffled(raw.N, seed)
		want := calmly(t, m, build(t, raw, "natural"), seed)
		got := calmly(t, m, build(t, relabel(raw, to, raw.N), "natural"), seed)
		if d := testkit.Far(want, chosen(got, to), mathTolerance); d != "" {
			t.Errorf("seed %d: logit%s", seed, d)
		}
	})
}

// The order of the store is not the user's business either, dropout included: it
// follows the user's numbers.
func TestEveryModelOrderChangesNoLogit(t *testing.T) {
	everyModel(t, func(t *testing.T, m modelCase, seed uint64) {
		raw := m.data.raw(seed)
		var want *kernels.Mat
		for _, order := range []string{"natural", "degree", "hash"} {
			got := mustTrain(t, m.optionsOn(t, build(t, raw, order), seed, func(o *Options) {
				o.Config.Optimizer, o.Config.LR, o.Config.Epochs = "sgd", 0.01, 1
			})).Logits
			if want == nil {
				want = got
			}
			if d := testkit.Far(want, got, mathTolerance); d != "" {
				t.Errorf("order %s, seed %d: logit%s", order, seed, d)
			}
		}
	})
}

// A vertex without edges and label changes nothing for the others, wherever its
// number is.
func TestEveryModelUnconnectedVertexChangesNothing(t *testing.T) {
	onEachGraph(t, func(t *testing.T, m modelCase, seed uint64) {
		raw := m.data.raw(seed)
		want := calmly(t, m, build(t, raw, "natural"), seed)
		for _, at := range []int32{0, 100, int32(raw.N)} {
			more, to := withVertex(raw, at)
			got := calmly(t, m, build(t, more, "natural"), seed)
			if d := testkit.Far(want, chosen(got, to), mathTolerance); d != "" {
				t.Errorf("vertex %d is new, seed %d: logit%s", at, seed, d)
			}
			if !finite(got) {
				t.Errorf("vertex %d is new, seed %d: its logits are %v", at, seed, got.Row(int(at)))
			}
		}
	})
}

// Records of one edge add up. Two halves make the very same store, and so do
// repeated records where there are no weights. Parts that are not exact, and
// parallel edges that nobody has merged, make the same sums but for rounding, the
// same maxima, and the same shares of attention.
func TestEveryModelSplitWeightChangesNothing(t *testing.T) {
	onEachGraph(t, func(t *testing.T, m modelCase, seed uint64) {
		raw := m.data.raw(seed)
		st := build(t, raw, "natural")
		want := calmly(t, m, st, seed)
		if d := firstDiffering(want, calmly(t, m, build(t, split(raw, 0.5), "natural"), seed)); d != "" {
			t.Errorf("halves, seed %d: logit%s", seed, d)
		}
		if !m.data.weighted {
			return
		}
		if d := testkit.Far(want, calmly(t, m, build(t, split(raw, 0.3), "natural"), seed), mathTolerance); d != "" {
			t.Errorf("0.3 and 0.7, seed %d: logit%s", seed, d)
		}
		if d := testkit.Far(want, calmly(t, m, parallel(st), seed), mathTolerance); d != "" {
			t.Errorf("parallel edges, seed %d: logit%s", seed, d)
		}
	})
}

// An edge of weight 0 carries nothing, adds nothing to a degree, does not count in a
// mean or a maximum and gets no attention. That holds for vertices that have no
// other in-edge, too.
func TestEveryModelZeroWeightChangesNothing(t *testing.T) {
	onEachGraph(t, func(t *testing.T, m modelCase, seed uint64) {
		if !m.data.weighted {
			m.data.simple = true // repeated records would add up once they have weights
		}
		raw := m.data.raw(seed)
		st := build(t, raw, "natural")
		want := calmly(t, m, st, seed)
		more := *raw
		if !m.data.weighted {
			// Without weights all are 1.
			more.Weight = slices.Repeat([]float32{1}, len(raw.Src))
		}
		more.Src, more.Dst, more.Weight = slices.Clone(raw.Src), slices.Clone(raw.Dst), slices.Clone(more.Weight)
		rng := rand.New(rand.NewPCG(seed, 23))
		for range 80 {
			u := rng.IntN(raw.N)
			v := (u + 1 + rng.IntN(raw.N-1)) % raw.N
			add(&more, u, v, 0)
		}
		add(&more, 3, raw.N-1, 0) // the unconnected one
		add(&more, 4, raw.N-2, 0) // the one without in-edges
		zero := build(t, &more, "natural")
		if zero.Meta.Edges < st.Meta.Edges+60 {
			t.Fatalf("%d edges became %d: the test shows nothing", st.Meta.Edges, zero.Meta.Edges)
		}
		if d := testkit.Far(want, calmly(t, m, zero, seed), mathTolerance); d != "" {
			t.Errorf("seed %d: logit%s", seed, d)
		}
	})
}

// A weighted model uses its weights, a maximum whether they are positive: where it
// is taken any weights do as well as none, elsewhere they change the logits.
func TestEveryModelWeighsItsEdges(t *testing.T) {
	everyModel(t, func(t *testing.T, m modelCase, seed uint64) {
		m.data.weighted, m.data.simple = true, true
		raw := m.data.raw(seed)
		plain := *raw
		plain.Weight = nil
		want, got := calmly(t, m, build(t, &plain, "natural"), seed), calmly(t, m, build(t, raw, "natural"), seed)
		o := m.options(t, seed)
		ignores := m.model == "mlp" || o.Config.Aggregator == "max"
		d := testkit.Far(want, got, 1e-3)
		if ignores {
			d = firstDiffering(want, got)
		}
		if ignores != (d == "") {
			t.Errorf("seed %d: with weights, logit%s", seed, d)
		}
	})
}

// Weights of a mean are shares: doubling all of them changes nothing.
func TestMeanOfDoubledWeights(t *testing.T) {
	m := modelCase{model: "sage", data: toyGraph{weighted: true, directed: true}, set: func(c *engine.Config) {}}
	raw := m.data.raw(2)
	twice := *raw
	twice.Weight = slices.Clone(raw.Weight)
	for e := range twice.Weight {
		twice.Weight[e] *= 2
	}
	want, got := calmly(t, m, build(t, raw, "natural"), 2), calmly(t, m, build(t, &twice, "natural"), 2)
	if d := testkit.Far(want, got, mathTolerance); d != "" {
		t.Errorf("seed 2: logit%s", d)
	}
}

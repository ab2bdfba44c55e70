package pipeline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"dorylus/engine"
	"dorylus/engine/dataset"
	"dorylus/engine/model"
	"dorylus/engine/store"
	"dorylus/kernels"
	"dorylus/kernels/devices"
)

// modelCase is one configuration under which every promise of the pipeline has to
// hold.
type modelCase struct {
	name  string
	model string
	data  toyGraph
	set   func(c *engine.Config)
}

// modelCases has every model, and every option with the models in which it takes
// another way through the program: features that are dense or sparse, dropped or
// not, decide whether layer 1 gathers at all; widths decide what comes first,
// product or gather.
var modelCases = []modelCase{
	{"gcn", "gcn", toyGraph{}, func(c *engine.Config) { c.InputDropout = 0 }},
	{"gcn input dropout, weights", "gcn", toyGraph{weighted: true}, func(c *engine.Config) { c.Hidden = 20 }},
	{"gcn sparse, class weights", "gcn", toyGraph{sparse: true, directed: true}, func(c *engine.Config) { c.ClassWeights = "balanced" }},
	{"gcn residual, layer norm, weights", "gcn", toyGraph{weighted: true, directed: true}, func(c *engine.Config) {
		c.Residual, c.Norm, c.Layers, c.WeightDecayScope = true, "layer", 3, "all"
	}},
	{"gcn several labels", "gcn", toyGraph{multi: true}, func(c *engine.Config) { c.ClassWeights = "balanced" }},
	{"gat", "gat", toyGraph{directed: true}, func(c *engine.Config) { c.Heads, c.InputDropout = 3, 0 }},
	{"gat averaged heads, weights, sparse", "gat", toyGraph{weighted: true, sparse: true, directed: true}, func(c *engine.Config) {
		c.Heads, c.OutHeads, c.AttentionDropout = 2, 3, 0.3
	}},
	{"gat residual", "gat", toyGraph{weighted: true}, func(c *engine.Config) { c.Heads, c.Layers, c.Residual = 2, 3, true }},
	{"gat several labels, layer norm", "gat", toyGraph{multi: true, directed: true}, func(c *engine.Config) { c.Heads, c.Norm = 4, "layer" }},
	{"sage mean", "sage", toyGraph{weighted: true, directed: true}, func(c *engine.Config) { c.Layers, c.InputDropout = 3, 0 }},
	{"sage mean input dropout", "sage", toyGraph{directed: true}, func(c *engine.Config) { c.Hidden = 20 }},
	{"sage mean sparse, residual", "sage", toyGraph{sparse: true}, func(c *engine.Config) { c.Residual, c.Layers = true, 3 }},
	{"sage max", "sage", toyGraph{directed: true}, func(c *engine.Config) { c.Aggregator, c.Layers, c.InputDropout = "max", 3, 0 }},
	{"sage max of sparse, weights", "sage", toyGraph{sparse: true, weighted: true}, func(c *engine.Config) { c.Aggregator, c.Norm = "max", "layer" }},
	{"gin", "gin", toyGraph{directed: true}, func(c *engine.Config) { c.InputDropout = 0 }},
	{"gin input dropout, weights", "gin", toyGraph{weighted: true}, func(c *engine.Config) { c.Layers, c.Hidden = 3, 20 }},
	{"gin sparse, residual, layer norm", "gin", toyGraph{sparse: true, directed: true}, func(c *engine.Config) {
		c.Residual, c.Norm, c.ClassWeights = true, "layer", "balanced"
	}},
	{"gcn batch norm, weights", "gcn", toyGraph{weighted: true, directed: true}, func(c *engine.Config) { c.Norm, c.InputDropout = "batch", 0 }},
	{"gat residual, batch norm, sparse", "gat", toyGraph{sparse: true}, func(c *engine.Config) {
		c.Heads, c.Residual, c.Norm, c.Layers = 2, true, "batch", 3
	}},
	{"sage max, batch norm", "sage", toyGraph{directed: true, multi: true}, func(c *engine.Config) { c.Aggregator, c.Norm, c.Layers = "max", "batch", 3 }},
	{"gin residual, batch norm", "gin", toyGraph{weighted: true, directed: true}, func(c *engine.Config) {
		c.Residual, c.Norm, c.Layers, c.Hidden = true, "batch", 3, 20
	}},
	{"sgc", "sgc", toyGraph{weighted: true, directed: true}, func(c *engine.Config) { c.InputDropout = 0 }},
	{"sgc sparse", "sgc", toyGraph{sparse: true}, func(c *engine.Config) { c.Hops = 3 }},
	{"appnp", "appnp", toyGraph{directed: true}, func(c *engine.Config) { c.Hops = 3 }},
	{"appnp sparse, weights", "appnp", toyGraph{sparse: true, weighted: true}, func(c *engine.Config) { c.Hops, c.Layers = 2, 3 }},
	{"appnp residual, batch norm", "appnp", toyGraph{directed: true}, func(c *engine.Config) {
		c.Hops, c.Layers, c.Residual, c.Norm = 2, 3, true, "batch"
	}},
	{"mlp", "mlp", toyGraph{sparse: true}, func(*engine.Config) {}},
	{"gcn jumping knowledge, residual", "gcn", toyGraph{weighted: true, directed: true}, func(c *engine.Config) {
		c.Layers, c.JumpingKnowledge, c.Residual = 3, true, true
	}},
	{"gat jumping knowledge, sparse", "gat", toyGraph{sparse: true}, func(c *engine.Config) { c.Heads, c.Layers, c.JumpingKnowledge = 2, 3, true }},
	{"sage max jumping knowledge, layer norm", "sage", toyGraph{directed: true}, func(c *engine.Config) {
		c.Aggregator, c.Layers, c.JumpingKnowledge, c.Norm = "max", 3, true, "layer"
	}},
}

// everyModel runs f as a subtest of each case; the seed is the case's own.
func everyModel(t *testing.T, f func(t *testing.T, m modelCase, seed uint64)) {
	for i, m := range modelCases {
		if raceOn && testing.Short() && i%3 != 0 {
			continue // the schedule is that of the others
		}
		t.Run(m.name, func(t *testing.T) { f(t, m, uint64(i)) })
	}
}

// options are a short sync run of the case on its graph, small enough for many of
// them.
func (m modelCase) options(t testing.TB, seed uint64, set ...func(*Options)) Options {
	t.Helper()
	return m.optionsOn(t, m.data.store(t), seed, set...)
}

func (m modelCase) optionsOn(t testing.TB, st *store.Store, seed uint64, set ...func(*Options)) Options {
	t.Helper()
	dev, err := devices.Open("auto")
	check(t, err)
	o := Options{Config: engine.DefaultConfig(m.model), Seed: seed, Store: st, Split: st.Splits[0], Device: dev, Listener: &log{}}
	c := &o.Config
	c.Epochs, c.Threads, c.Intervals, c.Hidden = 4, 2, 4, 6
	m.set(c)
	for _, f := range set {
		f(&o)
	}
	check(t, c.Validate())
	return o
}

// toyGraph is a random graph whose train vertices see a part of it only, so that
// the levels of a training pass differ: 256 vertices in 16 blocks, four classes that
// features and edges know of, self-loops, duplicates, a vertex without any edge and,
// if directed, one without in-edges.
type toyGraph struct {
	directed, weighted, sparse, multi bool
	// simple leaves out duplicates and self-loops.
	simple bool
}

const toyVertices, toyClasses = 256, 4

func (g toyGraph) raw(seed uint64) *dataset.Raw {
	rng := rand.New(rand.NewPCG(seed, 21))
	r := &dataset.Raw{Name: "toy", N: toyVertices, Undirected: !g.directed, Classes: []string{"a", "b", "c", "d"}}
	label := make([]int32, r.N)
	for v := range label {
		label[v] = int32(rng.IntN(toyClasses))
	}
	had := map[[2]int32]bool{}
	add := func(u, v int32) {
		if had[[2]int32{u, v}] || had[[2]int32{v, u}] && !g.directed {
			return
		}
		had[[2]int32{u, v}] = true
		r.Src, r.Dst = append(r.Src, u), append(r.Dst, v)
		if g.weighted {
			r.Weight = append(r.Weight, float32(1+rng.IntN(128))/64) // halves of it are exact
		}
	}
	for len(r.Src) < 3*r.N/2 {
		u, v := int32(rng.IntN(r.N-1)), int32(rng.IntN(r.N-2))
		if u != v && (label[u] == label[v] || rng.IntN(3) == 0) {
			add(u, v)
		}
	}
	if !g.simple {
		for range 8 {
			v := int32(rng.IntN(r.N - 2))
			add(v, v)
		}
		for e := range 10 { // the last of them is merged into the first
			r.Src, r.Dst = append(r.Src, r.Src[7*e]), append(r.Dst, r.Dst[7*e])
			if g.weighted {
				r.Weight = append(r.Weight, 0.5)
			}
		}
	}
	g.features(r, label, rng)
	g.labels(r, label, rng)
	var s dataset.Split
	for v := range int32(r.N) {
		switch v % 8 {
		case 0:
			s.Train = append(s.Train, v)
		case 1, 2:
			s.Val = append(s.Val, v)
		default:
			s.Test = append(s.Test, v)
		}
	}
	r.Splits = []dataset.Split{s}
	return r
}

// features are 9 dense columns or 24 sparse ones with three values a row.
func (g toyGraph) features(r *dataset.Raw, label []int32, rng *rand.Rand) {
	if g.sparse {
		r.Sparse = &kernels.CSR{Cols: 24, RowPtr: []int64{0}}
		for v := range r.N {
			for _, c := range []int32{label[v], toyClasses + int32(rng.IntN(10)), toyClasses + 10 + int32(rng.IntN(10))} {
				r.Sparse.Col, r.Sparse.Val = append(r.Sparse.Col, c), append(r.Sparse.Val, 0.5+rng.Float32())
			}
			r.Sparse.RowPtr = append(r.Sparse.RowPtr, int64(len(r.Sparse.Col)))
		}
		return
	}
	r.Dense = kernels.FromSlice(r.N, 9, make([]float32, r.N*9))
	for v := range r.N {
		row := r.Dense.Row(v)
		for c := range row {
			row[c] = float32(rng.NormFloat64())
		}
		row[label[v]] += 2
	}
}

// labels are one class a vertex, or from none to two.
func (g toyGraph) labels(r *dataset.Raw, label []int32, rng *rand.Rand) {
	if !g.multi {
		r.Labels = label
		return
	}
	r.Multi = &kernels.CSR{Cols: toyClasses, RowPtr: []int64{0}}
	for v := range r.N {
		a, b := label[v], (label[v]+1)%toyClasses
		switch rng.IntN(5) {
		case 0:
		case 1, 2:
			r.Multi.Col = append(r.Multi.Col, min(a, b), max(a, b))
		default:
			r.Multi.Col = append(r.Multi.Col, a)
		}
		r.Multi.RowPtr = append(r.Multi.RowPtr, int64(len(r.Multi.Col)))
	}
}

var toyStores sync.Map // toyGraph -> *store.Store

// store is the graph of seed 1, prepared once.
func (g toyGraph) store(t testing.TB) *store.Store {
	t.Helper()
	if st, ok := toyStores.Load(g); ok {
		return st.(*store.Store)
	}
	st := build(t, g.raw(1), "lpa")
	toyStores.Store(g, st)
	return st
}

// firstDifference names the first value in which two sets of parameters differ, ""
// if they have the same bits.
func firstDifference(specs []model.ParamSpec, want, got []*kernels.Mat) string {
	if len(want) != len(got) {
		return fmt.Sprintf("%d parameters, want %d", len(got), len(want))
	}
	for p := range want {
		if d := firstDiffering(want[p], got[p]); d != "" {
			return specs[p].Name + d
		}
	}
	return ""
}

// firstDiffering is firstDifference of two matrices: "[2,3] is 0.5, want 0.25".
func firstDiffering(want, got *kernels.Mat) string {
	if want.Rows != got.Rows || want.Cols != got.Cols {
		return fmt.Sprintf(" is %d x %d, want %d x %d", got.Rows, got.Cols, want.Rows, want.Cols)
	}
	for r := range want.Rows {
		for c, x := range want.Row(r) {
			if y := got.Row(r)[c]; math.Float32bits(x) != math.Float32bits(y) {
				return fmt.Sprintf("[%d,%d] is %v, want %v", r, c, y, x)
			}
		}
	}
	return ""
}

// firstLoss names the first epoch whose losses differ by a bit, "" if none does.
func firstLoss(want, got []float64) string {
	if len(want) != len(got) {
		return fmt.Sprintf("%d losses, want %d", len(got), len(want))
	}
	for e, x := range want {
		if math.Float64bits(x) != math.Float64bits(got[e]) {
			return fmt.Sprintf("the loss of epoch %d is %v, want %v", e, got[e], x)
		}
	}
	return ""
}

// sameBits compares all that two runs have made.
func sameBits(t *testing.T, what string, want, got *Result, losses, gotLosses []float64) {
	t.Helper()
	for _, d := range []string{
		firstLoss(losses, gotLosses),
		firstDifference(want.Specs, want.State.Params.Weights, got.State.Params.Weights),
	} {
		if d != "" {
			t.Errorf("%s: %s", what, d)
			return
		}
	}
	if d := firstDiffering(want.Logits, got.Logits); d != "" {
		t.Errorf("%s: logit%s", what, d)
	}
	if want.WeightsSHA256 != got.WeightsSHA256 || want.PredictionsSHA256 != got.PredictionsSHA256 {
		t.Errorf("%s: hashes of weights %.12s, of predictions %.12s; want %.12s, %.12s", what,
			got.WeightsSHA256, got.PredictionsSHA256, want.WeightsSHA256, want.PredictionsSHA256)
	}
}

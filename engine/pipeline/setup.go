package pipeline

import (
	"fmt"
	"runtime"
	"sort"
	"strconv"

	"dorylus/engine"
	"dorylus/engine/dataset"
	"dorylus/engine/model"
	"dorylus/engine/optim"
	"dorylus/engine/store"
	"dorylus/kernels"
)

// ModelConfig is the part of a run's settings that shapes the model, on the data
// of st.
func ModelConfig(c *engine.Config, st *store.Store) (model.Config, error) {
	act, ok := activations[c.Activation]
	if !ok {
		return model.Config{}, fmt.Errorf("build %s: activation %q is unknown", c.Model, c.Activation)
	}
	norm := c.Norm
	if norm == "none" {
		norm = ""
	}
	return model.Config{
		Hops: c.Hops, Alpha: float32(c.Alpha), Heads: c.Heads, OutHeads: c.OutHeads, AttentionDropout: float32(c.AttentionDropout),
		Aggregator: c.Aggregator, Residual: c.Residual, Norm: norm, JumpingKnowledge: c.JumpingKnowledge,
		Model: c.Model, Layers: c.Layers, Hidden: c.Hidden, Bias: c.Bias, Activation: act,
		Dropout: float32(c.Dropout), InputDropout: float32(c.InputDropout),
		Features: st.Meta.Features, Classes: st.Meta.Classes, Sparse: sparse(c.Model, c.Aggregator, st),
		MultiLabel: st.Multi != nil, NoCache: !c.CacheGather,
	}, nil
}

// sparse says that a model multiplies the features of st as sparse ones. A maximum
// over neighbours looks at every value, zeros too.
func sparse(name, aggregator string, st *store.Store) bool {
	return st.Sparse != nil && !(name == "sage" && aggregator == "max")
}

var activations = map[string]kernels.Act{
	"identity": kernels.Identity, "relu": kernels.ReLU, "leaky-relu": kernels.LeakyReLU, "elu": kernels.ELU, "tanh": kernels.Tanh,
}

func optimConfig(c *engine.Config) optim.Config {
	return optim.Config{
		Name: c.Optimizer, LR: c.LR, WeightDecay: c.WeightDecay, Momentum: c.Momentum, Scope: c.WeightDecayScope,
		Schedule: c.LRSchedule, Epochs: c.Epochs, Every: c.LRStep, Gamma: c.LRGamma, Warmup: c.Warmup, ClipNorm: c.ClipNorm,
	}
}

// gpuThreads is how many workers queue ops for a GPU: one prepares while the other's ops
// run there.
const gpuThreads = 2

// threads is the number of workers a config asks for.
func threads(c *engine.Config) int {
	switch {
	case c.Threads > 0:
		return c.Threads
	case c.Mode == "gpu":
		return gpuThreads
	}
	return runtime.GOMAXPROCS(0)
}

// smallGraph is the number of edges below which an interval per thread is enough:
// a task is then so short that handing it out costs more than an even share.
const smallGraph = 1 << 20

// intervals is the number of intervals a config asks for. On large graphs a few
// long ones per thread: long enough that a gather reuses each tile of sources
// often, enough of them that threads end together. An async run needs more, since
// it is between intervals that it overlaps. On a GPU an interval is a launch of every
// kernel, which fills the device by itself: one, or on a large graph one for each worker,
// so that queueing and computing overlap.
func intervals(c *engine.Config, st *store.Store) int {
	n := threads(c)
	switch {
	case c.Intervals > 0:
		return c.Intervals
	case c.Mode == "gpu" && c.Pipeline == "async":
		return 2 * n
	case c.Mode == "gpu" && st.Meta.Edges < smallGraph:
		return 1
	case c.Mode == "gpu":
		return n
	case c.Pipeline == "async", c.Mode == "lambda": // many tasks hide the way there and back
		return max(8, 4*n)
	case st.Meta.Edges < smallGraph:
		return n
	}
	return 4 * n
}

// roleOf has each store row's role in a split.
func roleOf(n int, s dataset.Split) []uint8 {
	role := make([]uint8, n)
	for r, rows := range map[uint8][]int32{roleTrain: s.Train, roleVal: s.Val, roleTest: s.Test} {
		for _, v := range rows {
			role[v] = r
		}
	}
	return role
}

// trainLabels are the labels that training may see: those of training rows only.
func trainLabels(st *store.Store, s dataset.Split) []int32 {
	labels := make([]int32, st.Meta.Vertices)
	for v := range labels {
		labels[v] = -1
	}
	for _, v := range s.Train {
		labels[v] = st.Labels[v]
	}
	return labels
}

// checkData refuses data that a classifier cannot be trained on.
func checkData(st *store.Store, s dataset.Split) error {
	where := fmt.Sprintf("train on %s", st.Meta.Name)
	switch {
	case st.Labels == nil:
		return fmt.Errorf("%s: the vertices have no labels: give prepare a file of them", where)
	case len(s.Train) == 0:
		return fmt.Errorf("%s: the split %q has no training vertices: choose one with --split, for example --split random:60/20/20", where, s.Name)
	}
	for what, rows := range map[string][]int32{"training": s.Train, "validation": s.Val, "test": s.Test} {
		for _, v := range rows {
			if l := st.Labels[v]; l < 0 || int(l) >= st.Meta.Classes {
				return fmt.Errorf("%s: %s vertex %s has label %d of %d classes: correct the labels or leave it out of the split",
					where, what, vertexName(st, v), l, st.Meta.Classes)
			}
		}
	}
	return nil
}

// checkWeights refuses edge weights of rows that a model has no meaning for.
func checkWeights(name string, st *store.Store, rows kernels.Span) error {
	if name != "gat" || st.In.Val == nil {
		return nil
	}
	for e := st.In.RowPtr[rows.Lo]; e < st.In.RowPtr[rows.Hi]; e++ {
		if w := st.In.Val[e]; !(w >= 0) {
			v := sort.Search(st.In.Rows(), func(v int) bool { return st.In.RowPtr[v+1] > e })
			return fmt.Errorf("train gat on %s: the edge from %s to %s has weight %v: attention needs weights of 0 or more",
				st.Meta.Name, vertexName(st, st.In.Col[e]), vertexName(st, int32(v)), w)
		}
	}
	return nil
}

// vertexName is what the user calls a store row.
func vertexName(st *store.Store, v int32) string {
	u := v
	if st.Order != nil {
		u = st.Order[v]
	}
	if st.IDs != nil {
		return strconv.Quote(st.IDs[u])
	}
	return strconv.Itoa(int(u))
}

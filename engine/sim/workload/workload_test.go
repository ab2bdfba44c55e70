package workload

import (
	"math"
	"slices"
	"testing"

	"dorylus/engine/dataset"
	"dorylus/engine/graph"
	"dorylus/engine/model"
	"dorylus/engine/prepare"
	"dorylus/engine/sim"
	"dorylus/engine/store"
	"dorylus/engine/task"
)

func graphOf(t *testing.T, spec string, features string) *store.Store {
	t.Helper()
	raw, err := dataset.Open(t.Context(), spec, dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	st, err := prepare.Build(t.Context(), raw, prepare.Options{Order: "natural", Features: features, Split: "random:20/20/60"})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func config(st *store.Store, name string) model.Config {
	return model.Config{
		Model: name, Layers: 2, Hidden: 8, Bias: true, Dropout: 0.5, Heads: 2, OutHeads: 2, AttentionDropout: 0.5, Hops: 2, Alpha: 0.1,
		Features: st.Meta.Features, Classes: st.Meta.Classes, Sparse: st.Sparse != nil, MultiLabel: st.Multi != nil,
	}
}

func build(t *testing.T, st *store.Store, cfg model.Config, parts int, train bool) *Workload {
	t.Helper()
	prog, err := cfg.Build()
	if err != nil {
		t.Fatal(err)
	}
	split := st.Splits[0]
	o := Options{Program: prog, Sparse: cfg.Sparse, Train: train, Intervals: 3, Cuts: []task.Range{{Hi: graph.Blocks(&st.Meta)}}}
	if parts > 1 {
		o.Cuts = graph.Partition(st, split.Train, parts)
	}
	if train {
		o.Seeds = split.Train
	}
	w, err := Build(t.Context(), st, o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// total is the work of all tasks, by key.
func total(w *Workload) map[Key]float64 {
	sum := map[Key]float64{}
	for i := range w.Parts {
		for _, tasks := range w.Parts[i].Tasks {
			for _, list := range tasks {
				for _, a := range list {
					sum[w.Keys[a.Key]] += a.Units
				}
			}
		}
	}
	return sum
}

func sent(w *Workload) (bytes int64) {
	for i := range w.Parts {
		for _, tasks := range w.Parts[i].Sends {
			for _, list := range tasks {
				for _, m := range list {
					bytes += m.Bytes
				}
			}
		}
	}
	return bytes
}

const sbm = "synth:sbm,vertices=2000,degree=6,classes=5,features=12,seed=3"

// What a two-layer GCN without input dropout does, counted by hand from the graph.
func TestGCNByHand(t *testing.T) {
	st := graphOf(t, sbm, "")
	n, edges := float64(st.Meta.Vertices), float64(st.Meta.Edges)
	got := total(build(t, st, config(st, "gcn"), 1, false))
	for key, want := range map[Key]float64{
		{Op: Product, Cols: 8, Inner: 12}: n,         // ÂX·W1, ÂX being kept
		{Op: Product, Cols: 5, Inner: 8}:  n,         // H·W2
		{Op: Gather, Cols: 5}:             edges + n, // and self-loops
		{Op: Loss, Cols: 5}:               5 * n,     // the scores
	} {
		if got[key] != want {
			t.Errorf("evaluation: %v units of %v, want %v", got[key], key, want)
		}
	}
	// Training: the last level has the training rows, the one before all that they read.
	seeds := st.Splits[0].Train
	reads, seen := 0.0, map[int32]bool{}
	for _, v := range seeds {
		seen[v] = true
		for _, u := range st.In.Col[st.In.RowPtr[v]:st.In.RowPtr[v+1]] {
			reads++
			seen[u] = true
		}
	}
	rows, last := float64(len(seen)), float64(len(seeds))
	w := build(t, st, config(st, "gcn"), 1, true)
	got = total(w)
	for key, want := range map[Key]float64{
		{Op: Product, Cols: 8, Inner: 12}:   rows,
		{Op: Product, Cols: 5, Inner: 8}:    rows,
		{Op: ProductNT, Cols: 8, Inner: 5}:  rows,
		{Op: ProductTN, Cols: 5, Inner: 8}:  rows,
		{Op: ProductTN, Cols: 8, Inner: 12}: rows,
		{Op: Gather, Cols: 5}:               2*reads + last + rows, // there with self-loops, and back
		{Op: Loss, Cols: 5}:                 5 * last,
	} {
		if got[key] != want {
			t.Errorf("training: %v units of %v, want %v", got[key], key, want)
		}
	}
	if want := int64(4 * (12*8 + 8 + 8*5 + 5)); w.Params != want {
		t.Errorf("%d bytes of parameters, want %d", w.Params, want)
	}
}

// However the graph is cut: the dense work and the edges are the same, an evaluation's
// ghosts are those that the survey of partitions finds, every row that is received has a
// sender, and a partition sources only intervals that send to it.
func TestPartitionsShareTheSameWork(t *testing.T) {
	st := graphOf(t, sbm, "")
	for _, name := range []string{"gcn", "sage", "gat", "gin", "appnp"} {
		for _, train := range []bool{false, true} {
			one := total(build(t, st, config(st, name), 1, train))
			for _, parts := range []int{2, 3, 7, 40} {
				w := build(t, st, config(st, name), parts, train)
				all := total(w)
				for key, want := range one {
					if key.Op == Values { // rows are copied to be sent
						continue
					}
					if got := all[key]; math.Abs(got-want) > 1e-9*want {
						t.Errorf("%s in %d parts, train %v: %v units of %v, want %v", name, parts, train, got, key, want)
					}
				}
				checkSources(t, w)
				if name != "gcn" || train {
					continue
				}
				cuts := graph.Partition(st, st.Splits[0].Train, parts)
				survey, err := graph.Survey(t.Context(), st, "", st.Splits[0].Train, cuts)
				if err != nil {
					t.Fatal(err)
				}
				rows := int64(0)
				for i, p := range survey.Parts {
					rows += p.GhostsForward
					if w.Parts[i].Ghosts != p.GhostsForward {
						t.Errorf("partition %d of %d receives %d rows, the survey says %d", i, parts, w.Parts[i].Ghosts, p.GhostsForward)
					}
				}
				if got, want := sent(w), rows*5*4; got != want {
					t.Errorf("%d parts send %d bytes, want %d", parts, got, want)
				}
			}
		}
	}
}

func checkSources(t *testing.T, w *Workload) {
	t.Helper()
	for rank := range w.Parts {
		for s, byInterval := range w.Parts[rank].Sources {
			reads := w.Steps[s].Reads
			for i, list := range byInterval {
				if !slices.IsSorted(list) {
					t.Fatalf("sources of interval %d, step %d: %v", i, s, list)
				}
				for _, j := range list {
					for from := range w.Parts {
						own := w.Parts[from].Own
						if from == rank || !own.Has(int(j)) {
							continue
						}
						if !slices.ContainsFunc(w.Parts[from].Sends[int(j)-own.Lo][reads], func(m sim.Send) bool { return m.To == rank }) {
							t.Fatalf("partition %d waits for interval %d at step %d, which sends it nothing", rank, j, s)
						}
					}
				}
			}
		}
	}
}

// Every model, with every option and kind of features, can be counted and played to its
// end, sync and async, on any number of servers, more than there are blocks included.
func TestEveryModelPlays(t *testing.T) {
	dense, sparse := graphOf(t, sbm, ""), graphOf(t, "cora", "row-normalize")
	for _, name := range model.Names() {
		for k, st := range []*store.Store{dense, sparse, dense, dense, dense} {
			cfg := config(st, name)
			switch k {
			case 2:
				cfg.Norm, cfg.InputDropout = "batch", 0.5
			case 3:
				cfg.Residual, cfg.Norm, cfg.Layers = true, "layer", 3
			case 4:
				cfg.JumpingKnowledge, cfg.Aggregator = true, "max"
			}
			if k == 4 && name == "sage" {
				cfg.Sparse = false
			}
			for _, parts := range []int{1, 3, 20} {
				for _, train := range []bool{true, false} {
					w := build(t, st, cfg, parts, train)
					pace := Pace{PerUnit: make([]float64, len(w.Keys)), Cores: 2}
					for i := range pace.PerUnit {
						pace.PerUnit[i] = 1e-9
					}
					for _, sync := range []bool{true, false} {
						r, err := sim.Run(sim.Config{
							Intervals: w.Intervals, Servers: w.Servers(pace), Epochs: 2, Sync: sync,
							Net: sim.Network{Bandwidth: 1e9, Latency: 1e-4}, Params: sim.Params{Weights: w.Params},
						})
						if err != nil {
							t.Fatalf("%s, variant %d, %d parts, train %v, sync %v: %v", name, k, parts, train, sync, err)
						}
						if !(r.Epoch() > 0) {
							t.Errorf("%s, variant %d, %d parts: an epoch of %v s", name, k, parts, r.Epoch())
						}
					}
				}
			}
		}
	}
}

package pipeline

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"dorylus/engine/dataset"
	"dorylus/engine/prepare"
	"dorylus/engine/store"
	"dorylus/kernels"
)

// small is a random graph with features, labels and a split, n vertices.
func small(n int, seed uint64) *dataset.Raw {
	rng := rand.New(rand.NewPCG(seed, 8))
	r := &dataset.Raw{Name: "small", N: n, Undirected: true, Classes: []string{"a", "b", "c"}}
	for range 3 * n {
		r.Src, r.Dst = append(r.Src, int32(rng.IntN(n))), append(r.Dst, int32(rng.IntN(n)))
	}
	r.Dense = kernels.FromSlice(n, 6, make([]float32, 6*n))
	var s dataset.Split
	for v := range n {
		label := int32(rng.IntN(3))
		r.Labels = append(r.Labels, label)
		for c := range 6 {
			r.Dense.Row(v)[c] = float32(rng.NormFloat64())
		}
		r.Dense.Row(v)[label] += 2
		switch v % 3 {
		case 0:
			s.Train = append(s.Train, int32(v))
		case 1:
			s.Val = append(s.Val, int32(v))
		default:
			s.Test = append(s.Test, int32(v))
		}
	}
	r.Splits = []dataset.Split{s}
	return r
}

func build(t testing.TB, r *dataset.Raw, order string) *store.Store {
	t.Helper()
	st, err := prepare.Build(context.Background(), r, prepare.Options{Order: order, Seed: 1})
	check(t, err)
	return st
}

// on trains on a store without the parts of options that belong to Cora.
func on(st *store.Store, set ...func(*Options)) func(*Options) {
	return func(o *Options) {
		o.Store, o.Split = st, st.Splits[0]
		o.Config.Epochs, o.Config.InputDropout = 30, 0
		for _, f := range set {
			f(o)
		}
	}
}

// The vertex order is an implementation detail, dropout included: it is keyed by
// the user's numbers.
func TestOrderChangesNoLoss(t *testing.T) {
	raw := small(150, 3)
	want := options(t, on(build(t, raw, "natural")))
	mustTrain(t, want)
	for _, order := range []string{"degree", "hash", "lpa", "ldg", "fennel"} {
		got := options(t, on(build(t, raw, order)))
		mustTrain(t, got)
		closeLosses(t, order, events(want).losses(), events(got).losses())
	}
}

func closeLosses(t *testing.T, what string, a, b []float64) {
	t.Helper()
	if len(a) != len(b) || len(a) == 0 {
		t.Fatalf("%s: %d and %d losses", what, len(a), len(b))
	}
	for e := range a {
		if math.Abs(a[e]-b[e]) > 1e-5*(1+math.Abs(a[e])) {
			t.Errorf("%s: loss of epoch %d is %.8f, was %.8f", what, e, b[e], a[e])
			return
		}
	}
}

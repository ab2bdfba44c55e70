package pipeline

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
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

// relabel gives vertex v of r the number to[v].
func relabel(r *dataset.Raw, to []int32) *dataset.Raw {
	q := &dataset.Raw{Name: r.Name, N: r.N, Undirected: r.Undirected, Classes: r.Classes, Labels: make([]int32, r.N)}
	for i := range r.Src {
		q.Src, q.Dst = append(q.Src, to[r.Src[i]]), append(q.Dst, to[r.Dst[i]])
	}
	q.Dense = kernels.FromSlice(r.N, r.Dense.Cols, make([]float32, r.N*r.Dense.Cols))
	for v := range r.N {
		q.Labels[to[v]] = r.Labels[v]
		copy(q.Dense.Row(int(to[v])), r.Dense.Row(v))
	}
	move := func(rows []int32) []int32 {
		var out []int32
		for _, v := range rows {
			out = append(out, to[v])
		}
		slices.Sort(out)
		return out
	}
	s := r.Splits[0]
	q.Splits = []dataset.Split{{Train: move(s.Train), Val: move(s.Val), Test: move(s.Test)}}
	return q
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

// Relabelling the vertices of the input permutes the outputs. Another order of a
// row's edges sums them in another order, so this holds to rounding, not to the
// bit: losses within 1e-5, and it needs dropout off, since dropout follows the
// user's vertex numbers.
func TestRelabelledInputGivesTheSameLosses(t *testing.T) {
	for seed := range uint64(5) {
		raw := small(150, seed)
		to := make([]int32, raw.N)
		for i, p := range rand.New(rand.NewPCG(seed, 9)).Perm(raw.N) {
			to[i] = int32(p)
		}
		noDrop := func(o *Options) { o.Config.Dropout = 0 }
		a, b := options(t, on(build(t, raw, "degree"), noDrop)), options(t, on(build(t, relabel(raw, to), "degree"), noDrop))
		ra, rb := mustTrain(t, a), mustTrain(t, b)
		closeLosses(t, "relabelled", events(a).losses(), events(b).losses())
		for v := range raw.N {
			for c, x := range ra.Logits.Row(v) {
				if y := rb.Logits.Row(int(to[v]))[c]; math.Abs(float64(x-y)) > 1e-3*(1+math.Abs(float64(x))) {
					t.Fatalf("seed %d: logit %d of vertex %d is %v, relabelled %v", seed, c, v, x, y)
				}
			}
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

// An unconnected vertex without a label changes nothing for the others but the
// layout.
func TestIsolatedVertexChangesNoLoss(t *testing.T) {
	raw := small(150, 4)
	more := small(150, 4)
	more.N++
	more.Labels = append(more.Labels, -1)
	more.Dense = kernels.FromSlice(more.N, 6, append(slices.Clone(raw.Dense.Host), 1, 2, 3, 4, 5, 6))
	a, b := options(t, on(build(t, raw, "natural"))), options(t, on(build(t, more, "natural")))
	mustTrain(t, a)
	mustTrain(t, b)
	closeLosses(t, "one more vertex", events(a).losses(), events(b).losses())
}

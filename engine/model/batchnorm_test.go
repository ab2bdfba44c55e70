package model

import (
	"math"
	"math/rand/v2"
	"testing"

	"dorylus/kernels"
	"dorylus/kernels/ref"
)

// The merged moments are those of all rows together, however blocks divide them.
func TestMomentsOfBlocksAreThoseOfAllRows(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 17))
		var all []float64
		blocks := make([]moments, 1+rng.IntN(20))
		for i := range blocks {
			rows := rng.IntN(6) // often none
			sum, own := 0.0, make([]float64, rows)
			for r := range own {
				own[r] = 50 + rng.NormFloat64()
				sum += own[r]
			}
			all = append(all, own...)
			if rows > 0 {
				blocks[i] = momentsOf(own)
			}
		}
		got, want := mergeMoments(len(blocks), func(i int) moments { return blocks[i] }), momentsOf(all)
		if len(all) == 0 {
			want = moments{}
		}
		if got.n != want.n || math.Abs(got.mean-want.mean) > 1e-12*50 || math.Abs(got.m2-want.m2) > 1e-10*(1+want.m2) {
			t.Errorf("seed %d: %+v, want %+v", seed, got, want)
		}
	}
}

func momentsOf(x []float64) moments {
	m := moments{n: float64(len(x))}
	for _, v := range x {
		m.mean += v / m.n
	}
	for _, v := range x {
		m.m2 += (v - m.mean) * (v - m.mean)
	}
	return m
}

// In training columns get mean beta and deviation gamma, and the statistics that are
// handed on are the batch's; an evaluation applies the running ones instead.
func TestBatchNormNormalises(t *testing.T) {
	const n, f = 40, 5
	dev, err := ref.Open()
	must(t, err)
	in, out := toy(n, false, 3)
	cfg := Config{Model: "mlp", Layers: 1, Hidden: f, Features: f, Classes: f}
	b := newBuilder(cfg)
	x := b.buf(Buf{Name: "in", Cols: f})
	y := b.batchNorm(x, 1)
	b.loss(y)
	prog := b.finish()
	r := newRig(t, dev, prog, in, out, nil, nil, make([]int32, n))
	source := randomMat(n, f, 4)
	for v := range n {
		for c := range f {
			source.Row(v)[c] = source.Row(v)[c]*float32(c+1) + float32(10*c)
		}
	}
	must(t, copyTo(r, r.ctx.Full[x], source))
	set := func(name string, v ...float32) {
		for c := range f {
			r.ctx.Weights[paramOf(prog, "norm1."+name)].Row(0)[c] = v[c%len(v)]
		}
	}
	set("weight", 1, 2, 3, 4, 5)
	set("bias", -1, 1)
	set("running_mean", 7)
	set("running_var", 9)
	r.run()
	for c := range f {
		before, after := momentsOf(column(source, c)), momentsOf(column(r.ctx.Full[y], c))
		wantMean, wantDev := float64(2*(c%2)-1), float64(c+1)
		if dev := math.Sqrt(after.m2 / n); math.Abs(after.mean-wantMean) > 1e-5 || math.Abs(dev-wantDev) > 1e-4 {
			t.Errorf("column %d: mean %g, deviation %g, want %g, %g", c, after.mean, dev, wantMean, wantDev)
		}
		mean, variance := r.ctx.Grads[paramOf(prog, "norm1.running_mean")].Row(0)[c], r.ctx.Grads[paramOf(prog, "norm1.running_var")].Row(0)[c]
		if math.Abs(float64(mean)-before.mean) > 1e-4 || math.Abs(float64(variance)/(before.m2/(n-1))-1) > 1e-5 {
			t.Errorf("column %d: statistics %g, %g, want %g, %g", c, mean, variance, before.mean, before.m2/(n-1))
		}
	}
	r.ctx.Train = false
	for i := range prog.Forward {
		r.step(&prog.Steps[i])
	}
	must(t, r.s.Wait())
	for c := range f {
		want := (float64(source.Row(0)[c])-7)/math.Sqrt(9+normEps)*float64(c+1) + float64(2*(c%2)-1)
		if got := r.ctx.Full[y].Row(0)[c]; math.Abs(float64(got)-want) > 1e-4 {
			t.Errorf("column %d in an evaluation: %g, want %g", c, got, want)
		}
	}
}

func column(m *kernels.Mat, c int) []float64 {
	var out []float64
	for v := range m.Rows {
		out = append(out, float64(m.Row(v)[c]))
	}
	return out
}

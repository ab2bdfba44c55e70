package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dorylus/kernels"
	"dorylus/kernels/ref"
)

// toy is a small directed graph with duplicates of nothing, some self-loops, an
// isolated vertex, and random weights.
func toy(n int, weighted bool, seed uint64) (in, out *kernels.CSR) {
	rng := rand.New(rand.NewPCG(seed, 11))
	has := make([][]float32, n)
	for v := range has {
		has[v] = make([]float32, n)
		for u := range n - 1 {
			if v < n-1 && rng.IntN(4) == 0 {
				has[v][u] = 0.5 + rng.Float32()
			}
		}
	}
	csr := func(at func(r, c int) float32) *kernels.CSR {
		g := &kernels.CSR{Cols: n, RowPtr: []int64{0}}
		for r := range n {
			for c := range n {
				if w := at(r, c); w != 0 {
					g.Col = append(g.Col, int32(c))
					if weighted {
						g.Val = append(g.Val, w)
					}
				}
			}
			g.RowPtr = append(g.RowPtr, int64(len(g.Col)))
		}
		return g
	}
	return csr(func(r, c int) float32 { return has[r][c] }), csr(func(r, c int) float32 { return has[c][r] })
}

func randomMat(rows, cols int, seed uint64) *kernels.Mat {
	rng := rand.New(rand.NewPCG(seed, 12))
	m := kernels.FromSlice(rows, cols, make([]float32, rows*cols))
	for i := range m.Host {
		m.Host[i] = float32(rng.NormFloat64())
	}
	return m
}

// sparsify drops most of m and lists the rest, at least one value a row: a row of
// zeros would put attention scores right on the corner of LeakyReLU.
func sparsify(m *kernels.Mat) *kernels.CSR {
	g := &kernels.CSR{Cols: m.Cols, RowPtr: []int64{0}}
	for r := range m.Rows {
		for c, x := range m.Row(r) {
			if x > 0.3 || c == r%m.Cols {
				g.Col, g.Val = append(g.Col, int32(c)), append(g.Val, x)
			}
		}
		g.RowPtr = append(g.RowPtr, int64(len(g.Col)))
	}
	return g
}

// Every parameter's gradient agrees with central differences of the loss.
func TestGradientsAreDerivatives(t *testing.T) {
	const n, features, classes = 13, 6, 4
	for _, model := range Names() {
		for _, layers := range []int{1, 2, 3, 5} {
			for variant := range 24 {
				if layers == 5 && variant > 3 {
					continue // deep and wide takes long and shows nothing new
				}
				sparse, inDrop, wide, extras := variant&1 != 0, variant&2 != 0, variant&4 != 0, variant&8 != 0
				cfg := Config{
					Model: model, Layers: layers, Hidden: 3, Bias: true, Activation: kernels.Tanh, Dropout: 0.3,
					Heads: 2, OutHeads: 1, AttentionDropout: 0.3, Hops: 2, Alpha: 0.2,
					Features: features, Classes: classes, Sparse: sparse,
				}
				if inDrop {
					cfg.InputDropout = 0.4
				}
				if wide {
					cfg.Hidden, cfg.Activation, cfg.OutHeads = 9, kernels.ELU, 3
				}
				if extras {
					cfg.Residual, cfg.Norm = true, "layer"
				}
				if variant >= 16 {
					cfg.Residual, cfg.Norm = sparse, "batch"
					cfg.JumpingKnowledge = wide || inDrop
				}
				if variant >= 22 {
					cfg.Norm = ""
				}
				if extras && !sparse && model == "sage" {
					cfg.Aggregator = "max"
				}
				name := fmt.Sprintf("%s/layers=%d/sparse=%t/inputdropout=%t/wide=%t/residual=%t/norm=%s/jump=%t", model, layers, sparse, inDrop, wide, cfg.Residual, cfg.Norm, cfg.JumpingKnowledge)
				t.Run(name, func(t *testing.T) { checkGradients(t, cfg, n, uint64(variant)) })
			}
		}
	}
}

func checkGradients(t *testing.T, cfg Config, n int, seed uint64) {
	prog, err := cfg.Build()
	must(t, err)
	dev, err := ref.Open()
	must(t, err)
	in, out := toy(n, seed%2 == 0, seed)
	x := randomMat(n, cfg.Features, seed)
	var sx *kernels.CSR
	if cfg.Sparse {
		sx, x = sparsify(x), nil
	}
	labels := make([]int32, n)
	for v := range labels {
		labels[v] = int32(v%(cfg.Classes+1)) - 1
	}
	r := newRig(t, dev, prog, in, out, x, sx, labels)
	for i := range prog.Params {
		for k, v := range randomMat(prog.Params[i].Rows, prog.Params[i].Cols, seed+uint64(i)+20).Host {
			r.ctx.Weights[i].Row(k / prog.Params[i].Cols)[k%prog.Params[i].Cols] = v * 0.5
		}
	}
	r.run()
	if z := nearestCorner(r); z < 4e-3 {
		t.Logf("seed %d: an attention score is %g from LeakyReLU's corner, which a step would cross; taking another", seed, z)
		checkGradients(t, cfg, n, seed+100)
		return
	}
	grads := make([]*kernels.Mat, len(prog.Params))
	largest := 0.0
	for i, p := range prog.Params {
		grads[i] = kernels.FromSlice(p.Rows, p.Cols, make([]float32, p.Rows*p.Cols))
		for k := range p.Rows {
			copy(grads[i].Row(k), r.ctx.Grads[i].Row(k))
			for _, g := range grads[i].Row(k) {
				if p.Stat {
					break
				}
				largest = max(largest, math.Abs(float64(g)))
			}
		}
	}
	// Rounding of float32 activations gives about 1e-7/eps, curvature eps². A step
	// may cross a corner (ELU, attention's LeakyReLU, a maximum that changes hands),
	// where the difference means nothing; a shorter one then does not.
	tol := 1e-3 * max(largest, 0.1)
	worst, where := 0.0, ""
	for i, p := range prog.Params {
		if p.Stat {
			continue
		}
		for k := range p.Rows * p.Cols {
			w := &r.ctx.Weights[i].Row(k / p.Cols)[k%p.Cols]
			got := float64(grads[i].Row(k / p.Cols)[k%p.Cols])
			off, numeric := math.Inf(1), 0.0
			for eps := float32(2e-3); eps > 5e-5 && off > tol; eps /= 5 {
				numeric = difference(r, w, eps)
				off = min(off, math.Abs(got-numeric))
			}
			if off > worst {
				worst, where = off, fmt.Sprintf("%s[%d,%d]: gradient %g, central difference %g", p.Name, k/p.Cols, k%p.Cols, got, numeric)
			}
		}
	}
	if worst > tol {
		t.Errorf("%s; off by %g, tolerance %g, seed %d", where, worst, tol, seed)
	}
}

// nearestCorner is the smallest distance of an attention score from 0. One of 0 is between rows
// that dropout has emptied, and no parameter moves it.
func nearestCorner(r *rig) float64 {
	least := math.Inf(1)
	for _, p := range r.prog.Params {
		if !strings.HasSuffix(p.Name, ".att_src") {
			continue
		}
		a := attentionStage{heads: p.Rows, d: p.Cols}
		zs := r.ctx.Full[slices.IndexFunc(r.prog.Bufs, func(b Buf) bool { return b.Name == name("Z", p.Layer) })]
		src, dst := a.part(zs, 0), a.part(zs, 1)
		for v := range r.in.Rows() {
			edges := r.in.Col[r.in.RowPtr[v]:r.in.RowPtr[v+1]]
			for _, u := range append(slices.Clone(edges), int32(v)) {
				for h := range a.heads {
					if z := math.Abs(float64(src.Row(int(u))[h] + dst.Row(v)[h])); z > 0 {
						least = min(least, z)
					}
				}
			}
		}
	}
	return least
}

// difference is the central difference of the loss over one weight.
func difference(r *rig, w *float32, eps float32) float64 {
	keep := *w
	*w = keep + eps
	hi, up := *w, r.run()
	*w = keep - eps
	lo, down := *w, r.run()
	*w = keep
	return (up - down) / (float64(hi) - float64(lo))
}

// What DESIGN section 5 promises of the order of work.
func TestProgramsLeaveOutWhatNeedNotBeDone(t *testing.T) {
	names := func(cfg Config) string {
		p, err := cfg.Build()
		must(t, err)
		var s []string
		for _, st := range p.Steps {
			s = append(s, fmt.Sprintf("%s%d", st.Name, st.Layer))
		}
		return strings.Join(s, " ")
	}
	base := Config{Model: "gcn", Layers: 2, Hidden: 16, Bias: true, Features: 100, Classes: 7, Dropout: 0.5}
	for _, c := range []struct {
		what string
		set  func(*Config)
		want string
	}{
		{"dense features: layer 1 gathers once per run; layer 2 multiplies first", func(*Config) {},
			"AV1 SC2 GA2 loss+∇AV2 ∇SC2 ∇GA2 ∇AV2"},
		{"input dropout: layer 1 multiplies first, no gradient of the input", func(c *Config) { c.InputDropout = 0.5 },
			"AV1 SC1 GA1 AV2 SC2 GA2 loss+∇AV2 ∇SC2 ∇GA2 ∇AV2 ∇SC1 ∇GA1 ∇AV1"},
		{"a last layer wider than the hidden one gathers first and fuses with the loss", func(c *Config) { c.Classes = 40 },
			"AV1 SC2 GA2 AV+loss+∇AV2 ∇SC2 ∇GA2 ∇AV1"},
		{"one layer is one task", func(c *Config) { c.Layers = 1 }, "AV+loss+∇AV1"},
		{"no gather at all is one task", func(c *Config) { c.Model = "mlp" }, "AV+loss+∇AV1"},
	} {
		cfg := base
		c.set(&cfg)
		if got := names(cfg); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.what, got, c.want)
		}
	}
}

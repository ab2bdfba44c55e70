package model

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"dorylus/engine/testkit"
	"dorylus/kernels"
	"dorylus/kernels/devices"
	"dorylus/kernels/tensorbridge"
)

// everyDevice runs f on each device that this host has.
func everyDevice(t *testing.T, f func(t *testing.T, dev kernels.Device)) {
	for _, info := range devices.Available() {
		t.Run(info.Name, func(t *testing.T) {
			if !info.OK {
				t.Skipf("SKIPPED: %s: %s", info.Name, info.Why)
			}
			dev, err := devices.Open(info.Name)
			must(t, err)
			f(t, dev)
		})
	}
}

// golden reads one reference array as float64.
func golden(t *testing.T, dir, name string) []float64 {
	t.Helper()
	path := filepath.Join(dir, name+".npy")
	if _, x, err := tensorbridge.ReadNpy[float64](path); err == nil {
		return x
	}
	if _, x, err := tensorbridge.ReadNpy[int32](path); err == nil {
		return widen(x)
	}
	_, x, err := tensorbridge.ReadNpy[float32](path)
	must(t, err)
	return widen(x)
}

func widen[T int32 | float32](x []T) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

func goldenInts(t *testing.T, dir, name string) []int32 {
	t.Helper()
	var out []int32
	for _, x := range golden(t, dir, name) {
		out = append(out, int32(x))
	}
	return out
}

func goldenMat(t *testing.T, dir, name string, rows, cols int) *kernels.Mat {
	t.Helper()
	x := golden(t, dir, name)
	if len(x) != rows*cols {
		t.Fatalf("%s has %d values, want %d x %d", name, len(x), rows, cols)
	}
	m := kernels.FromSlice(rows, cols, make([]float32, len(x)))
	for i, v := range x {
		m.Host[i] = float32(v)
	}
	return m
}

// same compares by max|a-b| / max|b|, as golden/README.md asks.
func same(t *testing.T, what string, got *kernels.Mat, want []float64, tol float64) {
	t.Helper()
	worst, largest, at := 0.0, 0.0, 0
	for r := range got.Rows {
		for c, x := range got.Row(r) {
			i := r*got.Cols + c
			if d := math.Abs(float64(x) - want[i]); d > worst || d != d {
				worst, at = d, i
			}
			largest = max(largest, math.Abs(want[i]))
		}
	}
	if !(worst <= tol*largest) {
		t.Errorf("%s[%d,%d] is %g, want %g: off by %g of %g, tolerance %g", what, at/got.Cols, at%got.Cols,
			got.Row(at / got.Cols)[at%got.Cols], want[at], worst, largest, tol)
	}
}

// csrOf sorts edges into rows by their key end.
func csrOf(n int, row, col []int32, val []float32) *kernels.CSR {
	g := &kernels.CSR{Cols: n, RowPtr: []int64{0}}
	for r := range int32(n) {
		var at []int
		for e := range row {
			if row[e] == r {
				at = append(at, e)
			}
		}
		slices.SortFunc(at, func(a, b int) int { return int(col[a] - col[b]) })
		for _, e := range at {
			g.Col = append(g.Col, col[e])
			if val != nil {
				g.Val = append(g.Val, val[e])
			}
		}
		g.RowPtr = append(g.RowPtr, int64(len(g.Col)))
	}
	return g
}

// One GCN layer on a directed, weighted graph, in both orders of multiplication:
// output and every gradient, that of the input included.
func TestTinyGCN(t *testing.T) {
	dir := testkit.Shared(t, "golden", "tiny_gcn")
	const n, f, out = 12, 5, 4
	src, dst := goldenInts(t, dir, "in_src"), goldenInts(t, dir, "in_dst")
	var w []float32
	for _, x := range golden(t, dir, "in_weight") {
		w = append(w, float32(x))
	}
	in, rev := csrOf(n, dst, src, w), csrOf(n, src, dst, w)
	for _, first := range []string{"gather", "multiply"} {
		t.Run(first+" first", func(t *testing.T) {
			everyDevice(t, func(t *testing.T, dev kernels.Device) {
				b := newBuilder(Config{Layers: 1, Features: f, Classes: out})
				// The features are an ordinary buffer here, so that they get a gradient.
				x := b.buf(Buf{Name: "in", Cols: f})
				spec := ParamSpec{Name: "W", Rows: f, Cols: out, Layer: 1}
				e := epilogue{bias: b.param(ParamSpec{Name: "b", Rows: 1, Cols: out, Layer: 1})}
				var y int
				if first == "gather" {
					y = b.linear(b.gather(x, 1, NormGCN, plain), 1, spec, e)
				} else {
					y = b.gather(b.linear(x, 1, spec, plain), 1, NormGCN, e)
				}
				up := goldenMat(t, dir, "upstream", n, out)
				d := b.gradOf(y)
				b.tensor(Step{Kind: 1, Layer: 1}, func(c *Ctx) { c.S.Copy(c.Full[d], up) })
				prog := b.finish()
				r := newRig(t, dev, prog, in, rev, nil, nil, make([]int32, n))
				must(t, copyTo(r, r.ctx.Full[x], goldenMat(t, dir, "in_X", n, f)))
				bias, weight := paramOf(prog, "b"), paramOf(prog, "W")
				must(t, copyTo(r, r.ctx.Weights[weight], goldenMat(t, dir, "param_W", f, out)))
				must(t, copyTo(r, r.ctx.Weights[bias], goldenMat(t, dir, "param_b", 1, out)))
				r.run()
				same(t, "out", r.ctx.Full[y], golden(t, dir, "out"), 1e-5)
				same(t, "grad_W", r.ctx.Grads[weight], golden(t, dir, "grad_W"), 1e-5)
				same(t, "grad_b", r.ctx.Grads[bias], golden(t, dir, "grad_b"), 1e-5)
				same(t, "grad_X", r.ctx.Full[b.gradOf(x)], golden(t, dir, "grad_X"), 1e-5)
			})
		})
	}
}

func copyTo(r *rig, dst, src *kernels.Mat) error {
	r.s.Copy(dst, src)
	return r.s.Wait()
}

func paramOf(p *Program, name string) int {
	return slices.IndexFunc(p.Params, func(s ParamSpec) bool { return s.Name == name })
}

// Two layers on Cora: hidden layer, logits, loss and every gradient, with sparse
// features, and with dense ones whose gather is kept.
func TestCoraGCN2(t *testing.T) {
	inputs, dir := testkit.Shared(t, "golden", "cora_inputs"), testkit.Shared(t, "golden", "cora_gcn2")
	const n, f, hidden, classes = 2708, 1433, 16, 7
	csr := func(what string, cols int) *kernels.CSR {
		g := &kernels.CSR{Cols: cols, Col: goldenInts(t, inputs, what+"_indices")}
		for _, x := range golden(t, inputs, what+"_indptr") {
			g.RowPtr = append(g.RowPtr, int64(x))
		}
		return g
	}
	adj, sparse := csr("adj", n), csr("x", f)
	for _, x := range golden(t, inputs, "x_data") {
		sparse.Val = append(sparse.Val, float32(x))
	}
	dense := kernels.FromSlice(n, f, make([]float32, n*f))
	for v := range n {
		for e := sparse.RowPtr[v]; e < sparse.RowPtr[v+1]; e++ {
			dense.Row(v)[sparse.Col[e]] = sparse.Val[e]
		}
	}
	labels := make([]int32, n)
	for v := range labels {
		labels[v] = -1
	}
	all := goldenInts(t, inputs, "labels")
	for _, v := range goldenInts(t, inputs, "idx_train") {
		labels[v] = all[v]
	}
	for _, isSparse := range []bool{true, false} {
		t.Run(map[bool]string{true: "sparse", false: "dense"}[isSparse], func(t *testing.T) {
			everyDevice(t, func(t *testing.T, dev kernels.Device) {
				cfg := Config{Model: "gcn", Layers: 2, Hidden: hidden, Bias: true, Activation: kernels.ReLU, Features: f, Classes: classes, Sparse: isSparse}
				prog, err := cfg.Build()
				must(t, err)
				var x *kernels.Mat
				var sx *kernels.CSR
				if isSparse {
					sx = sparse
				} else {
					x = dense
				}
				r := newRig(t, dev, prog, adj, adj, x, sx, labels)
				for _, p := range [][2]string{{"conv1.lin.weight", "W0"}, {"conv1.bias", "b0"}, {"conv2.lin.weight", "W1"}, {"conv2.bias", "b1"}} {
					i := paramOf(prog, p[0])
					must(t, copyTo(r, r.ctx.Weights[i], goldenMat(t, dir, "param_"+p[1], prog.Params[i].Rows, prog.Params[i].Cols)))
				}
				loss := r.run()
				if want := golden(t, dir, "loss")[0]; math.Abs(loss-want) > 1e-5*want {
					t.Errorf("loss %.9f, want %.9f", loss, want)
				}
				same(t, "logits", r.ctx.Full[prog.Output], golden(t, dir, "logits"), 1e-5)
				for _, p := range [][2]string{{"conv1.lin.weight", "W0"}, {"conv1.bias", "b0"}, {"conv2.lin.weight", "W1"}, {"conv2.bias", "b1"}} {
					same(t, "grad of "+p[0], r.ctx.Grads[paramOf(prog, p[0])], golden(t, dir, "grad_"+p[1]), 1e-5)
				}
			})
		})
	}
}

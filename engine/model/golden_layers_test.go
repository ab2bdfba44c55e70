package model

import (
	"slices"
	"testing"

	"dorylus/engine/task"
	"dorylus/engine/testkit"
	"dorylus/kernels"
)

// layerCase is one layer of golden/: a graph, an input that gets a gradient, and
// the names of the parameters there.
type layerCase struct {
	dir    string
	n, f   int
	out    int
	conv   func(b *builder, x int) int
	params map[string]string // ours -> golden's
}

// run compares the layer's output and every gradient on every device.
func (lc layerCase) run(t *testing.T) {
	dir := testkit.Shared(t, "golden", lc.dir)
	src, dst := goldenInts(t, dir, "in_src"), goldenInts(t, dir, "in_dst")
	in, rev := csrOf(lc.n, dst, src, nil), csrOf(lc.n, src, dst, nil)
	everyDevice(t, func(t *testing.T, dev kernels.Device) {
		b := newBuilder(Config{Layers: 1, Hidden: lc.out, Features: lc.f, Classes: lc.out, Bias: true, Activation: kernels.ReLU, Heads: 2, OutHeads: 2})
		x := b.buf(Buf{Name: "in", Cols: lc.f})
		y := lc.conv(b, x)
		up := goldenMat(t, dir, "upstream", lc.n, b.p.Bufs[y].Cols)
		d := b.gradOf(y)
		b.tensor(Step{Kind: task.AV, Layer: 1}, func(c *Ctx) { c.S.Copy(c.Full[d], up) })
		prog := b.finish()
		r := newRig(t, dev, prog, in, rev, nil, nil, make([]int32, lc.n))
		r.ctx.Train = false
		must(t, copyTo(r, r.ctx.Full[x], goldenMat(t, dir, "in_X", lc.n, lc.f)))
		for ours, theirs := range lc.params {
			i := paramOf(prog, ours)
			must(t, copyTo(r, r.ctx.Weights[i], goldenMat(t, dir, "param_"+theirs, prog.Params[i].Rows, prog.Params[i].Cols)))
		}
		r.run()
		same(t, "out", r.ctx.Full[y], golden(t, dir, "out"), 1e-5)
		for ours, theirs := range lc.params {
			same(t, "grad of "+ours, r.ctx.Grads[paramOf(prog, ours)], golden(t, dir, "grad_"+theirs), 1e-5)
		}
		same(t, "grad of X", r.ctx.Full[b.gradOf(x)], golden(t, dir, "grad_X"), 1e-5)
	})
}

func TestTinyGAT(t *testing.T) {
	layerCase{dir: "tiny_gat", n: 12, f: 5, out: 4,
		conv: func(b *builder, x int) int {
			return b.gat(x, 5, 2, 4, 1, false, epilogue{bias: NoBuf, layer: 1})
		},
		params: map[string]string{"conv1.lin.weight": "W", "conv1.att_src": "a_src", "conv1.att_dst": "a_dst", "conv1.bias": "b"},
	}.run(t)
}

func TestTinySAGE(t *testing.T) {
	params := map[string]string{"conv1.lin_l.weight": "Wneigh", "conv1.lin_r.weight": "Wself", "conv1.lin_l.bias": "b"}
	for _, first := range []string{"multiply", "gather"} {
		t.Run(first+" first", func(t *testing.T) {
			layerCase{dir: "tiny_sage", n: 12, f: 5, out: 4, params: params,
				conv: func(b *builder, x int) int {
					if first == "multiply" {
						return b.sage(x, 5, 4, 1, epilogue{bias: NoBuf, layer: 1})
					}
					spec := func(name string) ParamSpec { return ParamSpec{Name: name, Rows: 5, Cols: 4, Layer: 1} }
					e := b.withBiasNamed(epilogue{bias: NoBuf, layer: 1}, "conv1.lin_l.bias", 1, 4)
					place := b.later()
					return b.twoProducts(b.gather(x, 1, NormMean, plain), x, spec("conv1.lin_l.weight"), spec("conv1.lin_r.weight"), 1, e, place)
				},
			}.run(t)
		})
	}
}

func TestTinyGIN(t *testing.T) {
	dir := testkit.Shared(t, "golden", "tiny_gin")
	hidden := len(golden(t, dir, "param_b0"))
	for _, width := range []int{hidden, 5} { // both orders of product and sum
		t.Run(map[bool]string{true: "gather first", false: "multiply first"}[width == 5], func(t *testing.T) {
			layerCase{dir: "tiny_gin", n: 12, f: 5, out: 4,
				params: map[string]string{
					"conv1.eps": "eps", "conv1.nn.0.weight": "W0", "conv1.nn.0.bias": "b0", "conv1.nn.2.weight": "W1", "conv1.nn.2.bias": "b1",
				},
				conv: func(b *builder, x int) int {
					b.cfg.Hidden = hidden
					if width == 5 {
						return b.gin(x, 5, 4, 1, epilogue{bias: NoBuf, layer: 1})
					}
					// A width above the hidden one makes gin multiply first.
					return b.ginWith(x, 5, 4, 1, true, epilogue{bias: NoBuf, layer: 1})
				},
			}.run(t)
		})
	}
}

// Four heads on Cora's features: output, attention's effect and all gradients.
func TestCoraGAT1(t *testing.T) {
	dir, inputs := testkit.Shared(t, "golden", "cora_gat1"), testkit.Shared(t, "golden", "cora_inputs")
	const n, f, heads, d = 2708, 1433, 4, 8
	src, dst := goldenInts(t, dir, "edge_src"), goldenInts(t, dir, "edge_dst")
	in, rev := rowsOf(n, dst, src), rowsOf(n, src, dst)
	sparse := &kernels.CSR{Cols: f, Col: goldenInts(t, inputs, "x_indices")}
	for _, x := range golden(t, inputs, "x_indptr") {
		sparse.RowPtr = append(sparse.RowPtr, int64(x))
	}
	for _, x := range golden(t, inputs, "x_data") {
		sparse.Val = append(sparse.Val, float32(x))
	}
	everyDevice(t, func(t *testing.T, dev kernels.Device) {
		b := newBuilder(Config{Layers: 1, Features: f, Classes: 2, Sparse: true, Bias: true})
		y := b.gat(X, f, heads, d, 1, false, epilogue{bias: NoBuf, layer: 1})
		up := goldenMat(t, dir, "upstream", n, heads*d)
		dy := b.gradOf(y)
		b.tensor(Step{Kind: task.AV, Layer: 1}, func(c *Ctx) { c.S.Copy(c.Full[dy], up) })
		prog := b.finish()
		r := newRig(t, dev, prog, in, rev, nil, sparse, make([]int32, n))
		r.ctx.Train = false
		params := map[string]string{"conv1.lin.weight": "W", "conv1.att_src": "a_src", "conv1.att_dst": "a_dst", "conv1.bias": "b"}
		for ours, theirs := range params {
			i := paramOf(prog, ours)
			must(t, copyTo(r, r.ctx.Weights[i], goldenMat(t, dir, "param_"+theirs, prog.Params[i].Rows, prog.Params[i].Cols)))
		}
		r.run()
		same(t, "out", r.ctx.Full[y], golden(t, dir, "out"), 1e-5)
		for ours, theirs := range params {
			same(t, "grad of "+ours, r.ctx.Grads[paramOf(prog, ours)], golden(t, dir, "grad_"+theirs), 1e-5)
		}
	})
}

// rowsOf sorts many edges into rows, columns ascending.
func rowsOf(n int, row, col []int32) *kernels.CSR {
	lists := make([][]int32, n)
	for e, r := range row {
		lists[r] = append(lists[r], col[e])
	}
	g := &kernels.CSR{Cols: n, RowPtr: []int64{0}}
	for _, l := range lists {
		slices.Sort(l)
		g.Col = append(g.Col, l...)
		g.RowPtr = append(g.RowPtr, int64(len(g.Col)))
	}
	return g
}

package golden

import (
	"context"
	"path/filepath"
	"testing"

	"dorylus/engine"
	"dorylus/engine/dataset"
	"dorylus/engine/pipeline"
	"dorylus/engine/prepare"
	"dorylus/engine/store"
	"dorylus/engine/testkit"
	"dorylus/kernels"
	"dorylus/kernels/tensorbridge"
)

// layer is one layer of golden/ as a whole model: its edges and features go
// through prepare in several orders, its output comes from Predict. The gradients of
// the same layers are engine/model's tests.
type layer struct {
	dir, model string
	heads      int // whose outputs a last layer averages; golden's are side by side
	params     map[string]string
}

var layers = []layer{
	{"tiny_gcn", "gcn", 1, map[string]string{"conv1.lin.weight": "W", "conv1.bias": "b"}},
	{"tiny_gat", "gat", 2, map[string]string{"conv1.lin.weight": "W", "conv1.att_src": "a_src", "conv1.att_dst": "a_dst", "conv1.bias": "b"}},
	{"tiny_sage", "sage", 1, map[string]string{"conv1.lin_l.weight": "Wneigh", "conv1.lin_r.weight": "Wself", "conv1.lin_l.bias": "b"}},
	{"tiny_gin", "gin", 1, map[string]string{
		"conv1.eps": "eps", "conv1.nn.0.weight": "W0", "conv1.nn.0.bias": "b0", "conv1.nn.2.weight": "W1", "conv1.nn.2.bias": "b1",
	}},
	{"cora_gat1", "gat", 4, map[string]string{"conv1.lin.weight": "W", "conv1.att_src": "a_src", "conv1.att_dst": "a_dst", "conv1.bias": "b"}},
}

// Layers predicts with each layer over the graph in its own order and in a shuffled one:
// the outputs are the reference's, to 1e-5.
func Layers(t *testing.T, dev kernels.Device) {
	for _, l := range layers {
		t.Run(l.dir, func(t *testing.T) {
			raw, features := l.raw(t)
			_, want := l.array(t, "out")
			for _, order := range []string{"natural", "hash"} {
				st, err := prepare.Build(context.Background(), raw, prepare.Options{Order: order, Features: features, Seed: 3})
				check(t, err)
				got := l.predict(t, st, dev, len(want)/raw.N/l.heads)
				wide := kernels.FromSlice(raw.N, got.Cols*l.heads, float32s(want))
				if d := testkit.Far(meanOfHeads(wide, l.heads), got, 1e-5); d != "" {
					t.Errorf("order %s: out%s", order, d)
				}
			}
		})
	}
}

// raw is the layer's graph and what prepare does to its features.
func (l layer) raw(t *testing.T) (*dataset.Raw, string) {
	t.Helper()
	if l.dir == "cora_gat1" {
		raw, err := dataset.Cora()
		check(t, err)
		return raw, prepare.RowNormalize
	}
	shape, x := l.array(t, "in_X")
	raw := &dataset.Raw{Name: l.dir, N: shape[0], Dense: kernels.FromSlice(shape[0], shape[1], float32s(x)), Labels: make([]int32, shape[0])}
	raw.Src, raw.Dst = l.ints(t, "in_src"), l.ints(t, "in_dst")
	if l.dir == "tiny_gcn" {
		_, w := l.array(t, "in_weight")
		raw.Weight = float32s(w)
	}
	return raw, prepare.AsGiven
}

// predict runs the model with golden's parameters over all vertices.
func (l layer) predict(t *testing.T, st *store.Store, dev kernels.Device, classes int) *kernels.Mat {
	t.Helper()
	wide := *st
	wide.Meta.Classes = classes
	c := engine.DefaultConfig(l.model)
	c.Layers, c.OutHeads = 1, l.heads
	if l.dir == "tiny_gin" {
		shape, _ := l.array(t, "param_W0")
		c.Hidden = shape[1]
	}
	cfg, err := pipeline.ModelConfig(&c, &wide)
	check(t, err)
	prog, err := cfg.Build()
	check(t, err)
	o := pipeline.PredictOptions{Model: cfg, Store: &wide, Device: dev, Threads: 2}
	for _, spec := range prog.Params {
		name, ok := l.params[spec.Name]
		if !ok {
			t.Fatalf("golden has no %s", spec.Name)
		}
		_, x := l.array(t, "param_"+name)
		m := kernels.FromSlice(len(x)/spec.Cols, spec.Cols, float32s(x))
		if spec.Bias && l.heads > 1 {
			m = meanOfHeads(kernels.FromSlice(1, len(x), float32s(x)), l.heads)
		}
		if m.Rows != spec.Rows || m.Cols != spec.Cols {
			t.Fatalf("golden's %s is %d x %d, the model's %d x %d", name, m.Rows, m.Cols, spec.Rows, spec.Cols)
		}
		o.Weights = append(o.Weights, m)
	}
	got, err := pipeline.Predict(context.Background(), o)
	check(t, err)
	return got
}

// array reads one of the layer's arrays of float32 or float64.
func (l layer) array(t *testing.T, name string) ([]int, []float64) {
	t.Helper()
	path := filepath.Join(testkit.Shared(t, "golden", l.dir), name+".npy")
	shape, x, err := tensorbridge.ReadNpy[float64](path)
	if err == nil {
		return shape, x
	}
	shape, y, err := tensorbridge.ReadNpy[float32](path)
	check(t, err)
	for _, v := range y {
		x = append(x, float64(v))
	}
	return shape, x
}

func (l layer) ints(t *testing.T, name string) []int32 {
	t.Helper()
	_, x, err := tensorbridge.ReadNpy[int32](filepath.Join(testkit.Shared(t, "golden", l.dir), name+".npy"))
	check(t, err)
	return x
}

func float32s(x []float64) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(v)
	}
	return out
}

// meanOfHeads averages groups of columns, one per head.
func meanOfHeads(m *kernels.Mat, heads int) *kernels.Mat {
	d := m.Cols / heads
	out := kernels.FromSlice(m.Rows, d, make([]float32, m.Rows*d))
	for r := range m.Rows {
		for c := range d {
			sum := 0.0
			for h := range heads {
				sum += float64(m.Row(r)[h*d+c])
			}
			out.Row(r)[c] = float32(sum / float64(heads))
		}
	}
	return out
}

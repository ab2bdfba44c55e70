package codec

import (
	"testing"

	"dorylus/engine/testkit"
	"dorylus/kernels"
	"dorylus/kernels/tensorbridge"
)

func npy[T tensorbridge.Value](t *testing.T, elem ...string) (shape []int, data []T) {
	t.Helper()
	shape, data, err := tensorbridge.ReadNpy[T](testkit.Shared(t, append([]string{"golden"}, elem...)...))
	if err != nil {
		t.Fatal(err)
	}
	return shape, data
}

// Tensors of a run of GCN on Cora: features, activations before and after ReLU, a weight
// gradient, indices. All exact, each within a bound on its bytes.
func TestCora(t *testing.T) {
	indptr, indices := second(npy[int32](t, "cora_inputs", "x_indptr.npy")), second(npy[int32](t, "cora_inputs", "x_indices.npy"))
	x := newMat(len(indptr)-1, 1433, 7)
	for v := range x.Rows {
		clear(x.Row(v))
		for _, c := range indices[indptr[v]:indptr[v+1]] {
			x.Row(v)[c] = 1
		}
	}
	hidden := narrow(npy[float64](t, "cora_gcn2", "hidden_pre.npy"))
	relu := newMat(hidden.Rows, hidden.Cols, 0)
	for v := range relu.Rows {
		for j, h := range hidden.Row(v) {
			relu.Row(v)[j] = max(0, h)
		}
	}
	grad := narrow(npy[float64](t, "cora_gcn2", "grad_W0.npy"))
	e := encoder(t, Options{})
	for i, c := range []struct {
		name string
		m    *kernels.Mat
		most float64 // of the packed bytes
	}{{"features", x, 0.03}, {"hidden", hidden, 1.01}, {"relu", relu, 0.65}, {"gradient", grad, 1.01}} {
		frame := e.Append(nil, Key(i), c.m)
		h, err := ReadHeader(frame, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		got := newMat(h.Total, h.Cols, 0)
		if err := Decode(frame, got); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if err := same(got, c.m, FP32); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		ratio := float64(len(frame)) / float64(h.Raw)
		t.Logf("%s: %v, ratio %.4f", c.name, h, ratio)
		if ratio > c.most {
			t.Errorf("%s: %v, ratio %.4f, want at most %.2f", c.name, h, ratio, c.most)
		}
	}
	frame, back := e.AppendInt32(nil, 9, indices), make([]int32, len(indices))
	if err := DecodeInt32(frame, back); err != nil {
		t.Fatal(err)
	}
	for i := range back {
		if back[i] != indices[i] {
			t.Fatalf("index %d is %d, want %d", i, back[i], indices[i])
		}
	}
}

func second[T any](_ []int, data []T) []T { return data }

// narrow is a golden array as the float32 that travel.
func narrow(shape []int, data []float64) *kernels.Mat {
	m := newMat(shape[0], shape[1], 0)
	for i, v := range data {
		m.Host[i] = float32(v)
	}
	return m
}

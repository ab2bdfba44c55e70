package optim

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"dorylus/engine/model"
	"dorylus/kernels"
)

// clip clips gradients of a weight 2 x 2 and a bias, given by value, to limit.
func clip(t *testing.T, limit float64, w, b []float32) (norm float64, gotW, gotB []float32) {
	t.Helper()
	dev, s := bench(t)
	specs := []model.ParamSpec{{Name: "w", Rows: 2, Cols: 2, Layer: 1}, {Name: "b", Rows: 1, Cols: 2, Layer: 1, Bias: true}}
	o, err := New(Config{ClipNorm: limit}, specs, dev, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	nan := float32(math.NaN())
	grads := []*kernels.Mat{
		{Rows: 2, Cols: 2, Stride: 3, Host: []float32{w[0], w[1], nan, w[2], w[3], nan}}, // the padding must not be read
		kernels.FromSlice(1, 2, slices.Clone(b)),
	}
	spare := []*kernels.Mat{kernels.FromSlice(2, 2, []float32{nan, nan, nan, nan}), kernels.FromSlice(1, 2, []float32{nan, nan})}
	if norm, err = o.Clip(s, grads, spare); err == nil {
		err = s.Wait()
	}
	if err != nil {
		t.Fatal(err)
	}
	return norm, Packed(grads[0]), grads[1].Host
}

func TestClipByHand(t *testing.T) {
	w, b := []float32{1, -2, 2, 0}, []float32{4, 0} // norm 5
	for _, limit := range []float64{0, 5.1, 1000} {
		norm, gotW, gotB := clip(t, limit, w, b)
		if want := map[bool]float64{false: 5, true: 0}[limit == 0]; norm != want || !slices.Equal(gotW, w) || !slices.Equal(gotB, b) {
			t.Errorf("clipped to %v: norm %v and %v %v, want %v and the gradients as they were", limit, norm, gotW, gotB, want)
		}
	}
	for _, limit := range []float64{2.5, 1e-3, 5} { // 5 is scaled too: by 5/5.000001
		norm, gotW, gotB := clip(t, limit, w, b)
		scale := float32(limit / 5.000001)
		for i, x := range append(slices.Clone(gotW), gotB...) {
			if want := scale * append(slices.Clone(w), b...)[i]; x != want {
				t.Errorf("clipped to %v: value %d is %v, want %v", limit, i, x, want)
			}
		}
		if norm != 5 {
			t.Errorf("clipped to %v: norm %v before, want 5", limit, norm)
		}
	}
}

func TestClipOfNothing(t *testing.T) {
	zero := []float32{0, 0, 0, 0}
	if norm, w, b := clip(t, 1, zero, zero[:2]); norm != 0 || !slices.Equal(w, zero) || !slices.Equal(b, zero[:2]) {
		t.Errorf("zero gradients clipped to 1: norm %v, %v %v", norm, w, b)
	}
}

// TestClipNorm: the norm afterwards is the limit, and the direction is unchanged, for
// gradients of any size, also those whose squares no float32 holds.
func TestClipNorm(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 11))
	for range 100 {
		size, limit := math.Pow(10, rng.Float64()*50-20), math.Pow(10, rng.Float64()*4-2)
		before := make([]float32, 6)
		for i := range before {
			before[i] = float32(rng.NormFloat64() * size)
		}
		norm, w, b := clip(t, limit, before[:4], before[4:])
		after := append(slices.Clone(w), b...)
		sum := 0.0
		for i, x := range after {
			sum += float64(x) * float64(x)
			if want := float64(before[i]) * min(1, limit/(norm+1e-6)); math.Abs(float64(x)-want) > 1e-6*math.Abs(want)+1e-45 {
				t.Fatalf("size %v clipped to %v: value %d is %v, want %v", size, limit, i, x, want)
			}
		}
		if got := math.Sqrt(sum); got > limit*(1+1e-6) {
			t.Fatalf("size %v clipped to %v: the norm is %v", size, limit, got)
		}
	}
}

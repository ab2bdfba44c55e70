package testkit

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// cubic is sum(w[i]*x[i]^3 + x[i]), and its gradient.
func cubic(x []float32) (loss func() float64, grad []float32) {
	loss = func() float64 {
		var s float64
		for i, v := range x {
			f := float64(v)
			s += float64(i+1)*f*f*f + f
		}
		return s
	}
	for i, v := range x {
		grad = append(grad, float32(3*float64(i+1)*float64(v)*float64(v)+1))
	}
	return loss, grad
}

// TestGradCheck: a right gradient passes and leaves the values as they were.
func TestGradCheck(t *testing.T) {
	x := []float32{0.5, -1, 0.25, 2, -0.75}
	before := slices.Clone(x)
	loss, grad := cubic(x)
	GradCheck{}.Check(t, loss, Param{"x", x, grad})
	if !slices.Equal(x, before) {
		t.Errorf("the check left %v, want %v", x, before)
	}
}

// TestGradCheckFinds: one wrong entry is found and named, whatever is wrong.
func TestGradCheckFinds(t *testing.T) {
	for name, spoil := range map[string]func(g []float32){
		"sign":  func(g []float32) { g[3] = -g[3] },
		"1 %":   func(g []float32) { g[3] *= 1.01 },
		"zero":  func(g []float32) { g[3] = 0 },
		"nan":   func(g []float32) { g[3] = float32(math.NaN()) },
		"scale": func(g []float32) { g[3] *= 3 },
	} {
		x := []float32{0.5, -1, 0.25, 2, -0.75}
		loss, grad := cubic(x)
		spoil(grad)
		d, err := GradCheck{Seed: 4}.Worst(loss, Param{"x", x, grad})
		if err != nil {
			t.Fatal(err)
		}
		if d.Miss() <= 1 || d.Index != 3 || !strings.Contains(d.String(), "x[3]") {
			t.Errorf("%s: the worst is %v, want x[3] and a miss", name, d)
		}
	}
}

// TestGradCheckRefuses: what would make the check meaningless is an error.
func TestGradCheckRefuses(t *testing.T) {
	calls := 0.0
	for says, p := range map[string]Param{
		"2 values and 1 gradients": {"x", []float32{1, 2}, []float32{1}},
		"0 values":                 {"x", nil, nil},
		"must not change":          {"x", []float32{1}, []float32{1}},
	} {
		_, err := GradCheck{}.Worst(func() float64 { calls++; return calls }, p)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want an error that says %q", err, says)
		}
	}
}

// TestGradCheckSamples: no more values are tried than asked for, and the seed
// decides which.
func TestGradCheckSamples(t *testing.T) {
	x := make([]float32, 100)
	for i := range x {
		x[i] = 1
	}
	loss, grad := cubic(x)
	calls := 0
	counted := func() float64 { calls++; return loss() }
	if _, err := (GradCheck{Samples: 5}).Worst(counted, Param{"x", x, grad}); err != nil {
		t.Fatal(err)
	}
	if want := 2 + 5*4; calls != want {
		t.Errorf("the loss was called %d times, want %d", calls, want)
	}
}

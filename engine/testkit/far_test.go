package testkit

import (
	"math"
	"strings"
	"testing"

	"dorylus/kernels"
)

// TestFar: the worst value is named, and what is no number is as far as can be.
func TestFar(t *testing.T) {
	want := kernels.FromSlice(2, 2, []float32{1, 2, 3, -4})
	nan := float32(math.NaN())
	for _, c := range []struct {
		got *kernels.Mat
		tol float64
		far string
	}{
		{want, 0, ""},
		{kernels.FromSlice(2, 2, []float32{1, 2.5, 3, -4}), 0.125, ""},
		{kernels.FromSlice(2, 2, []float32{1.25, 2.5, 3, -4}), 0.1, "[0,1] is 2.5, want 2: off by 0.5 of 4"},
		{kernels.FromSlice(2, 2, []float32{nan, 2, 9, -4}), 10, "[0,0] is NaN, want 1"},
		{kernels.FromSlice(1, 2, []float32{1, 2}), 10, " is 1 x 2, want 2 x 2"},
	} {
		if got := Far(want, c.got, c.tol); (got == "") != (c.far == "") || !strings.HasPrefix(got, c.far) {
			t.Errorf("%v within %g: %q, want %q", c.got.Host, c.tol, got, c.far)
		}
	}
}

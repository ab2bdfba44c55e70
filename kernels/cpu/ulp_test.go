//go:build cgo && amd64 && linux

package cpu

import (
	"math"
	"testing"

	"dorylus/kernels"
)

// Activations are within a few units in the last place over the whole range of
// float32, infinities and the smallest values included.
func TestActivationsAreAccurate(t *testing.T) {
	var xs []float32
	for e := -149.0; e < 128; e += 0.173 {
		x := float32(math.Exp2(e))
		xs = append(xs, x, -x)
	}
	for x := -110.0; x < 100; x += 0.0173 {
		xs = append(xs, float32(x))
	}
	inf := float32(math.Inf(1))
	xs = append(xs, 0, inf, -inf, float32(math.NaN()))
	for _, isa := range ISAs() {
		dev, err := Open(isa)
		if err != nil {
			t.Fatal(err)
		}
		s, err := dev.NewStream()
		if err != nil {
			t.Fatal(err)
		}
		x := kernels.FromSlice(1, len(xs), xs)
		for _, act := range []struct {
			name string
			act  kernels.Act
			f    func(float64) float64
			ulps float64
		}{
			{"tanh", kernels.Tanh, math.Tanh, 4},
			{"elu", kernels.ELU, func(x float64) float64 {
				if x <= 0 {
					return math.Expm1(x)
				}
				return x
			}, 3},
		} {
			y := kernels.FromSlice(1, len(xs), make([]float32, len(xs)))
			s.Forward(y, x, &kernels.Epilogue{Act: act.act}, kernels.Span{Hi: 1})
			if err := s.Wait(); err != nil {
				t.Fatal(err)
			}
			worst, at := 0.0, float32(0)
			for i, got := range y.Host {
				want := act.f(float64(xs[i]))
				if math.IsNaN(want) || math.IsInf(want, 0) {
					if float64(got) != want && !(math.IsNaN(want) && got != got) {
						t.Errorf("%s %s(%v) is %v, want %v", isa, act.name, xs[i], got, want)
					}
					continue
				}
				w := float32(math.Abs(want))
				ulp := float64(math.Nextafter32(w, inf) - w)
				if d := math.Abs(float64(got)-want) / ulp; d > worst {
					worst, at = d, xs[i]
				}
			}
			if worst > act.ulps {
				t.Errorf("%s %s is off by %.1f units in the last place at %v, want at most %v", isa, act.name, worst, at, act.ulps)
			}
			t.Logf("%s %s: worst %.2f ulp at %v", isa, act.name, worst, at)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
}

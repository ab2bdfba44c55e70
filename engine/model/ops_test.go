package model

import (
	"fmt"
	"math"
	"testing"

	"dorylus/engine/testkit"
	"dorylus/kernels"
)

// inner is the loss <out, up>, whose gradient with respect to out is up.
func inner(out, up *kernels.Mat) float64 {
	sum := 0.0
	for r := range out.Rows {
		for c, x := range out.Row(r) {
			sum += float64(x) * float64(up.Row(r)[c])
		}
	}
	return sum
}

func zeros(rows, cols int) *kernels.Mat {
	return kernels.FromSlice(rows, cols, make([]float32, rows*cols))
}

// awayFromKinks moves values out of (-0.1, 0.1), where ReLU has its corner.
func awayFromKinks(m *kernels.Mat) *kernels.Mat {
	for i, x := range m.Host {
		if math.Abs(float64(x)) < 0.1 {
			m.Host[i] = float32(math.Copysign(0.1, float64(x))) + x
		}
	}
	return m
}

// each op of kernels.Stream that carries gradients, against central differences,
// on every device.
func TestOpsAreDifferentiatedRight(t *testing.T) {
	everyDevice(t, func(t *testing.T, dev kernels.Device) {
		s, err := dev.NewStream()
		must(t, err)
		defer s.Close()
		ran := func() {
			t.Helper()
			must(t, s.Wait())
		}
		check := testkit.GradCheck{Seed: 1}
		const n, f, h = 11, 5, 7
		all := kernels.Span{Hi: n}

		t.Run("GEMM", func(t *testing.T) {
			a, b, up, out := randomMat(n, f, 1), randomMat(f, h, 2), randomMat(n, h, 3), zeros(n, h)
			da, db := zeros(n, f), zeros(f, h)
			s.GEMM(da, up, b, kernels.NT, nil)
			s.GEMM(db, a, up, kernels.TN, nil)
			ran()
			check.Check(t, func() float64 { s.GEMM(out, a, b, kernels.NN, nil); ran(); return inner(out, up) },
				testkit.Param{Name: "a", X: a.Host, Grad: da.Host}, testkit.Param{Name: "b", X: b.Host, Grad: db.Host})
		})

		// The gather's gradient with respect to its rows is the gather along the
		// transpose; with respect to an edge's weight the product of the rows at
		// its ends.
		t.Run("SpMM and SDDMM", func(t *testing.T) {
			in, rev := toy(n, true, 4)
			g, err := dev.Load(in)
			must(t, err)
			back, err := dev.Load(rev)
			must(t, err)
			x, up, out, dx := randomMat(n, f, 5), randomMat(n, f, 6), zeros(n, f), zeros(n, f)
			scale := randomMat(n, 1, 7)
			ga := kernels.Gather{Scale: kernels.Scale{Row: scale, Col: scale}, Self: kernels.Self{On: true}}
			s.SpMM(dx, back, up, ga, all)
			ran()
			check.Check(t, func() float64 { s.SpMM(out, g, x, ga, all); ran(); return inner(out, up) },
				testkit.Param{Name: "x", X: x.Host, Grad: dx.Host})

			edges := in.Edges()
			w, dw := randomMat(edges, 1, 8), zeros(edges, 1)
			s.SDDMM(dw, g, x, up, all)
			ran()
			check.Check(t, func() float64 { s.SpMM(out, g, x, kernels.Gather{W: w}, all); ran(); return inner(out, up) },
				testkit.Param{Name: "w", X: w.Host, Grad: dw.Host})
		})

		t.Run("SpMMT", func(t *testing.T) {
			feat := sparsify(randomMat(n, f, 9))
			g, err := dev.Load(feat)
			must(t, err)
			w, up, out, dw := randomMat(f, h, 10), randomMat(n, h, 11), zeros(n, h), zeros(f, h)
			s.SpMMT(dw, g, nil, up, all)
			ran()
			check.Check(t, func() float64 { s.SpMM(out, g, w, kernels.Gather{}, all); ran(); return inner(out, up) },
				testkit.Param{Name: "w", X: w.Host, Grad: dw.Host})
		})

		for _, act := range []kernels.Act{kernels.Identity, kernels.ReLU, kernels.LeakyReLU, kernels.ELU, kernels.Tanh} {
			for _, p := range []float32{0, 0.4} {
				t.Run(fmt.Sprintf("epilogue act=%d dropout=%v", act, p), func(t *testing.T) {
					x, bias, up := awayFromKinks(randomMat(n, h, 12)), zeros(1, h), randomMat(n, h, 13)
					out, dx, dbias := zeros(n, h), zeros(n, h), zeros(1, h)
					ep := &kernels.Epilogue{Bias: bias, Act: act, Drop: kernels.Dropout{P: p, Key: kernels.DropKey(3, 1, 1)}}
					forward := func() float64 { s.Forward(out, x, ep, all); ran(); return inner(out, up) }
					forward()
					s.Backward(dx, up, out, ep, all)
					s.ColSum(dbias, dx, all)
					ran()
					check.Check(t, forward, testkit.Param{Name: "x", X: x.Host, Grad: dx.Host}, testkit.Param{Name: "bias", X: bias.Host, Grad: dbias.Host})
				})
			}
		}

		t.Run("softmax cross-entropy", func(t *testing.T) {
			logits, grad, loss := randomMat(n, h, 14), zeros(n, h), make([]float64, 1)
			labels, weights := make([]int32, n), zeros(1, h)
			for v := range labels {
				labels[v] = int32(v%(h+1)) - 1
			}
			for c := range weights.Host {
				weights.Host[c] = 0.5 + float32(c)/h
			}
			s.SoftmaxXent(grad, loss, logits, labels, weights, 0.25, all)
			ran()
			check.Check(t, func() float64 { s.SoftmaxXent(nil, loss, logits, labels, weights, 0.25, all); ran(); return loss[0] },
				testkit.Param{Name: "logits", X: logits.Host, Grad: grad.Host})
		})

		t.Run("edge dropout", func(t *testing.T) {
			feat := sparsify(randomMat(n, f, 15))
			g, err := dev.Load(feat)
			must(t, err)
			drop := kernels.Dropout{P: 0.5, Key: kernels.DropKey(1, 2, 0)}
			kept, out, up, w, dw := zeros(feat.Edges(), 1), zeros(n, h), randomMat(n, h, 16), randomMat(f, h, 17), zeros(f, h)
			s.EdgeDropout(kept, g, drop, all)
			s.SpMMT(dw, g, kept, up, all)
			ran()
			check.Check(t, func() float64 {
				s.EdgeDropout(kept, g, drop, all)
				s.SpMM(out, g, w, kernels.Gather{W: kept}, all)
				ran()
				return inner(out, up)
			}, testkit.Param{Name: "w", X: w.Host, Grad: dw.Host})
		})
	})
}

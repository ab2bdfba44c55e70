package cuda

import (
	"math"

	"dorylus/kernels"
)

// Adam implements kernels.Stream.
func (q *queue) Adam(p, g, m, v *kernels.Mat, h kernels.Adam) {
	kernels.CheckAdam(p, g, m, v, h)
	o := q.op("Adam")
	w, d, m1, m2 := o.mat(p), o.mat(g), o.mat(m), o.mat(v)
	decay, l2 := float32(1), h.WeightDecay
	if h.Decoupled {
		decay, l2 = float32(1-float64(h.LR)*float64(h.WeightDecay)), 0
	}
	b1, b2 := float64(h.Beta1), float64(h.Beta2)
	rate := float32(float64(h.LR) / (1 - math.Pow(b1, float64(h.Step))))
	root := float32(math.Sqrt(1 - math.Pow(b2, float64(h.Step))))
	o.run(func(x *runner) error {
		return x.each("dk_adam", w.rows, w.cols, w, d, m1, m2, int64(w.rows), int32(w.cols), shiftOf(w.cols),
			decay, l2, h.Beta1, float32(1-b1), h.Beta2, float32(1-b2), rate, root, h.Eps)
	})
}

// SGD implements kernels.Stream.
func (q *queue) SGD(p, g, m *kernels.Mat, h kernels.SGD) {
	kernels.CheckSGD(p, g, m, h)
	o := q.op("SGD")
	w, d := o.mat(p), o.mat(g)
	var m1 mat
	if h.Momentum != 0 {
		m1 = o.mat(m)
	}
	o.run(func(x *runner) error {
		return x.each("dk_sgd", w.rows, w.cols, w, d, m1, int64(w.rows), int32(w.cols), shiftOf(w.cols), h.LR, h.Momentum, h.WeightDecay, h.Step == 1)
	})
}

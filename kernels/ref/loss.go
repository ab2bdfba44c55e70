package ref

import (
	"math"

	"dorylus/kernels"
)

// SoftmaxXent is softmax cross-entropy with its gradient.
func (s *stream) SoftmaxXent(grad *kernels.Mat, loss []float64, logits *kernels.Mat, labels []int32, classW *kernels.Mat, scale float32, rows kernels.Span) {
	kernels.CheckSoftmaxXent(grad, loss, logits, labels, classW, scale, rows)
	kernels.CheckHost("SoftmaxXent", grad, logits, classW)
	if !s.runs("SoftmaxXent") {
		return
	}
	var sum float64
	rows = within(logits, rows)
	for r := rows.Lo; r < rows.Hi; r++ {
		label := int(labels[r])
		if label < 0 {
			if grad != nil {
				clear(grad.Row(r))
			}
			continue
		}
		f := float64(scale)
		if classW != nil {
			f *= float64(classW.Row(0)[label])
		}
		z := logits.Row(r)
		acc := s.zeros(len(z))
		top, total := exponentials(acc, z)
		sum += f * (math.Log(total) + top - float64(z[label]))
		if grad == nil {
			continue
		}
		g := grad.Row(r)
		for c, v := range acc {
			p := v / total
			if c == label {
				p--
			}
			g[c] = float32(p * f)
		}
	}
	loss[0] = sum
}

// exponentials sets acc to exp(z - top) and returns top, the maximum of z, and
// the sum of acc. A NaN in z makes the sum NaN.
func exponentials(acc []float64, z []float32) (top, total float64) {
	top = math.Inf(-1)
	for _, v := range z {
		top = max(top, float64(v))
	}
	for c, v := range z {
		acc[c] = math.Exp(float64(v) - top)
		total += acc[c]
	}
	return top, total
}

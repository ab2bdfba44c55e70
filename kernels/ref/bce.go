package ref

import (
	"math"

	"dorylus/kernels"
)

// SigmoidBCE is binary cross-entropy of every class, with its gradient.
func (s *stream) SigmoidBCE(grad *kernels.Mat, loss []float64, logits *kernels.Mat, targets *kernels.CSR, mask []int32, posW *kernels.Mat, scale float32) {
	kernels.CheckSigmoidBCE(grad, loss, logits, targets, mask, posW, scale)
	kernels.CheckHost("SigmoidBCE", grad, logits, posW)
	if !s.runs("SigmoidBCE") {
		return
	}
	var sum float64
	for r := range rowsOf(logits) {
		if mask[r] < 0 {
			if grad != nil {
				clear(grad.Row(r))
			}
			continue
		}
		listed := targets.Col[targets.RowPtr[r]:targets.RowPtr[r+1]]
		for c, v := range logits.Row(r) {
			z, f, sign := float64(v), float64(scale), 1.0
			for len(listed) > 0 && int(listed[0]) == c {
				listed, sign = listed[1:], -1
			}
			if sign < 0 && posW != nil {
				f *= float64(posW.Row(0)[c])
			}
			// softplus(-z) has the slope sigmoid(z)-1 = -sigmoid(-z).
			plus, sigmoid := softplus(sign * z)
			sum += f * plus
			if grad != nil {
				grad.Row(r)[c] = float32(f * sign * sigmoid)
			}
		}
	}
	loss[0] = sum
}

// softplus is log(1+exp(z)), and its slope, the sigmoid.
func softplus(z float64) (plus, sigmoid float64) {
	e := math.Exp(-math.Abs(z))
	if z > 0 {
		return z + math.Log1p(e), 1 / (1 + e)
	}
	return math.Log1p(e), e / (1 + e)
}

//go:build cgo && amd64 && linux

package cpu

import "dorylus/kernels"

// SigmoidBCE is binary cross-entropy of every class, with its gradient.
func (s *stream) SigmoidBCE(grad *kernels.Mat, loss []float64, logits *kernels.Mat, targets *kernels.CSR, mask []int32, posW *kernels.Mat, scale float32) {
	kernels.CheckSigmoidBCE(grad, loss, logits, targets, mask, posW, scale)
	kernels.CheckHost("SigmoidBCE", grad, logits, posW)
	if !s.runs("SigmoidBCE") {
		return
	}
	if logits.Cols == 0 {
		loss[0] = 0
		return
	}
	ldg := 0
	if grad != nil {
		ldg = grad.Stride
	}
	loss[0] = s.table.BCE(logits.Host, logits.Stride, host(grad), ldg, targets.RowPtr, targets.Col, mask, host(posW), scale, logits.Cols, logits.Rows)
}

package paper

import "dorylus/kernels"

func (s *stream) BlockGEMM(dst, a, b *kernels.Mat, _ *kernels.Blocks) {
	s.GEMM(dst, a, b, kernels.TN, nil)
}

func (s *stream) BlockColSum(dst, x *kernels.Mat, _ *kernels.Blocks) {
	s.ColSum(dst, x, kernels.Span{Hi: x.Rows})
}

func (s *stream) BlockHeadDotGrad(da, d, x *kernels.Mat, _ *kernels.Blocks) { s.HeadDotGrad(da, d, x) }

func (s *stream) BlockSoftmaxXent(grad *kernels.Mat, loss []float64, logits *kernels.Mat, labels []int32, classW *kernels.Mat, scale float32, _ *kernels.Blocks) {
	clear(loss)
	s.SoftmaxXent(grad, loss, logits, labels, classW, scale, kernels.Span{Hi: logits.Rows})
}

func (s *stream) BlockSigmoidBCE(grad *kernels.Mat, loss []float64, logits *kernels.Mat, targets *kernels.CSR, mask []int32, posW *kernels.Mat, scale float32, _ *kernels.Blocks) {
	clear(loss)
	s.SigmoidBCE(grad, loss, logits, targets, mask, posW, scale)
}

package opaque

import "dorylus/kernels"

// summer is a stream that sums over blocks. Only that of a host on which no row's bits
// depend on how many rows a call has may be one: ref is, OpenBLAS is not.
type summer struct{ *stream }

// BlockGEMM implements kernels.BlockSummer.
func (s summer) BlockGEMM(dst, a, b *kernels.Mat, blocks *kernels.Blocks) {
	kernels.CheckBlockGEMM(dst, a, b, blocks)
	c := s.call("BlockGEMM")
	d, x, y := c.mat(dst), c.mat(a), c.mat(b)
	s.add(c, func(h kernels.Stream) { kernels.Blockwise{Stream: h}.BlockGEMM(d, x, y, blocks) })
}

// BlockColSum implements kernels.BlockSummer.
func (s summer) BlockColSum(dst, x *kernels.Mat, blocks *kernels.Blocks) {
	kernels.CheckBlockColSum(dst, x, blocks)
	c := s.call("BlockColSum")
	d, m := c.mat(dst), c.mat(x)
	s.add(c, func(h kernels.Stream) { kernels.Blockwise{Stream: h}.BlockColSum(d, m, blocks) })
}

// BlockHeadDotGrad implements kernels.BlockSummer.
func (s summer) BlockHeadDotGrad(da, d, x *kernels.Mat, blocks *kernels.Blocks) {
	kernels.CheckBlockHeadDotGrad(da, d, x, blocks)
	c := s.call("BlockHeadDotGrad")
	o, g, m := c.mat(da), c.mat(d), c.mat(x)
	s.add(c, func(h kernels.Stream) { kernels.Blockwise{Stream: h}.BlockHeadDotGrad(o, g, m, blocks) })
}

// BlockSoftmaxXent implements kernels.BlockSummer.
func (s summer) BlockSoftmaxXent(grad *kernels.Mat, loss []float64, logits *kernels.Mat, labels []int32, classW *kernels.Mat, scale float32, blocks *kernels.Blocks) {
	kernels.CheckBlockSoftmaxXent(grad, loss, logits, labels, classW, scale, blocks)
	c := s.call("BlockSoftmaxXent")
	g, m, l, w := c.mat(grad), c.mat(logits), c.ids(labels), c.mat(classW)
	s.dev.count("loss", 8*len(loss))
	s.add(c, func(h kernels.Stream) {
		kernels.Blockwise{Stream: h}.BlockSoftmaxXent(g, loss, m, l, w, scale, blocks)
	})
}

// BlockSigmoidBCE implements kernels.BlockSummer.
func (s summer) BlockSigmoidBCE(grad *kernels.Mat, loss []float64, logits *kernels.Mat, targets *kernels.CSR, mask []int32, posW *kernels.Mat, scale float32, blocks *kernels.Blocks) {
	kernels.CheckBlockSigmoidBCE(grad, loss, logits, targets, mask, posW, scale, blocks)
	c := s.call("BlockSigmoidBCE")
	g, m, l, w := c.mat(grad), c.mat(logits), c.ids(mask), c.mat(posW)
	s.dev.count("targets", 8*len(targets.RowPtr))
	t := &kernels.CSR{Cols: targets.Cols, RowPtr: targets.RowPtr, Col: c.ids(targets.Col), Val: targets.Val}
	s.dev.count("loss", 8*len(loss))
	s.add(c, func(h kernels.Stream) {
		kernels.Blockwise{Stream: h}.BlockSigmoidBCE(g, loss, m, t, l, w, scale, blocks)
	})
}

package kernels

// Blockwise makes a BlockSummer of a Stream over matrices of the host: an op per block, and
// Add in the tree of Blocks, as the ops are defined.
type Blockwise struct{ Stream }

// sum has op set a matrix like dst from the rows of each block, and adds up.
func (s Blockwise) sum(dst *Mat, b *Blocks, op func(dst *Mat, rows Span)) {
	slots := []*Mat{dst}
	b.Fold(func(i, slot int) {
		for len(slots) <= slot {
			slots = append(slots, FromSlice(dst.Rows, dst.Cols, make([]float32, dst.Rows*dst.Cols)))
		}
		op(slots[slot], b.Span(i))
	}, func(into, from int) { s.Add(slots[into], slots[into], slots[from]) })
}

// BlockGEMM implements BlockSummer.
func (s Blockwise) BlockGEMM(dst, a, b *Mat, blocks *Blocks) {
	CheckBlockGEMM(dst, a, b, blocks)
	s.sum(dst, blocks, func(dst *Mat, rows Span) { s.GEMM(dst, a.Sub(rows), b.Sub(rows), TN, nil) })
}

// BlockColSum implements BlockSummer.
func (s Blockwise) BlockColSum(dst, x *Mat, blocks *Blocks) {
	CheckBlockColSum(dst, x, blocks)
	s.sum(dst, blocks, func(dst *Mat, rows Span) { s.ColSum(dst, x, rows) })
}

// BlockHeadDotGrad implements BlockSummer.
func (s Blockwise) BlockHeadDotGrad(da, d, x *Mat, blocks *Blocks) {
	CheckBlockHeadDotGrad(da, d, x, blocks)
	s.sum(da, blocks, func(dst *Mat, rows Span) { s.HeadDotGrad(dst, d.Sub(rows), x.Sub(rows)) })
}

// BlockSoftmaxXent implements BlockSummer.
func (s Blockwise) BlockSoftmaxXent(grad *Mat, loss []float64, logits *Mat, labels []int32, classW *Mat, scale float32, blocks *Blocks) {
	CheckBlockSoftmaxXent(grad, loss, logits, labels, classW, scale, blocks)
	for i := range blocks.Len() {
		s.SoftmaxXent(grad, loss[i:i+1], logits, labels, classW, scale, blocks.Span(i))
	}
}

// BlockSigmoidBCE implements BlockSummer.
func (s Blockwise) BlockSigmoidBCE(grad *Mat, loss []float64, logits *Mat, targets *CSR, mask []int32, posW *Mat, scale float32, blocks *Blocks) {
	CheckBlockSigmoidBCE(grad, loss, logits, targets, mask, posW, scale, blocks)
	for i := range blocks.Len() {
		rows := blocks.Span(i)
		part := grad
		if grad != nil {
			part = grad.Sub(rows)
		}
		t := &CSR{Cols: targets.Cols, RowPtr: targets.RowPtr[rows.Lo : rows.Hi+1], Col: targets.Col}
		s.SigmoidBCE(part, loss[i:i+1], logits.Sub(rows), t, mask[rows.Lo:rows.Hi], posW, scale)
	}
}

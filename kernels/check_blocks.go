package kernels

// CheckBlockGEMM panics with a *ShapeError unless BlockGEMM can run.
func CheckBlockGEMM(dst, a, b *Mat, blocks *Blocks) {
	op := check("BlockGEMM")
	op.product(dst, a, b, TN, nil)
	op.blocks(blocks, a.Rows)
}

// CheckBlockColSum panics with a *ShapeError unless BlockColSum can run.
func CheckBlockColSum(dst, x *Mat, blocks *Blocks) {
	CheckColSum(dst, x, Span{Hi: x.Rows})
	check("BlockColSum").blocks(blocks, x.Rows)
}

// CheckBlockHeadDotGrad panics with a *ShapeError unless BlockHeadDotGrad can run.
func CheckBlockHeadDotGrad(da, d, x *Mat, blocks *Blocks) {
	CheckHeadDotGrad(da, d, x)
	check("BlockHeadDotGrad").blocks(blocks, x.Rows)
}

// CheckBlockSoftmaxXent panics with a *ShapeError unless BlockSoftmaxXent can run.
func CheckBlockSoftmaxXent(grad *Mat, loss []float64, logits *Mat, labels []int32, classW *Mat, scale float32, blocks *Blocks) {
	op := check("BlockSoftmaxXent")
	op.losses(loss, blocks)
	CheckSoftmaxXent(grad, loss, logits, labels, classW, scale, Span{Hi: logits.Rows})
	op.blocks(blocks, logits.Rows)
}

// CheckBlockSigmoidBCE panics with a *ShapeError unless BlockSigmoidBCE can run.
func CheckBlockSigmoidBCE(grad *Mat, loss []float64, logits *Mat, targets *CSR, mask []int32, posW *Mat, scale float32, blocks *Blocks) {
	op := check("BlockSigmoidBCE")
	op.losses(loss, blocks)
	CheckSigmoidBCE(grad, loss, logits, targets, mask, posW, scale)
	op.blocks(blocks, logits.Rows)
}

// losses checks that there is one per block.
func (op check) losses(loss []float64, b *Blocks) {
	if b == nil || len(loss) != b.Len() {
		op.failf("%d losses to set, want one per block", len(loss))
	}
}

// blocks checks blocks of n rows in all.
func (op check) blocks(b *Blocks, n int) {
	switch {
	case b == nil || b.Len() == 0:
		op.failf("there are no blocks, want at least one")
	case len(b.Cuts) != b.Len()+1:
		op.failf("%d blocks have %d cuts, want one more", b.Len(), len(b.Cuts))
	case b.Cuts[0] != 0 || int(b.Cuts[b.Len()]) != n:
		op.failf("the blocks are rows [%d,%d), want all %d", b.Cuts[0], b.Cuts[b.Len()], n)
	}
	for i := range b.Len() {
		if b.Cuts[i+1] < b.Cuts[i] {
			op.failf("block %d is rows [%d,%d)", i, b.Cuts[i], b.Cuts[i+1])
		}
		if l := b.Leaves[i]; l < 0 || l >= MaxLeaf || i > 0 && l <= b.Leaves[i-1] {
			op.failf("block %d is leaf %d, want more than the one before and less than %d", i, l, MaxLeaf)
		}
	}
}

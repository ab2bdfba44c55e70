package kernels

// Blocks are runs of rows, one behind the other, whose sums are made apart and then added
// up: block i has rows [Cuts[i],Cuts[i+1]) of an op's matrices, and Cuts ends with their
// number of rows. Its sum is leaf Leaves[i] of a binary tree; leaves ascend. A node of the
// tree is its left child plus its right one, or the one of the two below which there is
// a block. So the order of additions depends on the numbers of the leaves alone.
type Blocks struct {
	Cuts, Leaves []int32
}

// Len is the number of blocks.
func (b *Blocks) Len() int { return len(b.Leaves) }

// Span are the rows of block i.
func (b *Blocks) Span(i int) Span { return Span{int(b.Cuts[i]), int(b.Cuts[i+1])} }

// MaxLeaf is above all leaves.
const MaxLeaf = 1 << 20

// Fold makes the tree with any kind of value: leaf puts what block i gives into a slot,
// and add adds one slot to another. Slots are numbered from 0, where the sum will be; there
// is one more than levels.
func (b *Blocks) Fold(leaf func(i, slot int), add func(into, from int)) {
	levels := 0
	for b.Len() > 0 && int(b.Leaves[b.Len()-1])>>levels > 0 {
		levels++
	}
	next := 0
	b.fold(levels, 0, 0, &next, leaf, add)
}

// fold makes node k of a level, and says whether there is a block below it.
func (b *Blocks) fold(level, k, slot int, next *int, leaf func(i, slot int), add func(into, from int)) bool {
	if *next == b.Len() || int(b.Leaves[*next]) >= (k+1)<<level {
		return false
	}
	if level == 0 {
		leaf(*next, slot)
		*next++
		return true
	}
	left, at := b.fold(level-1, 2*k, slot, next, leaf, add), slot
	if left {
		at++
	}
	right := b.fold(level-1, 2*k+1, at, next, leaf, add)
	if left && right {
		add(slot, at)
	}
	return left || right
}

// BlockSummer is an optional interface of a Stream for which an op costs more to begin
// than a block of rows takes: it sums over the rows of many blocks in one op, with the
// bits of an op per block and of Add, in the order of Blocks. Of no op of such a stream do
// the bits of a row depend on the number of rows in the call.
type BlockSummer interface {
	// BlockGEMM sets dst to the sum over blocks of GEMM(a, b, TN) of their rows.
	BlockGEMM(dst, a, b *Mat, blocks *Blocks)
	// BlockColSum sets dst to the sum over blocks of ColSum.
	BlockColSum(dst, x *Mat, blocks *Blocks)
	// BlockHeadDotGrad sets da to the sum over blocks of HeadDotGrad.
	BlockHeadDotGrad(da, d, x *Mat, blocks *Blocks)
	// BlockSoftmaxXent is SoftmaxXent with loss[i] that of block i; they are not added up.
	BlockSoftmaxXent(grad *Mat, loss []float64, logits *Mat, labels []int32, classW *Mat, scale float32, blocks *Blocks)
	// BlockSigmoidBCE is SigmoidBCE with loss[i] that of block i.
	BlockSigmoidBCE(grad *Mat, loss []float64, logits *Mat, targets *CSR, mask []int32, posW *Mat, scale float32, blocks *Blocks)
}

package cuda

import (
	"encoding/binary"
	"math"

	"dorylus/kernels"
)

// summing is a queue that sums over blocks: one by our own products, of which a row's bits
// do not depend on how many rows there are. A library cuts them as it likes.
type summing struct{ *queue }

// BlockGEMM implements kernels.BlockSummer.
func (q summing) BlockGEMM(dst, a, b *kernels.Mat, blocks *kernels.Blocks) {
	kernels.CheckBlockGEMM(dst, a, b, blocks)
	o := q.op("BlockGEMM")
	d, l, r, c := o.mat(dst), o.mat(a), o.mat(b), cloned(blocks)
	kernel := blockKernel(q.dev.opt.Precision, aligned(l, r))
	o.run(func(x *runner) error {
		m, n := int32(d.rows), int32(d.cols)
		if m == 0 || n == 0 {
			return nil
		}
		s, tiles := blockProduct(c, d.rows, d.cols), over(int64(m), gemmRows)*over(int64(n), gemmCols)
		return x.sumBlocks(d, c, s, func(to, cuts address, lo, hi int) error {
			part, err := to, error(nil)
			if s.part > 0 {
				if part, err = x.scratch(s.part * int64(hi-lo)); err != nil {
					return err
				}
			}
			if err := x.launch(kernel, tiles*int64(s.slots)*int64(hi-lo), l, r, m, n, cuts, int32(s.slots), part); err != nil || s.part == 0 {
				return err
			}
			return x.each("dk_gemm_block_sum", (hi-lo)*d.rows, d.cols, to, part, cuts, int32(hi-lo), m, n, int32(s.slots), shiftOf(d.cols))
		})
	})
}

// blockProduct is how BlockGEMM is made: a block's slices are its parts.
func blockProduct(b *kernels.Blocks, m, n int) blockSums {
	s := blockSums{m: m, n: n, slots: most(b, func(k int) int {
		slices, _ := slicesOf(kernels.TN, m, n, k)
		return slices
	})}
	if s.slots > 1 {
		s.part = s.size() * int64(s.slots)
	}
	return s.group(b)
}

// blockKernel is gemmKernel for many blocks.
func blockKernel(precision string, on16 bool) string {
	switch {
	case !on16:
		return "dk_gemm_blocks_v1"
	case precision == "fp32":
		return "dk_gemm_blocks_v4"
	}
	return "dk_gemm_" + precision + "_blocks"
}

// BlockColSum implements kernels.BlockSummer.
func (q summing) BlockColSum(dst, x *kernels.Mat, blocks *kernels.Blocks) {
	kernels.CheckBlockColSum(dst, x, blocks)
	o := q.op("BlockColSum")
	d, m, c := o.mat(dst), o.mat(x), cloned(blocks)
	o.run(func(x *runner) error {
		return x.sumBlockRows(d, c, "dk_block_col_sum", func(cuts address, slots int32) []any {
			return []any{m, cuts, slots, int32(m.cols)}
		})
	})
}

// BlockHeadDotGrad implements kernels.BlockSummer.
func (q summing) BlockHeadDotGrad(da, d, x *kernels.Mat, blocks *kernels.Blocks) {
	kernels.CheckBlockHeadDotGrad(da, d, x, blocks)
	o := q.op("BlockHeadDotGrad")
	a, g, m, c := o.mat(da), o.mat(d), o.mat(x), cloned(blocks)
	o.run(func(x *runner) error {
		return x.sumBlockRows(a, c, "dk_block_head_dot_grad", func(cuts address, slots int32) []any {
			return []any{g, m, cuts, slots, int32(a.rows), int32(a.cols)}
		})
	})
}

// sumBlockRows is sumRows for many blocks; args are the kernel's arguments after the sums
// of slabs.
func (x *runner) sumBlockRows(dst mat, b *kernels.Blocks, kernel string, args func(cuts address, slots int32) []any) error {
	cols := dst.rows * dst.cols
	if cols == 0 {
		return nil
	}
	s := blockRows(b, dst.rows, dst.cols)
	return x.sumBlocks(dst, b, s, func(to, cuts address, lo, hi int) error {
		part, err := x.scratchMat((hi-lo)*s.slots, cols)
		if err != nil {
			return err
		}
		if err := x.launch(kernel, int64(hi-lo)*int64(s.slots)*over(int64(cols), 32), append([]any{part}, args(cuts, int32(s.slots))...)...); err != nil {
			return err
		}
		return x.each("dk_block_slabs", hi-lo, cols, to, part, cuts, int32(s.slots), int32(hi-lo), int32(cols), shiftOf(cols))
	})
}

// blockRows is how m x n sums over rows are made: those of slabs are a block's parts.
func blockRows(b *kernels.Blocks, m, n int) blockSums {
	s := blockSums{m: m, n: n, slots: max(most(b, func(rows int) int { return int(over(int64(rows), slabRows)) }), 1)}
	s.part = 4 * int64(s.slots) * int64(kernels.PadCols(m*n))
	return s.group(b)
}

// totals adds up each block's values of float64 in the device's memory; loss gets the
// sums before Wait returns.
func (x *runner) totals(loss []float64, values address, b *kernels.Blocks) error {
	sums, err := x.scratch(8 * int64(len(loss)))
	if err != nil {
		return err
	}
	cuts, err := x.numbers(b.Cuts)
	if err != nil {
		return err
	}
	if err := x.launch("dk_block_total", int64(len(loss)), sums, values, cuts); err != nil {
		return err
	}
	for at := 0; at < len(loss); {
		to := loss[at:min(at+int(x.stage.bytes/8), len(loss))]
		err := x.fetch(sums+address(8*at), 8*int64(len(to)), func(host []byte) {
			for i := range to {
				to[i] = math.Float64frombits(binary.NativeEndian.Uint64(host[8*i:]))
			}
		})
		if err != nil {
			return err
		}
		at += len(to)
	}
	return nil
}

// lossScratch is the scratch memory of losses of rows and their sums.
func lossScratch(rows, sums int) int64 {
	return scratchBytes(8*int64(rows)) + scratchBytes(8*int64(sums))
}

// BlockSoftmaxXent implements kernels.BlockSummer.
func (q summing) BlockSoftmaxXent(grad *kernels.Mat, loss []float64, logits *kernels.Mat, labels []int32, classW *kernels.Mat, scale float32, blocks *kernels.Blocks) {
	kernels.CheckBlockSoftmaxXent(grad, loss, logits, labels, classW, scale, blocks)
	o := q.op("BlockSoftmaxXent")
	g, z, w, c := o.mat(grad), o.mat(logits), o.mat(classW), cloned(blocks)
	o.run(func(x *runner) error {
		if err := x.arena.reserve(x.c, x.pool, lossScratch(z.rows, c.Len())); err != nil {
			return err
		}
		each, err := x.softmaxXent(g, z, labels, w, scale, kernels.Span{Hi: z.rows})
		if err != nil {
			return err
		}
		return x.blockTotals(loss, each, z, c)
	})
}

// BlockSigmoidBCE implements kernels.BlockSummer.
func (q summing) BlockSigmoidBCE(grad *kernels.Mat, loss []float64, logits *kernels.Mat, targets *kernels.CSR, mask []int32, posW *kernels.Mat, scale float32, blocks *kernels.Blocks) {
	kernels.CheckBlockSigmoidBCE(grad, loss, logits, targets, mask, posW, scale, blocks)
	o := q.op("BlockSigmoidBCE")
	g, z, w, t, c := o.mat(grad), o.mat(logits), o.mat(posW), *targets, cloned(blocks)
	o.run(func(x *runner) error {
		if err := x.arena.reserve(x.c, x.pool, lossScratch(z.rows, c.Len())); err != nil {
			return err
		}
		each, err := x.sigmoidBCE(g, z, t, mask, w, scale, true)
		if err != nil {
			return err
		}
		return x.blockTotals(loss, each, z, c)
	})
}

// blockTotals is totals of the losses of rows; no columns have none.
func (x *runner) blockTotals(loss []float64, each address, logits mat, b *kernels.Blocks) error {
	if logits.cols == 0 {
		clear(loss)
		return nil
	}
	return x.totals(loss, each, b)
}

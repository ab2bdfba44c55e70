package cuda

import (
	"encoding/binary"
	"math"

	"dorylus/kernels"
)

// warpRows is how many rows a block takes where a warp takes a row.
const warpRows = blockThreads / 32

// total adds up n values of float64 in the device's memory. loss[0] gets the sum before
// Wait returns.
func (x *runner) total(loss []float64, values address, n int) error {
	sum, err := x.scratch(8)
	if err != nil {
		return err
	}
	if err := x.launch("dk_total_double", 1, sum, values, int64(n)); err != nil {
		return err
	}
	return x.fetch(sum, 8, func(host []byte) { loss[0] = math.Float64frombits(binary.NativeEndian.Uint64(host)) })
}

// SoftmaxXent implements kernels.Stream.
func (q *queue) SoftmaxXent(grad *kernels.Mat, loss []float64, logits *kernels.Mat, labels []int32, classW *kernels.Mat, scale float32, rows kernels.Span) {
	kernels.CheckSoftmaxXent(grad, loss, logits, labels, classW, scale, rows)
	o := q.op("SoftmaxXent")
	g, z, w := o.mat(grad), o.mat(logits), o.mat(classW)
	o.run(func(x *runner) error {
		each, err := x.softmaxXent(g, z, labels, w, scale, rows)
		if err != nil {
			return err
		}
		return x.total(loss, each, terms(z, rows.Len()))
	})
}

// terms is how many rows of logits have a loss.
func terms(logits mat, rows int) int {
	if logits.cols == 0 {
		return 0
	}
	return rows
}

// softmaxXent gives the loss of each of the rows, as float64.
func (x *runner) softmaxXent(g, z mat, labels []int32, w mat, scale float32, rows kernels.Span) (address, error) {
	n := terms(z, rows.Len())
	each, err := x.scratch(8 * int64(n))
	if err != nil {
		return 0, err
	}
	return each, x.launch("dk_softmax_xent", over(int64(n), warpRows), g, each, z, list{labels, rows.Lo, rows.Hi}, w.p, scale,
		int64(rows.Lo), int64(n), int32(z.cols))
}

// SigmoidBCE implements kernels.Stream.
func (q *queue) SigmoidBCE(grad *kernels.Mat, loss []float64, logits *kernels.Mat, targets *kernels.CSR, mask []int32, posW *kernels.Mat, scale float32) {
	kernels.CheckSigmoidBCE(grad, loss, logits, targets, mask, posW, scale)
	o := q.op("SigmoidBCE")
	g, z, w, t := o.mat(grad), o.mat(logits), o.mat(posW), *targets
	o.run(func(x *runner) error {
		each, err := x.sigmoidBCE(g, z, t, mask, w, scale, false)
		if err != nil {
			return err
		}
		return x.total(loss, each, terms(z, z.rows))
	})
}

// sigmoidBCE gives the loss of each row, as float64. The offsets of targets are copied for
// each op, unless they are to be kept and their columns are; the mask may be kept.
func (x *runner) sigmoidBCE(g, z mat, t kernels.CSR, mask []int32, w mat, scale float32, keep bool) (address, error) {
	n := terms(z, z.rows)
	each, err := x.scratch(8 * int64(n))
	if err != nil || n == 0 {
		return each, err
	}
	offsets, err := x.offsets(t, keep)
	if err != nil {
		return 0, err
	}
	return each, x.launch("dk_sigmoid_bce", over(int64(n), warpRows), g, each, z, offsets, listed(t, mask), list{mask, 0, n}, w.p, scale,
		int64(n), int32(z.cols))
}

// listed is the part of the targets' columns that the rows of the mask list.
func listed(t kernels.CSR, mask []int32) list {
	l := list{lo: len(t.Col)}
	for r, m := range mask {
		if lo, hi := t.RowPtr[r], t.RowPtr[r+1]; m >= 0 && lo < hi {
			l.v, l.lo, l.hi = t.Col, min(l.lo, int(lo)), max(l.hi, int(hi))
		}
	}
	if l.v == nil {
		return list{}
	}
	return l
}

package paper

import (
	"unsafe"

	"dorylus/kernels"
)

// summing is a stream of a device that sums over blocks.
type summing struct{ *stream }

// sums counts what sums over blocks take, for as long as the op runs, and the lists that a
// device keeps.
func (s *stream) sums(scratch int64, lists [][]int32) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.c.scratch = max(s.c.scratch, scratch)
	for _, l := range lists {
		s.c.list(l)
	}
}

// list counts a list of blocks, once: a device knows it again by what is in it. mu is held.
func (c *counts) list(v []int32) {
	if len(v) == 0 {
		return
	}
	key := string(unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), 4*len(v)))
	if !c.lists[key] {
		c.lists[key] = true
		c.hold(kind{name: Index}, c.costs.Block(4*int64(len(v))))
	}
}

// targets counts the row offsets that a device keeps as long as all of the columns.
func (c *counts) targets(t *kernels.CSR) (kept bool) {
	if len(t.Col) == 0 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.kept[&t.Col[0]]
	if l == nil || l.len != len(t.Col) {
		return false
	}
	key := offsets{&t.RowPtr[0], len(t.RowPtr)}
	if !l.offsets[key] {
		if l.offsets == nil {
			l.offsets = map[offsets]bool{}
		}
		l.offsets[key] = true
		n := c.costs.Offsets(len(t.RowPtr))
		l.takes += n
		c.hold(kind{name: Index}, n)
	}
	return true
}

func (s summing) BlockGEMM(dst, a, b *kernels.Mat, blocks *kernels.Blocks) {
	if dst.Rows > 0 && dst.Cols > 0 {
		s.sums(s.c.costs.BlockProduct(blocks, dst.Rows, dst.Cols))
	}
	s.reads(a, b)
	s.sets(dst)
}

func (s summing) BlockColSum(dst, x *kernels.Mat, blocks *kernels.Blocks) {
	s.blockRows(dst, blocks)
	s.reads(x)
	s.sets(dst)
}

func (s summing) BlockHeadDotGrad(da, d, x *kernels.Mat, blocks *kernels.Blocks) {
	s.blockRows(da, blocks)
	s.HeadDotGrad(da, d, x)
}

func (s summing) blockRows(dst *kernels.Mat, blocks *kernels.Blocks) {
	if dst.Rows > 0 && dst.Cols > 0 {
		s.sums(s.c.costs.BlockRows(blocks, dst.Rows, dst.Cols))
	}
}

func (s summing) BlockSoftmaxXent(grad *kernels.Mat, loss []float64, logits *kernels.Mat, _ []int32, _ *kernels.Mat, _ float32, blocks *kernels.Blocks) {
	s.blockLosses(grad, loss, logits, blocks, 0)
}

func (s summing) BlockSigmoidBCE(grad *kernels.Mat, loss []float64, logits *kernels.Mat, targets *kernels.CSR, _ []int32, _ *kernels.Mat, _ float32, blocks *kernels.Blocks) {
	more := int64(0)
	if !s.c.targets(targets) {
		more = s.c.costs.Offsets(len(targets.RowPtr))
	}
	s.blockLosses(grad, loss, logits, blocks, more)
}

func (s summing) blockLosses(grad *kernels.Mat, loss []float64, logits *kernels.Mat, blocks *kernels.Blocks, more int64) {
	clear(loss)
	scratch, lists := s.c.costs.BlockLosses(blocks, logits.Rows)
	s.sums(scratch+more, lists)
	s.reads(logits)
	s.sets(grad)
}

package cuda

import "dorylus/kernels"

// A block of a product makes gemmRows x gemmCols values (DK_BM, DK_BN).
const (
	gemmRows = 128
	gemmCols = 64
	// gemmTiles is to how many blocks slices bring a product, and gemmTerms the least
	// terms that a slice of a sum is worth. They are the same for all devices: the number
	// of slices decides a product's last bits. DK_TILES, DK_TERMS, DK_SLICES.
	gemmTiles  = 64
	gemmTerms  = 256
	gemmSlices = 64 // the most that dk_gemm_sum takes
)

// slicesOf is in how many slices a product m x n over k is summed, and their terms. Where
// k are columns it is one: a row's bits must not depend on how many rows there are.
// Where k are the rows of a block it is dk_slices.
func slicesOf(t kernels.Trans, m, n, k int) (slices int, terms int32) {
	if t != kernels.TN {
		return 1, int32(max(k, 1))
	}
	tiles := over(int64(m), gemmRows) * over(int64(n), gemmCols)
	s := min(gemmTiles/max(tiles, 1), gemmSlices, int64(k)/gemmTerms)
	if s <= 1 {
		return 1, int32(max(k, 1))
	}
	kc := over(over(int64(k), s), 16) * 16
	return int(over(int64(k), kc)), int32(kc)
}

// GEMM implements kernels.Stream.
func (q *queue) GEMM(dst, a, b *kernels.Mat, t kernels.Trans, ep *kernels.Epilogue) {
	kernels.CheckGEMM(dst, a, b, t, ep)
	q.product("GEMM", dst, a, b, t, ep, false)
}

// AddGEMM implements kernels.Accumulator.
func (q *queue) AddGEMM(dst, a, b *kernels.Mat, t kernels.Trans, ep *kernels.Epilogue) {
	kernels.CheckAddGEMM(dst, a, b, t, ep)
	q.product("AddGEMM", dst, a, b, t, ep, true)
}

func (q *queue) product(name string, dst, a, b *kernels.Mat, t kernels.Trans, ep *kernels.Epilogue, add bool) {
	o := q.op(name)
	d, l, r, e := o.mat(dst), o.mat(a), o.mat(b), o.epilogue(ep, kernels.Span{Hi: dst.Rows})
	k := a.Cols
	if t == kernels.TN {
		k = a.Rows
	}
	if q.dev.lib != nil {
		o.run(product{d, l, r, k, t, q.dev.opt.Precision, add}.byLibrary(e, ep != nil))
		return
	}
	kernel := gemmKernel(q.dev.opt.Precision, t, aligned(l, r))
	o.run(func(x *runner) error {
		if d.rows == 0 || d.cols == 0 {
			return nil
		}
		slices, terms := slicesOf(t, d.rows, d.cols, k)
		blocks := over(int64(d.rows), gemmRows) * over(int64(d.cols), gemmCols) * int64(slices)
		m, n := int32(d.rows), int32(d.cols)
		if slices == 1 {
			return x.launch(kernel, blocks, d, l, r, m, n, int32(k), terms, address(0), add, e)
		}
		part, err := x.scratch(4 * int64(slices) * int64(d.rows) * int64(d.cols))
		if err != nil {
			return err
		}
		if err := x.launch(kernel, blocks, d, l, r, m, n, int32(k), terms, part, add, e); err != nil {
			return err
		}
		return x.each("dk_gemm_sum", d.rows, d.cols, d, part, m, n, int32(slices), add, shiftOf(d.cols), e)
	})
}

// gemmKernel is the kernel of a product. Matrix units want operands on 16 bytes: without,
// a product is in fp32 also where less is asked for.
func gemmKernel(precision string, t kernels.Trans, on16 bool) string {
	form := [...]string{kernels.NN: "nn", kernels.NT: "nt", kernels.TN: "tn"}[t]
	switch {
	case !on16:
		return "dk_gemm_" + form + "_v1"
	case precision == "fp32":
		return "dk_gemm_" + form + "_v4"
	}
	return "dk_gemm_" + precision + "_" + form
}

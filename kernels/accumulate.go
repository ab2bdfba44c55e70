package kernels

// Accumulator are the ops of a Stream that add to what is there, for values and
// gradients that several stages contribute to.
type Accumulator interface {
	// AddGEMM sets dst = epilogue(dst + op(a)·op(b)), one block per call like GEMM.
	// A product of no terms adds nothing.
	AddGEMM(dst, a, b *Mat, t Trans, ep *Epilogue)

	// AddRows adds src[i,:] to dst[ids[i],:], i ascending. An entry of ids below 0
	// adds its row to nothing; an id may occur more than once.
	AddRows(dst, src *Mat, ids []int32)

	// AddScaled sets dst = a + (c + s)·b, same shape; s is 1 x 1, or nil for 0. dst
	// may be a or b.
	AddScaled(dst, a, b *Mat, c float32, s *Mat)

	// Dot sets dst[0,0] = sum of a[r,c]·b[r,c], row after row.
	Dot(dst, a, b *Mat)

	// ColDot sets dst[0,c] = sum of a[r,c]·b[r,c] over rows, in row order.
	ColDot(dst, a, b *Mat)
}

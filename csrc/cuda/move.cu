// move.cu: the elementwise ops that copy and add. All use the mapping of dk_each:
// any grid; shift is log2 of the threads that share a row.
#include "dkernel.h"

DK_KERNEL(dk_copy, (float *dst, int64_t ldd, const float *src, int64_t lds, int64_t rows, int32_t cols, int32_t shift))
{
	dk_each(rows, cols, shift, [&](int64_t r, int32_t c) { dst[r * ldd + c] = src[r * lds + c]; });
}

DK_KERNEL(dk_zero, (float *dst, int64_t ldd, int64_t rows, int32_t cols, int32_t shift))
{
	dk_each(rows, cols, shift, [&](int64_t r, int32_t c) { dst[r * ldd + c] = 0; });
}

DK_KERNEL(dk_add, (float *dst, int64_t ldd, const float *a, int64_t lda, const float *b, int64_t ldb, int64_t rows,
		   int32_t cols, int32_t shift))
{
	dk_each(rows, cols, shift, [&](int64_t r, int32_t c) { dst[r * ldd + c] = a[r * lda + c] + b[r * ldb + c]; });
}

// dst = a + (f + s)·b; s null for 0.
DK_KERNEL(dk_add_scaled, (float *dst, int64_t ldd, const float *a, int64_t lda, const float *b, int64_t ldb, float f,
			  const float *s, int64_t rows, int32_t cols, int32_t shift))
{
	if (s)
		f += *s;
	dk_each(rows, cols, shift,
		[&](int64_t r, int32_t c) { dst[r * ldd + c] = dk_fma(f, b[r * ldb + c], a[r * lda + c]); });
}

// dst[r] = src[ids[r]].
DK_KERNEL(dk_gather_rows, (float *dst, int64_t ldd, const float *src, int64_t lds, const int32_t *ids, int64_t rows,
			   int32_t cols, int32_t shift))
{
	dk_each(rows, cols, shift, [&](int64_t r, int32_t c) {
		dst[r * ldd + c] = dk_ldg(src + (int64_t)dk_ldg(ids + r) * lds + c);
	});
}

// dst[ids[r]] = src[r].
DK_KERNEL(dk_scatter_rows, (float *dst, int64_t ldd, const float *src, int64_t lds, const int32_t *ids, int64_t rows,
			    int32_t cols, int32_t shift))
{
	dk_each(rows, cols, shift, [&](int64_t r, int32_t c) {
		dst[(int64_t)dk_ldg(ids + r) * ldd + c] = dk_ldg(src + r * lds + c);
	});
}

// dst[to[k]] += src[from[i]] for i in [start[k],start[k+1]), in that order: the ids of
// AddRows, sorted by the row that they add to. to has no repeats.
DK_KERNEL(dk_add_rows, (float *dst, int64_t ldd, const float *src, int64_t lds, const int32_t *to, const int64_t *start,
			const int32_t *from, int64_t n, int32_t cols, int32_t shift))
{
	dk_each(n, cols, shift, [&](int64_t k, int32_t c) {
		float *p = dst + (int64_t)dk_ldg(to + k) * ldd + c, sum = *p;
		for (int64_t i = dk_ldg(start + k), end = dk_ldg(start + k + 1); i < end; i++)
			sum += dk_ldg(src + (int64_t)dk_ldg(from + i) * lds + c);
		*p = sum;
	});
}

// dst = a[c]·x + b[c]·y + d[c]; y and b may be null together.
DK_KERNEL(dk_col_affine, (float *dst, int64_t ldd, const float *x, int64_t ldx, const float *y, int64_t ldy, const float *a,
			  const float *b, const float *d, int64_t rows, int32_t cols, int32_t shift))
{
	dk_each(rows, cols, shift, [&](int64_t r, int32_t c) {
		float v = dk_fma(dk_ldg(a + c), x[r * ldx + c], dk_ldg(d + c));
		if (y)
			v = dk_fma(dk_ldg(b + c), y[r * ldy + c], v);
		dst[r * ldd + c] = v;
	});
}

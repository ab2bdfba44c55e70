/*
 * Row by row: sums over rows, sums of two matrices, rows by number, and
 * conversions to and from bfloat16.
 */
#include "lane.h"

#define DK_AHEAD 16

/* out[c] = sum of x[v,c] over v in [lo,hi), in row order. */
DK_FN void DK_NAME(dk_colsum)(const float *x, int64_t ldx, float *out, int64_t f, int64_t lo, int64_t hi)
{
	int64_t c = 0;
	for (; c + 8 * VEC_W <= f; c += 8 * VEC_W) {
		vec acc[8];
		for (int i = 0; i < 8; i++)
			acc[i] = v_zero();
		for (int64_t v = lo; v < hi; v++)
			for (int i = 0; i < 8; i++)
				acc[i] = v_add(acc[i], v_load(x + v * ldx + c + i * VEC_W));
		for (int i = 0; i < 8; i++)
			v_store(out + c + i * VEC_W, acc[i]);
	}
	DK_COLUMNS(d, n, c, f, {
		vec acc = v_zero();
		for (int64_t v = lo; v < hi; v++)
			acc = v_add(acc, v_load_n(x + v * ldx + d, n));
		v_store_n(out + d, acc, n);
	});
}

/* y = a + b; y may be a or b. */
DK_FN void DK_NAME(dk_add)(const float *a, int64_t lda, const float *b, int64_t ldb, float *y, int64_t ldy,
                           int64_t rows, int64_t f)
{
	for (int64_t v = 0; v < rows; v++)
		DK_COLUMNS(c, n, 0, f,
		           { v_store_n(y + v * ldy + c, v_add(v_load_n(a + v * lda + c, n), v_load_n(b + v * ldb + c, n)), n); });
}

/* y[i,:] = x[ids[i],:]. */
DK_FN void DK_NAME(dk_gather_rows)(const float *x, int64_t ldx, const int32_t *ids, int64_t n, float *y, int64_t ldy,
                                   int64_t f)
{
	for (int64_t i = 0; i < n; i++) {
		if (i + DK_AHEAD < n)
			for (int64_t c = 0; c < f; c += 16)
				DK_PREFETCH(x + (int64_t)ids[i + DK_AHEAD] * ldx + c);
		const float *xi = x + (int64_t)ids[i] * ldx;
		float *yi = y + i * ldy;
		DK_COLUMNS(c, k, 0, f, { v_store_n(yi + c, v_load_n(xi + c, k), k); });
	}
}

/* y[ids[i],:] = x[i,:]. */
DK_FN void DK_NAME(dk_scatter_rows)(const float *x, int64_t ldx, const int32_t *ids, int64_t n, float *y, int64_t ldy,
                                    int64_t f)
{
	for (int64_t i = 0; i < n; i++) {
		const float *xi = x + i * ldx;
		float *yi = y + (int64_t)ids[i] * ldy;
		DK_COLUMNS(c, k, 0, f, { v_store_n(yi + c, v_load_n(xi + c, k), k); });
	}
}

/* Nearest even; a NaN keeps its sign and becomes quiet. The result is in the low
 * half of each value. */
DK_INLINE ivec i_bf16(ivec b)
{
	const ivec up = i_add(i_set1(0x7fffu), i_and(i_shr(b, 16), i_set1(1)));
	const ivec near = i_shr(i_add(b, up), 16);
	const ivec quiet = i_or(i_shr(b, 16), i_set1(0x40u));
	return i_select(i_geu(i_and(b, i_set1(0x7fffffffu)), i_set1(0x7f800001u)), quiet, near);
}

/* y holds rows * f values without padding. */
DK_FN void DK_NAME(dk_to_bf16)(const float *x, int64_t ldx, uint16_t *y, int64_t rows, int64_t f)
{
	for (int64_t v = 0; v < rows; v++, y += f) {
		DK_COLUMNS(c, n, 0, f, {
			const ivec b = i_bf16(v_bits(v_load_n(x + v * ldx + c, n)));
			if (n == VEC_W) {
				i_store16(y + c, b);
			} else {
				uint16_t last[VEC_W];
				i_store16(last, b);
				memcpy(y + c, last, (size_t)n * sizeof *y);
			}
		});
	}
}

/* x holds rows * f values without padding. */
DK_FN void DK_NAME(dk_from_bf16)(const uint16_t *x, float *y, int64_t ldy, int64_t rows, int64_t f)
{
	for (int64_t v = 0; v < rows; v++, x += f) {
		DK_COLUMNS(c, n, 0, f, {
			if (n == VEC_W) {
				v_store(y + v * ldy + c, v_from_bits(i_shl(i_load16(x + c), 16)));
			} else {
				uint16_t last[VEC_W] = {0};
				memcpy(last, x + c, (size_t)n * sizeof *x);
				v_store_n(y + v * ldy + c, v_from_bits(i_shl(i_load16(last), 16)), n);
			}
		});
	}
}

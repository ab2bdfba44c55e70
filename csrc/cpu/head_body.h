/*
 * Rows of h heads with d columns each, and vectors a of one row per head. Sums over
 * a head run by lanes, then over the lanes; sums over rows in row order.
 */
#include "lane.h"

/* y[v,k] = <x[v, head k], a[k,:]> */
DK_FN void DK_NAME(dk_head_dot)(const float *x, int64_t ldx, const float *a, int64_t lda, float *y, int64_t ldy,
                                int64_t rows, int64_t h, int64_t d)
{
	for (int64_t v = 0; v < rows; v++)
		for (int64_t k = 0; k < h; k++) {
			const float *xk = x + v * ldx + k * d, *ak = a + k * lda;
			vec s = v_zero();
			DK_COLUMNS(c, n, 0, d, { s = v_fma(v_load_n(xk + c, n), v_load_n(ak + c, n), s); });
			y[v * ldy + k] = v_hsum(s);
		}
}

/* x[v, head k] += g[v,k] * a[k,:] */
DK_FN void DK_NAME(dk_head_outer_add)(const float *g, int64_t ldg, const float *a, int64_t lda, float *x, int64_t ldx,
                                      int64_t rows, int64_t h, int64_t d)
{
	for (int64_t v = 0; v < rows; v++)
		for (int64_t k = 0; k < h; k++) {
			float *xk = x + v * ldx + k * d;
			const float *ak = a + k * lda;
			const vec s = v_set1(g[v * ldg + k]);
			DK_COLUMNS(c, n, 0, d, { v_store_n(xk + c, v_fma(s, v_load_n(ak + c, n), v_load_n(xk + c, n)), n); });
		}
}

/* da[k,:] = sum over v of g[v,k] * x[v, head k] */
DK_FN void DK_NAME(dk_head_dot_grad)(const float *g, int64_t ldg, const float *x, int64_t ldx, float *da, int64_t lda,
                                     int64_t rows, int64_t h, int64_t d)
{
	for (int64_t k = 0; k < h; k++)
		memset(da + k * lda, 0, (size_t)d * sizeof *da);
	for (int64_t v = 0; v < rows; v++)
		for (int64_t k = 0; k < h; k++) {
			const float *xk = x + v * ldx + k * d;
			float *ak = da + k * lda;
			const vec s = v_set1(g[v * ldg + k]);
			DK_COLUMNS(c, n, 0, d, { v_store_n(ak + c, v_fma(s, v_load_n(xk + c, n), v_load_n(ak + c, n)), n); });
		}
}

/* y[v,c] = mean over k of x[v, head k, c] */
DK_FN void DK_NAME(dk_head_mean)(const float *x, int64_t ldx, float *y, int64_t ldy, int64_t rows, int64_t h,
                                 int64_t d)
{
	const vec part = v_set1(1.0f / (float)h);
	for (int64_t v = 0; v < rows; v++) {
		DK_COLUMNS(c, n, 0, d, {
			vec s = v_zero();
			for (int64_t k = 0; k < h; k++)
				s = v_add(s, v_load_n(x + v * ldx + k * d + c, n));
			v_store_n(y + v * ldy + c, v_mul(s, part), n);
		});
	}
}

/* x[v, head k, c] = g[v,c] / h */
DK_FN void DK_NAME(dk_head_spread)(const float *g, int64_t ldg, float *x, int64_t ldx, int64_t rows, int64_t h,
                                   int64_t d)
{
	const vec count = v_set1((float)h);
	for (int64_t v = 0; v < rows; v++) {
		DK_COLUMNS(c, n, 0, d, {
			const vec s = v_div(v_load_n(g + v * ldg + c, n), count);
			for (int64_t k = 0; k < h; k++)
				v_store_n(x + v * ldx + k * d + c, s, n);
		});
	}
}

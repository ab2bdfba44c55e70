/*
 * out[e] = <x[u,:], y[v,:]> for e = (u,v), v in [lo,hi). The products of an edge
 * are summed in four vectors by turns, then over the four, then over the lanes:
 * an edge's bits depend on f only. Reads nothing past column f-1.
 */
#include "lane.h"

#define DK_AHEAD 16

DK_FN void DK_NAME(dk_sddmm)(const int64_t *row_ptr, const int32_t *col, const float *x, int64_t ldx,
                             const float *y, int64_t ldy, float *out, int64_t f, int64_t lo, int64_t hi)
{
	const int64_t stop = row_ptr[hi];
	for (int64_t v = lo; v < hi; v++) {
		const float *yv = y + v * ldy;
		for (int64_t e = row_ptr[v]; e < row_ptr[v + 1]; e++) {
			if (e + DK_AHEAD < stop) {
				const float *p = x + (int64_t)col[e + DK_AHEAD] * ldx;
				for (int64_t c = 0; c < f; c += 16)
					DK_PREFETCH(p + c);
			}
			const float *xu = x + (int64_t)col[e] * ldx;
			vec a0 = v_zero(), a1 = v_zero(), a2 = v_zero(), a3 = v_zero();
			int64_t c = 0;
			for (; c + 4 * VEC_W <= f; c += 4 * VEC_W) {
				a0 = v_fma(v_load(xu + c), v_load(yv + c), a0);
				a1 = v_fma(v_load(xu + c + VEC_W), v_load(yv + c + VEC_W), a1);
				a2 = v_fma(v_load(xu + c + 2 * VEC_W), v_load(yv + c + 2 * VEC_W), a2);
				a3 = v_fma(v_load(xu + c + 3 * VEC_W), v_load(yv + c + 3 * VEC_W), a3);
			}
			DK_COLUMNS(d, n, c, f, { a0 = v_fma(v_load_n(xu + d, n), v_load_n(yv + d, n), a0); });
			out[e] = v_hsum(v_add(v_add(a0, a1), v_add(a2, a3)));
		}
	}
}

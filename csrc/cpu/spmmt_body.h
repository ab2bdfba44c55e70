/*
 * y = 0;  y[u,:] += w[e] * x[v,:]      v in [lo,hi) ascending, e = (u,v) in edge order
 *
 * y has n_dst rows. A panel of x[v,:] stays in registers over the edges of v.
 */
#include "lane.h"

#define DK_AHEAD 16

DK_INLINE void dk_scatter(const int64_t *row_ptr, const int32_t *col, const float *w, const float *x, int64_t ldx,
                          float *y, int64_t ldy, int64_t n, int64_t lo, int64_t hi, const int nv)
{
	const int64_t stop = row_ptr[hi];
	const vmask m = v_tail(n - (nv - 1) * VEC_W);
	for (int64_t v = lo; v < hi; v++) {
		const float *xv = x + v * ldx;
		vec a[VEC_ACC];
		for (int i = 0; i < nv - 1; i++)
			a[i] = v_load(xv + i * VEC_W);
		a[nv - 1] = v_load_mask(xv + (nv - 1) * VEC_W, m);
		for (int64_t e = row_ptr[v]; e < row_ptr[v + 1]; e++) {
			if (e + DK_AHEAD < stop) {
				const float *p = y + (int64_t)col[e + DK_AHEAD] * ldy;
				for (int64_t l = 0; l < nv * VEC_W; l += 16)
					DK_PREFETCH(p + l);
			}
			float *yu = y + (int64_t)col[e] * ldy;
			const vec s = v_set1(w ? w[e] : 1.0f);
			for (int i = 0; i < nv - 1; i++)
				v_store(yu + i * VEC_W, v_fma(s, a[i], v_load(yu + i * VEC_W)));
			yu += (nv - 1) * VEC_W;
			if (n == nv * VEC_W)
				v_store(yu, v_fma(s, a[nv - 1], v_load(yu)));
			else
				v_store_mask(yu, m, v_fma(s, a[nv - 1], v_load_mask(yu, m)));
		}
	}
}

DK_FN void DK_NAME(dk_spmmt)(const int64_t *row_ptr, const int32_t *col, const float *w, const float *x, int64_t ldx,
                             float *y, int64_t ldy, int64_t n_dst, int64_t f, int64_t lo, int64_t hi)
{
	for (int64_t u = 0; u < n_dst; u++)
		memset(y + u * ldy, 0, (size_t)f * sizeof *y);
	for (int64_t c = 0; c < f; c += 8 * VEC_W) {
		const int64_t n = f - c < 8 * VEC_W ? f - c : 8 * VEC_W;
#define DK_CASE(k)                                                                   \
	case k:                                                                      \
		dk_scatter(row_ptr, col, w, x + c, ldx, y + c, ldy, n, lo, hi, k);   \
		break
		switch ((n + VEC_W - 1) / VEC_W) {
			DK_CASE(1);
			DK_CASE(2);
			DK_CASE(3);
			DK_CASE(4);
			DK_CASE(5);
			DK_CASE(6);
			DK_CASE(7);
			DK_CASE(8);
		}
#undef DK_CASE
	}
}

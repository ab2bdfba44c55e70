/*
 * c = op(a)·op(b), row-major, or c += that with add, without OpenBLAS: for builds
 * that have none.
 * Simple and short, at about a third of the speed. Each value is one chain of
 * sums over k (several chains, by lanes, where b is transposed), so its bits
 * depend on k alone.
 */
#include "lane.h"

/* Rows [0,mr) and columns [0,n), n up to two vectors. */
DK_INLINE void dk_gemm_tile(const int mr, const int ta, int add, int64_t n, int64_t k, const float *a, int64_t lda,
                            const float *b, int64_t ldb, float *c, int64_t ldc)
{
	const vmask m0 = v_tail(n), m1 = v_tail(n - VEC_W);
	vec acc[4][2];
	for (int i = 0; i < mr; i++)
		acc[i][0] = acc[i][1] = v_zero();
	for (int64_t p = 0; p < k; p++) {
		const vec b0 = v_load_mask(b + p * ldb, m0);
		const vec b1 = n > VEC_W ? v_load_mask(b + p * ldb + VEC_W, m1) : v_zero();
		for (int i = 0; i < mr; i++) {
			const vec x = v_set1(ta ? a[p * lda + i] : a[i * lda + p]);
			acc[i][0] = v_fma(x, b0, acc[i][0]);
			acc[i][1] = v_fma(x, b1, acc[i][1]);
		}
	}
	for (int i = 0; i < mr; i++) {
		if (add) {
			acc[i][0] = v_add(v_load_mask(c + i * ldc, m0), acc[i][0]);
			acc[i][1] = n > VEC_W ? v_add(v_load_mask(c + i * ldc + VEC_W, m1), acc[i][1]) : v_zero();
		}
		v_store_mask(c + i * ldc, m0, acc[i][0]);
		if (n > VEC_W)
			v_store_mask(c + i * ldc + VEC_W, m1, acc[i][1]);
	}
}

DK_INLINE float dk_gemm_dot(const float *a, const float *b, int64_t k)
{
	vec acc = v_zero();
	DK_COLUMNS(p, n, 0, k, { acc = v_fma(v_load_n(a + p, n), v_load_n(b + p, n), acc); });
	return v_hsum(acc);
}

DK_FN void DK_NAME(dk_gemm)(int ta, int tb, int add, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
                            const float *b, int64_t ldb, float *c, int64_t ldc)
{
	if (tb) { /* a is not transposed then */
		for (int64_t i = 0; i < m; i++)
			for (int64_t j = 0; j < n; j++) {
				const float s = dk_gemm_dot(a + i * lda, b + j * ldb, k);
				c[i * ldc + j] = add ? c[i * ldc + j] + s : s;
			}
		return;
	}
	for (int64_t j = 0; j < n; j += 2 * VEC_W) {
		const int64_t w = n - j < 2 * VEC_W ? n - j : 2 * VEC_W;
		int64_t i = 0;
		for (; i + 4 <= m; i += 4) {
			if (ta)
				dk_gemm_tile(4, 1, add, w, k, a + i, lda, b + j, ldb, c + i * ldc + j, ldc);
			else
				dk_gemm_tile(4, 0, add, w, k, a + i * lda, lda, b + j, ldb, c + i * ldc + j, ldc);
		}
		for (; i < m; i++) {
			if (ta)
				dk_gemm_tile(1, 1, add, w, k, a + i, lda, b + j, ldb, c + i * ldc + j, ldc);
			else
				dk_gemm_tile(1, 0, add, w, k, a + i * lda, lda, b + j, ldb, c + i * ldc + j, ldc);
		}
	}
}

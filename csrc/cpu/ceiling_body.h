/*
 * What the machine can do: ceilings to compare the kernels with.
 */
#include "lane.h"

/* Sums the rows x[ids[i],:] of f values (a multiple of VEC_W) into registers,
 * while the row that is ahead rows away is prefetched (0: no prefetch). out gets
 * 8 * VEC_W values, so that nothing is optimised away. */
DK_FN void DK_NAME(dk_probe_gather)(const float *x, int64_t ldx, const int32_t *ids, int64_t n, int64_t f,
                                    int64_t ahead, float *out)
{
	vec acc[8];
	for (int i = 0; i < 8; i++)
		acc[i] = v_zero();
	for (int64_t j = 0; j < n; j++) {
		if (ahead && j + ahead < n) {
			const float *p = x + (int64_t)ids[j + ahead] * ldx;
			for (int64_t c = 0; c < f; c += 16)
				DK_PREFETCH(p + c);
		}
		const float *xj = x + (int64_t)ids[j] * ldx;
		int64_t c = 0;
		for (; c + 8 * VEC_W <= f; c += 8 * VEC_W)
			for (int i = 0; i < 8; i++)
				acc[i] = v_add(acc[i], v_load(xj + c + i * VEC_W));
		for (; c + 2 * VEC_W <= f; c += 2 * VEC_W) {
			acc[0] = v_add(acc[0], v_load(xj + c));
			acc[1] = v_add(acc[1], v_load(xj + c + VEC_W));
		}
		for (; c < f; c += VEC_W)
			acc[2] = v_add(acc[2], v_load(xj + c));
	}
	for (int i = 0; i < 8; i++)
		v_store(out + i * VEC_W, acc[i]);
}

/* y = x, n values in order. */
DK_FN void DK_NAME(dk_probe_copy)(const float *x, float *y, int64_t n)
{
	DK_COLUMNS(c, k, 0, n, { v_store_n(y + c, v_load_n(x + c, k), k); });
}

/* Runs rounds times ten independent multiply-adds on vectors. */
DK_FN float DK_NAME(dk_probe_fma)(int64_t rounds)
{
	vec acc[10];
	const vec a = v_set1(0.999f), b = v_set1(0.001f);
	for (int i = 0; i < 10; i++)
		acc[i] = v_set1((float)i);
	for (int64_t r = 0; r < rounds; r++)
		for (int i = 0; i < 10; i++)
			acc[i] = v_fma(acc[i], a, b);
	vec s = acc[0];
	for (int i = 1; i < 10; i++)
		s = v_add(s, acc[i]);
	return v_hsum(s);
}

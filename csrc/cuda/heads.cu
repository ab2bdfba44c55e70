// heads.cu: the dense pieces of attention. Head h of a row is its columns
// [h·d,(h+1)·d). The sum over rows of HeadDotGrad is in reduce.cu.
#include "dkernel.h"

// dst[r,h] = <x[r,h],a[h]>: 1<<shift lanes (at most 32) an (r,h).
DK_KERNEL(dk_head_dot, (float *dst, int64_t ldd, const float *x, int64_t ldx, const float *a, int64_t lda, int64_t rows,
			int32_t heads, int32_t d, int32_t shift))
{
	int32_t lanes = 1 << shift, lane = dk_lane() & (lanes - 1);
	int64_t i = ((int64_t)dk_bid() * dk_bdim() + dk_tid()) >> shift;
	if (i >= rows * heads)
		return;
	int64_t r = i / heads;
	int32_t h = (int32_t)(i - r * heads);
	float sum = 0;
	for (int32_t c = lane; c < d; c += lanes)
		sum = dk_fma(dk_ldg(x + r * ldx + h * d + c), dk_ldg(a + h * lda + c), sum);
	sum = dk_group_sum(dk_group_mask(lanes), lanes, sum);
	if (lane == 0)
		dst[r * ldd + h] = sum;
}

// dx[r,h·d+c] += g[r,h]·a[h,c].
DK_KERNEL(dk_head_outer_add, (float *dx, int64_t lddx, const float *g, int64_t ldg, const float *a, int64_t lda, int64_t rows,
			      int32_t heads, int32_t d, int32_t shift))
{
	dk_each(rows, heads * d, shift, [&](int64_t r, int32_t k) {
		int32_t h = k / d, c = k - h * d;
		dx[r * lddx + k] = dk_fma(dk_ldg(g + r * ldg + h), dk_ldg(a + h * lda + c), dx[r * lddx + k]);
	});
}

// dst[r,c] = epilogue(mean over h of x[r,h·d+c]).
DK_KERNEL(dk_head_mean, (float *dst, int64_t ldd, const float *x, int64_t ldx, int64_t rows, int32_t heads, int32_t d,
			 int32_t shift, DK_EPI))
{
	const dk_epi ep = DK_EPI_PASS;
	dk_each(rows, d, shift, [&](int64_t r, int32_t c) {
		float sum = 0;
		for (int32_t h = 0; h < heads; h++)
			sum += dk_ldg(x + r * ldx + h * d + c);
		dst[r * ldd + c] = dk_finish1(ep, dk_mask(ep, r), c, sum / (float)heads);
	});
}

// dx[r,h·d+c] = g[r,c]/heads.
DK_KERNEL(dk_head_spread, (float *dx, int64_t lddx, const float *g, int64_t ldg, int64_t rows, int32_t heads, int32_t d,
			   int32_t shift))
{
	dk_each(rows, d, shift, [&](int64_t r, int32_t c) {
		float share = dk_ldg(g + r * ldg + c) / (float)heads;
		for (int32_t h = 0; h < heads; h++)
			dx[r * lddx + h * d + c] = share;
	});
}

// norm.cu: layer normalisation, a warp a row. Sums over rows are in reduce.cu.
#include "dkernel.h"

DK_KERNEL(dk_layer_norm, (float *dst, int64_t ldd, float *stat, int64_t lds, const float *x, int64_t ldx, const float *gamma,
			  const float *beta, float eps, int64_t rows, int32_t cols))
{
	const uint32_t mask = 0xffffffffu;
	int64_t r = (int64_t)dk_bid() * (DK_THREADS / 32) + dk_warp();
	if (r >= rows)
		return;
	int32_t lane = dk_lane();
	const float *p = x + r * ldx;
	float mean = 0, square = 0;
	for (int32_t c = lane; c < cols; c += 32)
		mean += dk_ldg(p + c);
	mean = dk_group_sum(mask, 32, mean) / (float)cols;
	for (int32_t c = lane; c < cols; c += 32) {
		float v = dk_ldg(p + c) - mean;
		square = dk_fma(v, v, square);
	}
	square = dk_group_sum(mask, 32, square) / (float)cols;
	float inv = 1 / dk_sqrt(square + eps);
	if (lane == 0) {
		stat[r * lds] = mean;
		stat[r * lds + 1] = inv;
	}
	for (int32_t c = lane; c < cols; c += 32)
		dst[r * ldd + c] = dk_fma((dk_ldg(p + c) - mean) * inv, dk_ldg(gamma + c), dk_ldg(beta + c));
}

// dx may be dy: a lane reads a value before it writes it.
DK_KERNEL(dk_layer_norm_back, (float *dx, int64_t lddx, const float *dy, int64_t lddy, const float *x, int64_t ldx,
			       const float *stat, int64_t lds, const float *gamma, int64_t rows, int32_t cols))
{
	const uint32_t mask = 0xffffffffu;
	int64_t r = (int64_t)dk_bid() * (DK_THREADS / 32) + dk_warp();
	if (r >= rows)
		return;
	int32_t lane = dk_lane();
	const float *p = x + r * ldx, *d = dy + r * lddy;
	float mean = dk_ldg(stat + r * lds), inv = dk_ldg(stat + r * lds + 1), g = 0, gx = 0;
	for (int32_t c = lane; c < cols; c += 32) {
		float a = d[c] * dk_ldg(gamma + c);
		g += a;
		gx = dk_fma(a, (dk_ldg(p + c) - mean) * inv, gx);
	}
	g = dk_group_sum(mask, 32, g) / (float)cols;
	gx = dk_group_sum(mask, 32, gx) / (float)cols;
	for (int32_t c = lane; c < cols; c += 32) {
		float hat = (dk_ldg(p + c) - mean) * inv;
		dx[r * lddx + c] = inv * (d[c] * dk_ldg(gamma + c) - g - hat * gx);
	}
}

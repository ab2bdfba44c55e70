// loss.cu: softmax and sigmoid cross-entropy with their gradients; a warp takes a row.
// The loss of row r0+i goes to loss[i], in double; dk_total_double adds them up. grad
// may be null, or the logits: a lane reads a value before it writes it.
#include "dkernel.h"

DK_KERNEL(dk_softmax_xent, (float *grad, int64_t ldg, double *loss, const float *logits, int64_t ldz, const int32_t *labels,
			    const float *classw, float scale, int64_t r0, int64_t rows, int32_t cols))
{
	const uint32_t mask = 0xffffffffu;
	int64_t i = (int64_t)dk_bid() * (DK_THREADS / 32) + dk_warp(), r = r0 + i;
	if (i >= rows)
		return;
	int32_t label = dk_ldg(labels + r), lane = dk_lane();
	if (label < 0) {
		if (grad)
			for (int32_t c = lane; c < cols; c += 32)
				grad[r * ldg + c] = 0;
		if (lane == 0)
			loss[i] = 0;
		return;
	}
	const float *z = logits + r * ldz;
	float top = -DK_INF, sum = 0, f = scale, at = z[label];
	if (classw)
		f *= dk_ldg(classw + label);
	for (int32_t c = lane; c < cols; c += 32)
		top = dk_max(top, z[c]);
	top = dk_group_max(mask, 32, top);
	for (int32_t c = lane; c < cols; c += 32)
		sum += dk_exp(z[c] - top);
	sum = dk_group_sum(mask, 32, sum);
	if (lane == 0)
		loss[i] = (double)f * (dk_log((double)sum) + (double)top - (double)at);
	if (!grad)
		return;
	for (int32_t c = lane; c < cols; c += 32) {
		float p = dk_exp(z[c] - top) / sum;
		grad[r * ldg + c] = (c == label ? p - 1 : p) * f;
	}
}

// dk_listed says whether c is among col[lo..hi), which ascend.
DK_FN bool dk_listed(const int32_t *col, int64_t lo, int64_t hi, int32_t c)
{
	while (lo < hi) {
		int64_t mid = lo + (hi - lo) / 2;
		int32_t m = dk_ldg(col + mid);
		if (m == c)
			return true;
		if (m < c)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

DK_KERNEL(dk_sigmoid_bce, (float *grad, int64_t ldg, double *loss, const float *logits, int64_t ldz, const int64_t *rowptr,
			   const int32_t *col, const int32_t *rowmask, const float *posw, float scale, int64_t rows, int32_t cols))
{
	DK_SHARED(double, sums, DK_THREADS);
	int64_t r = (int64_t)dk_bid() * (DK_THREADS / 32) + dk_warp();
	int32_t lane = dk_lane();
	double sum = 0;
	if (r < rows) {
		bool used = dk_ldg(rowmask + r) >= 0;
		int64_t lo = dk_ldg(rowptr + r), hi = dk_ldg(rowptr + r + 1);
		for (int32_t c = lane; c < cols; c += 32) {
			float g = 0;
			if (used) {
				float z = logits[r * ldz + c], f = scale;
				bool on = dk_listed(col, lo, hi, c);
				if (on) {
					z = -z;
					if (posw)
						f *= dk_ldg(posw + c);
				}
				float e = dk_exp(-dk_abs(z)), l = dk_log1p(e);
				float s = z > 0 ? 1 / (1 + e) : e / (1 + e);
				if (z > 0)
					l += z;
				sum += (double)f * (double)l;
				g = on ? -f * s : f * s;
			}
			if (grad)
				grad[r * ldg + c] = g;
		}
	}
	sums[dk_tid()] = sum;
	dk_sync();
	if (lane != 0 || r >= rows)
		return;
	for (int32_t k = 1; k < 32; k++)
		sum += sums[dk_tid() + k];
	loss[r] = sum;
}

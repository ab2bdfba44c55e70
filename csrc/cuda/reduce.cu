// reduce.cu: sums over rows, in two steps of a fixed order. The first step's blocks
// take tiles of 32 columns and DK_SLAB rows, and write one row of part each; the second
// adds those up. Both orders depend on the shape alone.
#include "dkernel.h"

#define DK_SLAB 512

// f(r, c) is the term of row r. A thread adds every 8th row, the block their sums. tile is
// the tile's number, of all columns' and then of the next slab.
template <class F> DK_FN void dk_columns_at(int32_t tile, float *part, int64_t ldp, int64_t rows, int32_t cols, F f)
{
	DK_SHARED(float, sums, DK_THREADS);
	int32_t tiles = (cols + 31) / 32;
	int64_t slab = tile / tiles, r = slab * DK_SLAB + dk_warp();
	int64_t end = (slab + 1) * DK_SLAB < rows ? (slab + 1) * DK_SLAB : rows;
	int32_t c = tile % tiles * 32 + dk_lane();
	float sum = 0;
	if (c < cols)
		for (; r < end; r += DK_THREADS / 32)
			sum += f(r, c);
	sums[dk_tid()] = sum;
	dk_sync();
	if (dk_warp() != 0 || c >= cols)
		return;
	for (int32_t k = 1; k < DK_THREADS / 32; k++)
		sum += sums[k * 32 + dk_lane()];
	part[slab * ldp + c] = sum;
}

template <class F> DK_FN void dk_columns(float *part, int64_t ldp, int64_t rows, int32_t cols, F f)
{
	dk_columns_at(dk_bid(), part, ldp, rows, cols, f);
}

DK_KERNEL(dk_col_sum, (float *part, int64_t ldp, const float *x, int64_t ldx, int64_t rows, int32_t cols))
{
	dk_columns(part, ldp, rows, cols, [&](int64_t r, int32_t c) { return dk_ldg(x + r * ldx + c); });
}

DK_KERNEL(dk_col_dot, (float *part, int64_t ldp, const float *a, int64_t lda, const float *b, int64_t ldb, int64_t rows,
		       int32_t cols))
{
	dk_columns(part, ldp, rows, cols,
		   [&](int64_t r, int32_t c) { return dk_ldg(a + r * lda + c) * dk_ldg(b + r * ldb + c); });
}

// Squared distances from mean[c].
DK_KERNEL(dk_col_square, (float *part, int64_t ldp, const float *x, int64_t ldx, const float *mean, int64_t rows, int32_t cols))
{
	dk_columns(part, ldp, rows, cols, [&](int64_t r, int32_t c) {
		float v = dk_ldg(x + r * ldx + c) - dk_ldg(mean + c);
		return v * v;
	});
}

// HeadDotGrad's terms g[r,c/d]·x[r,c]: part is one row of heads·d columns a slab.
DK_KERNEL(dk_head_dot_grad, (float *part, int64_t ldp, const float *g, int64_t ldg, const float *x, int64_t ldx, int64_t rows,
			     int32_t heads, int32_t d))
{
	dk_columns(part, ldp, rows, heads * d,
		   [&](int64_t r, int32_t c) { return dk_ldg(g + r * ldg + c / d) * dk_ldg(x + r * ldx + c); });
}

// LayerNormBack's dgamma, terms dy·x^.
DK_KERNEL(dk_norm_gamma, (float *part, int64_t ldp, const float *dy, int64_t lddy, const float *x, int64_t ldx,
			  const float *stat, int64_t lds, int64_t rows, int32_t cols))
{
	dk_columns(part, ldp, rows, cols, [&](int64_t r, int32_t c) {
		float hat = (dk_ldg(x + r * ldx + c) - dk_ldg(stat + r * lds)) * dk_ldg(stat + r * lds + 1);
		return dk_ldg(dy + r * lddy + c) * hat;
	});
}

// The second step: dst[c / d · ldd + c % d] = (sum of part[.,c]) / div. d is cols, or
// the columns of a head.
DK_KERNEL(dk_col_finish, (float *dst, int64_t ldd, const float *part, int64_t ldp, int64_t slabs, int32_t cols, int32_t d,
			  float div))
{
	int32_t c = dk_bid() * dk_bdim() + dk_tid();
	if (c >= cols)
		return;
	float sum = 0;
	for (int64_t k = 0; k < slabs; k++)
		sum += part[k * ldp + c];
	dst[(int64_t)(c / d) * ldd + c % d] = div == 1 ? sum : sum / div;
}

// dst[0] = sum of v[0..n), by one block: a thread takes every DK_THREADS-th, then a
// tree over the threads.
DK_KERNEL(dk_total, (float *dst, const float *v, int64_t n))
{
	DK_SHARED(float, sums, DK_THREADS);
	float sum = 0;
	for (int64_t i = dk_tid(); i < n; i += DK_THREADS)
		sum += v[i];
	sums[dk_tid()] = sum;
	for (int32_t d = DK_THREADS / 2; d > 0; d >>= 1) {
		dk_sync();
		if (dk_tid() < d)
			sums[dk_tid()] += sums[dk_tid() + d];
	}
	if (dk_tid() == 0)
		dst[0] = sums[0];
}

// The same in double, for losses.
DK_FN void dk_total_of(double *dst, const double *v, int64_t n)
{
	DK_SHARED(double, sums, DK_THREADS);
	double sum = 0;
	for (int64_t i = dk_tid(); i < n; i += DK_THREADS)
		sum += v[i];
	sums[dk_tid()] = sum;
	for (int32_t d = DK_THREADS / 2; d > 0; d >>= 1) {
		dk_sync();
		if (dk_tid() < d)
			sums[dk_tid()] += sums[dk_tid() + d];
	}
	if (dk_tid() == 0)
		dst[0] = sums[0];
}

DK_KERNEL(dk_total_double, (double *dst, const double *v, int64_t n)) { dk_total_of(dst, v, n); }

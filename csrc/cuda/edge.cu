// edge.cu: values of edges. A warp takes runs of neighbouring edges, whatever rows
// they lie in: r0..r1 are the rows, e0..e1 their edges.
#include "dkernel.h"

// SDDMM: a warp takes 32 edges, a group of 8 lanes one edge at a time.
template <int V>
DK_FN void dk_sddmm_edges(float *dst, const float *x, int64_t ldx, const float *y, int64_t ldy, int32_t cols,
			  const int64_t *rowptr, const int32_t *col, int64_t r0, int64_t r1, int64_t e0, int64_t e1)
{
	int64_t first = e0 + ((int64_t)dk_bid() * (DK_THREADS / 32) + dk_warp()) * 32;
	if (first >= e1)
		return;
	int64_t last = first + 32 < e1 ? first + 32 : e1;
	int64_t v = dk_row_of(rowptr, r0, r1, first);
	int32_t lane = dk_lane() & 7;
	const uint32_t mask = dk_group_mask(8);
	for (int64_t e = first + (dk_lane() >> 3); e < last; e += 4) {
		while (dk_ldg(rowptr + v + 1) <= e)
			v++;
		const float *a = x + (int64_t)dk_ldg(col + e) * ldx, *b = y + v * ldy;
		float sum = 0;
		for (int32_t c = lane * V; c < cols; c += 8 * V) {
			dk_vec<V> p = dk_load<V>(a, c, cols), q = dk_load<V>(b, c, cols);
			DK_UNROLL
			for (int i = 0; i < V; i++)
				if (c + i < cols)
					sum = dk_fma(p.v[i], q.v[i], sum);
		}
		sum = dk_group_sum(mask, 8, sum);
		if (lane == 0)
			dst[e] = sum;
	}
}

DK_KERNEL(dk_sddmm_v4, (float *dst, const float *x, int64_t ldx, const float *y, int64_t ldy, int32_t cols,
			const int64_t *rowptr, const int32_t *col, int64_t r0, int64_t r1, int64_t e0, int64_t e1))
{
	dk_sddmm_edges<4>(dst, x, ldx, y, ldy, cols, rowptr, col, r0, r1, e0, e1);
}

DK_KERNEL(dk_sddmm_v1, (float *dst, const float *x, int64_t ldx, const float *y, int64_t ldy, int32_t cols,
			const int64_t *rowptr, const int32_t *col, int64_t r0, int64_t r1, int64_t e0, int64_t e1))
{
	dk_sddmm_edges<1>(dst, x, ldx, y, ldy, cols, rowptr, col, r0, r1, e0, e1);
}

// EdgeDropout: a thread an edge. w is the graph's own values, null for 1; mode is
// DK_DROP, or 0 for no dropout.
DK_KERNEL(dk_edge_dropout, (float *dst, const float *w, const int64_t *rowptr, const int32_t *col, int64_t r0, int64_t r1,
			    int64_t e0, int64_t e1, int32_t mode, const int32_t *ids, uint64_t key, uint64_t threshold,
			    float keep))
{
	int64_t first = e0 + ((int64_t)dk_bid() * (DK_THREADS / 32) + dk_warp()) * 32;
	int64_t e = first + dk_lane();
	if (e >= e1)
		return;
	int64_t last = first + 31 < e1 ? first + 31 : e1 - 1;
	int64_t a = dk_row_of(rowptr, r0, r1, first), b = dk_row_of(rowptr, a, r1, last);
	int64_t v = dk_row_of(rowptr, a, b + 1, e);
	float f = w ? dk_ldg(w + e) : 1.0f;
	if (mode & DK_DROP) {
		uint64_t row = dk_drop_row(key, ids ? dk_ldg(ids + v) : (int32_t)v);
		f = dk_drop_keep(row, (uint32_t)dk_ldg(col + e), (uint32_t)threshold) ? f * keep : 0;
	}
	dst[e] = f;
}

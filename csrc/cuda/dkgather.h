// dkgather.h has the weighted sum of rows, by groups of lanes: the part that spmm.cu
// and spmmt.cu share. G lanes hold V columns each of a tile of G·V columns.
#ifndef DKGATHER_H
#define DKGATHER_H
#include "dkernel.h"

template <class T> struct dk_source {
	const int32_t *col;
	const float *w;       // per edge, or null
	const int64_t *perm;  // edge e's weight is w[perm[e]]; null: w[e]
	const float *cs;      // per source row, or null
	const T *x;
	int64_t ldx;
	int32_t cols;
};

// dk_gather adds to acc the edges [lo,hi), in batches of G of which this group takes
// every S-th, from the part-th. The lanes of a group read a batch's columns and
// factors together and hand them around; four rows are in flight.
template <int G, int V, int S, bool W, class T>
DK_FN void dk_gather(dk_vec<V> &acc, const dk_source<T> &s, int64_t lo, int64_t hi, int32_t c, int32_t part)
{
	const uint32_t mask = dk_group_mask(G);
	const int32_t lane = dk_lane() & (G - 1), first = dk_lane() & ~(G - 1);
	const T *x = s.x;
	for (int64_t e = lo + part * G; e < hi; e += G * S) {
		int32_t n = hi - e < G ? (int32_t)(hi - e) : G;
		int32_t u = 0;
		float f = 1;
		if (lane < n) {
			u = dk_ldg(s.col + e + lane);
			if (W) {
				if (s.w)
					f = dk_ldg(s.w + (s.perm ? dk_ldg(s.perm + e + lane) : e + lane));
				if (s.cs)
					f *= dk_ldg(s.cs + u);
			}
		}
		int32_t j = 0;
		for (; j + 4 <= n; j += 4) {
			dk_vec<V> r[4];
DK_UNROLL
			for (int k = 0; k < 4; k++)
				r[k] = dk_load<V>(x + (int64_t)dk_shfl(mask, u, first + j + k) * s.ldx, c, s.cols);
DK_UNROLL
			for (int k = 0; k < 4; k++)
				dk_axpy(acc, W ? dk_shfl(mask, f, first + j + k) : 1.0f, r[k]);
		}
		for (; j < n; j++) {
			dk_vec<V> r = dk_load<V>(x + (int64_t)dk_shfl(mask, u, first + j) * s.ldx, c, s.cols);
			dk_axpy(acc, W ? dk_shfl(mask, f, first + j) : 1.0f, r);
		}
	}
}

// dk_gather_row is dk_gather by S groups of one warp, added up in a fixed order.
template <int G, int V, int S, class T>
DK_FN void dk_gather_row(dk_vec<V> &acc, const dk_source<T> &s, int64_t lo, int64_t hi, int32_t c)
{
	int32_t part = S > 1 ? dk_lane() / G : 0;
	if (s.w || s.cs)
		dk_gather<G, V, S, true>(acc, s, lo, hi, c, part);
	else
		dk_gather<G, V, S, false>(acc, s, lo, hi, c, part);
	if (S > 1) {
DK_UNROLL
		for (int d = G; d < G * S; d <<= 1)
DK_UNROLL
			for (int i = 0; i < V; i++)
				acc.v[i] += dk_shfl_xor(dk_group_mask(G * S), acc.v[i], d);
	}
}

// dk_gather_chunk adds up one chunk, at most DK_CHUNK edges, by a block of DK_THREADS:
// each warp a run of edges, the warps' sums in their order. The first group of the
// block gets the sum and true.
template <int G, int V, class T>
DK_FN bool dk_gather_chunk(dk_vec<V> &acc, const dk_source<T> &s, int64_t start, int64_t lo, int64_t hi, int32_t c)
{
	const int32_t warps = DK_THREADS / 32, run = DK_CHUNK / warps;
	DK_SHARED(float, sums, (DK_THREADS / 32) * G * V);
	int64_t a = start + (int64_t)dk_warp() * run, b = a + run;
	a = a < lo ? lo : a;
	b = b < hi ? b : hi;
	dk_vec<V> part = dk_fill<V>(0);
	dk_gather_row<G, V, 32 / G>(part, s, a, b, c);
	int32_t lane = dk_tid() & 31;
	if (lane < G) {
DK_UNROLL
		for (int i = 0; i < V; i++)
			sums[(dk_warp() * G + lane) * V + i] = part.v[i];
	}
	dk_sync();
	if (dk_tid() >= G)
		return false;
	for (int32_t k = 0; k < warps; k++)
DK_UNROLL
		for (int i = 0; i < V; i++)
			acc.v[i] += sums[(k * G + lane) * V + i];
	return true;
}

// dk_place is what a block works on: row blocks are innermost, so that blocks that run
// together gather from the same tile of columns.
struct dk_place {
	int64_t i;    // row of the list, or chunk
	int32_t c;    // first column of this lane
};

template <int G, int V, int S> DK_FN dk_place dk_rows_place(int64_t n)
{
	const int32_t per = DK_THREADS / (G * S);
	int64_t blocks = (n + per - 1) / per;
	return dk_place{dk_bid() % blocks * per + dk_tid() / (G * S),
			(int32_t)(dk_bid() / blocks) * (G * V) + (dk_tid() & (G - 1)) * V};
}

template <int G, int V> DK_FN dk_place dk_chunk_place(int64_t n)
{
	return dk_place{dk_bid() % n, (int32_t)(dk_bid() / n) * (G * V) + (dk_tid() & (G - 1)) * V};
}
#endif

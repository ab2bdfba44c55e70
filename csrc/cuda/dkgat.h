// dkgat.h has the terms of attention: the score of an edge and its dropout. A group of
// 1<<shift lanes takes one head of one row; every lane computes the scores itself.
#ifndef DKGAT_H
#define DKGAT_H
#include "dkernel.h"

// Rows of more than DK_GAT_LONG edges are cut into chunks of DK_GAT_CHUNK.
#define DK_GAT_LONG 512
#define DK_GAT_CHUNK 256

#define DK_ATT                                                                                                               \
	const int64_t *rowptr, const int32_t *col, const float *w, const float *as, int64_t ldas, const float *ad,          \
		int64_t ldad, int32_t heads, int32_t d, int32_t shift, float slope, int32_t self, const int32_t *selfcol,   \
		const float *selfw, int32_t drop, uint64_t dropkey, uint64_t dropthreshold, float dropkeep,                  \
		const int32_t *srcids, const int32_t *dstids
#define DK_ATT_PASS                                                                                                          \
	(dk_att{rowptr, col, w, as, ldas, ad, ldad, heads, d, shift, slope, self, selfcol, selfw, drop, dropkey,            \
		(uint32_t)dropthreshold, dropkeep, srcids, dstids})
// Which rows: list[lo+i], or lo+i, for i < n, without those of more than maxdeg edges.
#define DK_GAT_ROWS const int32_t *list, int64_t lo, int64_t n, int64_t maxdeg
// Which chunks: those of the long rows list[i0..i1); chunks[i] counts those before i.
#define DK_GAT_CHUNKS const int32_t *list, const int64_t *chunks, int64_t i0, int64_t i1

struct dk_att {
	const int64_t *rowptr;
	const int32_t *col;
	const float *w;
	const float *as;
	int64_t ldas;
	const float *ad;
	int64_t ldad;
	int32_t heads, d, shift;
	float slope;
	int32_t self;
	const int32_t *selfcol;
	const float *selfw;
	int32_t drop;
	uint64_t key;
	uint32_t threshold;
	float keep;
	const int32_t *srcids, *dstids;
};

// dk_score is s and its slope for z = as[u,h] + ad[v,h].
DK_FN float dk_score(const dk_att &a, float src, float dst, float *slope)
{
	float z = src + dst;
	*slope = z > 0 ? 1.0f : a.slope;
	return z > 0 ? z : a.slope * z;
}

DK_FN uint64_t dk_att_row(const dk_att &a, int64_t v)
{
	return a.drop ? dk_drop_row(a.key, a.dstids ? dk_ldg(a.dstids + v) : (int32_t)v) : 0;
}

// dk_kept is keep/(1-P).
DK_FN float dk_kept(const dk_att &a, uint64_t row, int64_t u, int32_t h)
{
	if (!a.drop)
		return 1;
	uint32_t id = (uint32_t)(a.srcids ? dk_ldg(a.srcids + u) : (int32_t)u);
	return dk_drop_keep(row, id * (uint32_t)a.heads + (uint32_t)h, a.threshold) ? a.keep : 0.0f;
}

// dk_self_of is the other end of row v's own term, -1 for none, and its weight.
DK_FN int64_t dk_self_of(const dk_att &a, int64_t v, float *weight)
{
	if (!a.self)
		return -1;
	*weight = a.selfw ? dk_ldg(a.selfw + v) : 1.0f;
	return a.selfcol ? (int64_t)dk_ldg(a.selfcol + v) : v;
}

// dk_walk calls four(u[4], w[4]) and one(u[1], w[1]) for the edges [lo,hi) in order.
template <class F, class O> DK_FN void dk_walk(const dk_att &a, int64_t lo, int64_t hi, F four, O one)
{
	int64_t e = lo;
	for (; e + 4 <= hi; e += 4) {
		int32_t u[4];
		float w[4];
		DK_UNROLL
		for (int k = 0; k < 4; k++) {
			u[k] = dk_ldg(a.col + e + k);
			w[k] = a.w ? dk_ldg(a.w + e + k) : 1.0f;
		}
		four(u, w);
	}
	for (; e < hi; e++) {
		int32_t u[1] = {dk_ldg(a.col + e)};
		float w[1] = {a.w ? dk_ldg(a.w + e) : 1.0f};
		one(u, w);
	}
}

// dk_span is the part of a row that a group works on.
struct dk_span {
	int64_t out; // the row it writes: v, or the chunk
	int64_t v, lo, hi;
	int32_t h, lane;
	bool on;
};

DK_FN dk_span dk_gat_row(const dk_att &a, const int32_t *list, int64_t lo, int64_t n, int64_t maxdeg)
{
	int64_t i = ((int64_t)dk_bid() * dk_bdim() + dk_tid()) >> a.shift, k = i / a.heads;
	dk_span s;
	s.on = k < n;
	if (!s.on)
		return s;
	s.h = (int32_t)(i - k * a.heads);
	s.lane = dk_tid() & ((1 << a.shift) - 1);
	s.out = s.v = list ? dk_ldg(list + lo + k) : lo + k;
	s.lo = dk_ldg(a.rowptr + s.v);
	s.hi = dk_ldg(a.rowptr + s.v + 1);
	s.on = s.hi - s.lo <= maxdeg;
	return s;
}

DK_FN dk_span dk_gat_chunk_of(const dk_att &a, const int32_t *list, const int64_t *chunks, int64_t i0, int64_t i1)
{
	int64_t k0 = dk_ldg(chunks + i0), n = dk_ldg(chunks + i1) - k0;
	int64_t i = ((int64_t)dk_bid() * dk_bdim() + dk_tid()) >> a.shift, k = i / a.heads;
	dk_span s;
	s.on = k < n;
	if (!s.on)
		return s;
	s.h = (int32_t)(i - k * a.heads);
	s.lane = dk_tid() & ((1 << a.shift) - 1);
	s.out = k;
	int64_t row = dk_row_of(chunks, i0, i1, k0 + k), end;
	s.v = dk_ldg(list + row);
	s.lo = dk_ldg(a.rowptr + s.v) + (k0 + k - dk_ldg(chunks + row)) * DK_GAT_CHUNK;
	end = dk_ldg(a.rowptr + s.v + 1);
	s.hi = s.lo + DK_GAT_CHUNK < end ? s.lo + DK_GAT_CHUNK : end;
	return s;
}
#endif

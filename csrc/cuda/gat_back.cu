// gat_back.cu: the two parts of GAT's gradient; alphas are computed again from lse.
#include "dkgat.h"

// Along the graph: the three sums of GATBackDst for a row and head. aq and aqs are the
// lane's share, over its columns.
struct dk_back {
	float aq, aqs, asl;
};

template <int V, int N>
DK_FN void dk_back_add(dk_back &b, const dk_att &a, const float *x, int64_t ldx, const dk_vec<V> &dy, uint64_t row, float adv,
		       float lse, int32_t h, int32_t c, const int32_t *u, const float *w)
{
	float src[N];
	dk_vec<V> r[N];
	DK_UNROLL
	for (int k = 0; k < N; k++)
		if (w[k] != 0) {
			src[k] = dk_ldg(a.as + (int64_t)u[k] * a.ldas + h);
			r[k] = dk_load<V>(x + (int64_t)u[k] * ldx, c, a.d);
		}
	DK_UNROLL
	for (int k = 0; k < N; k++) {
		if (w[k] == 0)
			continue;
		float slope, s = dk_score(a, src[k], adv, &slope);
		float alpha = w[k] * dk_exp(s - lse), q = 0;
		DK_UNROLL
		for (int i = 0; i < V; i++)
			q = c + i < a.d ? dk_fma(dy.v[i], r[k].v[i], q) : q;
		q *= dk_kept(a, row, u[k], h) * alpha;
		b.aq += q;
		b.aqs = dk_fma(q, slope, b.aqs);
		if (c == 0)
			b.asl = dk_fma(alpha, slope, b.asl);
	}
}

template <int V>
DK_FN dk_back dk_back_edges(const dk_att &a, const dk_span &s, const float *x, int64_t ldx, const float *lse, int64_t ldl,
			    const float *dy, int64_t lddy, bool self)
{
	dk_back b = {0, 0, 0};
	float adv = dk_ldg(a.ad + s.v * a.ldad + s.h), l = dk_ldg(lse + s.v * ldl + s.h), sw[1];
	uint64_t row = dk_att_row(a, s.v);
	x += s.h * a.d;
	for (int32_t c = s.lane * V; c < a.d || (c == s.lane * V && s.lane == 0); c += V << a.shift) {
		dk_vec<V> g = dk_load<V>(dy + s.v * lddy + s.h * a.d, c, a.d);
		if (self) {
			int32_t su[1] = {(int32_t)dk_self_of(a, s.v, sw)};
			if (su[0] >= 0)
				dk_back_add<V, 1>(b, a, x, ldx, g, row, adv, l, s.h, c, su, sw);
		}
		dk_walk(
			a, s.lo, s.hi,
			[&](const int32_t *u, const float *w) { dk_back_add<V, 4>(b, a, x, ldx, g, row, adv, l, s.h, c, u, w); },
			[&](const int32_t *u, const float *w) { dk_back_add<V, 1>(b, a, x, ldx, g, row, adv, l, s.h, c, u, w); });
	}
	const int32_t lanes = 1 << a.shift;
	const uint32_t mask = dk_group_mask(lanes);
	b.aq = dk_group_sum(mask, lanes, b.aq);
	b.aqs = dk_group_sum(mask, lanes, b.aqs);
	return b; // asl is complete in lane 0, which has column 0
}

#define DK_GAT_DST(name, V)                                                                                                  \
	DK_KERNEL(name, (float *dad, int64_t lddad, float *dot, int64_t lddot, const float *x, int64_t ldx, const float *lse, \
			 int64_t ldl, const float *dy, int64_t lddy, DK_ATT, DK_GAT_ROWS))                                    \
	{                                                                                                                     \
		const dk_att a = DK_ATT_PASS;                                                                                 \
		dk_span s = dk_gat_row(a, list, lo, n, maxdeg);                                                               \
		if (!s.on)                                                                                                    \
			return;                                                                                               \
		dk_back b = dk_back_edges<V>(a, s, x, ldx, lse, ldl, dy, lddy, true);                                         \
		if (s.lane == 0) {                                                                                            \
			dot[s.v * lddot + s.h] = b.aq;                                                                        \
			dad[s.v * lddad + s.h] = b.aqs - b.aq * b.asl;                                                        \
		}                                                                                                             \
	}
DK_GAT_DST(dk_gat_dst_v1, 1)
DK_GAT_DST(dk_gat_dst_v4, 4)

// A chunk's row of part: per head aq, then aqs, then asl.
#define DK_GAT_DST_CHUNK(name, V)                                                                                            \
	DK_KERNEL(name, (float *part, int64_t ldp, const float *x, int64_t ldx, const float *lse, int64_t ldl,               \
			 const float *dy, int64_t lddy, DK_ATT, DK_GAT_CHUNKS))                                              \
	{                                                                                                                     \
		const dk_att a = DK_ATT_PASS;                                                                                 \
		dk_span s = dk_gat_chunk_of(a, list, chunks, i0, i1);                                                         \
		if (!s.on)                                                                                                    \
			return;                                                                                               \
		dk_back b = dk_back_edges<V>(a, s, x, ldx, lse, ldl, dy, lddy, false);                                        \
		if (s.lane == 0) {                                                                                            \
			part[s.out * ldp + s.h] = b.aq;                                                                       \
			part[s.out * ldp + heads + s.h] = b.aqs;                                                              \
			part[s.out * ldp + 2 * heads + s.h] = b.asl;                                                          \
		}                                                                                                             \
	}
DK_GAT_DST_CHUNK(dk_gat_dst_chunk_v1, 1)
DK_GAT_DST_CHUNK(dk_gat_dst_chunk_v4, 4)

// dk_gat_dst_sum finishes the long rows; shift as in the chunks: a group a row and head.
DK_KERNEL(dk_gat_dst_sum, (float *dad, int64_t lddad, float *dot, int64_t lddot, const float *part, int64_t ldp, const float *x,
			   int64_t ldx, const float *lse, int64_t ldl, const float *dy, int64_t lddy, DK_ATT, DK_GAT_CHUNKS))
{
	const dk_att a = DK_ATT_PASS;
	dk_span s = dk_gat_row(a, list, i0, i1 - i0, 0x7fffffffffffffff);
	if (!s.on)
		return;
	int64_t i = (((int64_t)dk_bid() * dk_bdim() + dk_tid()) >> shift) / heads, base = dk_ldg(chunks + i0);
	int64_t k0 = dk_ldg(chunks + i0 + i) - base, k1 = dk_ldg(chunks + i0 + i + 1) - base;
	s.hi = s.lo; // the self term alone
	dk_back b = dk_back_edges<1>(a, s, x, ldx, lse, ldl, dy, lddy, true);
	if (s.lane != 0)
		return;
	for (int64_t k = k0; k < k1; k++) {
		b.aq += part[k * ldp + s.h];
		b.aqs += part[k * ldp + heads + s.h];
		b.asl += part[k * ldp + 2 * heads + s.h];
	}
	dot[s.v * lddot + s.h] = b.aq;
	dad[s.v * lddad + s.h] = b.aqs - b.aq * b.asl;
}

// Along the transpose: row u gathers the gradients of the v of its edges u -> v.
template <int V> struct dk_back_src {
	float das; // the lane's share
	dk_vec<V> acc;
};

struct dk_dst_args {
	const float *lse;
	int64_t ldl;
	const float *dot;
	int64_t lddot;
	const float *dy;
	int64_t lddy;
};

template <int V, int N>
DK_FN void dk_src_add(dk_back_src<V> &b, const dk_att &a, const dk_dst_args &g, const dk_vec<V> &x, int64_t u, float asu, int32_t h,
		      int32_t c, const int32_t *v, const float *w)
{
	float adv[N], l[N], dot[N];
	dk_vec<V> r[N];
	DK_UNROLL
	for (int k = 0; k < N; k++)
		if (w[k] != 0) {
			adv[k] = dk_ldg(a.ad + (int64_t)v[k] * a.ldad + h);
			l[k] = dk_ldg(g.lse + (int64_t)v[k] * g.ldl + h);
			dot[k] = dk_ldg(g.dot + (int64_t)v[k] * g.lddot + h);
			r[k] = dk_load<V>(g.dy + (int64_t)v[k] * g.lddy + h * a.d, c, a.d);
		}
	DK_UNROLL
	for (int k = 0; k < N; k++) {
		if (w[k] == 0)
			continue;
		float slope, s = dk_score(a, asu, adv[k], &slope);
		float alpha = w[k] * dk_exp(s - l[k]), q = 0;
		float keep = dk_kept(a, dk_att_row(a, v[k]), u, h);
		dk_axpy(b.acc, alpha * keep, r[k]);
		DK_UNROLL
		for (int i = 0; i < V; i++)
			q = c + i < a.d ? dk_fma(x.v[i], r[k].v[i], q) : q;
		q *= keep;
		if (c == 0)
			q -= dot[k];
		b.das = dk_fma(alpha * slope, q, b.das);
	}
}

template <int V>
DK_FN void dk_src_edges(float *dx, const dk_att &a, const dk_dst_args &g, const dk_span &s, const float *x, int64_t ldx, bool self,
			float *das)
{
	float asu = dk_ldg(a.as + s.v * a.ldas + s.h), sw[1];
	dk_back_src<V> b;
	b.das = 0;
	for (int32_t c = s.lane * V; c < a.d || (c == s.lane * V && s.lane == 0); c += V << a.shift) {
		dk_vec<V> xr = dk_load<V>(x + s.v * ldx + s.h * a.d, c, a.d);
		b.acc = dk_fill<V>(0);
		if (self) {
			int32_t sv[1] = {(int32_t)dk_self_of(a, s.v, sw)};
			if (sv[0] >= 0)
				dk_src_add<V, 1>(b, a, g, xr, s.v, asu, s.h, c, sv, sw);
		}
		dk_walk(
			a, s.lo, s.hi,
			[&](const int32_t *v, const float *w) { dk_src_add<V, 4>(b, a, g, xr, s.v, asu, s.h, c, v, w); },
			[&](const int32_t *v, const float *w) { dk_src_add<V, 1>(b, a, g, xr, s.v, asu, s.h, c, v, w); });
		dk_store(dx + s.h * a.d, c, a.d, b.acc);
	}
	b.das = dk_group_sum(dk_group_mask(1 << a.shift), 1 << a.shift, b.das);
	if (s.lane == 0)
		*das = b.das;
}

#define DK_DST_ARGS const float *lse, int64_t ldl, const float *dot, int64_t lddot, const float *dy, int64_t lddy
#define DK_DST_PASS (dk_dst_args{lse, ldl, dot, lddot, dy, lddy})

#define DK_GAT_SRC(name, V)                                                                                                  \
	DK_KERNEL(name, (float *dx, int64_t lddx, float *das, int64_t lddas, const float *x, int64_t ldx, DK_DST_ARGS, DK_ATT, \
			 DK_GAT_ROWS))                                                                                       \
	{                                                                                                                     \
		const dk_att a = DK_ATT_PASS;                                                                                 \
		dk_span s = dk_gat_row(a, list, lo, n, maxdeg);                                                               \
		if (s.on)                                                                                                     \
			dk_src_edges<V>(dx + s.v * lddx, a, DK_DST_PASS, s, x, ldx, true, das + s.v * lddas + s.h);           \
	}
DK_GAT_SRC(dk_gat_src_v1, 1)
DK_GAT_SRC(dk_gat_src_v4, 4)

// A chunk's row of part: heads·d values of dx, then das per head.
#define DK_GAT_SRC_CHUNK(name, V)                                                                                            \
	DK_KERNEL(name, (float *part, int64_t ldp, const float *x, int64_t ldx, DK_DST_ARGS, DK_ATT, DK_GAT_CHUNKS))         \
	{                                                                                                                     \
		const dk_att a = DK_ATT_PASS;                                                                                 \
		dk_span s = dk_gat_chunk_of(a, list, chunks, i0, i1);                                                         \
		float *p = part + s.out * ldp;                                                                                \
		if (s.on)                                                                                                     \
			dk_src_edges<V>(p, a, DK_DST_PASS, s, x, ldx, false, p + heads * d + s.h);                            \
	}
DK_GAT_SRC_CHUNK(dk_gat_src_chunk_v1, 1)
DK_GAT_SRC_CHUNK(dk_gat_src_chunk_v4, 4)

// dk_gat_src_sum finishes the long rows; part needs one more row per long row, from
// row selfrow on, where it keeps the self terms.
DK_KERNEL(dk_gat_src_self, (float *part, int64_t ldp, int64_t selfrow, const float *x, int64_t ldx, DK_DST_ARGS, DK_ATT,
			    DK_GAT_CHUNKS))
{
	const dk_att a = DK_ATT_PASS;
	dk_span s = dk_gat_row(a, list, i0, i1 - i0, 0x7fffffffffffffff);
	if (!s.on)
		return;
	int64_t i = (((int64_t)dk_bid() * dk_bdim() + dk_tid()) >> shift) / heads;
	float *p = part + (selfrow + i) * ldp;
	s.hi = s.lo; // the self term alone
	dk_src_edges<1>(p, a, DK_DST_PASS, s, x, ldx, true, p + heads * d + s.h);
	(void)chunks;
}

DK_KERNEL(dk_gat_src_sum, (float *dx, int64_t lddx, float *das, int64_t lddas, const float *part, int64_t ldp, int64_t selfrow,
			   int32_t heads, int32_t d, int32_t shift, DK_GAT_CHUNKS))
{
	const int32_t hd = heads * d;
	dk_each(i1 - i0, hd + heads, shift, [&](int64_t i, int32_t c) {
		int64_t v = dk_ldg(list + i0 + i), base = dk_ldg(chunks + i0);
		int64_t k0 = dk_ldg(chunks + i0 + i) - base, k1 = dk_ldg(chunks + i0 + i + 1) - base;
		float sum = part[(selfrow + i) * ldp + c];
		for (int64_t k = k0; k < k1; k++)
			sum += part[k * ldp + c];
		if (c < hd)
			dx[v * lddx + c] = sum;
		else
			das[v * lddas + c - hd] = sum;
	});
}

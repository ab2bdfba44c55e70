// gat.cu: kernels.AttentionGatherer.GAT, fused: maximum, sum of exponentials and the
// weighted rows in one pass, rescaled when the maximum grows. v4 wants rows and heads
// on 16 bytes, v1 does not.
#include "dkgat.h"

template <int V> struct dk_soft {
	float top, sum;
	bool any;
	dk_vec<V> acc;
};

template <int V> DK_FN dk_soft<V> dk_soft_start() { return dk_soft<V>{-DK_FLT_MAX, 0, false, dk_fill<V>(0)}; }

// dk_soft_add adds N terms. x points at the head, c is the lane's first column.
template <int V, int N>
DK_FN void dk_soft_add(dk_soft<V> &s, const dk_att &a, const float *x, int64_t ldx, uint64_t row, float adv, int32_t h, int32_t c,
		       const int32_t *u, const float *w)
{
	float z[N], slope, top = s.top;
	dk_vec<V> r[N];
	DK_UNROLL
	for (int k = 0; k < N; k++) {
		z[k] = -DK_INF;
		r[k] = dk_fill<V>(0);
		if (w[k] != 0) {
			z[k] = dk_score(a, dk_ldg(a.as + (int64_t)u[k] * a.ldas + h), adv, &slope);
			r[k] = dk_load<V>(x + (int64_t)u[k] * ldx, c, a.d);
			s.any = true;
		}
	}
	DK_UNROLL
	for (int k = 0; k < N; k++)
		top = z[k] > top ? z[k] : top;
	if (top != s.top) {
		float f = dk_exp(s.top - top);
		s.sum *= f;
		DK_UNROLL
		for (int i = 0; i < V; i++)
			s.acc.v[i] *= f;
		s.top = top;
	}
	DK_UNROLL
	for (int k = 0; k < N; k++) {
		if (w[k] == 0)
			continue;
		float p = w[k] * dk_exp(z[k] - top);
		s.sum += p;
		dk_axpy(s.acc, p * dk_kept(a, row, u[k], h), r[k]);
	}
}

template <int V>
DK_FN dk_soft<V> dk_soft_edges(const dk_att &a, const dk_span &s, const float *x, int64_t ldx, int32_t c, bool self)
{
	dk_soft<V> t = dk_soft_start<V>();
	float adv = dk_ldg(a.ad + s.v * a.ldad + s.h), sw[1];
	uint64_t row = dk_att_row(a, s.v);
	x += s.h * a.d;
	if (self) {
		int32_t su[1] = {(int32_t)dk_self_of(a, s.v, sw)};
		if (su[0] >= 0)
			dk_soft_add<V, 1>(t, a, x, ldx, row, adv, s.h, c, su, sw);
	}
	dk_walk(
		a, s.lo, s.hi,
		[&](const int32_t *u, const float *w) { dk_soft_add<V, 4>(t, a, x, ldx, row, adv, s.h, c, u, w); },
		[&](const int32_t *u, const float *w) { dk_soft_add<V, 1>(t, a, x, ldx, row, adv, s.h, c, u, w); });
	return t;
}

DK_FN float dk_soft_lse(bool any, float top, float sum)
{
	return any ? (float)((double)top + dk_log((double)sum)) : -DK_INF;
}

template <int V>
DK_FN void dk_gat_rows(float *dst, int64_t ldd, float *lse, int64_t ldl, const float *x, int64_t ldx, const dk_att &a,
		       const dk_span &s, const dk_epi &ep)
{
	if (!s.on)
		return;
	for (int32_t c = s.lane * V; c < a.d || (c == s.lane * V && s.lane == 0); c += V << a.shift) {
		dk_soft<V> t = dk_soft_edges<V>(a, s, x, ldx, c, true);
		if (c == 0)
			lse[s.v * ldl + s.h] = dk_soft_lse(t.any, t.top, t.sum);
		if (t.any)
			DK_UNROLL
			for (int i = 0; i < V; i++)
				t.acc.v[i] /= t.sum;
		dk_vec<V> out = t.acc;
		// The epilogue's columns are those of the whole row, of which this is a head.
		dk_finish(ep, s.v, s.h * a.d + c, s.h * a.d + a.d, out);
		dk_store(dst + s.v * ldd + s.h * a.d, c, a.d, out);
	}
}

#define DK_GAT(name, V)                                                                                                      \
	DK_KERNEL(name, (float *dst, int64_t ldd, float *lse, int64_t ldl, const float *x, int64_t ldx, DK_ATT, DK_GAT_ROWS, \
			 DK_EPI))                                                                                            \
	{                                                                                                                     \
		const dk_att a = DK_ATT_PASS;                                                                                 \
		dk_gat_rows<V>(dst, ldd, lse, ldl, x, ldx, a, dk_gat_row(a, list, lo, n, maxdeg), DK_EPI_PASS);               \
	}
DK_GAT(dk_gat_v1, 1)
DK_GAT(dk_gat_v4, 4)

// A chunk's row of part: heads·d sums, then per head its maximum (-Inf: no term) and
// its sum of exponentials.
template <int V>
DK_FN void dk_gat_chunk_rows(float *part, int64_t ldp, const float *x, int64_t ldx, const dk_att &a, const dk_span &s)
{
	if (!s.on)
		return;
	float *p = part + s.out * ldp;
	int32_t hd = a.heads * a.d;
	for (int32_t c = s.lane * V; c < a.d || (c == s.lane * V && s.lane == 0); c += V << a.shift) {
		dk_soft<V> t = dk_soft_edges<V>(a, s, x, ldx, c, false);
		if (c == 0) {
			p[hd + s.h] = t.any ? t.top : -DK_INF;
			p[hd + a.heads + s.h] = t.sum;
		}
		dk_store(p + s.h * a.d, c, a.d, t.acc);
	}
}

#define DK_GAT_CHUNK_KERNEL(name, V)                                                                                       \
	DK_KERNEL(name, (float *part, int64_t ldp, const float *x, int64_t ldx, DK_ATT, DK_GAT_CHUNKS))                    \
	{                                                                                                                   \
		const dk_att a = DK_ATT_PASS;                                                                               \
		dk_gat_chunk_rows<V>(part, ldp, x, ldx, a, dk_gat_chunk_of(a, list, chunks, i0, i1));                       \
	}
DK_GAT_CHUNK_KERNEL(dk_gat_chunk_v1, 1)
DK_GAT_CHUNK_KERNEL(dk_gat_chunk_v4, 4)

// dk_gat_sum finishes the long rows i0..i1: the self term, then the chunks in order.
// shift of DK_ATT is here log2 of the threads that share a row.
DK_KERNEL(dk_gat_sum, (float *dst, int64_t ldd, float *lse, int64_t ldl, const float *part, int64_t ldp, const float *x,
		       int64_t ldx, DK_ATT, DK_GAT_CHUNKS, DK_EPI))
{
	const dk_att a = DK_ATT_PASS;
	const dk_epi ep = DK_EPI_PASS;
	const int32_t hd = heads * d;
	dk_each(i1 - i0, hd, shift, [&](int64_t i, int32_t c) {
		int64_t v = dk_ldg(list + i0 + i), base = dk_ldg(chunks + i0);
		int64_t k0 = dk_ldg(chunks + i0 + i) - base, k1 = dk_ldg(chunks + i0 + i + 1) - base;
		int32_t h = c / d;
		dk_soft<1> t = dk_soft_start<1>();
		float sw[1];
		int32_t su[1] = {(int32_t)dk_self_of(a, v, sw)};
		if (su[0] >= 0)
			dk_soft_add<1, 1>(t, a, x + h * d, ldx, dk_att_row(a, v), dk_ldg(ad + v * ldad + h), h, c - h * d, su, sw);
		float top = t.top;
		for (int64_t k = k0; k < k1; k++) {
			float m = part[k * ldp + hd + h];
			top = m > top ? m : top;
			t.any = t.any || m != -DK_INF;
		}
		float f = dk_exp(t.top - top), sum = t.sum * f, acc = t.acc.v[0] * f;
		for (int64_t k = k0; k < k1; k++) {
			const float *p = part + k * ldp;
			f = dk_exp(p[hd + h] - top);
			sum = dk_fma(f, p[hd + heads + h], sum);
			acc = dk_fma(f, p[c], acc);
		}
		if (c == h * d)
			lse[v * ldl + h] = dk_soft_lse(t.any, top, sum);
		dst[v * ldd + c] = dk_finish1(ep, dk_mask(ep, v), c, t.any ? acc / sum : 0);
	});
}

// spmm.cu: the gather of kernels.Stream.SpMM. One row is summed by a group of G lanes
// (g8 g16 g32), a long one of a narrow matrix by a warp of several groups (w8 w16),
// a very long one in chunks by blocks (c8 c16 c32), whose sums dk_spmm_sum adds up.
// s8, s32, ws8, cs8, cs32 are the forms for rows that do not lie on 16 bytes.
#include "dkgather.h"

// The self term. on 0: none. col null: the row itself.
struct dk_self {
	int32_t on;
	const int32_t *col;
	const float *w;
};

template <int V, class T> DK_FN bool dk_add_self(dk_vec<V> &acc, const dk_self &self, const dk_source<T> &s, int64_t v, int32_t c)
{
	if (!self.on)
		return false;
	int64_t u = self.col ? dk_ldg(self.col + v) : v;
	if (u < 0)
		return false;
	float f = self.w ? dk_ldg(self.w + v) : 1.0f;
	if (s.cs)
		f *= dk_ldg(s.cs + u);
	dk_axpy(acc, f, dk_load<V>(s.x + u * s.ldx, c, s.cols));
	return true;
}

template <int V> DK_FN void dk_scale_row(dk_vec<V> &acc, const float *rs, int64_t v)
{
	if (!rs)
		return;
	float f = dk_ldg(rs + v);
DK_UNROLL
	for (int i = 0; i < V; i++)
		acc.v[i] *= f;
}

template <int G, int V, int S, class T>
DK_FN void dk_spmm_rows(float *dst, int64_t ldd, const dk_source<T> &s, const int64_t *rowptr, const int32_t *list, int64_t lo,
			int64_t n, int64_t mindeg, int64_t maxdeg, const float *rs, const dk_self &self, const dk_epi &ep)
{
	dk_place p = dk_rows_place<G, V, S>(n);
	if (p.i >= n)
		return;
	int64_t v = list ? dk_ldg(list + lo + p.i) : lo + p.i;
	int64_t e0 = dk_ldg(rowptr + v), e1 = dk_ldg(rowptr + v + 1);
	if (e1 - e0 < mindeg || e1 - e0 >= maxdeg)
		return;
	dk_vec<V> acc = dk_fill<V>(0);
	bool terms = e1 > e0, writes = S == 1 || (dk_tid() & (G * S - 1)) < G;
	if (writes)
		terms = dk_add_self(acc, self, s, v, p.c) || terms;
	dk_gather_row<G, V, S>(acc, s, e0, e1, p.c);
	if (!writes)
		return;
	if (terms)
		dk_scale_row(acc, rs, v);
	dk_finish(ep, v, p.c, s.cols, acc);
	dk_store(dst + v * ldd, p.c, s.cols, acc);
}

template <int G, int V, class T>
DK_FN void dk_spmm_chunk(float *part, int64_t ldp, const dk_source<T> &s, const int64_t *rowptr, const int32_t *list,
			 const int64_t *chunks, int64_t i0, int64_t i1)
{
	int64_t k0 = dk_ldg(chunks + i0), n = dk_ldg(chunks + i1) - k0;
	dk_place p = dk_chunk_place<G, V>(n);
	int64_t i = dk_row_of(chunks, i0, i1, k0 + p.i);
	int64_t v = dk_ldg(list + i);
	int64_t start = dk_ldg(rowptr + v) + (k0 + p.i - dk_ldg(chunks + i)) * DK_CHUNK, end = dk_ldg(rowptr + v + 1);
	dk_vec<V> acc = dk_fill<V>(0);
	if (dk_gather_chunk<G, V>(acc, s, start, start, end < start + DK_CHUNK ? end : start + DK_CHUNK, p.c))
		dk_store(part + p.i * ldp, p.c, s.cols, acc);
}

#define DK_SPMM(name, G, V, S, T)                                                                                             \
	DK_KERNEL(name, (float *dst, int64_t ldd, const T *x, int64_t ldx, int32_t cols, const int64_t *rowptr,              \
			 const int32_t *col, const float *w, const int32_t *list, int64_t lo, int64_t n, int64_t mindeg,     \
			 int64_t maxdeg, const float *rs, const float *cs, int32_t self, const int32_t *selfcol,             \
			 const float *selfw, DK_EPI))                                                                         \
	{                                                                                                                     \
		dk_spmm_rows<G, V, S>(dst, ldd, dk_source<T>{col, w, nullptr, cs, x, ldx, cols}, rowptr, list, lo, n, mindeg,  \
				      maxdeg, rs, dk_self{self, selfcol, selfw}, DK_EPI_PASS);                               \
	}
DK_SPMM(dk_spmm_g8, 8, 4, 1, float)
DK_SPMM(dk_spmm_g16, 16, 4, 1, float)
DK_SPMM(dk_spmm_g32, 32, 4, 1, float)
DK_SPMM(dk_spmm_w8, 8, 4, 4, float)
DK_SPMM(dk_spmm_w16, 16, 4, 2, float)
DK_SPMM(dk_spmm_s8, 8, 1, 1, float)
DK_SPMM(dk_spmm_s32, 32, 1, 1, float)
DK_SPMM(dk_spmm_ws8, 8, 1, 4, float)
DK_SPMM(dk_spmm_bf16_g8, 8, 4, 1, uint16_t)
DK_SPMM(dk_spmm_bf16_g16, 16, 4, 1, uint16_t)
DK_SPMM(dk_spmm_bf16_g32, 32, 4, 1, uint16_t)
DK_SPMM(dk_spmm_bf16_w8, 8, 4, 4, uint16_t)
DK_SPMM(dk_spmm_bf16_w16, 16, 4, 2, uint16_t)

#define DK_SPMM_CHUNK(name, G, V, T)                                                                                         \
	DK_KERNEL(name, (float *part, int64_t ldp, const T *x, int64_t ldx, int32_t cols, const int64_t *rowptr,             \
			 const int32_t *col, const float *w, const float *cs, const int32_t *list, const int64_t *chunks,    \
			 int64_t i0, int64_t i1))                                                                            \
	{                                                                                                                     \
		dk_spmm_chunk<G, V>(part, ldp, dk_source<T>{col, w, nullptr, cs, x, ldx, cols}, rowptr, list, chunks, i0, i1); \
	}
DK_SPMM_CHUNK(dk_spmm_c8, 8, 4, float)
DK_SPMM_CHUNK(dk_spmm_c16, 16, 4, float)
DK_SPMM_CHUNK(dk_spmm_c32, 32, 4, float)
DK_SPMM_CHUNK(dk_spmm_cs8, 8, 1, float)
DK_SPMM_CHUNK(dk_spmm_cs32, 32, 1, float)
DK_SPMM_CHUNK(dk_spmm_bf16_c8, 8, 4, uint16_t)
DK_SPMM_CHUNK(dk_spmm_bf16_c16, 16, 4, uint16_t)
DK_SPMM_CHUNK(dk_spmm_bf16_c32, 32, 4, uint16_t)

// dk_sum_chunks finishes the long rows i0..i1 of the list: the self term, then the
// chunks in their order.
template <class T>
DK_FN void dk_sum_chunks(float *dst, int64_t ldd, const float *part, int64_t ldp, const dk_source<T> &s, const int32_t *list,
			 const int64_t *chunks, int64_t i0, int64_t i1, int32_t shift, const float *rs, const dk_self &self,
			 const dk_epi &ep)
{
	int64_t k0 = dk_ldg(chunks + i0);
	dk_each(i1 - i0, s.cols, shift, [&](int64_t r, int32_t c) {
		int64_t v = dk_ldg(list + i0 + r);
		dk_vec<1> acc = dk_fill<1>(0);
		dk_add_self(acc, self, s, v, c);
		for (int64_t k = dk_ldg(chunks + i0 + r) - k0, end = dk_ldg(chunks + i0 + r + 1) - k0; k < end; k++)
			acc.v[0] += part[k * ldp + c];
		dk_scale_row(acc, rs, v);
		dk_finish(ep, v, c, s.cols, acc);
		dst[v * ldd + c] = acc.v[0];
	});
}

#define DK_SPMM_SUM(name, T)                                                                                                 \
	DK_KERNEL(name, (float *dst, int64_t ldd, const float *part, int64_t ldp, const T *x, int64_t ldx, int32_t cols,     \
			 const int32_t *list, const int64_t *chunks, int64_t i0, int64_t i1, int32_t shift, const float *rs,  \
			 const float *cs, int32_t self, const int32_t *selfcol, const float *selfw, DK_EPI))                 \
	{                                                                                                                     \
		dk_sum_chunks(dst, ldd, part, ldp, dk_source<T>{nullptr, nullptr, nullptr, cs, x, ldx, cols}, list, chunks,   \
			      i0, i1, shift, rs, dk_self{self, selfcol, selfw}, DK_EPI_PASS);                                \
	}
DK_SPMM_SUM(dk_spmm_sum, float)
DK_SPMM_SUM(dk_spmm_bf16_sum, uint16_t)

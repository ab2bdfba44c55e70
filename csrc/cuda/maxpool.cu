// maxpool.cu: the gather by maximum and its gradient. Edges of weight <= 0 are passed
// over; w null: all count. A group of G lanes has V columns each.
#include "dkgather.h"

#define DK_MAX_LONG 512
#define DK_MAX_CHUNK 256

template <int V> struct dk_best {
	dk_vec<V> top;
	int32_t from[V];
};

template <int V> DK_FN dk_best<V> dk_best_start()
{
	dk_best<V> b;
	b.top = dk_fill<V>(0);
	DK_UNROLL
	for (int i = 0; i < V; i++)
		b.from[i] = -1;
	return b;
}

// The first among equals stays; a NaN beats all numbers, not another NaN.
DK_FN bool dk_beats(float a, float top, int32_t from) { return from < 0 || a > top || (a != a && top == top); }

template <int V>
DK_FN dk_best<V> dk_max_edges(const float *x, int64_t ldx, int32_t cols, const int32_t *col, const float *w, int64_t lo, int64_t hi,
			      int32_t c)
{
	dk_best<V> b = dk_best_start<V>();
	for (int64_t e = lo; e < hi; e += 4) {
		int32_t u[4];
		dk_vec<V> r[4];
		DK_UNROLL
		for (int k = 0; k < 4; k++) {
			u[k] = -1;
			if (e + k < hi && (!w || dk_ldg(w + e + k) > 0)) {
				u[k] = dk_ldg(col + e + k);
				r[k] = dk_load<V>(x + (int64_t)u[k] * ldx, c, cols);
			}
		}
		DK_UNROLL
		for (int k = 0; k < 4; k++)
			if (u[k] >= 0)
				DK_UNROLL
				for (int i = 0; i < V; i++)
					if (dk_beats(r[k].v[i], b.top.v[i], b.from[i])) {
						b.top.v[i] = r[k].v[i];
						b.from[i] = u[k];
					}
	}
	return b;
}

template <int V> DK_FN void dk_store_best(float *dst, float *arg, int32_t c, int32_t cols, const dk_best<V> &b)
{
	dk_store(dst, c, cols, b.top);
	if (!arg)
		return;
	dk_vec<V> a;
	DK_UNROLL
	for (int i = 0; i < V; i++)
		a.v[i] = dk_float((uint32_t)b.from[i]);
	dk_store(arg, c, cols, a);
}

#define DK_SPMM_MAX(name, G, V)                                                                                              \
	DK_KERNEL(name, (float *dst, int64_t ldd, float *arg, int64_t lda, const float *x, int64_t ldx, int32_t cols,        \
			 const int64_t *rowptr, const int32_t *col, const float *w, const int32_t *list, int64_t lo, int64_t n, \
			 int64_t maxdeg))                                                                                    \
	{                                                                                                                     \
		dk_place p = dk_rows_place<G, V, 1>(n);                                                                       \
		if (p.i >= n || p.c >= cols)                                                                                  \
			return;                                                                                               \
		int64_t v = list ? dk_ldg(list + lo + p.i) : lo + p.i;                                                        \
		int64_t e0 = dk_ldg(rowptr + v), e1 = dk_ldg(rowptr + v + 1);                                                 \
		if (e1 - e0 > maxdeg)                                                                                         \
			return;                                                                                               \
		dk_store_best(dst + v * ldd, arg ? arg + v * lda : nullptr, p.c, cols,                                        \
			      dk_max_edges<V>(x, ldx, cols, col, w, e0, e1, p.c));                                            \
	}
DK_SPMM_MAX(dk_spmm_max_g8, 8, 4)
DK_SPMM_MAX(dk_spmm_max_g32, 32, 4)
DK_SPMM_MAX(dk_spmm_max_s32, 32, 1)

// A chunk of a long row writes its maxima to part and where they came from to parg.
#define DK_SPMM_MAX_CHUNK(name, G, V)                                                                                       \
	DK_KERNEL(name, (float *part, float *parg, int64_t ldp, const float *x, int64_t ldx, int32_t cols,                  \
			 const int64_t *rowptr, const int32_t *col, const float *w, const int32_t *list,                    \
			 const int64_t *chunks, int64_t i0, int64_t i1))                                                    \
	{                                                                                                                    \
		int64_t k0 = dk_ldg(chunks + i0), n = dk_ldg(chunks + i1) - k0;                                              \
		dk_place p = dk_rows_place<G, V, 1>(n);                                                                      \
		if (p.i >= n || p.c >= cols)                                                                                 \
			return;                                                                                              \
		int64_t i = dk_row_of(chunks, i0, i1, k0 + p.i), v = dk_ldg(list + i);                                       \
		int64_t e0 = dk_ldg(rowptr + v) + (k0 + p.i - dk_ldg(chunks + i)) * DK_MAX_CHUNK, e1 = dk_ldg(rowptr + v + 1); \
		e1 = e1 < e0 + DK_MAX_CHUNK ? e1 : e0 + DK_MAX_CHUNK;                                                        \
		dk_store_best(part + p.i * ldp, parg + p.i * ldp, p.c, cols,                                                 \
			      dk_max_edges<V>(x, ldx, cols, col, w, e0, e1, p.c));                                           \
	}
DK_SPMM_MAX_CHUNK(dk_spmm_max_c32, 32, 4)
DK_SPMM_MAX_CHUNK(dk_spmm_max_cs32, 32, 1)

DK_KERNEL(dk_spmm_max_sum, (float *dst, int64_t ldd, float *arg, int64_t lda, const float *part, const float *parg, int64_t ldp,
			    int32_t cols, const int32_t *list, const int64_t *chunks, int64_t i0, int64_t i1, int32_t shift))
{
	dk_each(i1 - i0, cols, shift, [&](int64_t i, int32_t c) {
		int64_t v = dk_ldg(list + i0 + i), base = dk_ldg(chunks + i0);
		int64_t k = dk_ldg(chunks + i0 + i) - base, k1 = dk_ldg(chunks + i0 + i + 1) - base;
		dk_best<1> b = dk_best_start<1>();
		for (; k < k1; k++) {
			float a = part[k * ldp + c];
			int32_t u = (int32_t)dk_bits(parg[k * ldp + c]);
			if (u >= 0 && dk_beats(a, b.top.v[0], b.from[0])) {
				b.top.v[0] = a;
				b.from[0] = u;
			}
		}
		dk_store_best(dst + v * ldd, arg ? arg + v * lda : nullptr, c, cols, b);
	});
}

// The gradient along the transpose, its weights not read. Duplicates of an edge are
// neighbours, and count once.
template <int V>
DK_FN dk_vec<V> dk_max_back_edges(const float *dy, int64_t lddy, const float *arg, int64_t lda, int32_t cols, const int32_t *col,
				  int64_t first, int64_t lo, int64_t hi, int32_t u, int32_t c)
{
	dk_vec<V> acc = dk_fill<V>(0);
	int32_t before = lo > first ? dk_ldg(col + lo - 1) : -1;
	for (int64_t e = lo; e < hi; e++) {
		int32_t v = dk_ldg(col + e);
		if (v == before)
			continue;
		before = v;
		dk_vec<V> a = dk_load<V>(arg + (int64_t)v * lda, c, cols), d = dk_load<V>(dy + (int64_t)v * lddy, c, cols);
		DK_UNROLL
		for (int i = 0; i < V; i++)
			if ((int32_t)dk_bits(a.v[i]) == u)
				acc.v[i] += d.v[i];
	}
	return acc;
}

#define DK_SPMM_MAX_BACK(name, G, V)                                                                                         \
	DK_KERNEL(name, (float *dx, int64_t lddx, const float *dy, int64_t lddy, const float *arg, int64_t lda, int32_t cols, \
			 const int64_t *rowptr, const int32_t *col, const int32_t *list, int64_t lo, int64_t n,              \
			 int64_t maxdeg))                                                                                    \
	{                                                                                                                     \
		dk_place p = dk_rows_place<G, V, 1>(n);                                                                       \
		if (p.i >= n || p.c >= cols)                                                                                  \
			return;                                                                                               \
		int64_t u = list ? dk_ldg(list + lo + p.i) : lo + p.i;                                                        \
		int64_t e0 = dk_ldg(rowptr + u), e1 = dk_ldg(rowptr + u + 1);                                                 \
		if (e1 - e0 > maxdeg)                                                                                         \
			return;                                                                                               \
		dk_store(dx + u * lddx, p.c, cols,                                                                            \
			 dk_max_back_edges<V>(dy, lddy, arg, lda, cols, col, e0, e0, e1, (int32_t)u, p.c));                   \
	}
DK_SPMM_MAX_BACK(dk_spmm_max_back_g8, 8, 4)
DK_SPMM_MAX_BACK(dk_spmm_max_back_g32, 32, 4)
DK_SPMM_MAX_BACK(dk_spmm_max_back_s32, 32, 1)

// The chunks are added up by dk_spmm_sum.
#define DK_SPMM_MAX_BACK_CHUNK(name, G, V)                                                                                   \
	DK_KERNEL(name, (float *part, int64_t ldp, const float *dy, int64_t lddy, const float *arg, int64_t lda, int32_t cols, \
			 const int64_t *rowptr, const int32_t *col, const int32_t *list, const int64_t *chunks, int64_t i0,  \
			 int64_t i1))                                                                                        \
	{                                                                                                                     \
		int64_t k0 = dk_ldg(chunks + i0), n = dk_ldg(chunks + i1) - k0;                                               \
		dk_place p = dk_rows_place<G, V, 1>(n);                                                                       \
		if (p.i >= n || p.c >= cols)                                                                                  \
			return;                                                                                               \
		int64_t i = dk_row_of(chunks, i0, i1, k0 + p.i), u = dk_ldg(list + i);                                        \
		int64_t first = dk_ldg(rowptr + u), e0 = first + (k0 + p.i - dk_ldg(chunks + i)) * DK_MAX_CHUNK;              \
		int64_t e1 = dk_ldg(rowptr + u + 1);                                                                          \
		e1 = e1 < e0 + DK_MAX_CHUNK ? e1 : e0 + DK_MAX_CHUNK;                                                         \
		dk_store(part + p.i * ldp, p.c, cols,                                                                         \
			 dk_max_back_edges<V>(dy, lddy, arg, lda, cols, col, first, e0, e1, (int32_t)u, p.c));                \
	}
DK_SPMM_MAX_BACK_CHUNK(dk_spmm_max_back_c32, 32, 4)
DK_SPMM_MAX_BACK_CHUNK(dk_spmm_max_back_cs32, 32, 1)

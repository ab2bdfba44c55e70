// spmmt.cu: kernels.Stream.SpMMT, the scatter, as a gather along the transpose: its
// row u lists the v of its edges in ascending order, and perm names each edge's place
// in the graph itself. Edges whose v lies outside [vlo,vhi) are passed over: v ascends,
// so they are the ends of the row.
#include "dkgather.h"

DK_FN int64_t dk_lower(const int32_t *col, int64_t lo, int64_t hi, int64_t v)
{
	while (lo < hi) {
		int64_t mid = lo + (hi - lo) / 2;
		if (dk_ldg(col + mid) < v)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

#define DK_SPMMT(name, G, V)                                                                                              \
	DK_KERNEL(name, (float *dst, int64_t ldd, const float *x, int64_t ldx, int32_t cols, const int64_t *rowptr,       \
			 const int32_t *col, const float *w, const int64_t *perm, int64_t n, int64_t maxdeg, int64_t vlo, \
			 int64_t vhi))                                                                                    \
	{                                                                                                                  \
		dk_place p = dk_rows_place<G, V, 1>(n);                                                                    \
		if (p.i >= n)                                                                                              \
			return;                                                                                            \
		int64_t e0 = dk_ldg(rowptr + p.i), e1 = dk_ldg(rowptr + p.i + 1);                                          \
		if (e1 - e0 >= maxdeg)                                                                                     \
			return;                                                                                            \
		e0 = dk_lower(col, e0, e1, vlo);                                                                           \
		e1 = dk_lower(col, e0, e1, vhi);                                                                           \
		dk_vec<V> acc = dk_fill<V>(0);                                                                             \
		dk_gather_row<G, V, 1>(acc, dk_source<float>{col, w, perm, nullptr, x, ldx, cols}, e0, e1, p.c);           \
		dk_store(dst + p.i * ldd, p.c, cols, acc);                                                                 \
	}
DK_SPMMT(dk_spmmt_g8, 8, 4)
DK_SPMMT(dk_spmmt_g16, 16, 4)
DK_SPMMT(dk_spmmt_g32, 32, 4)
DK_SPMMT(dk_spmmt_s8, 8, 1)
DK_SPMMT(dk_spmmt_s32, 32, 1)

#define DK_SPMMT_CHUNK(name, G, V)                                                                                           \
	DK_KERNEL(name, (float *part, int64_t ldp, const float *x, int64_t ldx, int32_t cols, const int64_t *rowptr,         \
			 const int32_t *col, const float *w, const int64_t *perm, const int32_t *list,                       \
			 const int64_t *chunks, int64_t i0, int64_t i1, int64_t vlo, int64_t vhi))                           \
	{                                                                                                                     \
		int64_t k0 = dk_ldg(chunks + i0), n = dk_ldg(chunks + i1) - k0;                                               \
		dk_place p = dk_chunk_place<G, V>(n);                                                                         \
		int64_t i = dk_row_of(chunks, i0, i1, k0 + p.i), v = dk_ldg(list + i);                                        \
		int64_t e0 = dk_ldg(rowptr + v), e1 = dk_ldg(rowptr + v + 1);                                                 \
		int64_t start = e0 + (k0 + p.i - dk_ldg(chunks + i)) * DK_CHUNK;                                              \
		e0 = dk_lower(col, e0, e1, vlo);                                                                              \
		e1 = dk_lower(col, e0, e1, vhi);                                                                              \
		e1 = e1 < start + DK_CHUNK ? e1 : start + DK_CHUNK;                                                           \
		dk_vec<V> acc = dk_fill<V>(0);                                                                                \
		if (dk_gather_chunk<G, V>(acc, dk_source<float>{col, w, perm, nullptr, x, ldx, cols}, start, e0, e1, p.c))    \
			dk_store(part + p.i * ldp, p.c, cols, acc);                                                           \
	}
DK_SPMMT_CHUNK(dk_spmmt_c8, 8, 4)
DK_SPMMT_CHUNK(dk_spmmt_c16, 16, 4)
DK_SPMMT_CHUNK(dk_spmmt_c32, 32, 4)
DK_SPMMT_CHUNK(dk_spmmt_cs8, 8, 1)
DK_SPMMT_CHUNK(dk_spmmt_cs32, 32, 1)

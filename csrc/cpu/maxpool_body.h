/*
 * The gather by the maximum and its gradient. A panel of columns stays in registers
 * over the edges of a row; rows do not depend on each other.
 */
#include "lane.h"

#define DK_AHEAD 16
#define DK_PANEL 4 /* vectors of maxima, and as many of sources */

DK_INLINE void dk_fetch(const float *p, const int nv)
{
	for (int c = 0; c < nv * VEC_W; c += 16)
		DK_PREFETCH(p + c);
}

DK_INLINE void dk_max_panel(const int64_t *row_ptr, const int32_t *col, const float *w, const float *x, int64_t ldx,
                            float *y, int64_t ldy, float *arg, int64_t lda, int64_t n, int64_t lo, int64_t hi,
                            const int nv)
{
	const int64_t stop = row_ptr[hi];
	const vmask m = v_tail(n - (nv - 1) * VEC_W);
	for (int64_t v = lo; v < hi; v++) {
		vec top[DK_PANEL];
		ivec from[DK_PANEL];
		int none = 1;
		for (int i = 0; i < nv; i++) {
			top[i] = v_zero();
			from[i] = i_set1((uint32_t)-1);
		}
		for (int64_t e = row_ptr[v]; e < row_ptr[v + 1]; e++) {
			if (e + DK_AHEAD < stop)
				dk_fetch(x + (int64_t)col[e + DK_AHEAD] * ldx, nv);
			if (w && !(w[e] > 0))
				continue;
			const float *xu = x + (int64_t)col[e] * ldx;
			const ivec u = i_set1((uint32_t)col[e]);
			for (int i = 0; i < nv; i++) {
				const vec a = i < nv - 1 ? v_load(xu + i * VEC_W) : v_load_mask(xu + i * VEC_W, m);
				/* Stays unless a is larger, or the first NaN. */
				const vmask small = v_le(a, top[i]), number = v_le(top[i], top[i]);
				const vec t = v_select(small, top[i], v_select(number, a, top[i]));
				const ivec f = i_select(small, from[i], i_select(number, u, from[i]));
				top[i] = none ? a : t;
				from[i] = none ? u : f;
			}
			none = 0;
		}
		float *yv = y + v * ldy;
		for (int i = 0; i < nv; i++) {
			if (i < nv - 1)
				v_store(yv + i * VEC_W, top[i]);
			else
				v_store_mask(yv + i * VEC_W, m, top[i]);
			if (!arg)
				continue;
			float *av = arg + v * lda + i * VEC_W;
			if (i < nv - 1)
				v_store(av, v_from_bits(from[i]));
			else
				v_store_mask(av, m, v_from_bits(from[i]));
		}
	}
}

#define DK_BY_WIDTH(call, n)                                \
	switch ((n + VEC_W - 1) / VEC_W) {                  \
	case 1:                                             \
		call(1);                                    \
		break;                                      \
	case 2:                                             \
		call(2);                                    \
		break;                                      \
	case 3:                                             \
		call(3);                                    \
		break;                                      \
	case 4:                                             \
		call(4);                                    \
		break;                                      \
	}

/*
 * y[v,c] = max of x[u,c] over e = (u,v) with w[e] > 0 (w == NULL: all), 0 if there is
 * none; arg[v,c] the bits of the first such u, or of -1. NaN is the largest. arg may
 * be NULL.
 */
DK_FN void DK_NAME(dk_spmm_max)(const int64_t *row_ptr, const int32_t *col, const float *w, const float *x,
                                int64_t ldx, float *y, int64_t ldy, float *arg, int64_t lda, int64_t f, int64_t lo,
                                int64_t hi)
{
	for (int64_t c = 0; c < f; c += DK_PANEL * VEC_W) {
		const int64_t n = f - c < DK_PANEL * VEC_W ? f - c : DK_PANEL * VEC_W;
#define DK_CALL(nv) \
	dk_max_panel(row_ptr, col, w, x + c, ldx, y + c, ldy, arg ? arg + c : 0, lda, n, lo, hi, nv)
		DK_BY_WIDTH(DK_CALL, n)
#undef DK_CALL
	}
}

DK_INLINE void dk_max_back_panel(const int64_t *row_ptr, const int32_t *col, const float *dy, int64_t lddy,
                                 const float *arg, int64_t lda, float *dx, int64_t lddx, int64_t n, int64_t lo,
                                 int64_t hi, const int nv)
{
	const int64_t stop = row_ptr[hi];
	const vmask m = v_tail(n - (nv - 1) * VEC_W);
	for (int64_t u = lo; u < hi; u++) {
		const ivec own = i_set1((uint32_t)u);
		vec acc[DK_PANEL];
		for (int i = 0; i < nv; i++)
			acc[i] = v_zero();
		for (int64_t e = row_ptr[u]; e < row_ptr[u + 1]; e++) {
			if (e + DK_AHEAD < stop) {
				dk_fetch(dy + (int64_t)col[e + DK_AHEAD] * lddy, nv);
				dk_fetch(arg + (int64_t)col[e + DK_AHEAD] * lda, nv);
			}
			if (e > row_ptr[u] && col[e - 1] == col[e])
				continue; /* a duplicate */
			const float *d = dy + (int64_t)col[e] * lddy, *a = arg + (int64_t)col[e] * lda;
			for (int i = 0; i < nv; i++) {
				const vec g = i < nv - 1 ? v_load(d + i * VEC_W) : v_load_mask(d + i * VEC_W, m);
				const vec from = i < nv - 1 ? v_load(a + i * VEC_W) : v_load_mask(a + i * VEC_W, m);
				/* Equal numbers have an exclusive or of 0. */
				const vmask here = i_geu(i_set1(0), i_xor(v_bits(from), own));
				acc[i] = v_add(acc[i], v_keep(here, g));
			}
		}
		float *out = dx + u * lddx;
		for (int i = 0; i < nv; i++) {
			if (i < nv - 1)
				v_store(out + i * VEC_W, acc[i]);
			else
				v_store_mask(out + i * VEC_W, m, acc[i]);
		}
	}
}

/* dx[u,c] = sum of dy[v,c] over the different v of row u with arg[v,c] == u, in edge order. */
DK_FN void DK_NAME(dk_spmm_max_back)(const int64_t *row_ptr, const int32_t *col, const float *dy, int64_t lddy,
                                     const float *arg, int64_t lda, float *dx, int64_t lddx, int64_t f, int64_t lo,
                                     int64_t hi)
{
	for (int64_t c = 0; c < f; c += DK_PANEL * VEC_W) {
		const int64_t n = f - c < DK_PANEL * VEC_W ? f - c : DK_PANEL * VEC_W;
#define DK_CALL(nv) dk_max_back_panel(row_ptr, col, dy + c, lddy, arg + c, lda, dx + c, lddx, n, lo, hi, nv)
		DK_BY_WIDTH(DK_CALL, n)
#undef DK_CALL
	}
}

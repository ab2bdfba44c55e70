/*
 * The gather:
 *
 *   acc    = self_w[v] * cs[s] * x[s,:]          s = self_col[v], if self_on and s >= 0
 *   acc   += cs[u] * w[e] * x[u,:]               in-edges e = (u,v), in edge order
 *   y[v,:] = epilogue(rs[v] * acc)               v in [lo,hi); 0 for acc where there are no terms
 *
 * Each value is one chain of sums in edge order, so a row's bits depend on
 * neither the range, nor the panels of columns, nor the tiles of sources: a
 * tile after the first loads the running sum from y and goes on from it. Reads
 * nothing past x[.,f-1] and col[row_ptr[hi]-1]; writes y[lo..hi-1, 0..f-1] only.
 *
 * A panel of up to VEC_ACC vectors is summed in registers, while the rows that
 * are DK_AHEAD edges ahead are brought into the second-level cache.
 */
#include "lane.h"

#define DK_AHEAD 24

/* Rows of a chunk: its outputs stay in the first-level cache between the passes
 * over its panels and for the epilogue. */
#define DK_CHUNK_BYTES 16384

typedef struct dk_part { /* what one pass covers */
	int64_t c0, n;  /* columns [c0,c0+n) */
	int64_t t0, t1; /* tiles [t0,t1) */
} dk_part;

/* Vector i of a panel at p: nv vectors, the last under the mask m unless full. */
DK_INLINE vec dk_get(const float *p, int i, const int nv, const int full, vmask m)
{
	return full || i < nv - 1 ? v_load(p + i * VEC_W) : v_load_mask(p + i * VEC_W, m);
}

/* acc += a * x[u,:] for an edge, a its factor. */
DK_INLINE void dk_edge(vec *acc, const float *xu, const float *w, const float *cs, int64_t e, int64_t u,
                       const int nv, const int scaled, const int full, vmask m)
{
	if (scaled) {
		const vec a = v_set1(w ? (cs ? cs[u] * w[e] : w[e]) : cs[u]);
		for (int i = 0; i < nv; i++)
			acc[i] = v_fma(a, dk_get(xu, i, nv, full, m), acc[i]);
	} else {
		for (int i = 0; i < nv; i++)
			acc[i] = v_add(acc[i], dk_get(xu, i, nv, full, m));
	}
}

DK_INLINE void dk_fetch(const float *xu, const int nv)
{
	for (int c = 0; c < nv * VEC_W; c += 16)
		DK_PREFETCH(xu + c);
}

/* One pass over rows [lo,hi). Rows up to g->hi may be looked at ahead. */
DK_INLINE void dk_rows(const dk_gather *g, const dk_part *part, int64_t lo, int64_t hi, const int nv,
                       const int scaled, const int full)
{
	const int64_t *const row_ptr = g->row_ptr;
	const int32_t *const col = g->col;
	const float *const w = g->w, *const cs = g->cs;
	const float *const x = g->x + part->c0;
	const int64_t ldx = g->ldx;
	const int first = part->t0 == 0, last = part->t1 == g->tiles;
	const int tiled = !first || !last;
	/* Where a row's edges of these tiles begin and end; 0: at its own ends. */
	const int32_t *const from = first ? 0 : g->tile + (part->t0 - 1) * g->tile_ld;
	const int32_t *const to = last ? 0 : g->tile + (part->t1 - 1) * g->tile_ld;
	const vmask m = v_tail(part->n - (nv - 1) * VEC_W);
	const int64_t stop = row_ptr[g->hi];

	for (int64_t v = lo; v < hi; v++) {
		const int64_t b = row_ptr[v] + (from ? from[v] : 0);
		const int64_t e = to ? row_ptr[v] + to[v] : row_ptr[v + 1];
		if (b == e && !first && !last)
			continue;
		float *const y = g->y + v * g->ldy + part->c0;
		const int64_t s = !g->self_on ? -1 : g->self_col ? g->self_col[v] : v;
		vec acc[VEC_ACC];

		if (!first) {
			for (int i = 0; i < nv; i++)
				acc[i] = dk_get(y, i, nv, full, m);
		} else if (s >= 0) {
			const vec a = v_set1((g->self_w ? g->self_w[v] : 1.0f) * (cs ? cs[s] : 1.0f));
			for (int i = 0; i < nv; i++)
				acc[i] = v_mul(a, dk_get(x + s * ldx, i, nv, full, m));
		} else {
			for (int i = 0; i < nv; i++)
				acc[i] = v_zero();
		}

		/* What lies DK_AHEAD edges ahead is in this row or, untiled, in a later
		 * one; in a tile, the last edges fetch the first of the next row. */
		int64_t j = b;
		const int64_t end = (tiled ? e : stop) - DK_AHEAD;
		for (const int64_t near = end < e ? end : e; j < near; j++) {
			dk_fetch(x + (int64_t)col[j + DK_AHEAD] * ldx, nv);
			dk_edge(acc, x + (int64_t)col[j] * ldx, w, cs, j, col[j], nv, scaled, full, m);
		}
		if (tiled && v + 1 < g->hi) {
			int64_t next = row_ptr[v + 1] + (from ? from[v + 1] : 0);
			const int64_t next_end = to ? row_ptr[v + 1] + to[v + 1] : row_ptr[v + 2];
			for (; j < e && next < next_end; j++, next++) {
				dk_fetch(x + (int64_t)col[next] * ldx, nv);
				dk_edge(acc, x + (int64_t)col[j] * ldx, w, cs, j, col[j], nv, scaled, full, m);
			}
		}
		for (; j < e; j++)
			dk_edge(acc, x + (int64_t)col[j] * ldx, w, cs, j, col[j], nv, scaled, full, m);

		if (last && g->rs && (s >= 0 || row_ptr[v] < row_ptr[v + 1])) {
			const vec r = v_set1(g->rs[v]);
			for (int i = 0; i < nv; i++)
				acc[i] = v_mul(acc[i], r);
		}
		for (int i = 0; i < nv - 1; i++)
			v_store(y + i * VEC_W, acc[i]);
		if (full)
			v_store(y + (nv - 1) * VEC_W, acc[nv - 1]);
		else
			v_store_mask(y + (nv - 1) * VEC_W, m, acc[nv - 1]);
	}
}

/* Picks the copy of dk_rows for the width; up to 8 vectors in every set. */
static DK_FN void dk_panel(const dk_gather *g, const dk_part *part, int64_t lo, int64_t hi)
{
	const int nv = (int)((part->n + VEC_W - 1) / VEC_W);
	const int scaled = g->w || g->cs;
	const int full = part->n % VEC_W == 0;
#define DK_CASE(k)                                                            \
	case k:                                                               \
		if (scaled && full)                                           \
			dk_rows(g, part, lo, hi, k, 1, 1);                    \
		else if (scaled)                                              \
			dk_rows(g, part, lo, hi, k, 1, 0);                    \
		else if (full)                                                \
			dk_rows(g, part, lo, hi, k, 0, 1);                    \
		else                                                          \
			dk_rows(g, part, lo, hi, k, 0, 0);                    \
		break
	switch (nv) {
		DK_CASE(1);
		DK_CASE(2);
		DK_CASE(3);
		DK_CASE(4);
		DK_CASE(5);
		DK_CASE(6);
		DK_CASE(7);
		DK_CASE(8);
#if VEC_ACC > 8
		DK_CASE(9);
		DK_CASE(10);
		DK_CASE(11);
		DK_CASE(12);
		DK_CASE(13);
		DK_CASE(14);
		DK_CASE(15);
		DK_CASE(16);
#endif
	}
#undef DK_CASE
}

/* Columns [c0,c1) of rows [lo,hi) in one pass over all edges, then the epilogue. */
static DK_FN void dk_chunk(const dk_gather *g, int64_t c0, int64_t c1, int64_t lo, int64_t hi, int64_t t0)
{
	for (int64_t c = c0; c < c1; c += VEC_ACC * VEC_W) {
		const int64_t n = c1 - c < VEC_ACC * VEC_W ? c1 - c : VEC_ACC * VEC_W;
		const dk_part part = {c, n, t0, g->tiles};
		dk_panel(g, &part, lo, hi);
	}
	if (g->ep)
		DK_NAME(dk_forward)(g->ep, g->y, g->ldy, g->y, g->ldy, c0, c1, lo, hi);
}

DK_FN void DK_NAME(dk_spmm)(const dk_gather *g)
{
	const int64_t wide = g->tile ? g->panel : g->f;
	for (int64_t c0 = 0; c0 < g->f; c0 += wide) {
		const int64_t c1 = c0 + wide < g->f ? c0 + wide : g->f;
		int64_t t = 0;
		for (; t + g->group < g->tiles; t += g->group) {
			for (int64_t c = c0; c < c1; c += VEC_ACC * VEC_W) {
				const int64_t n = c1 - c < VEC_ACC * VEC_W ? c1 - c : VEC_ACC * VEC_W;
				const dk_part part = {c, n, t, t + g->group};
				dk_panel(g, &part, g->lo, g->hi);
			}
		}
		int64_t rows = DK_CHUNK_BYTES / ((c1 - c0) * 4);
		rows = rows < 1 ? 1 : rows;
		for (int64_t lo = g->lo; lo < g->hi; lo += rows)
			dk_chunk(g, c0, c1, lo, lo + rows < g->hi ? lo + rows : g->hi, t);
	}
}

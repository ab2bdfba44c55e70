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

#ifndef DK_AHEAD
#define DK_AHEAD 24
#endif
#ifndef DK_TILE_AHEAD
#define DK_TILE_AHEAD 8
#endif
#ifndef DK_TILE_ROWS
#define DK_TILE_ROWS 3
#endif

/* Rows of a chunk: its outputs stay in the first-level cache between the passes
 * over its panels and for the epilogue. */
#define DK_CHUNK_BYTES 16384

typedef struct dk_part { /* what one pass covers */
	int64_t c0, n;  /* columns [c0,c0+n) */
	int64_t t0, t1; /* tiles [t0,t1) */
	const float *x; /* column c0 of source row u0, rows ldx apart */
	int64_t ldx, u0;
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

/* In a tile, a row is a short run of edges far from those of the row before: its
 * indices and its running sum are brought in some rows earlier. */
DK_INLINE void dk_fetch_row(const dk_gather *g, const dk_part *part, int64_t v, const int32_t *from,
                            const int32_t *to, const int nv)
{
	const int64_t b = g->row_ptr[v] + (from ? from[v] : 0);
	const int64_t e = to ? g->row_ptr[v] + to[v] : g->row_ptr[v + 1];
	for (int64_t j = b; j < e; j += 16)
		__builtin_prefetch(g->col + j, 0, 3);
	const float *y = g->y + v * g->ldy + part->c0;
	for (int c = 0; c < nv * VEC_W; c += 16)
		__builtin_prefetch(y + c, 1, 3);
}

/* One pass over rows [lo,hi). Rows up to g->hi may be looked at ahead. */
DK_INLINE void dk_rows(const dk_gather *g, const dk_part *part, int64_t lo, int64_t hi, const int nv,
                       const int scaled, const int full)
{
	const int64_t *const row_ptr = g->row_ptr;
	const int32_t *const col = g->col;
	const float *const w = g->w, *const cs = g->cs;
	const float *const x = part->x;
	const int64_t ldx = part->ldx, u0 = part->u0;
	const int first = part->t0 == 0, last = part->t1 == g->tiles;
	const int tiled = !first || !last;
	/* Where a row's edges of these tiles begin and end; 0: at its own ends. */
	const int32_t *const from = first ? 0 : g->tile + (part->t0 - 1) * g->tile_ld;
	const int32_t *const to = last ? 0 : g->tile + (part->t1 - 1) * g->tile_ld;
	const vmask m = v_tail(part->n - (nv - 1) * VEC_W);
	const int64_t stop = row_ptr[g->hi], ahead = tiled ? DK_TILE_AHEAD : DK_AHEAD;

	for (int64_t v = lo; v < hi; v++) {
		const int64_t b = row_ptr[v] + (from ? from[v] : 0);
		const int64_t e = to ? row_ptr[v] + to[v] : row_ptr[v + 1];
		if (b == e && !first && !last)
			continue;
		if (tiled && v + DK_TILE_ROWS < g->hi)
			dk_fetch_row(g, part, v + DK_TILE_ROWS, from, to, nv);
		float *const y = g->y + v * g->ldy + part->c0;
		const int64_t s = !g->self_on ? -1 : g->self_col ? g->self_col[v] : v;
		vec acc[VEC_ACC];

		if (!first) {
			for (int i = 0; i < nv; i++)
				acc[i] = dk_get(y, i, nv, full, m);
		} else if (s >= 0) {
			const vec a = v_set1((g->self_w ? g->self_w[v] : 1.0f) * (cs ? cs[s] : 1.0f));
			for (int i = 0; i < nv; i++)
				acc[i] = v_mul(a, dk_get(g->x + s * g->ldx + part->c0, i, nv, full, m));
		} else {
			for (int i = 0; i < nv; i++)
				acc[i] = v_zero();
		}

		/* What lies some edges ahead is in this row or, untiled, in a later
		 * one; in a tile, the last edges fetch the first of the next row. */
		int64_t j = b;
		const int64_t end = (tiled ? e : stop) - ahead;
		for (const int64_t near = end < e ? end : e; j < near; j++) {
			dk_fetch(x + (col[j + ahead] - u0) * ldx, nv);
			dk_edge(acc, x + (col[j] - u0) * ldx, w, cs, j, col[j], nv, scaled, full, m);
		}
		if (tiled && v + 1 < g->hi) {
			int64_t next = row_ptr[v + 1] + (from ? from[v + 1] : 0);
			const int64_t next_end = to ? row_ptr[v + 1] + to[v + 1] : row_ptr[v + 2];
			for (; j < e && next < next_end; j++, next++) {
				dk_fetch(x + (col[next] - u0) * ldx, nv);
				dk_edge(acc, x + (col[j] - u0) * ldx, w, cs, j, col[j], nv, scaled, full, m);
			}
		}
		for (; j < e; j++)
			dk_edge(acc, x + (col[j] - u0) * ldx, w, cs, j, col[j], nv, scaled, full, m);

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

/* Columns [c0,c1) of rows [lo,hi) from tiles [t0,t1), whose rows start at x. */
static DK_FN void dk_pass(const dk_gather *g, const float *x, int64_t ldx, int64_t u0, int64_t c0, int64_t c1,
                          int64_t t0, int64_t t1, int64_t lo, int64_t hi)
{
	for (int64_t c = c0; c < c1; c += VEC_ACC * VEC_W) {
		const int64_t n = c1 - c < VEC_ACC * VEC_W ? c1 - c : VEC_ACC * VEC_W;
		const dk_part part = {c, n, t0, t1, x + (c - c0), ldx, u0};
		dk_panel(g, &part, lo, hi);
	}
}

/* Copies columns [c0,c1) of the source rows [u0,u1) to g->pack, packed. */
static DK_FN void dk_pack(const dk_gather *g, int64_t c0, int64_t c1, int64_t u0, int64_t u1)
{
	float *to = g->pack;
	for (int64_t u = u0; u < u1; u++, to += g->panel) {
		const float *from = g->x + u * g->ldx;
		for (int64_t c = c0; c < c1; c += 16)
			DK_PREFETCH(from + 8 * g->ldx + c);
		DK_COLUMNS(c, n, c0, c1, { v_store_n(to + (c - c0), v_load_n(from + c, n), n); });
	}
}

/* All columns in one pass over the edges, by chunks of rows. */
static DK_FN void dk_spmm_flat(const dk_gather *g)
{
	const int64_t most = DK_CHUNK_BYTES / 4 / g->f, rows = most < 1 ? 1 : most;
	for (int64_t lo = g->lo; lo < g->hi; lo += rows) {
		const int64_t hi = lo + rows < g->hi ? lo + rows : g->hi;
		dk_pass(g, g->x, g->ldx, 0, 0, g->f, 0, g->tiles, lo, hi);
		if (g->ep)
			DK_NAME(dk_forward)(g->ep, g->y, g->ldy, g->y, g->ldy, 0, g->f, lo, hi);
	}
}

/* Panel by panel, tile by tile, all rows. */
static DK_FN void dk_spmm_tiled(const dk_gather *g)
{
	for (int64_t c0 = 0; c0 < g->f; c0 += g->panel) {
		const int64_t c1 = c0 + g->panel < g->f ? c0 + g->panel : g->f;
		for (int64_t t = 0; t < g->tiles; t += g->group) {
			const int64_t t1 = t + g->group < g->tiles ? t + g->group : g->tiles;
			const float *x = g->x + c0;
			int64_t ldx = g->ldx, u0 = 0;
			if (g->pack) {
				u0 = t * g->tile_rows;
				dk_pack(g, c0, c1, u0, t1 < g->tiles ? t1 * g->tile_rows : g->sources);
				x = g->pack, ldx = g->panel;
			}
			dk_pass(g, x, ldx, u0, c0, c1, t, t1, g->lo, g->hi);
		}
		if (g->ep)
			DK_NAME(dk_forward)(g->ep, g->y, g->ldy, g->y, g->ldy, c0, c1, g->lo, g->hi);
	}
}

DK_FN void DK_NAME(dk_spmm)(const dk_gather *g)
{
	if (g->tile)
		dk_spmm_tiled(g);
	else
		dk_spmm_flat(g);
}

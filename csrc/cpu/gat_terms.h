/*
 * What attention's kernels share: the pieces of a row, the terms of a batch, and
 * the weighted sum of rows.
 *
 * A row is done in pieces: as many heads as have their columns in DK_PANEL
 * vectors, or a panel of a wide head. The terms of a row (its own first, then its
 * edges) are taken in batches. The numbers of a batch lie packed, heads next to
 * each other, term after term: `slots` of them per term, a power of two, so that
 * every vector of them holds whole terms and all vectors have the same pattern of
 * heads. Arrays of one value per head are kept in that pattern. Nothing is stored
 * per edge beyond the batch.
 */
#include "lane.h"
#include "gat.h"
#include "hash.h"
#include "vmath.h"

#define DK_PANEL 8   /* vectors of columns in a piece */
#define DK_TERMS 64  /* terms of a batch, at most */
#define DK_LANES 512 /* numbers of a batch, at most */
#define DK_SLOTS 16  /* heads of a piece, at most, and lanes of a pattern */
#define DK_AHEAD 64  /* edges by which rows are fetched ahead of the batch */

/* How the columns of a piece find the factor of their head. */
enum { DK_ONE, /* one head */
       DK_EACH, /* vector i is head i */
       DK_RUNS, /* a vector lies in one head */
       DK_MIXED };

typedef struct dk_piece {
	int64_t h0, c0, n; /* first head; columns [c0,c0+n) */
	int heads, slots;
	int nv, map;
	int first, last; /* of the pieces of its heads */
	int32_t head[DK_PANEL * VEC_W];
} dk_piece;

typedef struct dk_batch {
	int n;            /* terms */
	const int32_t *u; /* their rows: of the graph, or list */
	int64_t e0;       /* edge of the first */
	int32_t list[DK_TERMS];
	float w[DK_TERMS];
	/* One value per term and head; the vectors that read them may pass the end. */
	float s[DK_LANES + DK_SLOTS]; /* scores, then the factors of the rows */
	float t[DK_LANES + DK_SLOTS]; /* those factors where the score is above 0 */
	float shift[DK_LANES + DK_SLOTS], dot[DK_LANES + DK_SLOTS];
	int32_t lo[DK_LANES + DK_SLOTS], hi[DK_LANES + DK_SLOTS]; /* for the hash of dropout */
} dk_batch;

/* Calls f(g, piece, lo, hi) for all pieces. */
typedef void dk_piece_fn(const dk_attend *g, const dk_piece *p, int64_t lo, int64_t hi);

static DK_FN void dk_pieces(const dk_attend *g, dk_piece_fn *f, int64_t lo, int64_t hi)
{
	const int64_t panel = DK_PANEL * VEC_W;
	const int64_t most = VEC_W > 1 ? VEC_W : DK_SLOTS;
	dk_piece p;
	for (p.h0 = 0; p.h0 < g->heads; p.h0 += p.heads) {
		int64_t heads = g->d < panel ? panel / g->d : 1;
		heads = heads < most ? heads : most;
		p.heads = (int)(heads < g->heads - p.h0 ? heads : g->heads - p.h0);
		p.slots = 1;
		while (p.slots < p.heads)
			p.slots *= 2;
		for (int64_t c = 0; c < g->d * p.heads; c += panel) {
			p.c0 = p.h0 * g->d + c;
			p.n = g->d * p.heads - c < panel ? g->d * p.heads - c : panel;
			p.first = c == 0;
			p.last = c + panel >= g->d * p.heads;
			p.nv = (int)((p.n + VEC_W - 1) / VEC_W);
			p.map = p.heads == 1 ? DK_ONE : g->d == VEC_W ? DK_EACH : g->d % VEC_W == 0 ? DK_RUNS : DK_MIXED;
			for (int64_t i = 0; i < p.nv * VEC_W; i++)
				p.head[i] = (int32_t)(p.heads == 1 ? 0 : i < p.n ? i / g->d : p.heads - 1);
			f(g, &p, lo, hi);
		}
	}
}

/* Runs rows(...) with the heads and slots of a piece, as constants where that pays:
 * one head, and as many as a vector has lanes. */
#define DK_BY_HEADS(rows, ...)                                 \
	if (k->heads == 1)                                     \
		rows(__VA_ARGS__, 1, 1);                       \
	else if (k->heads == VEC_W)                            \
		rows(__VA_ARGS__, VEC_W, VEC_W);               \
	else                                                   \
		rows(__VA_ARGS__, k->heads, k->slots)

/* The lanes of a pattern. Lane i of a batch belongs to lane i mod this. */
DK_INLINE int dk_period(int slots) { return VEC_W > 1 ? VEC_W : slots; }

/* The pattern of values p[0..heads-1]; 0 in slots without a head. */
DK_INLINE void dk_pattern(float *to, const float *p, int heads, int slots)
{
	if (heads == VEC_W) {
		v_store(to, v_load(p));
		return;
	}
	for (int i = 0; i < dk_period(slots); i++) {
		const int h = i & (slots - 1);
		to[i] = h < heads ? p[h] : 0;
	}
}

/* Folds the lanes of a pattern that belong to the same head, in a fixed order, and
 * spreads the result to all of them. */
DK_INLINE void dk_fold(float *a, int slots, const int max)
{
	for (int step = VEC_W / 2; step >= slots; step /= 2)
		for (int i = 0; i < step; i++)
			a[i] = !max ? a[i] + a[i + step] : a[i] > a[i + step] ? a[i] : a[i + step];
	for (int i = slots; i < VEC_W; i++)
		a[i] = a[i & (slots - 1)];
}

/* How many numbers the batch has, in whole vectors. */
DK_INLINE int dk_lanes(const dk_batch *b, int slots)
{
	return (b->n * slots + VEC_W - 1) / VEC_W * VEC_W;
}

/* The row that v gathers as its own, or -1. */
DK_INLINE int64_t dk_self(const dk_attend *g, int64_t v)
{
	if (!g->self_on || (g->self_w && g->self_w[v] == 0))
		return -1;
	return g->self_col ? g->self_col[v] : v;
}

/* Whether the batch's weights may differ from 1. */
DK_INLINE int dk_weighted(const dk_attend *g) { return g->w || (g->self_on && g->self_w); }

/* Takes terms of row v from edge *e on into b; *self, if not below 0, comes first. */
DK_INLINE void dk_take(const dk_attend *g, int slots, dk_batch *b, int64_t v, int64_t *self, int64_t *e, int64_t end)
{
	const int most = DK_LANES / slots < DK_TERMS ? DK_LANES / slots : DK_TERMS;
	int n = 0;
	b->e0 = *e;
	if (*self < 0 && !dk_weighted(g)) {
		b->u = g->col + *e;
		b->n = (int)(end - *e < most ? end - *e : most);
		*e += b->n;
		return;
	}
	if (*self >= 0) {
		b->list[0] = (int32_t)*self;
		b->w[0] = g->self_w ? g->self_w[v] : 1;
		n = 1;
		*self = -1;
	}
	for (; *e < end && n < most; ++*e) {
		const float w = g->w ? g->w[*e] : 1;
		b->list[n] = g->col[*e];
		b->w[n] = w;
		n += w != 0;
	}
	b->u = b->list;
	b->n = n;
}

/* Copies the narrow rows p[u,:] of a batch, and fetches later ones. */
DK_INLINE void dk_copy(float *to, const dk_attend *g, const float *p, int64_t ld, int heads, int slots,
                       const dk_batch *b, int64_t stop)
{
	for (int i = 0; i < b->n; i++) {
		const float *const from = p + b->u[i] * ld;
		if (b->e0 + i + DK_AHEAD < stop)
			DK_PREFETCH(p + g->col[b->e0 + i + DK_AHEAD] * ld);
		if (slots == 1)
			to[i] = *from;
		else if (heads == VEC_W)
			v_store(to + i * VEC_W, v_load(from));
		else if (VEC_W > 1)
			v_store(to + i * slots, v_load_n(from, heads));
		else
			for (int h = 0; h < slots; h++)
				to[i * slots + h] = h < heads ? from[h] : 0;
	}
}

/* Numbers per term, in the slots of its heads. */
DK_INLINE void dk_spread(float *to, const float *w, int slots, const dk_batch *b)
{
	for (int i = 0; i < b->n; i++)
		for (int h = 0; h < slots; h += VEC_W < slots ? VEC_W : slots)
			v_store(to + i * slots + h, v_set1(w[i]));
}

/* What the hash of each term and head wants. turned: rows are sources. */
DK_INLINE void dk_hash(const dk_attend *g, int64_t h0, int slots, dk_batch *b, int64_t v, const int turned)
{
	const ivec heads = i_mul(i_iota(), i_set1(DK_HASH_COL));
	const uint32_t near = (uint32_t)(g->near_ids ? g->near_ids[v] : (int32_t)v);
	const uint64_t own = turned ? 0 : dk_drop_row(g->key, (int32_t)near);
	const int step = VEC_W < slots ? VEC_W : slots;
	for (int i = 0; i < b->n; i++) {
		const uint32_t far = (uint32_t)(g->far_ids ? g->far_ids[b->u[i]] : b->u[i]);
		const uint64_t row = turned ? dk_drop_row(g->key, (int32_t)far) : own;
		const uint32_t col = (turned ? near : far) * (uint32_t)g->heads + (uint32_t)h0;
		for (int h = 0; h < slots; h += step) {
			const uint32_t first = (col + (uint32_t)h) * DK_HASH_COL + (uint32_t)row;
			i_store(b->lo + i * slots + h, i_add(i_set1(first), heads));
			i_store(b->hi + i * slots + h, i_set1((uint32_t)(row >> 32)));
		}
	}
}

DK_INLINE vmask dk_keep(const dk_attend *g, const dk_batch *b, int i)
{
	return v_drop_keep_mixed(i_load(b->lo + i), i_load(b->hi + i), g->threshold);
}

/* LeakyReLU for a slope of at most 1; NaN stays. */
DK_INLINE vec dk_leaky(vec z, vec slope) { return v_max(v_mul(slope, z), z); }

/* Sets what follows the batch's scores to terms of nothing. */
DK_INLINE void dk_close(float *s, int slots, const dk_batch *b)
{
	for (int i = b->n * slots; i < dk_lanes(b, slots); i++)
		s[i] = -INFINITY;
}

/* acc[c] += s[term, head of c] * x[u,c] over the batch, in columns from vector v0
 * of the piece on, nv vectors of them; with `dual` also acc of DK_PANEL vectors
 * later with t. */
DK_INLINE void dk_sum(const dk_attend *g, const dk_piece *k, const dk_batch *t, float *acc, int64_t stop,
                      const int v0, const int nv, const int map, const int dual)
{
	const vmask m = v_tail(k->n - (v0 + nv - 1) * VEC_W);
	const int64_t ldx = g->ldx;
	const float *const x = g->x + k->c0 + v0 * VEC_W;
	const int32_t *const col = g->col;
	const int slots = k->slots;
	vec a[DK_PANEL], b[DK_PANEL];
	ivec pick[DK_PANEL];
	acc += v0 * VEC_W;
	for (int i = 0; i < nv; i++) {
		a[i] = v_load(acc + i * VEC_W);
		if (dual)
			b[i] = v_load(acc + (DK_PANEL + i) * VEC_W);
		if (map == DK_MIXED)
			pick[i] = i_load(k->head + (v0 + i) * VEC_W);
	}
	for (int j = 0; j < t->n; j++) {
		if (t->e0 + j + DK_AHEAD < stop) {
			const float *p = x + (int64_t)col[t->e0 + j + DK_AHEAD] * ldx;
			for (int c = 0; c < nv * VEC_W; c += 16)
				DK_PREFETCH(p + c);
		}
		const float *const xu = x + (int64_t)t->u[j] * ldx;
		const float *const s = t->s + j * slots, *const r = t->t + j * slots;
		for (int i = 0; i < nv; i++) {
			const vec v = i < nv - 1 ? v_load(xu + i * VEC_W) : v_load_mask(xu + i * VEC_W, m);
			const int h = map == DK_EACH ? v0 + i : map == DK_RUNS ? k->head[(v0 + i) * VEC_W] : 0;
			a[i] = v_fma(map == DK_MIXED ? v_pick(s, pick[i]) : v_set1(s[h]), v, a[i]);
			if (dual)
				b[i] = v_fma(map == DK_MIXED ? v_pick(r, pick[i]) : v_set1(r[h]), v, b[i]);
		}
	}
	for (int i = 0; i < nv; i++) {
		v_store(acc + i * VEC_W, a[i]);
		if (dual)
			v_store(acc + (DK_PANEL + i) * VEC_W, b[i]);
	}
}

#define DK_BY_MAP(v0, nv, dual)                                                         \
	switch (k->map) {                                                               \
	case DK_ONE:                                                                    \
		dk_sum(g, k, t, acc, stop, v0, nv, DK_ONE, dual);                       \
		break;                                                                  \
	case DK_EACH:                                                                   \
		dk_sum(g, k, t, acc, stop, v0, nv, DK_EACH, dual);                      \
		break;                                                                  \
	case DK_RUNS:                                                                   \
		dk_sum(g, k, t, acc, stop, v0, nv, DK_RUNS, dual);                      \
		break;                                                                  \
	default:                                                                        \
		dk_sum(g, k, t, acc, stop, v0, nv, DK_MIXED, dual);                     \
	}                                                                               \
	break

static DK_FN void dk_sum_one(const dk_attend *g, const dk_piece *k, const dk_batch *t, float *acc, int64_t stop)
{
	switch (k->nv) {
	case 1:
		DK_BY_MAP(0, 1, 0);
	case 2:
		DK_BY_MAP(0, 2, 0);
	case 3:
		DK_BY_MAP(0, 3, 0);
	case 4:
		DK_BY_MAP(0, 4, 0);
	case 5:
		DK_BY_MAP(0, 5, 0);
	case 6:
		DK_BY_MAP(0, 6, 0);
	case 7:
		DK_BY_MAP(0, 7, 0);
	case 8:
		DK_BY_MAP(0, 8, 0);
	}
}

/* Twice as many sums do not fit the registers at once: they are done in halves of
 * the piece, which is in the first-level cache the second time. */
static DK_FN void dk_sum_two(const dk_attend *g, const dk_piece *k, const dk_batch *t, float *acc, int64_t stop)
{
	switch (k->nv < 4 ? k->nv : 4) {
	case 1:
		DK_BY_MAP(0, 1, 1);
	case 2:
		DK_BY_MAP(0, 2, 1);
	case 3:
		DK_BY_MAP(0, 3, 1);
	case 4:
		DK_BY_MAP(0, 4, 1);
	}
	switch (k->nv - 4) {
	case 1:
		DK_BY_MAP(4, 1, 1);
	case 2:
		DK_BY_MAP(4, 2, 1);
	case 3:
		DK_BY_MAP(4, 3, 1);
	case 4:
		DK_BY_MAP(4, 4, 1);
	}
}

/* a[c] *= p[head of c] for a pattern p. */
DK_INLINE void dk_scale(float *a, const float *p, const dk_piece *k)
{
	for (int i = 0; i < k->nv; i++)
		v_store(a + i * VEC_W, v_mul(v_load(a + i * VEC_W), v_pick(p, i_load(k->head + i * VEC_W))));
}

DK_INLINE void dk_clear(float *a, int n)
{
	for (int i = 0; i < n; i += VEC_W)
		v_store(a + i, v_zero());
}

/* <a, b> over n values, by lanes, then over the lanes. */
DK_INLINE float dk_inner(const float *a, const float *b, int64_t n)
{
	vec s = v_zero();
	DK_COLUMNS(c, m, 0, n, { s = v_fma(v_load_n(a + c, m), v_load_n(b + c, m), s); });
	return v_hsum(s);
}

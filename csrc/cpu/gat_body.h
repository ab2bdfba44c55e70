/*
 * GAT's gather and its gradient, for rows v in [lo,hi). The terms of a row are its
 * own, if any, then its edges in order, without those of weight 0. For the term
 * that gathers row u and head h,
 *
 *   z = near[v,h] + far[u,h],  s = z for z > 0, else slope * z
 *
 * Rows do not depend on each other or on the range. Sums of rows of x run in the
 * order of the terms, those over alphas by lanes and then over the lanes. Reads no
 * column past the last; writes rows [lo,hi) of the outputs only.
 */
#include "gat_terms.h"

/* Rows that are finished before the next ones begin, so that their outputs and
 * edges stay in the first-level cache between pieces. */
#define DK_CHUNK 64

/*
 * The forward gather of one piece, with the maximum so far subtracted:
 *
 *   out[v,h] = m + log(sum of w * exp(s - m))
 *   y[v,c]   = sum of w * exp(s - m) * keep' * x[u,c] / sum of w * exp(s - m)
 *
 * When a batch raises the maximum, what was summed before is scaled down.
 */
DK_INLINE void dk_gat_rows(const dk_attend *g, const dk_piece *k, int64_t lo, int64_t hi, const int heads,
                           const int slots)
{
	const int64_t *const row_ptr = g->row_ptr;
	const int64_t stop = row_ptr[g->hi];
	const int weighted = dk_weighted(g);
	const vec slope = v_set1(g->slope);
	const int lanes = dk_period(slots);
	float near[DK_SLOTS], top[DK_SLOTS], max[DK_SLOTS], sum[DK_SLOTS], acc[DK_PANEL * VEC_W];
	dk_batch b;

	for (int64_t v = lo; v < hi; v++) {
		int64_t self = dk_self(g, v), e = row_ptr[v];
		const int64_t end = row_ptr[v + 1];
		int terms = 0;
		dk_pattern(near, g->near + v * g->ld_near + k->h0, heads, slots);
		for (int i = 0; i < lanes; i += VEC_W) {
			v_store(top + i, v_set1(-3.40282347e38f)); /* a score of -Inf is a term of 0 */
			v_store(sum + i, v_zero());
		}
		dk_clear(acc, k->nv * VEC_W);
		while (self >= 0 || e < end) {
			dk_take(g, slots, &b, v, &self, &e, end);
			if (b.n == 0)
				continue;
			dk_copy(b.s, g, g->far + k->h0, g->ld_far, heads, slots, &b, stop);
			dk_close(b.s, slots, &b);
			const int all = dk_lanes(&b, slots), used = b.n * slots;
			for (int at = 0; at < lanes; at += VEC_W) {
				const vec own = v_load(near + at);
				vec m = v_load(top + at);
				for (int i = at; i < all; i += lanes) {
					const vec s = dk_leaky(v_add(v_load(b.s + i), own), slope);
					v_store(b.s + i, s);
					m = v_max(s, m);
				}
				v_store(max + at, m);
			}
			dk_fold(max, slots, 1);
			if (terms > 0) {
				float scale[DK_SLOTS];
				for (int i = 0; i < lanes; i += VEC_W) {
					const vec f = v_exp_normal(v_sub(v_load(top + i), v_load(max + i)));
					v_store(scale + i, f);
					v_store(sum + i, v_mul(v_load(sum + i), f));
				}
				dk_scale(acc, scale, k);
			}
			if (weighted)
				dk_spread(b.t, b.w, slots, &b);
			if (g->drop)
				dk_hash(g, k->h0, slots, &b, v, 0);
			for (int at = 0; at < lanes; at += VEC_W) {
				const vec m = v_load(max + at);
				vec total = v_load(sum + at);
				for (int i = at; i < all; i += lanes) {
					vec p = v_exp_normal(v_sub(v_load(b.s + i), m));
					if (weighted)
						p = v_mul(p, v_load(b.t + i));
					if (i + VEC_W > used)
						p = v_keep(v_tail(used - i), p); /* what is past the batch may be NaN */
					total = v_add(total, p);
					if (g->drop)
						p = v_keep(dk_keep(g, &b, i), p);
					v_store(b.s + i, p);
				}
				v_store(sum + at, total);
				v_store(top + at, m);
			}
			dk_sum_one(g, k, &b, acc, stop);
			terms += b.n;
		}

		dk_fold(sum, slots, 0);
		float *const y = g->y + v * g->ldy + k->c0;
		if (terms > 0) {
			for (int i = 0; i < lanes; i += VEC_W) {
				const vec s = v_load(sum + i);
				v_store(top + i, v_add(v_load(top + i), v_log(s)));
				v_store(sum + i, v_div(v_set1(g->drop ? g->keep_scale : 1), s));
			}
			dk_scale(acc, sum, k);
		} else {
			for (int i = 0; i < lanes; i += VEC_W)
				v_store(top + i, v_set1(-INFINITY));
		}
		DK_COLUMNS(c, n, 0, k->n, { v_store_n(y + c, v_load(acc + c), n); });
		if (k->first)
			memcpy(g->out + v * g->ld_out + k->h0, top, (size_t)heads * sizeof *top);
	}
}

static DK_FN void dk_gat_piece(const dk_attend *g, const dk_piece *k, int64_t lo, int64_t hi)
{
	DK_BY_HEADS(dk_gat_rows, g, k, lo, hi);
}

DK_FN void DK_NAME(dk_gat)(const dk_attend *g)
{
	for (int64_t lo = g->lo; lo < g->hi; lo += DK_CHUNK) {
		const int64_t hi = lo + DK_CHUNK < g->hi ? lo + DK_CHUNK : g->hi;
		dk_pieces(g, dk_gat_piece, lo, hi);
		if (g->ep)
			DK_NAME(dk_forward)(g->ep, g->y, g->ldy, g->y, g->ldy, 0, g->heads * g->d, lo, hi);
	}
}

/*
 * Factors of a batch of the gradient, alpha = w * exp(s - lse), 1 where it is kept:
 *
 *   s = alpha * kept;  t = s where z > 0, else 0;  *sum += alpha * s' * dot
 *
 * turned: rows are sources, and lse and dot those of the terms; else lse is a
 * pattern of the row's own, and dot is 1.
 */
DK_INLINE void dk_factors(const dk_attend *g, const dk_piece *k, dk_batch *b, int64_t v, const float *near,
                          const float *lse, float *sum, int64_t stop, const int turned, const int heads,
                          const int slots)
{
	const vec slope = v_set1(g->slope);
	const int weighted = dk_weighted(g);
	dk_copy(b->s, g, g->far + k->h0, g->ld_far, heads, slots, b, stop);
	dk_close(b->s, slots, b);
	if (turned) {
		dk_copy(b->shift, g, g->lse + k->h0, g->ld_lse, heads, slots, b, stop);
		dk_copy(b->dot, g, g->dot + k->h0, g->ld_dot, heads, slots, b, stop);
	}
	if (weighted)
		dk_spread(b->t, b->w, slots, b);
	if (g->drop)
		dk_hash(g, k->h0, slots, b, v, turned);
	const int lanes = dk_period(slots), all = dk_lanes(b, slots), used = b->n * slots;
	for (int at = 0; at < lanes; at += VEC_W) {
		const vec own = v_load(near + at), shift = turned ? v_zero() : v_load(lse + at);
		vec total = v_load(sum + at);
		for (int i = at; i < all; i += lanes) {
			const vec z = v_add(v_load(b->s + i), own);
			const vmask below = v_le(z, v_zero());
			vec a = v_exp_normal(v_sub(dk_leaky(z, slope), turned ? v_load(b->shift + i) : shift));
			if (weighted)
				a = v_mul(a, v_load(b->t + i));
			vec c = v_select(below, v_mul(a, slope), a);
			if (turned)
				c = v_mul(c, v_load(b->dot + i));
			if (i + VEC_W > used)
				c = v_keep(v_tail(used - i), c); /* what is past the batch may be NaN */
			total = v_add(total, c);
			if (g->drop)
				a = v_keep(dk_keep(g, b, i), a);
			v_store(b->s + i, a);
			v_store(b->t + i, v_select(below, v_zero(), a));
		}
		v_store(sum + at, total);
	}
}

/*
 * The gradient along the graph, one piece. With the two sums of rows
 *
 *   A = sum of alpha * keep' * x[u],  B the same over the terms with z > 0,
 *
 *   out2[v,h] = dot = <own[v,h], A>
 *   out[v,h]  = slope * dot + (1-slope) * <own[v,h], B> - dot * sum of alpha * s'
 *
 * Over the pieces of a wide head, out gathers <own,B> until the last.
 */
DK_INLINE void dk_back_dst_rows(const dk_attend *g, const dk_piece *k, int64_t lo, int64_t hi, const int heads,
                                const int slots)
{
	const int64_t *const row_ptr = g->row_ptr;
	const int64_t stop = row_ptr[g->hi];
	const int lanes = dk_period(slots);
	const float keep = g->drop ? g->keep_scale : 1;
	float near[DK_SLOTS], lse[DK_SLOTS], sum[DK_SLOTS], acc[2 * DK_PANEL * VEC_W];
	dk_batch b;

	for (int64_t v = lo; v < hi; v++) {
		int64_t self = dk_self(g, v), e = row_ptr[v];
		const int64_t end = row_ptr[v + 1];
		dk_pattern(near, g->near + v * g->ld_near + k->h0, heads, slots);
		dk_pattern(lse, g->lse + v * g->ld_lse + k->h0, heads, slots);
		dk_clear(sum, lanes);
		dk_clear(acc, 2 * DK_PANEL * VEC_W);
		while (self >= 0 || e < end) {
			dk_take(g, slots, &b, v, &self, &e, end);
			if (b.n == 0)
				continue;
			dk_factors(g, k, &b, v, near, lse, sum, stop, 0, heads, slots);
			dk_sum_two(g, k, &b, acc, stop);
		}
		dk_fold(sum, slots, 0);
		const float *const own = g->own + v * g->ld_own + k->c0;
		const int64_t d = k->n / heads;
		for (int h = 0; h < heads; h++) {
			float *const dad = g->out + v * g->ld_out + k->h0 + h;
			float *const dot = g->out2 + v * g->ld_out2 + k->h0 + h;
			const float a = keep * dk_inner(acc + h * d, own + h * d, d);
			const float p = keep * dk_inner(acc + DK_PANEL * VEC_W + h * d, own + h * d, d);
			*dot = k->first ? a : *dot + a;
			*dad = k->first ? p : *dad + p;
			if (k->last)
				*dad = g->slope * *dot + (1 - g->slope) * *dad - *dot * sum[h];
		}
	}
}

static DK_FN void dk_back_dst_piece(const dk_attend *g, const dk_piece *k, int64_t lo, int64_t hi)
{
	DK_BY_HEADS(dk_back_dst_rows, g, k, lo, hi);
}

DK_FN void DK_NAME(dk_gat_back_dst)(const dk_attend *g)
{
	for (int64_t lo = g->lo; lo < g->hi; lo += DK_CHUNK)
		dk_pieces(g, dk_back_dst_piece, lo, lo + DK_CHUNK < g->hi ? lo + DK_CHUNK : g->hi);
}

/*
 * The gradient along the transpose, one piece. With A and B as above, of the rows
 * x[u] of destinations,
 *
 *   y[v,c]   = A[c]
 *   out[v,h] = <own[v,h], slope * A + (1-slope) * B> - sum of alpha * s' * dot[u,h]
 */
DK_INLINE void dk_back_src_rows(const dk_attend *g, const dk_piece *k, int64_t lo, int64_t hi, const int heads,
                                const int slots)
{
	const int64_t *const row_ptr = g->row_ptr;
	const int64_t stop = row_ptr[g->hi];
	const int lanes = dk_period(slots);
	const vec keep = v_set1(g->drop ? g->keep_scale : 1);
	const vec slope = v_set1(g->slope), rest = v_set1(1 - g->slope);
	float near[DK_SLOTS], sum[DK_SLOTS], acc[2 * DK_PANEL * VEC_W];
	dk_batch b;

	for (int64_t v = lo; v < hi; v++) {
		int64_t self = dk_self(g, v), e = row_ptr[v];
		const int64_t end = row_ptr[v + 1];
		dk_pattern(near, g->near + v * g->ld_near + k->h0, heads, slots);
		dk_clear(sum, lanes);
		dk_clear(acc, 2 * DK_PANEL * VEC_W);
		while (self >= 0 || e < end) {
			dk_take(g, slots, &b, v, &self, &e, end);
			if (b.n == 0)
				continue;
			dk_factors(g, k, &b, v, near, 0, sum, stop, 1, heads, slots);
			dk_sum_two(g, k, &b, acc, stop);
		}
		dk_fold(sum, slots, 0);
		float *const y = g->y + v * g->ldy + k->c0;
		float *const mix = acc + DK_PANEL * VEC_W;
		DK_COLUMNS(c, n, 0, k->n, {
			const vec a = v_mul(keep, v_load(acc + c));
			v_store_n(y + c, a, n);
			v_store(mix + c, v_fma(slope, a, v_mul(rest, v_mul(keep, v_load(mix + c)))));
		});
		const float *const own = g->own + v * g->ld_own + k->c0;
		const int64_t d = k->n / heads;
		for (int h = 0; h < heads; h++) {
			float *const das = g->out + v * g->ld_out + k->h0 + h;
			const float a = dk_inner(mix + h * d, own + h * d, d);
			*das = k->first ? a - sum[h] : *das + a;
		}
	}
}

static DK_FN void dk_back_src_piece(const dk_attend *g, const dk_piece *k, int64_t lo, int64_t hi)
{
	DK_BY_HEADS(dk_back_src_rows, g, k, lo, hi);
}

DK_FN void DK_NAME(dk_gat_back_src)(const dk_attend *g)
{
	for (int64_t lo = g->lo; lo < g->hi; lo += DK_CHUNK)
		dk_pieces(g, dk_back_src_piece, lo, lo + DK_CHUNK < g->hi ? lo + DK_CHUNK : g->hi);
}

/*
 * What follows a product, and its derivative:
 *
 *   y  = drop(act(x + bias))
 *   dx = dy * act'(pre) * drop'        act' from y, the mask recomputed
 *
 * drop(a) is a * keep_scale or 0, by the hash of (key, id of the row, column).
 * Rows are independent and each value is computed alone. x may be y, dy may be
 * dx: nothing is restrict here.
 */
#include "lane.h"
#include "hash.h"
#include "vmath.h"

DK_INLINE vec v_act(vec a, const int act)
{
	switch (act) {
	case DK_RELU: /* keeps NaN */
		return v_max(v_zero(), a);
	case DK_LEAKY_RELU:
		return v_select(v_le(a, v_zero()), v_mul(a, v_set1(0.2f)), a);
	case DK_ELU:
		return v_select(v_le(a, v_zero()), v_expm1(v_min(v_zero(), a)), a);
	case DK_TANH:
		return v_tanh(a);
	default:
		return a;
	}
}

/* d * act'(pre) for a = act(pre). The derivative is 1 where a is NaN, but Tanh's. */
DK_INLINE vec v_act_slope(vec d, vec a, const int act)
{
	switch (act) {
	case DK_RELU:
		return v_select(v_le(a, v_zero()), v_zero(), d);
	case DK_LEAKY_RELU:
		return v_select(v_le(a, v_zero()), v_mul(d, v_set1(0.2f)), d);
	case DK_ELU: /* e^pre = a + 1 */
		return v_select(v_le(a, v_zero()), v_mul(d, v_add(a, v_set1(1))), d);
	case DK_TANH:
		return v_mul(d, v_sub(v_set1(1), v_mul(a, a)));
	default:
		return d;
	}
}

/* Inlined with constant act, bias and drop. */
DK_INLINE void dk_forward_rows(const dk_epilogue *ep, const float *x, int64_t ldx, float *y, int64_t ldy,
                               int64_t c0, int64_t c1, int64_t lo, int64_t hi, const int act, const int drop)
{
	const float *bias = ep->bias;
	const vec keep = v_set1(ep->keep_scale);
	for (int64_t v = lo; v < hi; v++) {
		const float *xv = x + v * ldx;
		float *yv = y + v * ldy;
		const uint64_t row = drop ? dk_drop_row(ep->key, ep->ids ? ep->ids[v] : (int32_t)v) : 0;
		DK_COLUMNS(c, n, c0, c1, {
			vec a = v_load_n(xv + c, n);
			if (bias)
				a = v_add(a, v_load_n(bias + c, n));
			a = v_act(a, act);
			if (drop) {
				const ivec col = i_add(i_set1((uint32_t)c), i_iota());
				a = v_keep(v_drop_keep(row, col, ep->threshold), v_mul(a, keep));
			}
			v_store_n(yv + c, a, n);
		});
	}
}

DK_INLINE void dk_backward_rows(const dk_epilogue *ep, const float *dy, int64_t lddy, const float *y,
                                int64_t ldy, float *dx, int64_t lddx, int64_t f, int64_t lo, int64_t hi,
                                const int act, const int drop)
{
	const vec keep = v_set1(ep->keep_scale);
	for (int64_t v = lo; v < hi; v++) {
		const float *dyv = dy + v * lddy, *yv = y + v * ldy;
		float *dxv = dx + v * lddx;
		const uint64_t row = drop ? dk_drop_row(ep->key, ep->ids ? ep->ids[v] : (int32_t)v) : 0;
		DK_COLUMNS(c, n, 0, f, {
			vec d = v_load_n(dyv + c, n);
			if (act != DK_IDENTITY) {
				vec a = v_load_n(yv + c, n);
				if (drop) /* before dropout it was smaller */
					a = v_div(a, keep);
				d = v_act_slope(d, a, act);
			}
			if (drop) {
				const ivec col = i_add(i_set1((uint32_t)c), i_iota());
				d = v_keep(v_drop_keep(row, col, ep->threshold), v_mul(d, keep));
			}
			v_store_n(dxv + c, d, n);
		});
	}
}

#define DK_BY_ACT(call)                      \
	switch (ep->act) {                   \
	case DK_RELU:                        \
		call(DK_RELU);               \
		break;                       \
	case DK_LEAKY_RELU:                  \
		call(DK_LEAKY_RELU);         \
		break;                       \
	case DK_ELU:                         \
		call(DK_ELU);                \
		break;                       \
	case DK_TANH:                        \
		call(DK_TANH);               \
		break;                       \
	default:                             \
		call(DK_IDENTITY);           \
	}

/* Columns [c0,c1) of rows [lo,hi). */
DK_FN void DK_NAME(dk_forward)(const dk_epilogue *ep, const float *x, int64_t ldx, float *y, int64_t ldy,
                               int64_t c0, int64_t c1, int64_t lo, int64_t hi)
{
#define DK_CALL(act)                                                              \
	if (ep->drop)                                                             \
		dk_forward_rows(ep, x, ldx, y, ldy, c0, c1, lo, hi, act, 1);      \
	else                                                                      \
		dk_forward_rows(ep, x, ldx, y, ldy, c0, c1, lo, hi, act, 0)
	DK_BY_ACT(DK_CALL)
#undef DK_CALL
}

DK_FN void DK_NAME(dk_backward)(const dk_epilogue *ep, const float *dy, int64_t lddy, const float *y,
                                int64_t ldy, float *dx, int64_t lddx, int64_t f, int64_t lo, int64_t hi)
{
#define DK_CALL(act)                                                                  \
	if (ep->drop)                                                                 \
		dk_backward_rows(ep, dy, lddy, y, ldy, dx, lddx, f, lo, hi, act, 1);  \
	else                                                                          \
		dk_backward_rows(ep, dy, lddy, y, ldy, dx, lddx, f, lo, hi, act, 0)
	DK_BY_ACT(DK_CALL)
#undef DK_CALL
}

/*
 * out[e] = drop(w[e]) for e = (u,v), v in [lo,hi), with the bits of row v,
 * column u. w == NULL means 1.
 */
DK_FN void DK_NAME(dk_edge_dropout)(const int64_t *row_ptr, const int32_t *col, const float *w, float *out,
                                    const dk_epilogue *d, int64_t lo, int64_t hi)
{
	const vec keep = v_set1(d->keep_scale);
	for (int64_t v = lo; v < hi; v++) {
		const uint64_t row = dk_drop_row(d->key, d->ids ? d->ids[v] : (int32_t)v);
		DK_COLUMNS(e, n, row_ptr[v], row_ptr[v + 1], {
			vec a = w ? v_load_n(w + e, n) : v_set1(1);
			if (d->drop)
				a = v_keep(v_drop_keep(row, i_load_n(col + e, n), d->threshold), v_mul(a, keep));
			v_store_n(out + e, a, n);
		});
	}
}

/*
 * Binary cross-entropy of every class, forward and gradient in one. For the rows
 * v < rows with mask[v] >= 0, with s = -z for the classes c that entries
 * [row_ptr[v], row_ptr[v+1]) of col list (ascending) and z for the others,
 * z = l[v,c], and wt = scale, times pos_w[c] (NULL: 1) for the listed ones:
 *
 *   loss     += wt * softplus(s)          by lanes, then in float64, in row order
 *   grad[v,c] = wt * sigmoid(s), negative for the listed ones
 *
 * Other rows add nothing and get a zero gradient. grad may be NULL, or l itself.
 */
#include "lane.h"
#include "vmath.h"

/* n values from l on, all listed or none; returns the softplus of each, 0 beyond n. */
DK_INLINE vec dk_sigmoid(const float *l, float *grad, int64_t n, const float wt, const int listed)
{
	const vec z = v_load_n(l, n);
	const vec s = listed ? v_sub(v_zero(), z) : z;
	const vmask below = v_le(s, v_zero());
	/* e = exp(-|s|); NaN is not below. */
	const vec e = v_exp(v_select(below, s, v_sub(v_zero(), s)));
	const vec plus = v_add(v_select(below, v_zero(), s), v_log1p(e));
	if (grad) {
		const vec p = v_div(v_select(below, e, v_set1(1)), v_add(e, v_set1(1)));
		v_store_n(grad, v_mul(p, v_set1(listed ? -wt : wt)), n);
	}
	return n == VEC_W ? plus : v_keep(v_tail(n), plus);
}

DK_FN double DK_NAME(dk_bce)(const float *l, int64_t ldl, float *grad, int64_t ldg, const int64_t *row_ptr,
                             const int32_t *col, const int32_t *mask, const float *pos_w, float scale, int64_t f,
                             int64_t rows)
{
	double loss = 0;
	for (int64_t v = 0; v < rows; v++) {
		const float *lv = l + v * ldl;
		float *g = grad ? grad + v * ldg : 0;
		if (mask[v] < 0) {
			if (g)
				memset(g, 0, (size_t)f * sizeof *g);
			continue;
		}
		vec s = v_zero();
		double row = 0;
		int64_t from = 0;
		for (int64_t e = row_ptr[v]; e <= row_ptr[v + 1]; e++) {
			const int64_t next = e < row_ptr[v + 1] ? col[e] : f;
			if (next < from)
				continue; /* listed twice */
			DK_COLUMNS(c, n, from, next, { s = v_add(s, dk_sigmoid(lv + c, g ? g + c : 0, n, scale, 0)); });
			if (next < f) {
				const float wt = (pos_w ? pos_w[next] : 1) * scale;
				row += (double)wt * (double)v_hsum(dk_sigmoid(lv + next, g ? g + next : 0, 1, wt, 1));
			}
			from = next + 1;
		}
		loss += row + (double)scale * (double)v_hsum(s);
	}
	return loss;
}

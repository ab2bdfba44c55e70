/*
 * Mean softmax cross-entropy, forward and gradient in one. For v in [lo,hi) with
 * labels[v] >= 0, wt = class_w[labels[v]] (NULL: 1) times scale:
 *
 *   loss     += wt * (log(sum_c exp(l[v,c] - max)) + max - l[v,label])     float64, in row order
 *   grad[v,:] = wt * (softmax(l[v,:]) - onehot(label))
 *
 * Other rows add nothing and get a zero gradient. grad may be NULL, or logits
 * itself. The exponentials of a row are summed by lanes, then over the lanes.
 */
#include "lane.h"
#include "vmath.h"

DK_FN double DK_NAME(dk_xent)(const float *logits, int64_t ldl, float *grad, int64_t ldg, const int32_t *labels,
                              const float *class_w, float scale, int64_t f, int64_t lo, int64_t hi)
{
	const float low = -INFINITY;
	double loss = 0;
	for (int64_t v = lo; v < hi; v++) {
		const float *l = logits + v * ldl;
		float *g = grad ? grad + v * ldg : 0;
		const int32_t label = labels[v];
		if (label < 0) {
			if (g)
				memset(g, 0, (size_t)f * sizeof *g);
			continue;
		}
		const float wt = (class_w ? class_w[label] : 1.0f) * scale;
		const float at = l[label];
		vec m = v_set1(low);
		DK_COLUMNS(c, n, 0, f, {
			const vec a = v_load_n(l + c, n);
			m = v_max(m, n == VEC_W ? a : v_select(v_tail(n), a, v_set1(low)));
		});
		const float top = v_hmax(m);
		vec s = v_zero();
		DK_COLUMNS(c, n, 0, f, {
			vec a = v_exp(v_sub(v_load_n(l + c, n), v_set1(top)));
			if (n != VEC_W)
				a = v_keep(v_tail(n), a);
			s = v_add(s, a);
			if (g)
				v_store_n(g + c, a, n);
		});
		const float sum = v_hsum(s);
		loss += (double)wt * (log((double)sum) + (double)top - (double)at);
		if (!g)
			continue;
		const vec r = v_set1(wt / sum);
		DK_COLUMNS(c, n, 0, f, { v_store_n(g + c, v_mul(v_load_n(g + c, n), r), n); });
		g[label] -= wt;
	}
	return loss;
}

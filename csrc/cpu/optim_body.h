/*
 * One optimiser step in place, PyTorch's semantics, each value alone.
 *
 *   Adam:  p = decay*p if decoupled, else g' = g + l2*p
 *          m = b1*m + (1-b1)*g';  v = b2*v + (1-b2)*g'^2
 *          p -= lr_step * m / (sqrt(v) * inv_sqrt_bc2 + eps)
 *   SGD:   g' = g + l2*p;  m = g' in the first step, else momentum*m + g';  p -= lr * m
 *
 * SGD without a buffer (m == NULL) uses g' for m.
 */
#include "lane.h"

DK_FN void DK_NAME(dk_adam)(float *p, int64_t ldp, const float *g, int64_t ldg, float *m, int64_t ldm, float *v,
                            int64_t ldv, int64_t rows, int64_t f, const dk_adam *h)
{
	const vec b1 = v_set1(h->beta1), b2 = v_set1(h->beta2), o1 = v_set1(h->one_beta1), o2 = v_set1(h->one_beta2);
	const vec l2 = v_set1(h->l2), decay = v_set1(h->decay), step = v_set1(-h->lr_step);
	const vec bc = v_set1(h->inv_sqrt_bc2), eps = v_set1(h->eps);
	for (int64_t r = 0; r < rows; r++) {
		DK_COLUMNS(c, n, 0, f, {
			vec w = v_load_n(p + c, n), d = v_load_n(g + c, n);
			if (h->decoupled)
				w = v_mul(w, decay);
			else
				d = v_fma(l2, w, d);
			const vec mm = v_fma(b1, v_load_n(m + c, n), v_mul(o1, d));
			const vec vv = v_fma(b2, v_load_n(v + c, n), v_mul(o2, v_mul(d, d)));
			const vec q = v_div(mm, v_fma(v_sqrt(vv), bc, eps));
			v_store_n(m + c, mm, n);
			v_store_n(v + c, vv, n);
			v_store_n(p + c, v_fma(step, q, w), n);
		});
		p += ldp, g += ldg, m += ldm, v += ldv;
	}
}

DK_FN void DK_NAME(dk_sgd)(float *p, int64_t ldp, const float *g, int64_t ldg, float *m, int64_t ldm, int64_t rows,
                           int64_t f, const dk_sgd *h)
{
	const vec l2 = v_set1(h->l2), mu = v_set1(h->momentum), lr = v_set1(-h->lr);
	for (int64_t r = 0; r < rows; r++) {
		DK_COLUMNS(c, n, 0, f, {
			const vec w = v_load_n(p + c, n);
			vec d = v_fma(l2, w, v_load_n(g + c, n));
			if (m) {
				if (!h->first)
					d = v_fma(mu, v_load_n(m + c, n), d);
				v_store_n(m + c, d, n);
			}
			v_store_n(p + c, v_fma(lr, d, w), n);
		});
		p += ldp, g += ldg;
		if (m)
			m += ldm;
	}
}

// optim.cu: one step of Adam or SGD.
#include "dkernel.h"

// decay is 1-LR·WeightDecay if Decoupled, else 1; l2 is WeightDecay, or 0 if Decoupled;
// c1 = 1-Beta1, c2 = 1-Beta2, rate = LR/(1-Beta1^t), root = sqrt(1-Beta2^t), computed
// in double and rounded.
DK_KERNEL(dk_adam, (float *p, int64_t ldp, const float *g, int64_t ldg, float *m, int64_t ldm, float *v, int64_t ldv,
		    int64_t rows, int32_t cols, int32_t shift, float decay, float l2, float b1, float c1, float b2, float c2,
		    float rate, float root, float eps))
{
	dk_each(rows, cols, shift, [&](int64_t r, int32_t c) {
		float w = p[r * ldp + c], d = g[r * ldg + c];
		d = l2 != 0 ? dk_fma(l2, w, d) : d;
		w *= decay;
		float m1 = dk_fma(c1, d, b1 * m[r * ldm + c]);
		float v1 = dk_fma(c2 * d, d, b2 * v[r * ldv + c]);
		m[r * ldm + c] = m1;
		v[r * ldv + c] = v1;
		p[r * ldp + c] = w - rate * m1 / (dk_sqrt(v1) / root + eps);
	});
}

// m is null without momentum; first is 1 on step 1.
DK_KERNEL(dk_sgd, (float *p, int64_t ldp, const float *g, int64_t ldg, float *m, int64_t ldm, int64_t rows, int32_t cols,
		   int32_t shift, float lr, float momentum, float l2, int32_t first))
{
	dk_each(rows, cols, shift, [&](int64_t r, int32_t c) {
		float w = p[r * ldp + c], d = dk_fma(l2, w, g[r * ldg + c]);
		if (m) {
			if (!first)
				d = dk_fma(momentum, m[r * ldm + c], d);
			m[r * ldm + c] = d;
		}
		p[r * ldp + c] = dk_fma(-lr, d, w);
	});
}

// epilogue.cu: kernels.Stream.Forward and Backward. Rows are r0+r, so that ids and the
// mask see the row of the whole matrix; pointers are those of row 0.
#include "dkernel.h"

DK_KERNEL(dk_forward, (float *dst, int64_t ldd, const float *x, int64_t ldx, int64_t r0, int64_t rows, int32_t cols,
		       int32_t shift, DK_EPI))
{
	const dk_epi ep = DK_EPI_PASS;
	dk_each(rows, cols, shift, [&](int64_t i, int32_t c) {
		int64_t r = r0 + i;
		dst[r * ldd + c] = dk_finish1(ep, dk_mask(ep, r), c, x[r * ldx + c]);
	});
}

DK_KERNEL(dk_backward, (float *dx, int64_t lddx, const float *dy, int64_t lddy, const float *y, int64_t ldy, int64_t r0,
			int64_t rows, int32_t cols, int32_t shift, DK_EPI))
{
	const dk_epi ep = DK_EPI_PASS;
	dk_each(rows, cols, shift, [&](int64_t i, int32_t c) {
		int64_t r = r0 + i;
		float d = dy[r * lddy + c], a = y[r * ldy + c];
		if (ep.mode & DK_DROP) {
			if (!dk_drop_keep(dk_mask(ep, r), (uint32_t)c, ep.threshold)) {
				dx[r * lddx + c] = 0;
				return;
			}
			d *= ep.keep;
			a /= ep.keep;
		}
		dx[r * lddx + c] = dk_slope(ep.mode, a, d);
	});
}

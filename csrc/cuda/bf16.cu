// bf16.cu: bfloat16 both ways. The bfloat16 side has rows ldb values apart: cols for
// the packed rows of ToBF16 and FromBF16, a multiple of 4 for dk_spmm_bf16.
#include "dkernel.h"

DK_KERNEL(dk_to_bf16, (uint16_t *dst, int64_t ldb, const float *src, int64_t lds, int64_t rows, int32_t cols, int32_t shift))
{
	dk_each(rows, cols, shift, [&](int64_t r, int32_t c) { dst[r * ldb + c] = dk_f2bf(src[r * lds + c]); });
}

DK_KERNEL(dk_from_bf16, (float *dst, int64_t ldd, const uint16_t *src, int64_t ldb, int64_t rows, int32_t cols, int32_t shift))
{
	dk_each(rows, cols, shift, [&](int64_t r, int32_t c) { dst[r * ldd + c] = dk_bf2f(src[r * ldb + c]); });
}

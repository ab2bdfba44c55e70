//go:build cgo && amd64

/*
 * The reference loop of the benchmark: three plain loops that add into the
 * output row, left to the compiler's vectoriser with AVX2.
 */
#include "isa.h"
#include "dk.h"

DK_AVX2 void dk_naive_spmm(const int64_t *row_ptr, const int32_t *col, const float *w, const float *restrict x,
                           int64_t ldx, float *restrict y, int64_t ldy, int64_t f, int64_t lo, int64_t hi)
{
	for (int64_t v = lo; v < hi; v++) {
		for (int64_t c = 0; c < f; c++)
			y[v * ldy + c] = 0;
		for (int64_t e = row_ptr[v]; e < row_ptr[v + 1]; e++) {
			const float a = w ? w[e] : 1.0f;
			const int64_t u = col[e];
			for (int64_t c = 0; c < f; c++)
				y[v * ldy + c] += a * x[u * ldx + c];
		}
	}
}

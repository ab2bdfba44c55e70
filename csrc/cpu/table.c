//go:build cgo && amd64

#include "dk.h"

void dk_fill_scalar(dk_table *t) { DK_FILL(t, scalar); }
void dk_fill_avx2(dk_table *t) { DK_FILL(t, avx2); }
void dk_fill_avx512(dk_table *t) { DK_FILL(t, avx512); }

void dk_fill(dk_table *t, int isa)
{
	dk_fill_scalar(t);
	if (isa >= DK_ISA_AVX2)
		dk_fill_avx2(t);
	if (isa >= DK_ISA_AVX512)
		dk_fill_avx512(t);
}

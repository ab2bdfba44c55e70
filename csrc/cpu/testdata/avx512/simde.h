/*
 * AVX-512 in plain C: SIMDe, and the few operations that its older releases lack,
 * written from Intel's descriptions of the instructions.
 */
#ifndef DK_TEST_SIMDE_H
#define DK_TEST_SIMDE_H

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <stdint.h>
#include <string.h>

typedef simde__mmask16 __mmask16;

static inline __m512 dk_maskz_loadu_ps(__mmask16 m, const void *p)
{
	float a[16] = {0};
	for (int i = 0; i < 16; i++)
		if (m >> i & 1)
			memcpy(&a[i], (const char *)p + 4 * i, 4);
	return _mm512_loadu_ps(a);
}
#define _mm512_maskz_loadu_ps dk_maskz_loadu_ps

static inline void dk_mask_storeu_ps(void *p, __mmask16 m, __m512 v)
{
	float a[16];
	_mm512_storeu_ps(a, v);
	for (int i = 0; i < 16; i++)
		if (m >> i & 1)
			memcpy((char *)p + 4 * i, &a[i], 4);
}
#define _mm512_mask_storeu_ps dk_mask_storeu_ps

static inline __m512i dk_maskz_loadu_epi32(__mmask16 m, const void *p)
{
	int32_t a[16] = {0};
	for (int i = 0; i < 16; i++)
		if (m >> i & 1)
			memcpy(&a[i], (const char *)p + 4 * i, 4);
	return _mm512_loadu_si512(a);
}
#define _mm512_maskz_loadu_epi32 dk_maskz_loadu_epi32

static inline __m256 dk_extractf32x8_ps(__m512 v, int i)
{
	float a[16];
	_mm512_storeu_ps(a, v);
	return _mm256_loadu_ps(a + 8 * i);
}
#define _mm512_extractf32x8_ps dk_extractf32x8_ps

static inline __m256i dk_cvtepi32_epi16(__m512i v)
{
	int32_t a[16];
	int16_t b[16];
	_mm512_storeu_si512(a, v);
	for (int i = 0; i < 16; i++)
		b[i] = (int16_t)a[i];
	__m256i r;
	memcpy(&r, b, sizeof r);
	return r;
}
#define _mm512_cvtepi32_epi16 dk_cvtepi32_epi16

static inline __m512i dk_cvtepu16_epi32(__m256i v)
{
	uint16_t a[16];
	int32_t b[16];
	memcpy(a, &v, sizeof a);
	for (int i = 0; i < 16; i++)
		b[i] = a[i];
	return _mm512_loadu_si512(b);
}
#define _mm512_cvtepu16_epi32 dk_cvtepu16_epi32

#endif

/* Vectors of eight values: AVX2 and FMA. */
#ifndef DK_VEC_AVX2_H
#define DK_VEC_AVX2_H

#include "isa.h"
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define DK_FN DK_AVX2
#define DK_INLINE DK_ALWAYS_INLINE DK_AVX2
#define DK_NAME(f) f##_avx2
#define VEC_W 8
#define VEC_ACC 8 /* of 16 registers */

typedef __m256 vec;
typedef __m256i ivec;
typedef __m256i vmask;

DK_INLINE vec v_set1(float a) { return _mm256_set1_ps(a); }
DK_INLINE vec v_zero(void) { return _mm256_setzero_ps(); }
DK_INLINE vec v_load(const float *p) { return _mm256_loadu_ps(p); }
DK_INLINE void v_store(float *p, vec a) { _mm256_storeu_ps(p, a); }
DK_INLINE vmask v_tail(int64_t n)
{
	return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
DK_INLINE vec v_load_mask(const float *p, vmask m) { return _mm256_maskload_ps(p, m); }
DK_INLINE void v_store_mask(float *p, vmask m, vec a) { _mm256_maskstore_ps(p, m, a); }
DK_INLINE vec v_add(vec a, vec b) { return _mm256_add_ps(a, b); }
DK_INLINE vec v_sub(vec a, vec b) { return _mm256_sub_ps(a, b); }
DK_INLINE vec v_mul(vec a, vec b) { return _mm256_mul_ps(a, b); }
DK_INLINE vec v_div(vec a, vec b) { return _mm256_div_ps(a, b); }
DK_INLINE vec v_fma(vec a, vec b, vec c) { return _mm256_fmadd_ps(a, b, c); }
DK_INLINE vec v_sqrt(vec a) { return _mm256_sqrt_ps(a); }
/* The second operand where either is NaN. */
DK_INLINE vec v_max(vec a, vec b) { return _mm256_max_ps(a, b); }
DK_INLINE vec v_min(vec a, vec b) { return _mm256_min_ps(a, b); }
DK_INLINE vmask v_le(vec a, vec b) { return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_LE_OQ)); }
DK_INLINE vec v_select(vmask m, vec a, vec b) { return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(m)); }
DK_INLINE vec v_keep(vmask m, vec a) { return _mm256_and_ps(_mm256_castsi256_ps(m), a); }
/* p[idx] for indices below VEC_W; reads p[0..VEC_W-1]. */
DK_INLINE vec v_pick(const float *p, ivec idx) { return _mm256_permutevar8x32_ps(_mm256_loadu_ps(p), idx); }
/* Lanes i and i+4, then i and i+2, then i and i+1. */
DK_INLINE float v_hsum(vec a)
{
	__m128 s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
	s = _mm_add_ps(s, _mm_movehl_ps(s, s));
	s = _mm_add_ss(s, _mm_movehdup_ps(s));
	return _mm_cvtss_f32(s);
}
DK_INLINE float v_hmax(vec a)
{
	__m128 s = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
	s = _mm_max_ps(s, _mm_movehl_ps(s, s));
	s = _mm_max_ss(s, _mm_movehdup_ps(s));
	return _mm_cvtss_f32(s);
}

DK_INLINE ivec i_set1(uint32_t a) { return _mm256_set1_epi32((int)a); }
DK_INLINE ivec i_iota(void) { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
DK_INLINE ivec i_load(const int32_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
DK_INLINE ivec i_load_mask(const int32_t *p, vmask m) { return _mm256_maskload_epi32((const int *)p, m); }
DK_INLINE void i_store(int32_t *p, ivec a) { _mm256_storeu_si256((__m256i *)p, a); }
DK_INLINE ivec i_add(ivec a, ivec b) { return _mm256_add_epi32(a, b); }
DK_INLINE ivec i_sub(ivec a, ivec b) { return _mm256_sub_epi32(a, b); }
DK_INLINE ivec i_mul(ivec a, ivec b) { return _mm256_mullo_epi32(a, b); }
DK_INLINE ivec i_xor(ivec a, ivec b) { return _mm256_xor_si256(a, b); }
DK_INLINE ivec i_and(ivec a, ivec b) { return _mm256_and_si256(a, b); }
DK_INLINE ivec i_or(ivec a, ivec b) { return _mm256_or_si256(a, b); }
#define i_shr(a, k) _mm256_srli_epi32((a), (k))
#define i_shl(a, k) _mm256_slli_epi32((a), (k))
DK_INLINE vmask i_geu(ivec a, ivec b) { return _mm256_cmpeq_epi32(_mm256_max_epu32(a, b), a); }
DK_INLINE ivec i_select(vmask m, ivec a, ivec b) { return _mm256_blendv_epi8(b, a, m); }
DK_INLINE ivec v_bits(vec a) { return _mm256_castps_si256(a); }
DK_INLINE vec v_from_bits(ivec a) { return _mm256_castsi256_ps(a); }
/* Stores the low halves of a, whose high halves are zero. */
DK_INLINE void i_store16(uint16_t *p, ivec a)
{
	__m128i s = _mm_packus_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
	_mm_storeu_si128((__m128i *)p, s);
}
DK_INLINE ivec i_load16(const uint16_t *p) { return _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)); }

#endif

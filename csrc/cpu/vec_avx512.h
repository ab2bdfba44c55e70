/* Vectors of sixteen values: AVX-512 F, BW, VL, DQ. */
#ifndef DK_VEC_AVX512_H
#define DK_VEC_AVX512_H

#include "isa.h"
#ifdef DK_SIMDE
#include "testdata/avx512/simde.h"
#else
#include <immintrin.h>
#endif
#include <math.h>
#include <stdint.h>
#include <string.h>

#define DK_FN DK_AVX512
#define DK_INLINE DK_ALWAYS_INLINE DK_AVX512
#define DK_NAME(f) f##_avx512
#define VEC_W 16
#define VEC_ACC 8 /* of 32 registers */

typedef __m512 vec;
typedef __m512i ivec;
typedef __mmask16 vmask;

DK_INLINE vec v_set1(float a) { return _mm512_set1_ps(a); }
DK_INLINE vec v_zero(void) { return _mm512_setzero_ps(); }
DK_INLINE vec v_load(const float *p) { return _mm512_loadu_ps(p); }
DK_INLINE void v_store(float *p, vec a) { _mm512_storeu_ps(p, a); }
DK_INLINE vmask v_tail(int64_t n) { return (vmask)(n >= 16 ? 0xffffu : (1u << (n > 0 ? n : 0)) - 1); }
DK_INLINE vec v_load_mask(const float *p, vmask m) { return _mm512_maskz_loadu_ps(m, p); }
DK_INLINE void v_store_mask(float *p, vmask m, vec a) { _mm512_mask_storeu_ps(p, m, a); }
DK_INLINE vec v_add(vec a, vec b) { return _mm512_add_ps(a, b); }
DK_INLINE vec v_sub(vec a, vec b) { return _mm512_sub_ps(a, b); }
DK_INLINE vec v_mul(vec a, vec b) { return _mm512_mul_ps(a, b); }
DK_INLINE vec v_div(vec a, vec b) { return _mm512_div_ps(a, b); }
DK_INLINE vec v_fma(vec a, vec b, vec c) { return _mm512_fmadd_ps(a, b, c); }
DK_INLINE vec v_sqrt(vec a) { return _mm512_sqrt_ps(a); }
/* The second operand where either is NaN. */
DK_INLINE vec v_max(vec a, vec b) { return _mm512_max_ps(a, b); }
DK_INLINE vec v_min(vec a, vec b) { return _mm512_min_ps(a, b); }
DK_INLINE vmask v_le(vec a, vec b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
DK_INLINE vec v_select(vmask m, vec a, vec b) { return _mm512_mask_blend_ps(m, b, a); }
DK_INLINE vec v_keep(vmask m, vec a) { return _mm512_maskz_mov_ps(m, a); }
/* p[idx] for indices below VEC_W; reads p[0..VEC_W-1]. */
DK_INLINE vec v_pick(const float *p, ivec idx) { return _mm512_permutexvar_ps(idx, _mm512_loadu_ps(p)); }
/* Lanes i and i+8, then i and i+4, i+2, i+1. */
DK_INLINE float v_hsum(vec a)
{
	__m256 h = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
	__m128 s = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
	s = _mm_add_ps(s, _mm_movehl_ps(s, s));
	s = _mm_add_ss(s, _mm_movehdup_ps(s));
	return _mm_cvtss_f32(s);
}
DK_INLINE float v_hmax(vec a)
{
	__m256 h = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
	__m128 s = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
	s = _mm_max_ps(s, _mm_movehl_ps(s, s));
	s = _mm_max_ss(s, _mm_movehdup_ps(s));
	return _mm_cvtss_f32(s);
}

DK_INLINE ivec i_set1(uint32_t a) { return _mm512_set1_epi32((int)a); }
DK_INLINE ivec i_iota(void) { return _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0); }
DK_INLINE ivec i_load(const int32_t *p) { return _mm512_loadu_si512(p); }
DK_INLINE ivec i_load_mask(const int32_t *p, vmask m) { return _mm512_maskz_loadu_epi32(m, p); }
DK_INLINE void i_store(int32_t *p, ivec a) { _mm512_storeu_si512(p, a); }
DK_INLINE ivec i_add(ivec a, ivec b) { return _mm512_add_epi32(a, b); }
DK_INLINE ivec i_sub(ivec a, ivec b) { return _mm512_sub_epi32(a, b); }
DK_INLINE ivec i_mul(ivec a, ivec b) { return _mm512_mullo_epi32(a, b); }
DK_INLINE ivec i_xor(ivec a, ivec b) { return _mm512_xor_si512(a, b); }
DK_INLINE ivec i_and(ivec a, ivec b) { return _mm512_and_si512(a, b); }
DK_INLINE ivec i_or(ivec a, ivec b) { return _mm512_or_si512(a, b); }
#define i_shr(a, k) _mm512_srli_epi32((a), (k))
#define i_shl(a, k) _mm512_slli_epi32((a), (k))
DK_INLINE vmask i_geu(ivec a, ivec b) { return _mm512_cmpeq_epi32_mask(_mm512_max_epu32(a, b), a); }
DK_INLINE ivec i_select(vmask m, ivec a, ivec b) { return _mm512_mask_blend_epi32(m, b, a); }
DK_INLINE ivec v_bits(vec a) { return _mm512_castps_si512(a); }
DK_INLINE vec v_from_bits(ivec a) { return _mm512_castsi512_ps(a); }
/* Stores the low halves of a. */
DK_INLINE void i_store16(uint16_t *p, ivec a) { _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(a)); }
DK_INLINE ivec i_load16(const uint16_t *p)
{
	return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
}

#endif

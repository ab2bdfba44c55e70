/* Vectors of one value, in plain C. Contraction is off, so that the results are
 * those of the written operations on every compiler. */
#ifndef DK_VEC_SCALAR_H
#define DK_VEC_SCALAR_H

#include "isa.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

#define DK_FN
#define DK_INLINE DK_ALWAYS_INLINE
#define DK_NAME(f) f##_scalar
#define VEC_W 1
#define VEC_ACC 16 /* accumulators that a loop may hold */

typedef float vec;
typedef uint32_t ivec;
typedef int32_t vmask;

DK_INLINE vec v_set1(float a) { return a; }
DK_INLINE vec v_zero(void) { return 0; }
DK_INLINE vec v_load(const float *p) { return *p; }
DK_INLINE void v_store(float *p, vec a) { *p = a; }
DK_INLINE vmask v_tail(int64_t n) { return n > 0; }
DK_INLINE vec v_load_mask(const float *p, vmask m) { return m ? *p : 0; }
DK_INLINE void v_store_mask(float *p, vmask m, vec a)
{
	if (m)
		*p = a;
}
DK_INLINE vec v_add(vec a, vec b) { return a + b; }
DK_INLINE vec v_sub(vec a, vec b) { return a - b; }
DK_INLINE vec v_mul(vec a, vec b) { return a * b; }
DK_INLINE vec v_div(vec a, vec b) { return a / b; }
DK_INLINE vec v_fma(vec a, vec b, vec c) { return a * b + c; }
DK_INLINE vec v_sqrt(vec a) { return sqrtf(a); }
/* The second operand where either is NaN, as the instructions do it. */
DK_INLINE vec v_max(vec a, vec b) { return a > b ? a : b; }
DK_INLINE vec v_min(vec a, vec b) { return a < b ? a : b; }
DK_INLINE vmask v_le(vec a, vec b) { return a <= b; }
DK_INLINE vec v_select(vmask m, vec a, vec b) { return m ? a : b; }
DK_INLINE vec v_keep(vmask m, vec a) { return m ? a : 0; }
/* p[idx]. */
DK_INLINE vec v_pick(const float *p, uint32_t idx) { return p[idx]; }
DK_INLINE float v_hsum(vec a) { return a; }
DK_INLINE float v_hmax(vec a) { return a; }

DK_INLINE ivec i_set1(uint32_t a) { return a; }
DK_INLINE ivec i_iota(void) { return 0; }
DK_INLINE ivec i_load(const int32_t *p) { return (uint32_t)*p; }
DK_INLINE ivec i_load_mask(const int32_t *p, vmask m) { return m ? (uint32_t)*p : 0; }
DK_INLINE void i_store(int32_t *p, ivec a) { *p = (int32_t)a; }
DK_INLINE ivec i_add(ivec a, ivec b) { return a + b; }
DK_INLINE ivec i_sub(ivec a, ivec b) { return a - b; }
DK_INLINE ivec i_mul(ivec a, ivec b) { return a * b; }
DK_INLINE ivec i_xor(ivec a, ivec b) { return a ^ b; }
DK_INLINE ivec i_and(ivec a, ivec b) { return a & b; }
DK_INLINE ivec i_or(ivec a, ivec b) { return a | b; }
#define i_shr(a, k) ((a) >> (k))
#define i_shl(a, k) ((a) << (k))
DK_INLINE vmask i_geu(ivec a, ivec b) { return a >= b; }
DK_INLINE ivec i_select(vmask m, ivec a, ivec b) { return m ? a : b; }
DK_INLINE ivec v_bits(vec a)
{
	ivec b;
	memcpy(&b, &a, 4);
	return b;
}
DK_INLINE vec v_from_bits(ivec a)
{
	vec b;
	memcpy(&b, &a, 4);
	return b;
}
/* Stores the low halves of a. */
DK_INLINE void i_store16(uint16_t *p, ivec a) { *p = (uint16_t)a; }
DK_INLINE ivec i_load16(const uint16_t *p) { return *p; }

#endif

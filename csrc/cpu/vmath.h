/*
 * exp, expm1 and tanh on vectors, within 2 or 3 units in the last place. NaN
 * gives NaN. x = k ln 2 + r with |r| <= ln 2 / 2, and e^r - 1 from the first
 * seven terms of its series, whose remainder is below 6e-9.
 */
#ifndef DK_VMATH_H
#define DK_VMATH_H

#define DK_ROUND 12582912.0f /* 1.5 * 2^23: adding it rounds to an integer */

typedef struct dk_reduced {
	vec p;  /* e^r - 1 */
	ivec k; /* as int32 */
} dk_reduced;

DK_INLINE dk_reduced v_exp_reduce(vec x)
{
	dk_reduced o;
	vec t = v_fma(x, v_set1(1.44269504f), v_set1(DK_ROUND));
	vec k = v_sub(t, v_set1(DK_ROUND));
	o.k = i_sub(v_bits(t), i_set1(0x4b400000u));
	/* ln 2 in two parts; the first has few bits, so that k times it is exact. */
	vec r = v_fma(k, v_set1(-0.693359375f), x);
	r = v_fma(k, v_set1(2.12194440e-4f), r);
	vec q = v_set1(1.0f / 5040);
	q = v_fma(q, r, v_set1(1.0f / 720));
	q = v_fma(q, r, v_set1(1.0f / 120));
	q = v_fma(q, r, v_set1(1.0f / 24));
	q = v_fma(q, r, v_set1(1.0f / 6));
	q = v_fma(q, r, v_set1(0.5f));
	o.p = v_fma(v_mul(q, r), r, r);
	return o;
}

/* 2^k for k in [-126,127]. */
DK_INLINE vec v_pow2(ivec k) { return v_from_bits(i_shl(i_add(k, i_set1(127)), 23)); }

/* e^x; 0 and infinity beyond the range of float, with subnormal results. */
DK_INLINE vec v_exp(vec x)
{
	/* The operand order lets NaN through. */
	x = v_max(v_set1(-104.0f), v_min(v_set1(89.0f), x));
	dk_reduced e = v_exp_reduce(x);
	/* 2^k in two factors, so that each is a normal number: k + 256 is positive. */
	ivec h = i_sub(i_shr(i_add(e.k, i_set1(256)), 1), i_set1(128));
	vec y = v_mul(v_add(e.p, v_set1(1)), v_pow2(h));
	return v_mul(y, v_pow2(i_sub(e.k, h)));
}

/* e^x for x <= 88.7; 0 where the result is below the normal numbers. */
DK_INLINE vec v_exp_normal(vec x)
{
	vec c = v_max(v_set1(-87.3f), x); /* NaN stays */
	dk_reduced e = v_exp_reduce(v_min(v_set1(88.7f), c));
	vec y = v_mul(v_add(e.p, v_set1(1)), v_pow2(e.k));
	return v_select(v_le(x, v_set1(-87.3f)), v_zero(), y);
}

/* e^x - 1 for x <= 44, with full relative precision near 0. */
DK_INLINE vec v_expm1(vec x)
{
	dk_reduced e = v_exp_reduce(v_max(v_set1(-87.0f), x));
	vec s = v_pow2(e.k);
	return v_fma(s, e.p, v_sub(s, v_set1(1)));
}

DK_INLINE vec v_tanh(vec x)
{
	ivec sign = i_and(v_bits(x), i_set1(0x80000000u));
	vec a = v_from_bits(i_and(v_bits(x), i_set1(0x7fffffffu)));
	vec e = v_expm1(v_mul(v_min(v_set1(10.0f), a), v_set1(2)));
	vec t = v_div(e, v_add(e, v_set1(2)));
	return v_from_bits(i_or(v_bits(t), sign));
}

/* log(1 + t) for t in [-0.3,1], by the series of 2 atanh(t/(2+t)), whose argument
 * is at most 1/3: the first term left out is below 1e-9 of the sum. */
DK_INLINE vec v_log1p(vec t)
{
	vec r = v_div(t, v_add(t, v_set1(2)));
	vec q = v_mul(r, r);
	vec s = v_set1(1.0f / 15);
	s = v_fma(s, q, v_set1(1.0f / 13));
	s = v_fma(s, q, v_set1(1.0f / 11));
	s = v_fma(s, q, v_set1(1.0f / 9));
	s = v_fma(s, q, v_set1(1.0f / 7));
	s = v_fma(s, q, v_set1(1.0f / 5));
	s = v_fma(s, q, v_set1(1.0f / 3));
	vec d = v_add(r, r);
	return v_fma(v_mul(d, q), s, d);
}

/* log(x): -Inf for 0, NaN below, x itself for Inf and NaN. */
DK_INLINE vec v_log(vec x)
{
	/* Numbers below the normal ones are scaled by 2^24 first. */
	vmask tiny = v_le(x, v_set1(1.17549421e-38f));
	vec y = v_select(tiny, v_mul(x, v_set1(16777216.0f)), x);
	/* y = 2^k f with f in [sqrt(1/2), sqrt(2)). */
	ivec k = i_sub(i_shr(i_add(v_bits(y), i_set1(0x3f800000u - 0x3f3504f3u)), 23), i_set1(127));
	vec f = v_from_bits(i_sub(v_bits(y), i_shl(k, 23)));
	vec e = v_sub(v_from_bits(i_add(k, i_set1(0x4b400000u))), v_set1(DK_ROUND));
	e = v_select(tiny, v_sub(e, v_set1(24)), e);
	vec l = v_fma(e, v_set1(-2.12194440e-4f), v_log1p(v_sub(f, v_set1(1))));
	l = v_fma(e, v_set1(0.693359375f), l);
	l = v_select(v_le(x, v_zero()), v_div(v_set1(-1), v_sqrt(x)), l);
	return v_select(v_le(x, v_set1(3.40282347e38f)), l, x);
}

#endif

// dkmath.h has the functions that need no library: the same arithmetic on every
// device and in the emulator. Included by dkernel.h.

#ifdef DK_HOST
#define dk_sqrt __builtin_sqrtf
#endif

DK_FN uint32_t dk_bits(float v)
{
	union { float f; uint32_t u; } b = {v};
	return b.u;
}

DK_FN float dk_float(uint32_t v)
{
	union { uint32_t u; float f; } b = {v};
	return b.f;
}

DK_FN float dk_abs(float v) { return dk_float(dk_bits(v) & 0x7fffffffu); }

#define DK_FLT_MAX 3.402823466e38f
#define DK_INF dk_float(0x7f800000u)

// dk_em1 splits exp(x), x in [-104,89] or NaN, into s·(1 + m): s = 2^n, given as two
// factors that do not leave the normal numbers, and m = exp(r) - 1 for |r| <= ln 2/2.
DK_FN float dk_em1(float x, float *s1, float *s2)
{
	const float big = 12582912.0f; // 1.5·2^23: the sum's last bits are the integer
	float k = dk_fma(x, 1.44269504f, big);
	int32_t n = (int32_t)(dk_bits(k) - dk_bits(big));
	k -= big;
	float r = dk_fma(k, -0.693145752f, x);
	r = dk_fma(k, -1.42860677e-6f, r);
	float p = 1.98412698e-4f;
	p = dk_fma(p, r, 1.38888889e-3f);
	p = dk_fma(p, r, 8.33333333e-3f);
	p = dk_fma(p, r, 4.16666667e-2f);
	p = dk_fma(p, r, 1.66666667e-1f);
	p = dk_fma(p, r, 0.5f);
	int32_t h = n / 2;
	*s1 = dk_float((uint32_t)(h + 127) << 23);
	*s2 = dk_float((uint32_t)(n - h + 127) << 23);
	return dk_fma(r * r, p, r);
}

DK_FN float dk_clamp_exp(float x)
{
	x = x < -104.0f ? -104.0f : x;
	return x > 89.0f ? 89.0f : x; // a NaN passes both
}

// dk_exp is exp(x) to about an ulp; NaN stays NaN.
DK_FN float dk_exp(float x)
{
	float s1, s2, m = dk_em1(dk_clamp_exp(x), &s1, &s2);
	return (1.0f + m) * s1 * s2;
}

// dk_expm1 is exp(x)-1 for x <= 0.
DK_FN float dk_expm1(float x)
{
	float s1, s2, m = dk_em1(dk_clamp_exp(x), &s1, &s2), s = s1 * s2;
	return dk_fma(m, s, s - 1.0f);
}

DK_FN float dk_tanh(float x)
{
	float t = dk_expm1(-2.0f * dk_abs(x));
	t = -t / (t + 2.0f);
	return x < 0 ? -t : t;
}

// dk_log1p is log(1+e) for e in [0,1], by the series of 2·atanh(e/(2+e)).
DK_FN float dk_log1p(float e)
{
	float s = e / (2.0f + e), q = s * s;
	float p = 1.0f / 15;
	p = dk_fma(p, q, 1.0f / 13);
	p = dk_fma(p, q, 1.0f / 11);
	p = dk_fma(p, q, 1.0f / 9);
	p = dk_fma(p, q, 1.0f / 7);
	p = dk_fma(p, q, 1.0f / 5);
	p = dk_fma(p, q, 1.0f / 3);
	return 2.0f * dk_fma(s * q, p, s);
}

// dk_log is log(x) in double for x >= 0: -Inf at 0, NaN stays NaN.
DK_FN double dk_log(double x)
{
	union { double d; uint64_t u; } b = {x};
	if (!(x < 1.7976931348623157e308) || x < 2.3e-308) {
		if (x == 0)
			return -(double)DK_INF;
		if (!(x < 1.7976931348623157e308))
			return x; // infinity, NaN
		b.d = x * 18014398509481984.0; // 2^54
		b.d = b.d < 2.3e-308 ? 2.3e-308 : b.d;
		x = 54;
	} else {
		x = 0;
	}
	int32_t e = (int32_t)(b.u >> 52) - 1023 - (int32_t)x;
	b.u = (b.u & 0xfffffffffffffull) | 0x3ff0000000000000ull;
	if (b.d > 1.4142135623730951) {
		b.d *= 0.5;
		e++;
	}
	double s = (b.d - 1) / (b.d + 1), q = s * s, p = 1.0 / 19;
	p = p * q + 1.0 / 17;
	p = p * q + 1.0 / 15;
	p = p * q + 1.0 / 13;
	p = p * q + 1.0 / 11;
	p = p * q + 1.0 / 9;
	p = p * q + 1.0 / 7;
	p = p * q + 1.0 / 5;
	p = p * q + 1.0 / 3;
	return (double)e * 0.6931471805599453 + 2 * (s + s * q * p);
}

// The bits of dropout: kernels.DropRow and kernels.DropKeep.

DK_FN uint64_t dk_mix64(uint64_t z)
{
	z ^= z >> 30;
	z *= 0xbf58476d1ce4e5b9ull;
	z ^= z >> 27;
	z *= 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

DK_FN uint64_t dk_drop_row(uint64_t key, int32_t id)
{
	return dk_mix64(key ^ (((uint64_t)(uint32_t)id + 1) * 0x9e3779b97f4a7c15ull));
}

DK_FN bool dk_drop_keep(uint64_t row, uint32_t col, uint32_t threshold)
{
	uint32_t x = col * 0x9e3779b1u + (uint32_t)row;
	x ^= x >> 16;
	x *= 0x85ebca6bu;
	x ^= (uint32_t)(row >> 32);
	x ^= x >> 13;
	x *= 0xc2b2ae35u;
	x ^= x >> 16;
	return x >= threshold;
}

DK_FN float dk_tf32(float v) // to 10 bits, nearest, ties away from zero
{
	uint32_t b = dk_bits(v);
	if ((b & 0x7f800000u) == 0x7f800000u)
		return v;
	return dk_float((b + 0x1000u) & 0xffffe000u);
}

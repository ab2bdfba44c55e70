/*
 * Layer normalisation and the column-wise pieces of batch normalisation. Sums over
 * a row run by lanes, then over the lanes, so a row's bits depend on f only; sums
 * over rows are one chain per column, in row order.
 */
#include "lane.h"

/*
 * m = mean of x[v,:], r = 1/sqrt(mean of (x - m)^2 + eps);  stat[v,:] = (m, r)
 * y[v,:] = (x[v,:] - m) * r * gamma + beta
 */
DK_FN void DK_NAME(dk_layer_norm)(const float *x, int64_t ldx, const float *gamma, const float *beta, float eps,
                                  float *y, int64_t ldy, float *stat, int64_t lds, int64_t rows, int64_t f)
{
	const float inv = 1.0f / (float)f;
	for (int64_t v = 0; v < rows; v++) {
		const float *xv = x + v * ldx;
		float *yv = y + v * ldy;
		vec s = v_zero();
		DK_COLUMNS(c, n, 0, f, { s = v_add(s, v_load_n(xv + c, n)); });
		const float mean = v_hsum(s) * inv;
		const vec m = v_set1(mean);
		s = v_zero();
		DK_COLUMNS(c, n, 0, f, {
			vec d = v_sub(v_load_n(xv + c, n), m);
			if (n != VEC_W)
				d = v_keep(v_tail(n), d);
			s = v_fma(d, d, s);
		});
		const float scale = 1.0f / sqrtf(v_hsum(s) * inv + eps);
		const vec r = v_set1(scale);
		DK_COLUMNS(c, n, 0, f, {
			const vec hat = v_mul(v_sub(v_load_n(xv + c, n), m), r);
			v_store_n(yv + c, v_fma(hat, v_load_n(gamma + c, n), v_load_n(beta + c, n)), n);
		});
		stat[v * lds] = mean;
		stat[v * lds + 1] = scale;
	}
}

/*
 * With h = (x - stat[v,0]) * stat[v,1] and g = dy * gamma,
 *
 *   dx[v,:] = stat[v,1] * (g - mean(g) - h * mean(g * h))
 *   dgamma = sum of dy * h,  dbeta = sum of dy, in row order
 *
 * dx may be dy.
 */
DK_FN void DK_NAME(dk_layer_norm_back)(const float *dy, int64_t lddy, const float *x, int64_t ldx, const float *stat,
                                       int64_t lds, const float *gamma, float *dx, int64_t lddx, float *dgamma,
                                       float *dbeta, int64_t rows, int64_t f)
{
	const float inv = 1.0f / (float)f;
	memset(dgamma, 0, (size_t)f * sizeof *dgamma);
	memset(dbeta, 0, (size_t)f * sizeof *dbeta);
	for (int64_t v = 0; v < rows; v++) {
		const float *dyv = dy + v * lddy, *xv = x + v * ldx;
		float *dxv = dx + v * lddx;
		const vec m = v_set1(stat[v * lds]), r = v_set1(stat[v * lds + 1]);
		vec s = v_zero(), sh = v_zero();
		DK_COLUMNS(c, n, 0, f, {
			const vec d = v_load_n(dyv + c, n);
			vec h = v_mul(v_sub(v_load_n(xv + c, n), m), r);
			const vec g = v_mul(d, v_load_n(gamma + c, n));
			v_store_n(dgamma + c, v_fma(d, h, v_load_n(dgamma + c, n)), n);
			v_store_n(dbeta + c, v_add(d, v_load_n(dbeta + c, n)), n);
			if (n != VEC_W)
				h = v_keep(v_tail(n), h);
			s = v_add(s, g);
			sh = v_fma(g, h, sh);
		});
		const vec mean = v_set1(v_hsum(s) * inv), mean_h = v_set1(v_hsum(sh) * inv);
		DK_COLUMNS(c, n, 0, f, {
			const vec h = v_mul(v_sub(v_load_n(xv + c, n), m), r);
			const vec g = v_mul(v_load_n(dyv + c, n), v_load_n(gamma + c, n));
			v_store_n(dxv + c, v_mul(r, v_sub(v_sub(g, mean), v_mul(h, mean_h))), n);
		});
	}
}

/* mean[c] = mean of x[:,c], square[c] = sum of (x[v,c] - mean[c])^2; 0 for no rows. */
DK_FN void DK_NAME(dk_col_moments)(const float *x, int64_t ldx, float *mean, float *square, int64_t rows, int64_t f)
{
	const vec count = v_set1(rows > 0 ? (float)rows : 1);
	DK_COLUMNS(c, n, 0, f, {
		vec s = v_zero();
		for (int64_t v = 0; v < rows; v++)
			s = v_add(s, v_load_n(x + v * ldx + c, n));
		const vec m = v_div(s, count);
		s = v_zero();
		for (int64_t v = 0; v < rows; v++) {
			const vec d = v_sub(v_load_n(x + v * ldx + c, n), m);
			s = v_fma(d, d, s);
		}
		v_store_n(mean + c, m, n);
		v_store_n(square + c, s, n);
	});
}

/* out[v,c] = a[c] * x[v,c] + b[c] * y[v,c] + d[c]; without y if it is NULL. out may be x or y. */
DK_FN void DK_NAME(dk_col_affine)(const float *x, int64_t ldx, const float *y, int64_t ldy, const float *a,
                                  const float *b, const float *d, float *out, int64_t ldo, int64_t rows, int64_t f)
{
	for (int64_t v = 0; v < rows; v++) {
		DK_COLUMNS(c, n, 0, f, {
			vec s = v_fma(v_load_n(a + c, n), v_load_n(x + v * ldx + c, n), v_load_n(d + c, n));
			if (y)
				s = v_fma(v_load_n(b + c, n), v_load_n(y + v * ldy + c, n), s);
			v_store_n(out + v * ldo + c, s, n);
		});
	}
}

/* out[c] = sum of a[v,c] * b[v,c], in row order. */
DK_FN void DK_NAME(dk_col_dot)(const float *a, int64_t lda, const float *b, int64_t ldb, float *out, int64_t rows,
                               int64_t f)
{
	DK_COLUMNS(c, n, 0, f, {
		vec s = v_zero();
		for (int64_t v = 0; v < rows; v++)
			s = v_fma(v_load_n(a + v * lda + c, n), v_load_n(b + v * ldb + c, n), s);
		v_store_n(out + c, s, n);
	});
}

/* The sum of a[v,c] * b[v,c]: rows by lanes, then over the lanes, then in float64. */
DK_FN double DK_NAME(dk_dot)(const float *a, int64_t lda, const float *b, int64_t ldb, int64_t rows, int64_t f)
{
	double sum = 0;
	for (int64_t v = 0; v < rows; v++) {
		vec s = v_zero();
		DK_COLUMNS(c, n, 0, f,
		           { s = v_fma(v_load_n(a + v * lda + c, n), v_load_n(b + v * ldb + c, n), s); });
		sum += (double)v_hsum(s);
	}
	return sum;
}

/* y = a + k * b; y may be a or b. */
DK_FN void DK_NAME(dk_add_scaled)(const float *a, int64_t lda, const float *b, int64_t ldb, float k, float *y,
                                  int64_t ldy, int64_t rows, int64_t f)
{
	for (int64_t v = 0; v < rows; v++) {
		DK_COLUMNS(c, n, 0, f, {
			const vec s = v_fma(v_set1(k), v_load_n(b + v * ldb + c, n), v_load_n(a + v * lda + c, n));
			v_store_n(y + v * ldy + c, s, n);
		});
	}
}

/* y[ids[i],:] += x[i,:], i ascending; ids below 0 are passed over. */
DK_FN void DK_NAME(dk_add_rows)(const float *x, int64_t ldx, const int32_t *ids, int64_t rows, float *y, int64_t ldy,
                                int64_t f)
{
	for (int64_t i = 0; i < rows; i++) {
		if (ids[i] < 0)
			continue;
		float *yi = y + ids[i] * ldy;
		DK_COLUMNS(c, n, 0, f, { v_store_n(yi + c, v_add(v_load_n(yi + c, n), v_load_n(x + i * ldx + c, n)), n); });
	}
}

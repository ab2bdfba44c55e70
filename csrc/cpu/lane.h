/* Loads and stores of the first n values of a vector, over any vec_*.h. With n
 * a constant VEC_W they are the plain ones. */
#ifndef DK_LANE_H
#define DK_LANE_H

DK_INLINE vec v_load_n(const float *p, int64_t n) { return n == VEC_W ? v_load(p) : v_load_mask(p, v_tail(n)); }

DK_INLINE void v_store_n(float *p, vec a, int64_t n)
{
	if (n == VEC_W)
		v_store(p, a);
	else
		v_store_mask(p, v_tail(n), a);
}

DK_INLINE ivec i_load_n(const int32_t *p, int64_t n) { return n == VEC_W ? i_load(p) : i_load_mask(p, v_tail(n)); }

/* Runs the statements for c = lo, lo+VEC_W, ... with n = VEC_W, and for what is left with
 * n < VEC_W. */
#define DK_COLUMNS(c, n, lo, hi, ...)                          \
	do {                                                   \
		int64_t c = (lo);                              \
		for (; c + VEC_W <= (hi); c += VEC_W) {        \
			enum { n = VEC_W };                    \
			__VA_ARGS__;                          \
		}                                              \
		if (c < (hi)) {                                \
			const int64_t n = (hi)-c;              \
			__VA_ARGS__;                          \
		}                                              \
	} while (0)

#endif

// gemm.cu: products in fp32: nn, nt, tn as in kernels.Trans; v4 wants both operands on
// 16 bytes, v1 does not. A thread sums 8 x 4 values; the next tile is read while this
// one is multiplied.
#include "dkgemm.h"

#define DK_BK 16

template <bool TA, bool TB, int V> DK_FN void dk_gemm(const dk_product &p)
{
	DK_SHARED(float, sa, DK_BK * (DK_BM + 4));
	DK_SHARED(float, sb, DK_BK * (DK_BN + 4));
	const dk_tile t = dk_tile_of(p);
	const int32_t tx = dk_tid() & 15, ty = dk_tid() >> 4;
	dk_strip<DK_BM, DK_BK, !TA, V> a;
	dk_strip<DK_BN, DK_BK, TB, V> b;
	float acc[8][4];
	DK_UNROLL
	for (int i = 0; i < 8; i++)
		DK_UNROLL
		for (int j = 0; j < 4; j++)
			acc[i][j] = 0;
	a.load(p.a, p.lda, t.m0, p.m, t.k0, t.k1);
	b.load(p.b, p.ldb, t.n0, p.n, t.k0, t.k1);
	for (int32_t k0 = t.k0; k0 < t.k1; k0 += DK_BK) {
		a.each([&](int32_t r, int32_t k, float v) { sa[k * (DK_BM + 4) + r] = v; });
		b.each([&](int32_t r, int32_t k, float v) { sb[k * (DK_BN + 4) + r] = v; });
		dk_sync();
		if (k0 + DK_BK < t.k1) {
			a.load(p.a, p.lda, t.m0, p.m, k0 + DK_BK, t.k1);
			b.load(p.b, p.ldb, t.n0, p.n, k0 + DK_BK, t.k1);
		}
		DK_UNROLL
		for (int k = 0; k < DK_BK; k++) {
			const dk_f4 a0 = *(const dk_f4 *)&sa[k * (DK_BM + 4) + ty * 8];
			const dk_f4 a1 = *(const dk_f4 *)&sa[k * (DK_BM + 4) + ty * 8 + 4];
			const dk_f4 b0 = *(const dk_f4 *)&sb[k * (DK_BN + 4) + tx * 4];
			const float x[8] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w}, y[4] = {b0.x, b0.y, b0.z, b0.w};
			DK_UNROLL
			for (int i = 0; i < 8; i++)
				DK_UNROLL
				for (int j = 0; j < 4; j++)
					acc[i][j] = dk_fma(x[i], y[j], acc[i][j]);
		}
		dk_sync();
	}
	const bool plain = dk_plain(p);
	const int32_t r = t.m0 + ty * 8, c = t.n0 + tx * 4;
	DK_UNROLL
	for (int i = 0; i < 8; i++)
		DK_UNROLL
		for (int j = 0; j < 4; j++)
			dk_put(p, t, plain, r + i, c + j, acc[i][j]);
	if (!plain)
		DK_NO_UNROLL
		for (int i = 0; i < 32; i++)
			dk_put_finish(p, r + i / 4, c + i % 4);
}

DK_KERNEL(dk_gemm_nn_v1, (DK_GEMM)) { dk_gemm<false, false, 1>(DK_GEMM_PASS); }
DK_KERNEL(dk_gemm_nt_v1, (DK_GEMM)) { dk_gemm<false, true, 1>(DK_GEMM_PASS); }
DK_KERNEL(dk_gemm_tn_v1, (DK_GEMM)) { dk_gemm<true, false, 1>(DK_GEMM_PASS); }
DK_KERNEL(dk_gemm_nn_v4, (DK_GEMM)) { dk_gemm<false, false, 4>(DK_GEMM_PASS); }
DK_KERNEL(dk_gemm_nt_v4, (DK_GEMM)) { dk_gemm<false, true, 4>(DK_GEMM_PASS); }
DK_KERNEL(dk_gemm_tn_v4, (DK_GEMM)) { dk_gemm<true, false, 4>(DK_GEMM_PASS); }

DK_KERNEL(dk_gemm_blocks_v1, (DK_GEMM_BLOCKS))
{
	dk_product p = {};
	if (dk_product_of(p, DK_GEMM_BLOCKS_PASS))
		dk_gemm<true, false, 1>(p);
}

DK_KERNEL(dk_gemm_blocks_v4, (DK_GEMM_BLOCKS))
{
	dk_product p = {};
	if (dk_product_of(p, DK_GEMM_BLOCKS_PASS))
		dk_gemm<true, false, 4>(p);
}

// dk_pairs adds up n values, at most 64, by a fixed tree of pairs over their numbers.
template <class F> DK_FN float dk_pairs(int32_t n, F value)
{
	// Slot b holds the sum of 2^b neighbours while bit b of s is set.
	float slot[7];
	for (int32_t s = 0; s < n; s++) {
		float v = value(s);
		DK_UNROLL
		for (int b = 0; b < 7; b++) {
			if (!(s >> b & 1)) {
				slot[b] = v;
				break;
			}
			v = slot[b] + v;
		}
	}
	float sum = 0;
	bool any = false;
	DK_UNROLL
	for (int b = 0; b < 7; b++)
		if (n >> b & 1) {
			sum = any ? slot[b] + sum : slot[b];
			any = true;
		}
	return sum;
}

// dk_gemm_sum adds up the slices, by a fixed tree of pairs over their numbers, and
// finishes; mapping of dk_each. slices is at most 64.
DK_KERNEL(dk_gemm_sum, (float *dst, int64_t ldd, const float *part, int32_t m, int32_t n, int32_t slices, int32_t add,
			int32_t shift, DK_EPI))
{
	const dk_epi ep = DK_EPI_PASS;
	dk_each(m, n, shift, [&](int64_t r, int32_t c) {
		float sum = dk_pairs(slices, [&](int32_t s) { return part[((int64_t)s * m + r) * n + c]; });
		float *d = dst + r * ldd + c;
		if (add)
			sum = *d + sum;
		*d = dk_finish1(ep, dk_mask(ep, r), c, sum);
	});
}

// dk_gemm_block_sum does so for each block of dk_gemm_blocks: block i's sum goes, packed,
// to dst + i·m·n. Mapping of dk_each over blocks·m rows.
DK_KERNEL(dk_gemm_block_sum, (float *dst, const float *part, const int32_t *cuts, int32_t blocks, int32_t m, int32_t n,
			      int32_t slots, int32_t shift))
{
	dk_each((int64_t)blocks * m, n, shift, [&](int64_t row, int32_t c) {
		int64_t i = row / m, r = row % m;
		int32_t kc, slices = dk_slices(m, n, dk_ldg(cuts + i + 1) - dk_ldg(cuts + i), kc);
		dst[row * n + c] = dk_pairs(slices, [&](int32_t s) { return part[((i * slots + s) * m + r) * n + c]; });
	});
}

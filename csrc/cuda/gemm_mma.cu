// gemm_mma.cu: products by the matrix units, for sm_80: operands rounded to TF32 or
// bfloat16, sums in fp32. Both operands lie on 16 bytes. A warp sums 32 x 32 values.
#include "dkgemm.h"

#ifdef DK_MMA

#define DK_MK 32

// Sums of a warp: 2 tiles of 16 rows by 4 of 8 columns, in the layout of mma's d.
struct dk_frags {
	float d[2][4][4];
};

DK_FN void dk_frags_put(const dk_product &p, const dk_tile &t, const dk_frags &f)
{
	const int32_t g = dk_lane() >> 2, q = dk_lane() & 3;
	const int32_t m0 = t.m0 + (dk_warp() >> 1) * 32, n0 = t.n0 + (dk_warp() & 1) * 32;
	const bool plain = dk_plain(p);
	DK_UNROLL
	for (int i = 0; i < 4; i++)
		DK_UNROLL
		for (int j = 0; j < 4; j++)
			DK_UNROLL
			for (int k = 0; k < 2; k++)
				dk_put(p, t, plain, m0 + i * 8 + g, n0 + j * 8 + q * 2 + k, f.d[i >> 1][j][(i & 1) * 2 + k]);
	if (!plain)
		DK_NO_UNROLL
		for (int i = 0; i < 32; i++)
			dk_put_finish(p, m0 + i / 8 * 8 + g, n0 + i / 2 % 4 * 8 + q * 2 + i % 2);
}

DK_FN void dk_frags_zero(dk_frags &f)
{
	DK_UNROLL
	for (int i = 0; i < 2; i++)
		DK_UNROLL
		for (int j = 0; j < 4; j++)
			DK_UNROLL
			for (int k = 0; k < 4; k++)
				f.d[i][j][k] = 0;
}

// Words of shared memory per row: TF32 one per k, bfloat16 one per two; the padding
// spreads the rows of a fragment over the banks.
template <bool BF> struct dk_depth {
	static const int words = BF ? DK_MK / 2 + 4 : DK_MK + 4;
	static const int steps = BF ? DK_MK / 16 : DK_MK / 8;
};

DK_FN void dk_keep_word(uint32_t *s, int32_t words, int32_t r, int32_t k, float v, bool bf)
{
	if (bf)
		((uint16_t *)s)[r * words * 2 + k] = dk_f2bf(v);
	else
		s[r * words + k] = dk_bits(dk_tf32(v));
}

template <bool TA, bool TB, bool BF> DK_FN void dk_gemm_mma(const dk_product &p)
{
	const int W = dk_depth<BF>::words;
	DK_SHARED(uint32_t, sa, DK_BM * (DK_MK + 4));
	DK_SHARED(uint32_t, sb, DK_BN * (DK_MK + 4));
	const dk_tile t = dk_tile_of(p);
	const int32_t g = dk_lane() >> 2, q = dk_lane() & 3, m0 = (dk_warp() >> 1) * 32, n0 = (dk_warp() & 1) * 32;
	dk_strip<DK_BM, DK_MK, !TA, 4> a;
	dk_strip<DK_BN, DK_MK, TB, 4> b;
	dk_frags f;
	dk_frags_zero(f);
	a.load(p.a, p.lda, t.m0, p.m, t.k0, t.k1);
	b.load(p.b, p.ldb, t.n0, p.n, t.k0, t.k1);
	for (int32_t k0 = t.k0; k0 < t.k1; k0 += DK_MK) {
		a.each([&](int32_t r, int32_t k, float v) { dk_keep_word(sa, W, r, k, v, BF); });
		b.each([&](int32_t r, int32_t k, float v) { dk_keep_word(sb, W, r, k, v, BF); });
		dk_sync();
		if (k0 + DK_MK < t.k1) {
			a.load(p.a, p.lda, t.m0, p.m, k0 + DK_MK, t.k1);
			b.load(p.b, p.ldb, t.n0, p.n, k0 + DK_MK, t.k1);
		}
		DK_UNROLL
		for (int s = 0; s < dk_depth<BF>::steps; s++) {
			uint32_t x[2][4], y[4][2];
			DK_UNROLL
			for (int i = 0; i < 2; i++) {
				const uint32_t *at = sa + (m0 + i * 16 + g) * W + s * 8 + q;
				x[i][0] = at[0];
				x[i][1] = at[8 * W];
				x[i][2] = at[4];
				x[i][3] = at[8 * W + 4];
			}
			DK_UNROLL
			for (int j = 0; j < 4; j++) {
				const uint32_t *at = sb + (n0 + j * 8 + g) * W + s * 8 + q;
				y[j][0] = at[0];
				y[j][1] = at[4];
			}
			DK_UNROLL
			for (int i = 0; i < 2; i++)
				DK_UNROLL
				for (int j = 0; j < 4; j++) {
					if (BF)
						dk_mma_bf16_m16n8k16(f.d[i][j], x[i], y[j]);
					else
						dk_mma_tf32_m16n8k8(f.d[i][j], x[i], y[j]);
				}
		}
		dk_sync();
	}
	dk_frags_put(p, t, f);
}

DK_KERNEL(dk_gemm_tf32_nn, (DK_GEMM)) { dk_gemm_mma<false, false, false>(DK_GEMM_PASS); }
DK_KERNEL(dk_gemm_tf32_nt, (DK_GEMM)) { dk_gemm_mma<false, true, false>(DK_GEMM_PASS); }
DK_KERNEL(dk_gemm_tf32_tn, (DK_GEMM)) { dk_gemm_mma<true, false, false>(DK_GEMM_PASS); }
DK_KERNEL(dk_gemm_bf16_nn, (DK_GEMM)) { dk_gemm_mma<false, false, true>(DK_GEMM_PASS); }
DK_KERNEL(dk_gemm_bf16_nt, (DK_GEMM)) { dk_gemm_mma<false, true, true>(DK_GEMM_PASS); }
DK_KERNEL(dk_gemm_bf16_tn, (DK_GEMM)) { dk_gemm_mma<true, false, true>(DK_GEMM_PASS); }

DK_KERNEL(dk_gemm_tf32_blocks, (DK_GEMM_BLOCKS))
{
	dk_product p = {};
	if (dk_product_of(p, DK_GEMM_BLOCKS_PASS))
		dk_gemm_mma<true, false, false>(p);
}

DK_KERNEL(dk_gemm_bf16_blocks, (DK_GEMM_BLOCKS))
{
	dk_product p = {};
	if (dk_product_of(p, DK_GEMM_BLOCKS_PASS))
		dk_gemm_mma<true, false, true>(p);
}

#endif

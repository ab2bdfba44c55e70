// dkgemm.h has what the products share: how a block's tiles are read. The products are
// dst (m x n) = op(a)·op(b) over k, in tiles of DK_BM x DK_BN a block; a block of slice
// s takes the k in [s·kc, (s+1)·kc).
#ifndef DKGEMM_H
#define DKGEMM_H
#include "dkernel.h"

#define DK_BM 128
#define DK_BN 64

// DK_GEMM: part is null where there is one slice; otherwise slice s writes its sums,
// packed, to part + s·m·n, and dk_gemm_sum adds them up and finishes. add is 1 for
// AddGEMM.
#define DK_GEMM                                                                                                            \
	float *dst, int64_t ldd, const float *a, int64_t lda, const float *b, int64_t ldb, int32_t m, int32_t n, int32_t k, \
		int32_t kc, float *part, int32_t add, DK_EPI
#define DK_GEMM_PASS (dk_product{dst, ldd, a, lda, b, ldb, m, n, k, kc, part, add, DK_EPI_PASS, dk_bid()})

struct dk_product {
	float *dst;
	int64_t ldd;
	const float *a;
	int64_t lda;
	const float *b;
	int64_t ldb;
	int32_t m, n, k, kc;
	float *part;
	int32_t add;
	dk_epi ep;
	int32_t bid; // of the product's blocks
};

// dk_tile is where a block works; blocks that read the same rows of a are neighbours.
struct dk_tile {
	int32_t m0, n0, k0, k1, slice;
};

DK_FN dk_tile dk_tile_of(const dk_product &p)
{
	int32_t tn = (p.n + DK_BN - 1) / DK_BN, tm = (p.m + DK_BM - 1) / DK_BM, rest = p.bid / tn;
	dk_tile t;
	t.n0 = p.bid % tn * DK_BN;
	t.m0 = rest % tm * DK_BM;
	t.slice = rest / tm;
	int64_t k0 = (int64_t)t.slice * p.kc, k1 = k0 + p.kc;
	t.k0 = k0 < p.k ? (int32_t)k0 : p.k;
	t.k1 = k1 < p.k ? (int32_t)k1 : p.k;
	return t;
}

// A sum over k is cut into slices of kc terms: as many as bring the tiles of one block of
// rows to DK_TILES, but none of less than DK_TERMS. The host (slicesOf) cuts in the same
// way.
#define DK_TILES 64
#define DK_TERMS 256
#define DK_SLICES 64

DK_FN int32_t dk_slices(int32_t m, int32_t n, int32_t k, int32_t &kc)
{
	int64_t tiles = (int64_t)((m + DK_BM - 1) / DK_BM) * ((n + DK_BN - 1) / DK_BN), s = DK_TILES / (tiles > 1 ? tiles : 1);
	s = s < DK_SLICES ? s : DK_SLICES;
	s = s < k / DK_TERMS ? s : k / DK_TERMS;
	kc = k > 1 ? k : 1;
	if (s <= 1)
		return 1;
	kc = (int32_t)(((k + s - 1) / s + 15) / 16 * 16);
	return (k + kc - 1) / kc;
}

// DK_GEMM_BLOCKS: products aᵀ·b of many blocks of rows: block i has rows [cuts[i],cuts[i+1])
// of a and b. Slice s of it goes, packed, to part + (i·slots + s)·m·n, slots being the
// most slices that one has.
#define DK_GEMM_BLOCKS \
	const float *a, int64_t lda, const float *b, int64_t ldb, int32_t m, int32_t n, const int32_t *cuts, int32_t slots, float *part
#define DK_GEMM_BLOCKS_PASS a, lda, b, ldb, m, n, cuts, slots, part

// dk_product_of is what this thread block has to do of the blocks; false: nothing.
DK_FN bool dk_product_of(dk_product &p, DK_GEMM_BLOCKS)
{
	int32_t tiles = (m + DK_BM - 1) / DK_BM * ((n + DK_BN - 1) / DK_BN), i = dk_bid() / (tiles * slots);
	int32_t lo = dk_ldg(cuts + i);
	p.k = dk_ldg(cuts + i + 1) - lo;
	p.bid = dk_bid() % (tiles * slots);
	p.a = a + (int64_t)lo * lda;
	p.lda = lda;
	p.b = b + (int64_t)lo * ldb;
	p.ldb = ldb;
	p.m = m;
	p.n = n;
	p.part = part + (int64_t)i * slots * m * n;
	return p.bid / tiles < dk_slices(m, n, p.k, p.kc);
}

// dk_strip holds this thread's share of an R x K tile: rows [r0,r0+R) of an operand,
// its k from k0; ALONG says that neighbours in k lie side by side, otherwise rows do.
// What lies outside is 0.
template <int R, int K, bool ALONG, int V> struct dk_strip {
	static const int N = R * K / V / DK_THREADS;
	dk_vec<V> v[N];

	static DK_METHOD int32_t row(int i)
	{
		int32_t at = dk_tid() + i * DK_THREADS;
		return ALONG ? at / (K / V) : at % (R / V) * V;
	}
	static DK_METHOD int32_t depth(int i)
	{
		int32_t at = dk_tid() + i * DK_THREADS;
		return ALONG ? at % (K / V) * V : at / (R / V);
	}
	DK_METHOD void load(const float *p, int64_t ld, int32_t r0, int32_t rows, int32_t k0, int32_t k1)
	{
		DK_UNROLL
		for (int i = 0; i < N; i++) {
			int32_t r = r0 + row(i), k = k0 + depth(i);
			v[i] = dk_fill<V>(0);
			if (ALONG && r < rows)
				v[i] = dk_load<V>(p + (int64_t)r * ld, k, k1);
			if (!ALONG && k < k1)
				v[i] = dk_load<V>(p + (int64_t)k * ld, r, rows);
		}
	}
	// each calls f(row, k, value) for this thread's values, numbered within the tile.
	template <class F> DK_METHOD void each(F f) const
	{
		DK_UNROLL
		for (int i = 0; i < N; i++)
			DK_UNROLL
			for (int j = 0; j < V; j++)
				f(row(i) + (ALONG ? 0 : j), depth(i) + (ALONG ? j : 0), v[i].v[j]);
	}
};

// dk_plain says that the epilogue is at most a bias and ReLU, which dk_put applies;
// any other is a second pass of the thread over what it wrote (dk_put_finish), which
// keeps it out of the unrolled loops.
DK_FN bool dk_plain(const dk_product &p) { return p.part || p.ep.mode <= DK_RELU; }

// dk_put writes one sum.
DK_FN void dk_put(const dk_product &p, const dk_tile &t, bool plain, int32_t r, int32_t c, float sum)
{
	if (r >= p.m || c >= p.n)
		return;
	if (p.part) {
		p.part[((int64_t)t.slice * p.m + r) * p.n + c] = sum;
		return;
	}
	float *d = p.dst + (int64_t)r * p.ldd + c;
	if (p.add)
		sum = *d + sum;
	if (plain) {
		if (p.ep.bias)
			sum += dk_ldg(p.ep.bias + c);
		if (p.ep.mode == DK_RELU && sum <= 0)
			sum = 0;
	}
	*d = sum;
}

DK_FN void dk_put_finish(const dk_product &p, int32_t r, int32_t c)
{
	if (r >= p.m || c >= p.n)
		return;
	float *d = p.dst + (int64_t)r * p.ldd + c;
	*d = dk_finish1(p.ep, dk_mask(p.ep, r), c, *d);
}
#endif

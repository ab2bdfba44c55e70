// blocks.cu: sums over the rows of many blocks at a time: block i has rows
// [cuts[i],cuts[i+1]). The first launch writes each block's slabs, as the sums over all
// rows do (reduce.cu), the next each block's sum, and dk_block_tree adds those up.
#include "dkernel.h"

// dk_block_columns is dk_columns of block dk_bid() / (slots·tiles), whose slabs are rows
// i·slots and on of part; slots are the most that a block has. f(r, c) is of all rows.
template <class F> DK_FN void dk_block_columns(float *part, int64_t ldp, const int32_t *cuts, int32_t slots, int32_t cols, F f)
{
	int32_t each = slots * ((cols + 31) / 32), i = dk_bid() / each, tile = dk_bid() % each;
	int64_t lo = dk_ldg(cuts + i), rows = dk_ldg(cuts + i + 1) - lo;
	if (tile / ((cols + 31) / 32) * (int64_t)DK_SLAB >= rows)
		return;
	dk_columns_at(tile, part + (int64_t)i * slots * ldp, ldp, rows, cols, [&](int64_t r, int32_t c) { return f(lo + r, c); });
}

DK_KERNEL(dk_block_col_sum, (float *part, int64_t ldp, const float *x, int64_t ldx, const int32_t *cuts, int32_t slots, int32_t cols))
{
	dk_block_columns(part, ldp, cuts, slots, cols, [&](int64_t r, int32_t c) { return dk_ldg(x + r * ldx + c); });
}

DK_KERNEL(dk_block_head_dot_grad, (float *part, int64_t ldp, const float *g, int64_t ldg, const float *x, int64_t ldx,
				   const int32_t *cuts, int32_t slots, int32_t heads, int32_t d))
{
	dk_block_columns(part, ldp, cuts, slots, heads * d,
			 [&](int64_t r, int32_t c) { return dk_ldg(g + r * ldg + c / d) * dk_ldg(x + r * ldx + c); });
}

// dk_block_slabs adds up each block's slabs, as dk_col_finish does: dst has a row of cols
// values per block, packed. Mapping of dk_each.
DK_KERNEL(dk_block_slabs, (float *dst, const float *part, int64_t ldp, const int32_t *cuts, int32_t slots, int32_t blocks,
			   int32_t cols, int32_t shift))
{
	dk_each(blocks, cols, shift, [&](int64_t i, int32_t c) {
		int32_t slabs = (dk_ldg(cuts + i + 1) - dk_ldg(cuts + i) + DK_SLAB - 1) / DK_SLAB;
		float sum = 0;
		for (int32_t k = 0; k < slabs; k++)
			sum += part[(i * slots + k) * ldp + c];
		dst[i * cols + c] = sum;
	});
}

// dk_block_tree adds up one value per block, block i's being that of leaf leaves[i]
// (ascending, below 2^20) of a binary tree: a node is its left child plus its right one,
// or the one of the two that is there. Value (r, c) of block i is part[(i·m + r)·n + c].
DK_KERNEL(dk_block_tree, (float *dst, int64_t ldd, const float *part, const int32_t *leaves, int32_t blocks, int32_t m, int32_t n,
			  int32_t shift))
{
	dk_each(m, n, shift, [&](int64_t r, int32_t c) {
		const float *p = part + r * n + c;
		int64_t step = (int64_t)m * n;
		// v is the node at a level of leaf's path to the root, slot[b] what waits at level b
		// for its right sibling.
		float slot[20], v = p[0];
		uint32_t waits = 0, leaf = (uint32_t)dk_ldg(leaves);
		for (int32_t i = 1; i <= blocks; i++) {
			uint32_t next = i < blocks ? (uint32_t)dk_ldg(leaves + i) : ~0u;
			float w = i < blocks ? p[i * step] : 0;
			// Up to where the two paths part, or to the root.
			DK_UNROLL
			for (int b = 0; b < 20; b++) {
				if (waits >> b & leaf >> b & 1) {
					v = slot[b] + v;
					waits &= ~(1u << b);
				}
				if (i < blocks && leaf >> b >> 1 == next >> b >> 1) {
					slot[b] = v;
					waits |= 1u << b;
					break;
				}
			}
			if (i < blocks)
				v = w;
			leaf = next;
		}
		dst[r * ldd + c] = v;
	});
}

// dst[i] = sum of v over block i, by one thread block each, as dk_total_double.
DK_KERNEL(dk_block_total, (double *dst, const double *v, const int32_t *cuts))
{
	dk_total_of(dst + dk_bid(), v + dk_ldg(cuts + dk_bid()), dk_ldg(cuts + dk_bid() + 1) - dk_ldg(cuts + dk_bid()));
}

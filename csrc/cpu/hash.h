/* The dropout hash, the same bits as kernels.DropRow and kernels.DropKeep. */
#ifndef DK_HASH_H
#define DK_HASH_H

static inline uint64_t dk_mix64(uint64_t z)
{
	z ^= z >> 30;
	z *= 0xbf58476d1ce4e5b9u;
	z ^= z >> 27;
	z *= 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static inline uint64_t dk_drop_row(uint64_t key, int32_t id)
{
	return dk_mix64(key ^ ((uint64_t)(uint32_t)id + 1) * 0x9e3779b97f4a7c15u);
}

#define DK_HASH_COL 0x9e3779b1u

/* Which values survive: x is column * DK_HASH_COL + the low half of the row, hi the
 * row's high half. */
DK_INLINE vmask v_drop_keep_mixed(ivec x, ivec hi, uint32_t threshold)
{
	x = i_xor(x, i_shr(x, 16));
	x = i_mul(x, i_set1(0x85ebca6bu));
	x = i_xor(x, hi);
	x = i_xor(x, i_shr(x, 13));
	x = i_mul(x, i_set1(0xc2b2ae35u));
	x = i_xor(x, i_shr(x, 16));
	return i_geu(x, i_set1(threshold));
}

/* Which of the columns col survive in a row. */
DK_INLINE vmask v_drop_keep(uint64_t row, ivec col, uint32_t threshold)
{
	ivec x = i_add(i_mul(col, i_set1(DK_HASH_COL)), i_set1((uint32_t)row));
	return v_drop_keep_mixed(x, i_set1((uint32_t)(row >> 32)), threshold);
}

#endif

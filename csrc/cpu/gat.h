/* The argument of attention's kernels, gat_body.h. */
#ifndef DK_GAT_H
#define DK_GAT_H

#include <stdint.h>

/*
 * Rows [lo,hi) of a graph and the rows they gather. near has the scores of the
 * former and far those of the latter; x is what is gathered, own what the rows
 * have themselves. Along the graph the rows are destinations, along the transpose
 * sources.
 */
typedef struct dk_attend {
	const int64_t *row_ptr;
	const int32_t *col;
	const float *w; /* one per edge, or NULL: 1; terms of weight 0 are passed over */
	int64_t self_on;
	const int32_t *self_col; /* row that v gathers as its own, -1: none; NULL: v */
	const float *self_w;     /* one per row, or NULL: 1 */
	int64_t heads, d;        /* heads, columns of each */
	float slope;             /* of LeakyReLU below 0; 0 to 1 */
	int32_t drop;            /* 0: no dropout of alphas */
	uint64_t key;
	uint32_t threshold;
	float keep_scale;
	const int32_t *near_ids, *far_ids; /* what the hash takes for a row; NULL: its index */
	const float *near, *far;
	int64_t ld_near, ld_far;
	const float *lse, *dot; /* of the destinations */
	int64_t ld_lse, ld_dot;
	const float *x, *own;
	int64_t ldx, ld_own;
	float *y; /* wide output */
	int64_t ldy;
	float *out, *out2; /* outputs of one value per head */
	int64_t ld_out, ld_out2;
	int64_t lo, hi;
	const dk_epilogue *ep; /* or NULL */
} dk_attend;

#endif

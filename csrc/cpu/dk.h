/*
 * The native kernels: argument records, the table of functions, one table per
 * instruction set. Matrices are row-major float32; ld* are row distances in
 * values; row ranges are [lo,hi). Kernels are single-threaded and re-entrant,
 * allocate nothing and trust their arguments: shapes are checked in Go.
 */
#ifndef DK_H
#define DK_H

#include <stdint.h>

enum { DK_ISA_SCALAR, DK_ISA_AVX2, DK_ISA_AVX512 };
enum { DK_IDENTITY, DK_RELU, DK_LEAKY_RELU, DK_ELU, DK_TANH };

/* y = drop(act(x + bias)). Dropout bits come from (key, id of the row, column). */
typedef struct dk_epilogue {
	const float *bias;  /* one value per column, or NULL */
	const int32_t *ids; /* id of each row, or NULL: the row's index */
	uint64_t key;
	uint32_t threshold; /* hashes below it are dropped */
	int32_t drop;       /* 0: no dropout */
	float keep_scale;   /* factor of the values that stay */
	int32_t act;
} dk_epilogue;

#include "gat.h"

/* The gather of spmm_body.h. */
typedef struct dk_gather {
	const int64_t *row_ptr;
	const int32_t *col;
	const float *w; /* one per edge, or NULL: 1 */
	/* tile[(t-1)*tile_ld + v] is how many edges of row v come from sources
	 * before tile t, t in [1,tiles); a tile is tile_rows of all sources. NULL:
	 * untiled. group tiles are taken at once, panel columns at a time. pack, if
	 * not NULL, holds group * tile_rows * panel values: the sources of a pass are
	 * copied there, side by side. */
	const int32_t *tile;
	int64_t tile_ld, tiles, tile_rows, sources, group, panel;
	float *pack;
	const float *rs, *cs; /* row and column scales, or NULL: 1 */
	int64_t self_on;
	const int32_t *self_col; /* source row of v itself, -1: none; NULL: v */
	const float *self_w;     /* NULL: 1 */
	const float *x;
	int64_t ldx;
	float *y;
	int64_t ldy, f, lo, hi;
	const dk_epilogue *ep; /* or NULL */
} dk_gather;

typedef struct dk_adam {
	float lr_step;      /* lr / (1 - beta1^step) */
	float inv_sqrt_bc2; /* 1 / sqrt(1 - beta2^step) */
	float beta1, beta2, one_beta1, one_beta2, eps;
	float l2;    /* added to the gradient, times the weight; unused if decoupled */
	float decay; /* factor of the weight if decoupled */
	int32_t decoupled;
} dk_adam;

typedef struct dk_sgd {
	float lr, momentum, l2;
	int32_t first; /* the momentum buffer is set, not read */
} dk_sgd;

typedef struct dk_table {
	void (*spmm)(const dk_gather *g);
	void (*spmmt)(const int64_t *row_ptr, const int32_t *col, const float *w, const float *x, int64_t ldx,
	              float *y, int64_t ldy, int64_t n_dst, int64_t f, int64_t lo, int64_t hi);
	void (*sddmm)(const int64_t *row_ptr, const int32_t *col, const float *x, int64_t ldx, const float *y,
	              int64_t ldy, float *out, int64_t f, int64_t lo, int64_t hi);
	void (*gat)(const dk_attend *g);
	void (*gat_back_dst)(const dk_attend *g);
	void (*gat_back_src)(const dk_attend *g);
	void (*edge_dropout)(const int64_t *row_ptr, const int32_t *col, const float *w, float *out,
	                     const dk_epilogue *d, int64_t lo, int64_t hi);
	void (*forward)(const dk_epilogue *ep, const float *x, int64_t ldx, float *y, int64_t ldy, int64_t c0,
	                int64_t c1, int64_t lo, int64_t hi);
	void (*backward)(const dk_epilogue *ep, const float *dy, int64_t lddy, const float *y, int64_t ldy,
	                 float *dx, int64_t lddx, int64_t f, int64_t lo, int64_t hi);
	void (*colsum)(const float *x, int64_t ldx, float *out, int64_t f, int64_t lo, int64_t hi);
	double (*xent)(const float *logits, int64_t ldl, float *grad, int64_t ldg, const int32_t *labels,
	               const float *class_w, float scale, int64_t f, int64_t lo, int64_t hi);
	void (*add)(const float *a, int64_t lda, const float *b, int64_t ldb, float *y, int64_t ldy, int64_t rows,
	            int64_t f);
	void (*adam)(float *p, int64_t ldp, const float *g, int64_t ldg, float *m, int64_t ldm, float *v,
	             int64_t ldv, int64_t rows, int64_t f, const dk_adam *h);
	void (*sgd)(float *p, int64_t ldp, const float *g, int64_t ldg, float *m, int64_t ldm, int64_t rows,
	            int64_t f, const dk_sgd *h);
	void (*gather_rows)(const float *x, int64_t ldx, const int32_t *ids, int64_t n, float *y, int64_t ldy,
	                    int64_t f);
	void (*scatter_rows)(const float *x, int64_t ldx, const int32_t *ids, int64_t n, float *y, int64_t ldy,
	                     int64_t f);
	void (*to_bf16)(const float *x, int64_t ldx, uint16_t *y, int64_t rows, int64_t f);
	void (*from_bf16)(const uint16_t *x, float *y, int64_t ldy, int64_t rows, int64_t f);
	void (*layer_norm)(const float *x, int64_t ldx, const float *gamma, const float *beta, float eps, float *y,
	                   int64_t ldy, float *stat, int64_t lds, int64_t rows, int64_t f);
	void (*layer_norm_back)(const float *dy, int64_t lddy, const float *x, int64_t ldx, const float *stat,
	                        int64_t lds, const float *gamma, float *dx, int64_t lddx, float *dgamma, float *dbeta,
	                        int64_t rows, int64_t f);
	void (*col_moments)(const float *x, int64_t ldx, float *mean, float *square, int64_t rows, int64_t f);
	void (*col_affine)(const float *x, int64_t ldx, const float *y, int64_t ldy, const float *a, const float *b,
	                   const float *d, float *out, int64_t ldo, int64_t rows, int64_t f);
	void (*col_dot)(const float *a, int64_t lda, const float *b, int64_t ldb, float *out, int64_t rows,
	                int64_t f);
	double (*dot)(const float *a, int64_t lda, const float *b, int64_t ldb, int64_t rows, int64_t f);
	void (*add_scaled)(const float *a, int64_t lda, const float *b, int64_t ldb, float k, float *y, int64_t ldy,
	                   int64_t rows, int64_t f);
	void (*add_rows)(const float *x, int64_t ldx, const int32_t *ids, int64_t rows, float *y, int64_t ldy,
	                 int64_t f);
	void (*head_dot)(const float *x, int64_t ldx, const float *a, int64_t lda, float *y, int64_t ldy,
	                 int64_t rows, int64_t h, int64_t d);
	void (*head_outer_add)(const float *g, int64_t ldg, const float *a, int64_t lda, float *x, int64_t ldx,
	                       int64_t rows, int64_t h, int64_t d);
	void (*head_dot_grad)(const float *g, int64_t ldg, const float *x, int64_t ldx, float *da, int64_t lda,
	                      int64_t rows, int64_t h, int64_t d);
	void (*head_mean)(const float *x, int64_t ldx, float *y, int64_t ldy, int64_t rows, int64_t h, int64_t d);
	void (*head_spread)(const float *g, int64_t ldg, float *x, int64_t ldx, int64_t rows, int64_t h, int64_t d);
	void (*spmm_max)(const int64_t *row_ptr, const int32_t *col, const float *w, const float *x, int64_t ldx,
	                 float *y, int64_t ldy, float *arg, int64_t lda, int64_t f, int64_t lo, int64_t hi);
	void (*spmm_max_back)(const int64_t *row_ptr, const int32_t *col, const float *dy, int64_t lddy,
	                      const float *arg, int64_t lda, float *dx, int64_t lddx, int64_t f, int64_t lo,
	                      int64_t hi);
	double (*bce)(const float *l, int64_t ldl, float *grad, int64_t ldg, const int64_t *row_ptr,
	              const int32_t *col, const int32_t *mask, const float *pos_w, float scale, int64_t f,
	              int64_t rows);
	void (*gemm)(int ta, int tb, int add, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
	             const float *b, int64_t ldb, float *c, int64_t ldc);
	/* The measured ceilings of ceiling_body.h. */
	void (*probe_gather)(const float *x, int64_t ldx, const int32_t *ids, int64_t n, int64_t f,
	                     int64_t ahead, float *out);
	void (*probe_copy)(const float *x, float *y, int64_t n);
	float (*probe_fma)(int64_t rounds);
} dk_table;

/* What this processor and its operating system can run: bit i is set for the
 * instruction set i. Compiled without instruction-set flags. */
unsigned dk_probe(void);
/* brand gets the processor's name, 49 bytes with the terminating zero. */
void dk_cpu_name(char *brand);

/* Each fills the entries it has. A table starts as scalar and is then
 * overwritten by better sets up to the one asked for. */
void dk_fill_scalar(dk_table *t);
void dk_fill_avx2(dk_table *t);
void dk_fill_avx512(dk_table *t);
void dk_fill(dk_table *t, int isa);

/* Every kernel, per instruction set. */
#define DK_DECLARE(isa)                                                                                        \
	void dk_spmm_##isa(const dk_gather *g);                                                                \
	void dk_spmmt_##isa(const int64_t *, const int32_t *, const float *, const float *, int64_t, float *,  \
	                    int64_t, int64_t, int64_t, int64_t, int64_t);                                      \
	void dk_sddmm_##isa(const int64_t *, const int32_t *, const float *, int64_t, const float *, int64_t,  \
	                    float *, int64_t, int64_t, int64_t);                                               \
	void dk_gat_##isa(const dk_attend *);                                                                  \
	void dk_gat_back_dst_##isa(const dk_attend *);                                                         \
	void dk_gat_back_src_##isa(const dk_attend *);                                                         \
	void dk_edge_dropout_##isa(const int64_t *, const int32_t *, const float *, float *,                   \
	                           const dk_epilogue *, int64_t, int64_t);                                     \
	void dk_forward_##isa(const dk_epilogue *, const float *, int64_t, float *, int64_t, int64_t, int64_t, \
	                      int64_t, int64_t);                                                               \
	void dk_backward_##isa(const dk_epilogue *, const float *, int64_t, const float *, int64_t, float *,   \
	                       int64_t, int64_t, int64_t, int64_t);                                            \
	void dk_colsum_##isa(const float *, int64_t, float *, int64_t, int64_t, int64_t);                      \
	double dk_xent_##isa(const float *, int64_t, float *, int64_t, const int32_t *, const float *, float,  \
	                     int64_t, int64_t, int64_t);                                                       \
	void dk_add_##isa(const float *, int64_t, const float *, int64_t, float *, int64_t, int64_t, int64_t); \
	void dk_adam_##isa(float *, int64_t, const float *, int64_t, float *, int64_t, float *, int64_t,       \
	                   int64_t, int64_t, const dk_adam *);                                                 \
	void dk_sgd_##isa(float *, int64_t, const float *, int64_t, float *, int64_t, int64_t, int64_t,        \
	                  const dk_sgd *);                                                                     \
	void dk_gather_rows_##isa(const float *, int64_t, const int32_t *, int64_t, float *, int64_t,          \
	                          int64_t);                                                                    \
	void dk_scatter_rows_##isa(const float *, int64_t, const int32_t *, int64_t, float *, int64_t,         \
	                           int64_t);                                                                   \
	void dk_to_bf16_##isa(const float *, int64_t, uint16_t *, int64_t, int64_t);                           \
	void dk_from_bf16_##isa(const uint16_t *, float *, int64_t, int64_t, int64_t);                         \
	void dk_layer_norm_##isa(const float *, int64_t, const float *, const float *, float, float *,         \
		int64_t, float *, int64_t, int64_t, int64_t);                                                  \
	void dk_layer_norm_back_##isa(const float *, int64_t, const float *, int64_t, const float *,           \
		int64_t, const float *, float *, int64_t, float *, float *, int64_t, int64_t);                 \
	void dk_col_moments_##isa(const float *, int64_t, float *, float *, int64_t, int64_t);                 \
	void dk_col_affine_##isa(const float *, int64_t, const float *, int64_t, const float *,                \
		const float *, const float *, float *, int64_t, int64_t, int64_t);                             \
	void dk_col_dot_##isa(const float *, int64_t, const float *, int64_t, float *, int64_t, int64_t);      \
	double dk_dot_##isa(const float *, int64_t, const float *, int64_t, int64_t, int64_t);                 \
	void dk_add_scaled_##isa(const float *, int64_t, const float *, int64_t, float, float *, int64_t,      \
		int64_t, int64_t);                                                                             \
	void dk_add_rows_##isa(const float *, int64_t, const int32_t *, int64_t, float *, int64_t, int64_t);   \
	void dk_head_dot_##isa(const float *, int64_t, const float *, int64_t, float *, int64_t, int64_t,      \
		int64_t, int64_t);                                                                             \
	void dk_head_outer_add_##isa(const float *, int64_t, const float *, int64_t, float *, int64_t,         \
		int64_t, int64_t, int64_t);                                                                    \
	void dk_head_dot_grad_##isa(const float *, int64_t, const float *, int64_t, float *, int64_t,          \
		int64_t, int64_t, int64_t);                                                                    \
	void dk_head_mean_##isa(const float *, int64_t, float *, int64_t, int64_t, int64_t, int64_t);          \
	void dk_head_spread_##isa(const float *, int64_t, float *, int64_t, int64_t, int64_t, int64_t);        \
	void dk_spmm_max_##isa(const int64_t *, const int32_t *, const float *, const float *, int64_t,        \
		float *, int64_t, float *, int64_t, int64_t, int64_t, int64_t);                                \
	void dk_spmm_max_back_##isa(const int64_t *, const int32_t *, const float *, int64_t, const float *,   \
		int64_t, float *, int64_t, int64_t, int64_t, int64_t);                                         \
	double dk_bce_##isa(const float *, int64_t, float *, int64_t, const int64_t *, const int32_t *,        \
		const int32_t *, const float *, float, int64_t, int64_t);                                      \
	void dk_gemm_##isa(int, int, int, int64_t, int64_t, int64_t, const float *, int64_t, const float *,    \
	                   int64_t, float *, int64_t);                                                         \
	void dk_probe_gather_##isa(const float *, int64_t, const int32_t *, int64_t, int64_t, int64_t,         \
	                           float *);                                                                   \
	void dk_probe_copy_##isa(const float *, float *, int64_t);                                             \
	float dk_probe_fma_##isa(int64_t);

#define DK_FILL(t, isa)                                          \
	do {                                                     \
		(t)->spmm = dk_spmm_##isa;                       \
		(t)->spmmt = dk_spmmt_##isa;                     \
		(t)->sddmm = dk_sddmm_##isa;                     \
		(t)->gat = dk_gat_##isa;                         \
		(t)->gat_back_dst = dk_gat_back_dst_##isa;       \
		(t)->gat_back_src = dk_gat_back_src_##isa;       \
		(t)->edge_dropout = dk_edge_dropout_##isa;       \
		(t)->forward = dk_forward_##isa;                 \
		(t)->backward = dk_backward_##isa;               \
		(t)->colsum = dk_colsum_##isa;                   \
		(t)->xent = dk_xent_##isa;                       \
		(t)->add = dk_add_##isa;                         \
		(t)->adam = dk_adam_##isa;                       \
		(t)->sgd = dk_sgd_##isa;                         \
		(t)->gather_rows = dk_gather_rows_##isa;         \
		(t)->scatter_rows = dk_scatter_rows_##isa;       \
		(t)->to_bf16 = dk_to_bf16_##isa;                 \
		(t)->from_bf16 = dk_from_bf16_##isa;             \
		(t)->layer_norm = dk_layer_norm_##isa;           \
		(t)->layer_norm_back = dk_layer_norm_back_##isa; \
		(t)->col_moments = dk_col_moments_##isa;         \
		(t)->col_affine = dk_col_affine_##isa;           \
		(t)->col_dot = dk_col_dot_##isa;                 \
		(t)->dot = dk_dot_##isa;                         \
		(t)->add_scaled = dk_add_scaled_##isa;           \
		(t)->add_rows = dk_add_rows_##isa;               \
		(t)->head_dot = dk_head_dot_##isa;               \
		(t)->head_outer_add = dk_head_outer_add_##isa;   \
		(t)->head_dot_grad = dk_head_dot_grad_##isa;     \
		(t)->head_mean = dk_head_mean_##isa;             \
		(t)->head_spread = dk_head_spread_##isa;         \
		(t)->spmm_max = dk_spmm_max_##isa;               \
		(t)->spmm_max_back = dk_spmm_max_back_##isa;     \
		(t)->bce = dk_bce_##isa;                         \
		(t)->gemm = dk_gemm_##isa;                       \
		(t)->probe_gather = dk_probe_gather_##isa;       \
		(t)->probe_copy = dk_probe_copy_##isa;           \
		(t)->probe_fma = dk_probe_fma_##isa;             \
	} while (0)

DK_DECLARE(scalar)
DK_DECLARE(avx2)
DK_DECLARE(avx512)

/*
 * The loop that every library has, as the compiler vectorises it: the baseline
 * of the benchmark. y[v,:] = sum over e = (u,v) of w[e] * x[u,:].
 */
void dk_naive_spmm(const int64_t *row_ptr, const int32_t *col, const float *w, const float *x, int64_t ldx,
                   float *y, int64_t ldy, int64_t f, int64_t lo, int64_t hi);

#endif

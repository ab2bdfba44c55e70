/* The doors of the package: a table and flat arguments, so that Go hands over no
 * struct with pointers. Each packs its arguments and calls the table. */
#ifndef DK_CALL_H
#define DK_CALL_H

#include "dk.h"

void dk_call_spmm(const dk_table *t, const int64_t *row_ptr, const int32_t *col, const float *w, const int32_t *tile,
                  int64_t tile_ld, int64_t tiles, int64_t tile_rows, int64_t sources, int64_t group, int64_t panel,
                  float *pack, const float *rs, const float *cs, int64_t self_on, const int32_t *self_col, const float *self_w, const float *x, int64_t ldx, float *y,
                  int64_t ldy, int64_t f, int64_t lo, int64_t hi, int ep_on, const float *bias, const int32_t *ids,
                  uint64_t key, uint32_t threshold, int drop, float keep_scale, int act);
void dk_call_spmmt(const dk_table *t, const int64_t *row_ptr, const int32_t *col, const float *w, const float *x,
                   int64_t ldx, float *y, int64_t ldy, int64_t n_dst, int64_t f, int64_t lo, int64_t hi);
void dk_call_sddmm(const dk_table *t, const int64_t *row_ptr, const int32_t *col, const float *x, int64_t ldx,
                   const float *y, int64_t ldy, float *out, int64_t f, int64_t lo, int64_t hi);
/* part 0 is the forward gather, 1 and 2 its gradient along the graph and along the
 * transpose. */
void dk_call_gat(const dk_table *t, int part, const int64_t *row_ptr, const int32_t *col, const float *w,
                 int64_t self_on, const int32_t *self_col, const float *self_w, int64_t heads, int64_t d, float slope,
                 int drop, uint64_t key, uint32_t threshold, float keep_scale, const int32_t *near_ids,
                 const int32_t *far_ids, const float *near, int64_t ld_near, const float *far, int64_t ld_far,
                 const float *lse, int64_t ld_lse, const float *dot, int64_t ld_dot, const float *x, int64_t ldx,
                 const float *own, int64_t ld_own, float *y, int64_t ldy, float *out, int64_t ld_out, float *out2,
                 int64_t ld_out2, int64_t lo, int64_t hi, int ep_on, const float *bias, const int32_t *ids,
                 uint64_t ep_key, uint32_t ep_threshold, int ep_drop, float ep_keep_scale, int act);
void dk_call_edge_dropout(const dk_table *t, const int64_t *row_ptr, const int32_t *col, const float *w, float *out,
                          const int32_t *ids, uint64_t key, uint32_t threshold, int drop, float keep_scale, int64_t lo,
                          int64_t hi);
void dk_call_forward(const dk_table *t, const float *bias, const int32_t *ids, uint64_t key, uint32_t threshold,
                     int drop, float keep_scale, int act, const float *x, int64_t ldx, float *y, int64_t ldy, int64_t f,
                     int64_t lo, int64_t hi);
void dk_call_backward(const dk_table *t, const int32_t *ids, uint64_t key, uint32_t threshold, int drop,
                      float keep_scale, int act, const float *dy, int64_t lddy, const float *y, int64_t ldy, float *dx,
                      int64_t lddx, int64_t f, int64_t lo, int64_t hi);
void dk_call_colsum(const dk_table *t, const float *x, int64_t ldx, float *out, int64_t f, int64_t lo, int64_t hi);
double dk_call_xent(const dk_table *t, const float *logits, int64_t ldl, float *grad, int64_t ldg,
                    const int32_t *labels, const float *class_w, float scale, int64_t f, int64_t lo, int64_t hi);
void dk_call_add(const dk_table *t, const float *a, int64_t lda, const float *b, int64_t ldb, float *y, int64_t ldy,
                 int64_t rows, int64_t f);
void dk_call_adam(const dk_table *t, float *p, int64_t ldp, const float *g, int64_t ldg, float *m, int64_t ldm,
                  float *v, int64_t ldv, int64_t rows, int64_t f, float lr_step, float inv_sqrt_bc2, float beta1,
                  float beta2, float one_beta1, float one_beta2, float eps, float l2, float decay, int decoupled);
void dk_call_sgd(const dk_table *t, float *p, int64_t ldp, const float *g, int64_t ldg, float *m, int64_t ldm,
                 int64_t rows, int64_t f, float lr, float momentum, float l2, int first);
void dk_call_gather_rows(const dk_table *t, const float *x, int64_t ldx, const int32_t *ids, int64_t n, float *y,
                         int64_t ldy, int64_t f);
void dk_call_scatter_rows(const dk_table *t, const float *x, int64_t ldx, const int32_t *ids, int64_t n, float *y,
                          int64_t ldy, int64_t f);
void dk_call_to_bf16(const dk_table *t, const float *x, int64_t ldx, uint16_t *y, int64_t rows, int64_t f);
void dk_call_from_bf16(const dk_table *t, const uint16_t *x, float *y, int64_t ldy, int64_t rows, int64_t f);
void dk_call_layer_norm(const dk_table *t, const float *x, int64_t ldx, const float *gamma, const float *beta,
                        float eps, float *y, int64_t ldy, float *stat, int64_t lds, int64_t rows, int64_t f);
void dk_call_layer_norm_back(const dk_table *t, const float *dy, int64_t lddy, const float *x, int64_t ldx,
                             const float *stat, int64_t lds, const float *gamma, float *dx, int64_t lddx, float *dgamma,
                             float *dbeta, int64_t rows, int64_t f);
void dk_call_col_moments(const dk_table *t, const float *x, int64_t ldx, float *mean, float *square, int64_t rows,
                         int64_t f);
void dk_call_col_affine(const dk_table *t, const float *x, int64_t ldx, const float *y, int64_t ldy, const float *a,
                        const float *b, const float *d, float *out, int64_t ldo, int64_t rows, int64_t f);
void dk_call_col_dot(const dk_table *t, const float *a, int64_t lda, const float *b, int64_t ldb, float *out,
                     int64_t rows, int64_t f);
double dk_call_dot(const dk_table *t, const float *a, int64_t lda, const float *b, int64_t ldb, int64_t rows,
                   int64_t f);
void dk_call_add_scaled(const dk_table *t, const float *a, int64_t lda, const float *b, int64_t ldb, float k, float *y,
                        int64_t ldy, int64_t rows, int64_t f);
void dk_call_add_rows(const dk_table *t, const float *x, int64_t ldx, const int32_t *ids, int64_t rows, float *y,
                      int64_t ldy, int64_t f);
void dk_call_head_dot(const dk_table *t, const float *x, int64_t ldx, const float *a, int64_t lda, float *y,
                      int64_t ldy, int64_t rows, int64_t h, int64_t d);
void dk_call_head_outer_add(const dk_table *t, const float *g, int64_t ldg, const float *a, int64_t lda, float *x,
                            int64_t ldx, int64_t rows, int64_t h, int64_t d);
void dk_call_head_dot_grad(const dk_table *t, const float *g, int64_t ldg, const float *x, int64_t ldx, float *da,
                           int64_t lda, int64_t rows, int64_t h, int64_t d);
void dk_call_head_mean(const dk_table *t, const float *x, int64_t ldx, float *y, int64_t ldy, int64_t rows, int64_t h,
                       int64_t d);
void dk_call_head_spread(const dk_table *t, const float *g, int64_t ldg, float *x, int64_t ldx, int64_t rows, int64_t h,
                         int64_t d);
void dk_call_spmm_max(const dk_table *t, const int64_t *row_ptr, const int32_t *col, const float *w, const float *x,
                      int64_t ldx, float *y, int64_t ldy, float *arg, int64_t lda, int64_t f, int64_t lo, int64_t hi);
void dk_call_spmm_max_back(const dk_table *t, const int64_t *row_ptr, const int32_t *col, const float *dy, int64_t lddy,
                           const float *arg, int64_t lda, float *dx, int64_t lddx, int64_t f, int64_t lo, int64_t hi);
double dk_call_bce(const dk_table *t, const float *l, int64_t ldl, float *grad, int64_t ldg, const int64_t *row_ptr,
                   const int32_t *col, const int32_t *mask, const float *pos_w, float scale, int64_t f, int64_t rows);
void dk_call_gemm(const dk_table *t, int ta, int tb, int add, int64_t m, int64_t n, int64_t k, const float *a,
                  int64_t lda, const float *b, int64_t ldb, float *c, int64_t ldc);
void dk_call_probe_gather(const dk_table *t, const float *x, int64_t ldx, const int32_t *ids, int64_t n, int64_t f,
                          int64_t ahead, float *out);
void dk_call_probe_copy(const dk_table *t, const float *x, float *y, int64_t n);
float dk_call_probe_fma(const dk_table *t, int64_t rounds);
/* Returns at once: what a crossing costs. */
void dk_call_nothing(const dk_table *t, const float *x, float *y, int64_t n);

#endif

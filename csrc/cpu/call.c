//go:build cgo && amd64

#include "call.h"

void dk_call_spmm(const dk_table *t, const int64_t *row_ptr, const int32_t *col, const float *w, const int32_t *tile,
                  int64_t tile_ld, int64_t tiles, int64_t tile_rows, int64_t sources, int64_t group, int64_t panel,
                  float *pack, const float *rs, const float *cs, int64_t self_on, const int32_t *self_col, const float *self_w, const float *x, int64_t ldx, float *y,
                  int64_t ldy, int64_t f, int64_t lo, int64_t hi, int ep_on, const float *bias, const int32_t *ids,
                  uint64_t key, uint32_t threshold, int drop, float keep_scale, int act)
{
	const dk_epilogue ep = {bias, ids, key, threshold, drop, keep_scale, act};
	const dk_gather g = {row_ptr, col, w,    tile, tile_ld, tiles, tile_rows, sources, group, panel, pack,
	                     rs, cs, self_on, self_col,
	                     self_w,  x,   ldx,  y,    ldy,     f,     lo,    hi,    ep_on ? &ep : 0};
	t->spmm(&g);
}

void dk_call_spmmt(const dk_table *t, const int64_t *row_ptr, const int32_t *col, const float *w, const float *x,
                   int64_t ldx, float *y, int64_t ldy, int64_t n_dst, int64_t f, int64_t lo, int64_t hi)
{
	t->spmmt(row_ptr, col, w, x, ldx, y, ldy, n_dst, f, lo, hi);
}

void dk_call_sddmm(const dk_table *t, const int64_t *row_ptr, const int32_t *col, const float *x, int64_t ldx,
                   const float *y, int64_t ldy, float *out, int64_t f, int64_t lo, int64_t hi)
{
	t->sddmm(row_ptr, col, x, ldx, y, ldy, out, f, lo, hi);
}

void dk_call_gat(const dk_table *t, int part, const int64_t *row_ptr, const int32_t *col, const float *w,
                 int64_t self_on, const int32_t *self_col, const float *self_w, int64_t heads, int64_t d, float slope,
                 int drop, uint64_t key, uint32_t threshold, float keep_scale, const int32_t *near_ids,
                 const int32_t *far_ids, const float *near, int64_t ld_near, const float *far, int64_t ld_far,
                 const float *lse, int64_t ld_lse, const float *dot, int64_t ld_dot, const float *x, int64_t ldx,
                 const float *own, int64_t ld_own, float *y, int64_t ldy, float *out, int64_t ld_out, float *out2,
                 int64_t ld_out2, int64_t lo, int64_t hi, int ep_on, const float *bias, const int32_t *ids,
                 uint64_t ep_key, uint32_t ep_threshold, int ep_drop, float ep_keep_scale, int act)
{
	const dk_epilogue ep = {bias, ids, ep_key, ep_threshold, ep_drop, ep_keep_scale, act};
	const dk_attend g = {
		.row_ptr = row_ptr, .col = col, .w = w,
		.self_on = self_on, .self_col = self_col, .self_w = self_w,
		.heads = heads, .d = d, .slope = slope,
		.drop = drop, .key = key, .threshold = threshold, .keep_scale = keep_scale,
		.near_ids = near_ids, .far_ids = far_ids,
		.near = near, .ld_near = ld_near, .far = far, .ld_far = ld_far,
		.lse = lse, .ld_lse = ld_lse, .dot = dot, .ld_dot = ld_dot,
		.x = x, .ldx = ldx, .own = own, .ld_own = ld_own,
		.y = y, .ldy = ldy, .out = out, .ld_out = ld_out, .out2 = out2, .ld_out2 = ld_out2,
		.lo = lo, .hi = hi, .ep = ep_on ? &ep : 0,
	};
	(part == 0 ? t->gat : part == 1 ? t->gat_back_dst : t->gat_back_src)(&g);
}

void dk_call_edge_dropout(const dk_table *t, const int64_t *row_ptr, const int32_t *col, const float *w, float *out,
                          const int32_t *ids, uint64_t key, uint32_t threshold, int drop, float keep_scale, int64_t lo,
                          int64_t hi)
{
	const dk_epilogue d = {0, ids, key, threshold, drop, keep_scale, DK_IDENTITY};
	t->edge_dropout(row_ptr, col, w, out, &d, lo, hi);
}

void dk_call_forward(const dk_table *t, const float *bias, const int32_t *ids, uint64_t key, uint32_t threshold,
                     int drop, float keep_scale, int act, const float *x, int64_t ldx, float *y, int64_t ldy, int64_t f,
                     int64_t lo, int64_t hi)
{
	const dk_epilogue ep = {bias, ids, key, threshold, drop, keep_scale, act};
	t->forward(&ep, x, ldx, y, ldy, 0, f, lo, hi);
}

void dk_call_backward(const dk_table *t, const int32_t *ids, uint64_t key, uint32_t threshold, int drop,
                      float keep_scale, int act, const float *dy, int64_t lddy, const float *y, int64_t ldy, float *dx,
                      int64_t lddx, int64_t f, int64_t lo, int64_t hi)
{
	const dk_epilogue ep = {0, ids, key, threshold, drop, keep_scale, act};
	t->backward(&ep, dy, lddy, y, ldy, dx, lddx, f, lo, hi);
}

void dk_call_colsum(const dk_table *t, const float *x, int64_t ldx, float *out, int64_t f, int64_t lo, int64_t hi)
{
	t->colsum(x, ldx, out, f, lo, hi);
}

double dk_call_xent(const dk_table *t, const float *logits, int64_t ldl, float *grad, int64_t ldg,
                    const int32_t *labels, const float *class_w, float scale, int64_t f, int64_t lo, int64_t hi)
{
	return t->xent(logits, ldl, grad, ldg, labels, class_w, scale, f, lo, hi);
}

void dk_call_add(const dk_table *t, const float *a, int64_t lda, const float *b, int64_t ldb, float *y, int64_t ldy,
                 int64_t rows, int64_t f)
{
	t->add(a, lda, b, ldb, y, ldy, rows, f);
}

void dk_call_adam(const dk_table *t, float *p, int64_t ldp, const float *g, int64_t ldg, float *m, int64_t ldm,
                  float *v, int64_t ldv, int64_t rows, int64_t f, float lr_step, float inv_sqrt_bc2, float beta1,
                  float beta2, float one_beta1, float one_beta2, float eps, float l2, float decay, int decoupled)
{
	const dk_adam h = {lr_step, inv_sqrt_bc2, beta1, beta2, one_beta1, one_beta2, eps, l2, decay, decoupled};
	t->adam(p, ldp, g, ldg, m, ldm, v, ldv, rows, f, &h);
}

void dk_call_sgd(const dk_table *t, float *p, int64_t ldp, const float *g, int64_t ldg, float *m, int64_t ldm,
                 int64_t rows, int64_t f, float lr, float momentum, float l2, int first)
{
	const dk_sgd h = {lr, momentum, l2, first};
	t->sgd(p, ldp, g, ldg, m, ldm, rows, f, &h);
}

void dk_call_gather_rows(const dk_table *t, const float *x, int64_t ldx, const int32_t *ids, int64_t n, float *y,
                         int64_t ldy, int64_t f)
{
	t->gather_rows(x, ldx, ids, n, y, ldy, f);
}

void dk_call_scatter_rows(const dk_table *t, const float *x, int64_t ldx, const int32_t *ids, int64_t n, float *y,
                          int64_t ldy, int64_t f)
{
	t->scatter_rows(x, ldx, ids, n, y, ldy, f);
}

void dk_call_to_bf16(const dk_table *t, const float *x, int64_t ldx, uint16_t *y, int64_t rows, int64_t f)
{
	t->to_bf16(x, ldx, y, rows, f);
}

void dk_call_from_bf16(const dk_table *t, const uint16_t *x, float *y, int64_t ldy, int64_t rows, int64_t f)
{
	t->from_bf16(x, y, ldy, rows, f);
}

void dk_call_layer_norm(const dk_table *t, const float *x, int64_t ldx, const float *gamma, const float *beta,
                        float eps, float *y, int64_t ldy, float *stat, int64_t lds, int64_t rows, int64_t f)
{
	t->layer_norm(x, ldx, gamma, beta, eps, y, ldy, stat, lds, rows, f);
}

void dk_call_layer_norm_back(const dk_table *t, const float *dy, int64_t lddy, const float *x, int64_t ldx,
                             const float *stat, int64_t lds, const float *gamma, float *dx, int64_t lddx, float *dgamma,
                             float *dbeta, int64_t rows, int64_t f)
{
	t->layer_norm_back(dy, lddy, x, ldx, stat, lds, gamma, dx, lddx, dgamma, dbeta, rows, f);
}

void dk_call_col_moments(const dk_table *t, const float *x, int64_t ldx, float *mean, float *square, int64_t rows,
                         int64_t f)
{
	t->col_moments(x, ldx, mean, square, rows, f);
}

void dk_call_col_affine(const dk_table *t, const float *x, int64_t ldx, const float *y, int64_t ldy, const float *a,
                        const float *b, const float *d, float *out, int64_t ldo, int64_t rows, int64_t f)
{
	t->col_affine(x, ldx, y, ldy, a, b, d, out, ldo, rows, f);
}

void dk_call_col_dot(const dk_table *t, const float *a, int64_t lda, const float *b, int64_t ldb, float *out,
                     int64_t rows, int64_t f)
{
	t->col_dot(a, lda, b, ldb, out, rows, f);
}

double dk_call_dot(const dk_table *t, const float *a, int64_t lda, const float *b, int64_t ldb, int64_t rows, int64_t f)
{
	return t->dot(a, lda, b, ldb, rows, f);
}

void dk_call_add_scaled(const dk_table *t, const float *a, int64_t lda, const float *b, int64_t ldb, float k, float *y,
                        int64_t ldy, int64_t rows, int64_t f)
{
	t->add_scaled(a, lda, b, ldb, k, y, ldy, rows, f);
}

void dk_call_add_rows(const dk_table *t, const float *x, int64_t ldx, const int32_t *ids, int64_t rows, float *y,
                      int64_t ldy, int64_t f)
{
	t->add_rows(x, ldx, ids, rows, y, ldy, f);
}

void dk_call_head_dot(const dk_table *t, const float *x, int64_t ldx, const float *a, int64_t lda, float *y,
                      int64_t ldy, int64_t rows, int64_t h, int64_t d)
{
	t->head_dot(x, ldx, a, lda, y, ldy, rows, h, d);
}

void dk_call_head_outer_add(const dk_table *t, const float *g, int64_t ldg, const float *a, int64_t lda, float *x,
                            int64_t ldx, int64_t rows, int64_t h, int64_t d)
{
	t->head_outer_add(g, ldg, a, lda, x, ldx, rows, h, d);
}

void dk_call_head_dot_grad(const dk_table *t, const float *g, int64_t ldg, const float *x, int64_t ldx, float *da,
                           int64_t lda, int64_t rows, int64_t h, int64_t d)
{
	t->head_dot_grad(g, ldg, x, ldx, da, lda, rows, h, d);
}

void dk_call_head_mean(const dk_table *t, const float *x, int64_t ldx, float *y, int64_t ldy, int64_t rows, int64_t h,
                       int64_t d)
{
	t->head_mean(x, ldx, y, ldy, rows, h, d);
}

void dk_call_head_spread(const dk_table *t, const float *g, int64_t ldg, float *x, int64_t ldx, int64_t rows, int64_t h,
                         int64_t d)
{
	t->head_spread(g, ldg, x, ldx, rows, h, d);
}

void dk_call_spmm_max(const dk_table *t, const int64_t *row_ptr, const int32_t *col, const float *w, const float *x,
                      int64_t ldx, float *y, int64_t ldy, float *arg, int64_t lda, int64_t f, int64_t lo, int64_t hi)
{
	t->spmm_max(row_ptr, col, w, x, ldx, y, ldy, arg, lda, f, lo, hi);
}

void dk_call_spmm_max_back(const dk_table *t, const int64_t *row_ptr, const int32_t *col, const float *dy, int64_t lddy,
                           const float *arg, int64_t lda, float *dx, int64_t lddx, int64_t f, int64_t lo, int64_t hi)
{
	t->spmm_max_back(row_ptr, col, dy, lddy, arg, lda, dx, lddx, f, lo, hi);
}

double dk_call_bce(const dk_table *t, const float *l, int64_t ldl, float *grad, int64_t ldg, const int64_t *row_ptr,
                   const int32_t *col, const int32_t *mask, const float *pos_w, float scale, int64_t f, int64_t rows)
{
	return t->bce(l, ldl, grad, ldg, row_ptr, col, mask, pos_w, scale, f, rows);
}

void dk_call_gemm(const dk_table *t, int ta, int tb, int add, int64_t m, int64_t n, int64_t k, const float *a,
                  int64_t lda, const float *b, int64_t ldb, float *c, int64_t ldc)
{
	t->gemm(ta, tb, add, m, n, k, a, lda, b, ldb, c, ldc);
}

void dk_call_probe_gather(const dk_table *t, const float *x, int64_t ldx, const int32_t *ids, int64_t n, int64_t f,
                          int64_t ahead, float *out)
{
	t->probe_gather(x, ldx, ids, n, f, ahead, out);
}

void dk_call_probe_copy(const dk_table *t, const float *x, float *y, int64_t n) { t->probe_copy(x, y, n); }

float dk_call_probe_fma(const dk_table *t, int64_t rounds) { return t->probe_fma(rounds); }

void dk_call_nothing(const dk_table *t, const float *x, float *y, int64_t n)
{
	(void)t, (void)x, (void)y, (void)n;
}

/*
 * Runs every kernel's AVX-512 instance, emulated in plain C, beside its scalar
 * one on the same random operands and compares all of the outputs, padding too.
 * Prints what differed and returns 1.
 */
#include "dk.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 37, COLS = 53, TILE = 16, TILES = 4 };

static uint64_t state = 20240229; /* the seed */
static int compared, differed;

static uint64_t next(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return state >> 33;
}

static float value(void) { return (float)((double)next() / (1u << 30) - 1); }

static float *values(int64_t n)
{
	float *p = malloc((size_t)(n + 1) * sizeof *p);
	for (int64_t i = 0; i < n; i++)
		p[i] = value();
	return p;
}

static float *copy(const float *p, int64_t n)
{
	float *q = malloc((size_t)(n + 1) * sizeof *q);
	memcpy(q, p, (size_t)n * sizeof *q);
	return q;
}

/* tol is relative to the size of the terms, which are below about 1. */
static void same(const char *op, int64_t f, int variant, const float *got, const float *want, int64_t n, double tol)
{
	compared++;
	for (int64_t i = 0; i < n; i++) {
		const int nan = isnan(got[i]) && isnan(want[i]);
		if (!nan && !(got[i] == want[i] || fabs((double)got[i] - want[i]) <= tol * (1 + fabs((double)want[i])))) {
			printf("%s, width %ld, variant %d: value %ld is %.9g, scalar %.9g\n", op, (long)f, variant, (long)i,
			       got[i], want[i]);
			differed++;
			return;
		}
	}
}

static void gathers(const dk_table *a, const dk_table *b, int64_t f)
{
	int64_t row_ptr[ROWS + 1] = {0}, ld = f + 5;
	int32_t *col = malloc(ROWS * 2 * COLS * sizeof *col), tile[(TILES - 1) * ROWS];
	for (int v = 0; v < ROWS; v++) {
		int64_t e = row_ptr[v];
		for (int u = 0; u < COLS; u++)
			for (int k = 0; v % 7 != 2 && k < 2; k++)
				if (next() % 3 == 0)
					col[e++] = u;
		row_ptr[v + 1] = e;
		for (int t = 1; t < TILES; t++) {
			int32_t n = 0;
			while (row_ptr[v] + n < e && col[row_ptr[v] + n] < t * TILE)
				n++;
			tile[(t - 1) * ROWS + v] = n;
		}
	}
	const int64_t edges = row_ptr[ROWS];
	float *w = values(edges), *rs = values(ROWS), *cs = values(COLS), *sw = values(ROWS), *bias = values(f);
	float *x = values(COLS * ld), *y = values(ROWS * ld), *pack = values(TILES * TILE * (f + 16));
	int32_t self[ROWS], ids[ROWS];
	for (int v = 0; v < ROWS; v++)
		self[v] = v % 5 == 0 ? -1 : v, ids[v] = 7 * v;

	for (int k = 0; k < 64; k++) {
		const dk_epilogue ep = {bias, k & 1 ? ids : 0, 99, 0x60000000, k & 2, 1.6f, k % 5};
		dk_gather g = {.row_ptr = row_ptr, .col = col, .w = k & 1 ? w : 0, .tiles = 1, .group = 1, .panel = f,
		               .rs = k & 2 ? rs : 0, .cs = k & 4 ? cs : 0, .self_on = k >> 3 & 1, .self_col = k & 1 ? self : 0,
		               .self_w = k & 2 ? sw : 0, .x = x, .ldx = ld, .ldy = ld, .f = f, .lo = 1, .hi = ROWS - 1,
		               .ep = k & 16 ? &ep : 0};
		float *want = copy(y, ROWS * ld), *got = copy(y, ROWS * ld), *flat = copy(y, ROWS * ld);
		g.y = want;
		b->spmm(&g);
		g.y = flat;
		a->spmm(&g);
		if (k & 32) {
			g.tile = tile, g.tile_ld = ROWS, g.tiles = TILES, g.tile_rows = TILE, g.sources = COLS;
			g.group = 1 + (k & 1), g.panel = f > 64 ? 64 : f, g.pack = k & 2 ? pack : 0;
		}
		g.y = got;
		a->spmm(&g);
		same("spmm", f, k, got, want, ROWS * ld, 1e-4);
		same("spmm tiled against untiled", f, k, got, flat, ROWS * ld, 0);
		free(want), free(got), free(flat);
	}
	float *wa = copy(x, COLS * ld), *wb = copy(x, COLS * ld), *oa = values(edges), *ob = copy(oa, edges);
	for (int k = 0; k < 2; k++) {
		a->spmmt(row_ptr, col, k ? w : 0, y, ld, wa, ld, COLS, f, 2, ROWS);
		b->spmmt(row_ptr, col, k ? w : 0, y, ld, wb, ld, COLS, f, 2, ROWS);
		same("spmmt", f, k, wa, wb, COLS * ld, 1e-4);
		const dk_epilogue d = {0, k ? ids : 0, 7, 0x80000000, 1, 2, 0};
		a->edge_dropout(row_ptr, col, k ? w : 0, oa, &d, 1, ROWS);
		b->edge_dropout(row_ptr, col, k ? w : 0, ob, &d, 1, ROWS);
		same("edge_dropout", f, k, oa, ob, edges, 0);
	}
	a->sddmm(row_ptr, col, x, ld, y, ld, oa, f, 1, ROWS);
	b->sddmm(row_ptr, col, x, ld, y, ld, ob, f, 1, ROWS);
	same("sddmm", f, 0, oa, ob, edges, 1e-4);
	free(col), free(w), free(rs), free(cs), free(sw), free(bias), free(x), free(y), free(pack);
	free(wa), free(wb), free(oa), free(ob);
}

static void dense(const dk_table *a, const dk_table *b, int64_t f)
{
	const int64_t ld = f + 3, n = ROWS * ld;
	float *x = values(n), *y = values(n), *bias = values(f), *cw = values(f);
	int32_t labels[ROWS], ids[ROWS];
	for (int v = 0; v < ROWS; v++)
		labels[v] = v % 6 == 1 ? -1 : (int32_t)(next() % (uint64_t)f), ids[v] = ROWS - 1 - v;
	for (int v = 0; v < 8; v++) /* large, small and strange values */
		x[v * ld] = (const float[]){0, -0.0f, 1e-8f, 30, -30, 200, -200, NAN}[v];
	for (int k = 0; k < 20; k++) {
		const dk_epilogue ep = {k & 1 ? bias : 0, k & 2 ? ids : 0, 5, 0x40000000, k / 10, 4.0f / 3, k % 5};
		float *p = copy(y, n), *q = copy(y, n);
		a->forward(&ep, x, ld, p, ld, 0, f, 0, ROWS);
		b->forward(&ep, x, ld, q, ld, 0, f, 0, ROWS);
		same("forward", f, k, p, q, n, 1e-6);
		float *r = copy(x, n), *s = copy(x, n);
		a->backward(&ep, y, ld, p, ld, r, ld, f, 0, ROWS);
		b->backward(&ep, y, ld, p, ld, s, ld, f, 0, ROWS);
		same("backward", f, k, r, s, n, 1e-6);
		free(p), free(q), free(r), free(s);
	}
	float *p = copy(y, n), *q = copy(y, n), *m1 = values(n), *m2 = copy(m1, n), *v1 = values(n), *v2;
	for (int64_t i = 0; i < n; i++)
		v1[i] = fabsf(v1[i]);
	v2 = copy(v1, n);
	a->colsum(y, ld, p, f, 3, ROWS);
	b->colsum(y, ld, q, f, 3, ROWS);
	same("colsum", f, 0, p, q, n, 0);
	for (int k = 0; k < 2; k++) {
		const float la = (float)a->xent(y, ld, p, ld, labels, k ? cw : 0, 0.3f, f, 0, ROWS);
		const float lb = (float)b->xent(y, ld, q, ld, labels, k ? cw : 0, 0.3f, f, 0, ROWS);
		same("xent", f, k, p, q, n, 1e-6);
		same("xent loss", f, k, &la, &lb, 1, 1e-5);
	}
	a->add(x, ld, y, ld, p, ld, ROWS, f);
	b->add(x, ld, y, ld, q, ld, ROWS, f);
	same("add", f, 0, p, q, n, 0);
	memcpy(p, y, (size_t)n * 4), memcpy(q, y, (size_t)n * 4);
	for (int k = 0; k < 2; k++) {
		const dk_adam h = {0.01f, 1.5f, 0.9f, 0.999f, 0.1f, 0.001f, 1e-8f, 0.1f, 0.99f, k};
		a->adam(p, ld, y, ld, m1, ld, v1, ld, ROWS, f, &h);
		b->adam(q, ld, y, ld, m2, ld, v2, ld, ROWS, f, &h);
		const dk_sgd s = {0.1f, 0.9f, 0.01f, k};
		a->sgd(p, ld, y, ld, k ? m1 : 0, ld, ROWS, f, &s);
		b->sgd(q, ld, y, ld, k ? m2 : 0, ld, ROWS, f, &s);
		same("optimiser", f, k, p, q, n, 1e-4);
		same("optimiser m", f, k, m1, m2, n, 1e-5);
		same("optimiser v", f, k, v1, v2, n, 1e-5);
	}
	a->gather_rows(x, ld, ids, ROWS, p, ld, f), b->gather_rows(x, ld, ids, ROWS, q, ld, f);
	a->scatter_rows(y, ld, ids, 9, p, ld, f), b->scatter_rows(y, ld, ids, 9, q, ld, f);
	same("rows", f, 0, p, q, n, 1e-4);
	uint16_t *ha = malloc(ROWS * (size_t)f * 2), *hb = malloc(ROWS * (size_t)f * 2);
	a->to_bf16(x, ld, ha, ROWS, f), b->to_bf16(x, ld, hb, ROWS, f);
	a->from_bf16(ha, p, ld, ROWS, f), b->from_bf16(hb, q, ld, ROWS, f);
	same("bf16", f, 0, p, q, n, 1e-4);
	float *c = values(f * ld), *d = copy(c, f * ld);
	for (int k = 0; k < 3; k++) { /* ROWS x f by f x f; times transposed; f x ROWS by ROWS x f */
		const int64_t m = k == 2 ? f : ROWS, inner = k == 2 ? ROWS : f;
		float *o1 = values(m * ld), *o2 = copy(o1, m * ld);
		a->gemm(k == 2, k == 1, 0, m, f, inner, y, ld, k == 2 ? m1 : d, ld, o1, ld);
		b->gemm(k == 2, k == 1, 0, m, f, inner, y, ld, k == 2 ? m1 : d, ld, o2, ld);
		same("gemm", f, k, o1, o2, m * ld, 1e-4);
		a->gemm(k == 2, k == 1, 1, m, f, inner, y, ld, k == 2 ? m1 : d, ld, o1, ld);
		b->gemm(k == 2, k == 1, 1, m, f, inner, y, ld, k == 2 ? m1 : d, ld, o2, ld);
		same("gemm added", f, k, o1, o2, m * ld, 2e-4);
		free(o1), free(o2);
	}
	free(x), free(y), free(bias), free(cw), free(p), free(q), free(m1), free(m2), free(v1), free(v2);
	free(ha), free(hb), free(c), free(d);
}

/* A graph of ROWS rows and as many sources, some rows empty, one long. */
static int32_t *graph(int64_t *row_ptr)
{
	int32_t *col = malloc(ROWS * 6 * ROWS * sizeof *col);
	for (int v = 0; v < ROWS; v++) {
		int64_t e = row_ptr[v];
		for (int u = 0; u < ROWS; u++)
			for (int k = 0; v % 7 != 2 && k < (v == 20 ? 6 : 2); k++)
				if (v == 20 || next() % 3 == 0)
					col[e++] = u;
		row_ptr[v + 1] = e;
	}
	return col;
}

static void attention(const dk_table *a, const dk_table *b, int64_t heads, int64_t d)
{
	int64_t row_ptr[ROWS + 1] = {0};
	int32_t *col = graph(row_ptr), self[ROWS], ids[ROWS];
	const int64_t f = heads * d, ld = f + 5, lh = heads + 3, n = ROWS * ld, m = ROWS * lh;
	float *w = values(row_ptr[ROWS]), *sw = values(ROWS), *x = values(n), *own = values(n), *y = values(n);
	float *near = values(m), *far = values(m), *lse = values(m), *dot = values(m), *bias = values(f);
	for (int64_t e = 0; e < row_ptr[ROWS]; e++)
		w[e] = e % 5 == 0 ? 0 : fabsf(w[e]);
	for (int v = 0; v < ROWS; v++)
		self[v] = v % 5 == 0 ? -1 : v, ids[v] = 7 * v - 20, sw[v] = v % 4 == 1 ? 0 : fabsf(sw[v]);
	for (int k = 0; k < 32; k += 3) {
		const dk_epilogue ep = {bias, ids, 99, 0x60000000, k & 2, 1.6f, k % 5};
		dk_attend g = {.row_ptr = row_ptr, .col = col, .w = k & 1 ? w : 0, .self_on = k >> 1 & 1,
		               .self_col = k & 4 ? self : 0, .self_w = k & 8 ? sw : 0, .heads = heads, .d = d, .slope = 0.2f,
		               .drop = k >> 2 & 1, .key = 5, .threshold = 0x70000000, .keep_scale = 1.8f,
		               .near_ids = k & 8 ? ids : 0, .far_ids = k & 16 ? ids : 0, .near = near, .ld_near = lh, .far = far,
		               .ld_far = lh, .lse = lse, .ld_lse = lh, .dot = dot, .ld_dot = lh, .x = x, .ldx = ld, .own = own,
		               .ld_own = ld, .ldy = ld, .ld_out = lh, .ld_out2 = lh, .lo = 1, .hi = ROWS - 1};
		for (int part = 0; part < 3; part++) {
			float *wide[2], *narrow[2], *second[2];
			for (int i = 0; i < 2; i++) {
				const dk_table *t = i ? b : a;
				g.y = wide[i] = copy(y, n), g.out = narrow[i] = copy(lse, m), g.out2 = second[i] = copy(lse, m);
				g.ep = part == 0 && k & 16 ? &ep : 0;
				(part == 0 ? t->gat : part == 1 ? t->gat_back_dst : t->gat_back_src)(&g);
			}
			const char *name = (const char *[]){"gat", "gat_back_dst", "gat_back_src"}[part];
			same(name, f, k, wide[0], wide[1], n, 1e-4);
			same(name, f, k, narrow[0], narrow[1], m, 1e-3); /* differences of long sums */
			same(name, f, k, second[0], second[1], m, 1e-3);
			for (int i = 0; i < 2; i++)
				free(wide[i]), free(narrow[i]), free(second[i]);
		}
	}
	float *v1 = values(heads * (d + 2)), *v2 = copy(v1, heads * (d + 2)), *n1 = copy(near, m), *n2 = copy(near, m);
	float *y1 = copy(y, n), *y2 = copy(y, n);
	a->head_dot(x, ld, v1, d + 2, n1, lh, ROWS, heads, d), b->head_dot(x, ld, v1, d + 2, n2, lh, ROWS, heads, d);
	same("head_dot", f, 0, n1, n2, m, 1e-4);
	a->head_outer_add(near, lh, v1, d + 2, y1, ld, ROWS, heads, d);
	b->head_outer_add(near, lh, v1, d + 2, y2, ld, ROWS, heads, d);
	same("head_outer_add", f, 0, y1, y2, n, 1e-5);
	a->head_dot_grad(near, lh, x, ld, v1, d + 2, ROWS, heads, d);
	b->head_dot_grad(near, lh, x, ld, v2, d + 2, ROWS, heads, d);
	same("head_dot_grad", f, 0, v1, v2, heads * (d + 2), 1e-4);
	a->head_mean(x, ld, y1, ld, ROWS, heads, d), b->head_mean(x, ld, y2, ld, ROWS, heads, d);
	same("head_mean", f, 0, y1, y2, n, 1e-5);
	a->head_spread(x, ld, y1, ld, ROWS, heads, d), b->head_spread(x, ld, y2, ld, ROWS, heads, d);
	same("head_spread", f, 0, y1, y2, n, 1e-5);
	free(col), free(w), free(sw), free(x), free(own), free(y), free(near), free(far), free(lse), free(dot), free(bias);
	free(v1), free(v2), free(n1), free(n2), free(y1), free(y2);
}

static void others(const dk_table *a, const dk_table *b, int64_t f)
{
	int64_t row_ptr[ROWS + 1] = {0};
	int32_t *col = graph(row_ptr), ids[ROWS];
	const int64_t ld = f + 3, n = ROWS * ld;
	float *w = values(row_ptr[ROWS]), *x = values(n), *y = values(n), *p = copy(y, n), *q = copy(y, n);
	float *r = values(n), *s = copy(r, n), *c1 = values(f), *c2 = values(f), *c3 = values(f), *s1 = values(2 * ROWS);
	float *s2 = copy(s1, 2 * ROWS), *d1 = copy(c1, f), *d2 = copy(c1, f), *e1 = copy(c1, f), *e2 = copy(c1, f);
	for (int v = 0; v < ROWS; v++)
		ids[v] = v % 4 - 1;
	for (int k = 0; k < 2; k++) {
		a->spmm_max(row_ptr, col, k ? w : 0, x, ld, p, ld, k ? r : 0, ld, f, 1, ROWS);
		b->spmm_max(row_ptr, col, k ? w : 0, x, ld, q, ld, k ? s : 0, ld, f, 1, ROWS);
		same("spmm_max", f, k, p, q, n, 0);
	}
	compared++;
	if (memcmp(r, s, (size_t)n * 4) != 0)
		printf("spmm_max, width %ld: the arguments differ\n", (long)f), differed++;
	a->spmm_max_back(row_ptr, col, y, ld, r, ld, p, ld, f, 1, ROWS);
	b->spmm_max_back(row_ptr, col, y, ld, s, ld, q, ld, f, 1, ROWS);
	same("spmm_max_back", f, 0, p, q, n, 1e-5);
	a->layer_norm(x, ld, c1, c2, 1e-3f, p, ld, s1, 2, ROWS, f), b->layer_norm(x, ld, c1, c2, 1e-3f, q, ld, s2, 2, ROWS, f);
	same("layer_norm", f, 0, p, q, n, 1e-4);
	same("layer_norm", f, 1, s1, s2, 2 * ROWS, 1e-4);
	a->layer_norm_back(y, ld, x, ld, s2, 2, c1, p, ld, d1, e1, ROWS, f);
	b->layer_norm_back(y, ld, x, ld, s2, 2, c1, q, ld, d2, e2, ROWS, f);
	same("layer_norm_back", f, 0, p, q, n, 1e-3);
	same("layer_norm_back", f, 1, d1, d2, f, 1e-3);
	same("layer_norm_back", f, 2, e1, e2, f, 1e-4);
	a->col_moments(x, ld, d1, e1, ROWS, f), b->col_moments(x, ld, d2, e2, ROWS, f);
	same("col_moments", f, 0, d1, d2, f, 1e-5);
	same("col_moments", f, 1, e1, e2, f, 1e-4);
	for (int k = 0; k < 2; k++) {
		a->col_affine(x, ld, k ? y : 0, ld, c1, c2, c3, p, ld, ROWS, f);
		b->col_affine(x, ld, k ? y : 0, ld, c1, c2, c3, q, ld, ROWS, f);
		same("col_affine", f, k, p, q, n, 1e-5);
	}
	a->col_dot(x, ld, y, ld, d1, ROWS, f), b->col_dot(x, ld, y, ld, d2, ROWS, f);
	same("col_dot", f, 0, d1, d2, f, 1e-4);
	const float da = (float)a->dot(x, ld, y, ld, ROWS, f), db = (float)b->dot(x, ld, y, ld, ROWS, f);
	same("dot", f, 0, &da, &db, 1, 1e-3);
	a->add_scaled(x, ld, y, ld, 0.7f, p, ld, ROWS, f), b->add_scaled(x, ld, y, ld, 0.7f, q, ld, ROWS, f);
	a->add_rows(x, ld, ids, ROWS, p, ld, f), b->add_rows(x, ld, ids, ROWS, q, ld, f);
	same("add_rows", f, 0, p, q, n, 1e-4);
	/* Rows list every third class, the first twice. */
	int64_t listed[ROWS + 1] = {0};
	int32_t *classes = malloc((size_t)(ROWS * (f + 1)) * sizeof *classes);
	for (int v = 0; v < ROWS; v++) {
		int64_t e = listed[v];
		for (int32_t c = v % 3; v % 5 != 1 && c < f; c += 3) {
			classes[e++] = c;
			if (c == v % 3)
				classes[e++] = c;
		}
		listed[v + 1] = e;
	}
	for (int64_t i = 0; i < n; i++)
		x[i] *= i % 7 == 0 ? 100 : 3;
	for (int k = 0; k < 2; k++) {
		const float la = (float)a->bce(x, ld, p, ld, listed, classes, ids, k ? c3 : 0, 0.3f, f, ROWS);
		const float lb = (float)b->bce(x, ld, q, ld, listed, classes, ids, k ? c3 : 0, 0.3f, f, ROWS);
		same("bce", f, k, p, q, n, 1e-6);
		same("bce loss", f, k, &la, &lb, 1, 1e-5);
	}
	free(col), free(w), free(x), free(y), free(p), free(q), free(r), free(s), free(c1), free(c2), free(c3), free(classes);
	free(s1), free(s2), free(d1), free(d2), free(e1), free(e2);
}

int main(void)
{
	dk_table a, b;
	DK_FILL(&a, avx512);
	DK_FILL(&b, scalar);
	const int64_t widths[] = {1, 7, 8, 16, 17, 41, 64, 130};
	for (unsigned i = 0; i < sizeof widths / sizeof *widths; i++) {
		gathers(&a, &b, widths[i]);
		dense(&a, &b, widths[i]);
		others(&a, &b, widths[i]);
	}
	const int64_t heads[][2] = {{1, 1}, {1, 41}, {1, 130}, {3, 7}, {8, 8}, {4, 16}, {16, 16}, {20, 2}, {2, 100}, {37, 1}};
	for (unsigned i = 0; i < sizeof heads / sizeof *heads; i++)
		attention(&a, &b, heads[i][0], heads[i][1]);
	printf("%d comparisons, %d differ\n", compared, differed);
	return differed > 0;
}

// A library that looks like cuBLAS and computes on the emulated device of the tests, whose
// addresses are those of the host. It is as strict as the reference reads: matrices are by
// columns, what is undefined there is refused here with a line on stderr. Products run
// where the emulated device gets to them, on the handle's stream.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef FAKE_CREATE
#define FAKE_CREATE 0
#endif
#ifndef FAKE_GEMM
#define FAKE_GEMM 0
#endif
#ifndef FAKE_WORKSPACE
#define FAKE_WORKSPACE 0
#endif

enum { ALLOC_FAILED = 3, INVALID = 7, INTERNAL = 14, UNSUPPORTED = 15 };

#ifndef FAKE_REAL
const int dorylus_cublas_emulated = 1;
#endif

struct driver {
  int (*launch)(void *stream, void (*fn)(void *), void *data);
  int (*alloc)(uint64_t *p, size_t n);
  int (*free)(uint64_t p);
  int (*range)(uint64_t *base, size_t *n, uint64_t p);
  int (*current)(void **context);
};

static int look(struct dl_phdr_info *info, size_t size, void *out) {
  (void)size;
  void *l = info->dlpi_name && info->dlpi_name[0] ? dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
  if (!l) return 0;
  if (!dlsym(l, "dorylus_cuda_emulated_device")) {
    dlclose(l);
    return 0;
  }
  struct driver *d = out;
  d->launch = (int (*)(void *, void (*)(void *), void *))dlsym(l, "cuLaunchHostFunc");
  d->alloc = (int (*)(uint64_t *, size_t))dlsym(l, "cuMemAlloc_v2");
  d->free = (int (*)(uint64_t))dlsym(l, "cuMemFree_v2");
  d->range = (int (*)(uint64_t *, size_t *, uint64_t))dlsym(l, "cuMemGetAddressRange_v2");
  d->current = (int (*)(void **))dlsym(l, "cuCtxGetCurrent");
  return 1;
}

struct handle {
  uint32_t alive;
  struct driver drv;
  void *context, *stream;
  char *workspace;
  size_t bytes;
  uint64_t own; // what a real library takes of the device for itself
  int math, atomics, products;
  struct handle *before;
};

static struct handle *handles; // all there ever were

static int refuse(int status, const char *why) {
  fprintf(stderr, "fake cuBLAS: %s\n", why);
  return status;
}

static const char *wrong(struct handle *h) {
  if (!h || h->alive != 0x626c6173) return "no handle, or one that was destroyed";
  void *now = NULL;
  if (h->drv.current(&now) || now != h->context) return "the handle's context is not current";
  return NULL;
}

#define CHECK(h)                       \
  do {                                 \
    const char *why = wrong(h);        \
    if (why) return refuse(1, why);    \
  } while (0)

int cublasCreate_v2(struct handle **out) {
  if (FAKE_CREATE) return FAKE_CREATE;
  struct handle *h = calloc(1, sizeof *h);
  if (!h || !dl_iterate_phdr(look, &h->drv) || h->drv.current(&h->context) || !h->context || h->drv.alloc(&h->own, 4096)) {
    free(h);
    return refuse(1, "no emulated device, or no context is current");
  }
  for (struct handle *x = handles; x; x = x->before) {
    uint64_t base;
    size_t size;
    if (x->alive && h->drv.range(&base, &size, x->own)) return refuse(INTERNAL, "a handle was not destroyed before its context was released");
  }
  h->alive = 0x626c6173;
  h->before = handles;
  *out = handles = h;
  return 0;
}

int cublasDestroy_v2(struct handle *h) {
  CHECK(h);
  if (h->drv.free(h->own)) return INTERNAL;
  h->alive = 0; // and is kept, so that later uses are found
  return 0;
}

int cublasSetStream_v2(struct handle *h, void *stream) {
  CHECK(h);
  h->stream = stream;
  h->workspace = NULL; // as the reference says
  return 0;
}

#ifndef OMIT_cublasSetWorkspace_v2
int cublasSetWorkspace_v2(struct handle *h, void *p, size_t n) {
  CHECK(h);
  if (FAKE_WORKSPACE) return FAKE_WORKSPACE;
  uint64_t base;
  size_t size;
  if ((uintptr_t)p % 256 || n < 4u << 20 || h->drv.range(&base, &size, (uintptr_t)p) || (uintptr_t)p + n > base + size)
    return refuse(INVALID, "the workspace is too small, not on 256 bytes, or no device memory");
  h->workspace = p;
  h->bytes = n;
  return 0;
}
#endif

int cublasSetMathMode(struct handle *h, int mode) {
  CHECK(h);
  h->math = mode;
  return mode < 0 || mode > 3 ? INVALID : 0;
}

int cublasSetAtomicsMode(struct handle *h, int mode) {
  CHECK(h);
  h->atomics = mode;
  return mode < 0 || mode > 1 ? INVALID : 0;
}

int cublasGetProperty(int which, int *value) {
  static const int version[] = {12, 8, 4};
  if (which < 0 || which > 2) return INVALID;
  *value = version[which];
  return 0;
}

#ifndef OMIT_cublasGetStatusString
const char *cublasGetStatusString(int status) {
  switch (status) {
  case 1: return "the library was not initialized";
  case 3: return "the resource allocation failed";
  case 7: return "an unsupported value or parameter was passed to the function";
  case 13: return "the function failed to launch on the GPU";
  }
  return "unrecognized status";
}
#endif

struct job {
  int ta, tb, m, n, k, lda, ldb, ldc, compute;
  float alpha, beta;
  const float *a, *b;
  float *c;
  char *workspace;
  size_t bytes;
};

// Rounds to the nearest of TF32 or bfloat16.
static float operand(float x, int compute) {
  uint32_t b, cut = compute == 77 ? 13 : compute == 75 ? 16 : 0;
  memcpy(&b, &x, 4);
  if (!cut || (b & 0x7f800000) == 0x7f800000) return x;
  b = (b + (1u << (cut - 1)) - 1 + (b >> cut & 1)) & ~((1u << cut) - 1);
  memcpy(&x, &b, 4);
  return x;
}

static void run(void *data) {
  struct job *j = data;
  memset(j->workspace, 0xff, 4096);
  memset(j->workspace + j->bytes - 4096, 0xff, 4096);
  for (int64_t c = 0; c < j->n; c++)
    for (int64_t r = 0; r < j->m; r++) {
      float sum = 0;
      for (int64_t l = 0; l < j->k; l++) {
        const float a = j->ta ? j->a[l + r * j->lda] : j->a[r + l * j->lda];
        const float b = j->tb ? j->b[c + l * j->ldb] : j->b[l + c * j->ldb];
        sum += operand(a, j->compute) * operand(b, j->compute);
      }
      float *to = &j->c[r + c * j->ldc];
      *to = j->beta == 0 ? j->alpha * sum : j->alpha * sum + j->beta * *to;
    }
  free(j);
}

// Whether rows x cols values by columns lie within one allocation.
static int inside(struct handle *h, const void *p, int64_t rows, int64_t cols, int64_t ld) {
  uint64_t base;
  size_t size;
  if (!p || h->drv.range(&base, &size, (uintptr_t)p)) return 0;
  return (uintptr_t)p + 4 * ((cols - 1) * ld + rows) <= base + size;
}

int cublasGemmEx(struct handle *h, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int atype, int lda,
                 const void *b, int btype, int ldb, const void *beta, void *c, int ctype, int ldc, int compute, int algo) {
  CHECK(h);
  h->products++;
  if (FAKE_GEMM && h->products >= 3) return FAKE_GEMM;
  if (ta < 0 || ta > 1 || tb < 0 || tb > 1) return refuse(INVALID, "op is not N or T");
  if (m < 1 || n < 1 || k < 1) return refuse(INVALID, "a size below 1, which this library has no need to take");
  const int ar = ta ? k : m, ac = ta ? m : k, br = tb ? n : k, bc = tb ? k : n;
  if (lda < ar || ldb < br || ldc < m) return refuse(INVALID, "a leading dimension below the rows");
  if (atype || btype || ctype || (compute != 68 && compute != 75 && compute != 77) || algo != -1)
    return refuse(UNSUPPORTED, "types other than CUDA_R_32F, an unknown compute type or algorithm");
  if (!alpha || !beta) return refuse(INVALID, "no scalar");
  if (h->math || h->atomics) return refuse(UNSUPPORTED, "modes that allow other bits");
  if (!h->stream || !h->workspace) return refuse(INTERNAL, "no stream, or no workspace after it");
  if (!inside(h, a, ar, ac, lda) || !inside(h, b, br, bc, ldb) || !inside(h, c, m, n, ldc))
    return refuse(INTERNAL, "an operand is not in device memory");
  struct job *j = malloc(sizeof *j);
  if (!j) return ALLOC_FAILED;
  *j = (struct job){ta, tb, m, n, k, lda, ldb, ldc, compute, *(const float *)alpha, *(const float *)beta, a, b, c, h->workspace, h->bytes};
  return h->drv.launch(h->stream, run, j) ? 13 : 0;
}

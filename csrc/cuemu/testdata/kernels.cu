// Kernels that the emulated device's own tests run; some are wrong on purpose.
#include "../host.h"

DK_KERNEL(dk_axpy, (float a, const float *x, float *y, int64_t n)) {
  int64_t i = int64_t{dk_bid()} * dk_bdim() + dk_tid();
  if (i < n) y[i] = dk_fma(a, x[i], y[i]);
}

DK_KERNEL(dk_types, (int32_t i, int64_t l, uint64_t u, float f, uint64_t *out)) {
  out[0] = static_cast<uint64_t>(i);
  out[1] = static_cast<uint64_t>(l);
  out[2] = u;
  out[3] = static_cast<uint64_t>(f);
}

DK_KERNEL(dk_nothing, ()) {}

// out[b] = sum of block b's 256 values.
DK_KERNEL(dk_block_sum, (const float *x, float *out)) {
  DK_SHARED(float, part, 256);
  const int t = dk_tid();
  part[t] = x[dk_bid() * 256 + t];
  dk_sync();
  for (int d = 128; d > 0; d /= 2) {
    if (t < d) part[t] += part[t + d];
    dk_sync();
  }
  if (t == 0) out[dk_bid()] = part[0];
}

// The same without the first barrier.
DK_KERNEL(dk_block_sum_wrong, (const float *x, float *out)) {
  DK_SHARED(float, part, 256);
  const int t = dk_tid();
  part[t] = x[dk_bid() * 256 + t];
  for (int d = 128; d > 0; d /= 2) {
    if (t < d) part[t] += part[t + d];
    dk_sync();
  }
  if (t == 0) out[dk_bid()] = part[0];
}

DK_KERNEL(dk_half_barrier, (int32_t first)) {
  if (dk_tid() >= first) dk_sync();
}

DK_KERNEL(dk_two_barriers, (int32_t first)) {
  if (dk_tid() >= first)
    dk_sync();
  else
    dk_sync();
}

DK_KERNEL(dk_early_exit, (int32_t n)) {
  if (dk_tid() >= n) return;
  dk_sync();
}

// What shared memory holds before anybody wrote to it.
DK_KERNEL(dk_stale, (float *out)) {
  DK_SHARED(float, s, 4);
  if (dk_tid() == 0) {
    out[dk_bid()] = s[3];
    s[3] = 1;
  }
}

// Sums over the warp by butterflies, over groups of 8 beside each other, and shifts.
DK_KERNEL(dk_shuffles, (const float *x, float *all, float *eight, float *shift, int32_t *ballot)) {
  const int l = dk_tid();
  float v = x[l], w = x[l];
  for (int m = 16; m > 0; m /= 2) v += dk_shfl_xor(0xffffffffu, v, m);
  const uint32_t group = 0xffu << (l & 24);
  if (l & 8) /* groups need not move in step */
    for (int m = 4; m > 0; m /= 2) w += dk_shfl_xor(group, w, m);
  else
    for (int m = 4; m > 0; m /= 2) w += dk_shfl_xor(group, w, m);
  dk_syncwarp(0xffffffffu);
  all[l] = v;
  eight[l] = w + dk_shfl(group, 100 * x[l], (l & 24) + 3);
  shift[l] = dk_shfl_down(0xffffffffu, x[l], 5);
  ballot[l] = static_cast<int32_t>(dk_ballot(0xffffffffu, l % 3 == 0));
}

// mask names lanes that never come.
DK_KERNEL(dk_lonely, (float *out)) {
  if (dk_lane() < 16) out[dk_tid()] = dk_shfl(0xffffffffu, 1.0f, 0);
}

DK_KERNEL(dk_outside_mask, (float *out)) { out[dk_tid()] = dk_shfl(0xffffffffu << 1, 1.0f, 0); }

// Reads from a lane outside the mask.
DK_KERNEL(dk_stranger, (float *out)) {
  if (dk_lane() < 16) out[dk_tid()] = dk_shfl(0xffffu, 1.0f, 20);
}

DK_KERNEL(dk_write, (float *p, int64_t i)) {
  if (dk_tid() == dk_bdim() - 1) p[i] = 1;
}

DK_KERNEL(dk_read, (const float *p, int64_t i, float *out)) { out[0] = p[i]; }

struct alignas(16) Four {
  float v[4];
};
DK_KERNEL(dk_four, (const float *p, int64_t i, float *out)) { out[0] = dk_ldg(reinterpret_cast<const Four *>(p + i)).v[1]; }

static int deep(volatile int *n) {
  volatile char here[4096];
  here[0] = static_cast<char>(*n);
  *n = *n + 1;
  return *n > 1 << 20 ? here[0] : deep(n) + here[0];
}
DK_KERNEL(dk_deep, (int32_t *out)) {
  volatile int n = 0;
  out[0] = deep(&n);
}

DK_KERNEL(dk_divide, (int32_t a, int32_t b, int32_t *out)) { out[0] = a / b; }

DK_KERNEL(dk_dynamic, (float *out, int32_t n)) {
  DK_DYN_SHARED(float, s);
  for (int i = dk_tid(); i < n; i += dk_bdim()) s[i] = static_cast<float>(i);
  dk_sync();
  if (dk_tid() == 0)
    for (int i = 0; i < n; i++) out[i] = s[n - 1 - i];
}

// The order in which threads ran.
DK_KERNEL(dk_order, (int32_t *next, int32_t *out)) { out[dk_atomic_add(next, 1)] = dk_bid() * dk_bdim() + dk_tid(); }

// d = a·b for one 16x8 tile, by one warp; row-major inputs.
DK_KERNEL(dk_mma_tf, (const float *a, const float *b, float *d)) {
  const int g = dk_lane() / 4, t = dk_lane() % 4;
  uint32_t fa[4] = {dk_f2tf(a[g * 8 + t]), dk_f2tf(a[(g + 8) * 8 + t]), dk_f2tf(a[g * 8 + t + 4]), dk_f2tf(a[(g + 8) * 8 + t + 4])};
  uint32_t fb[2] = {dk_f2tf(b[t * 8 + g]), dk_f2tf(b[(t + 4) * 8 + g])};
  float f[4] = {};
  dk_mma_tf32_m16n8k8(f, fa, fb);
  d[g * 8 + 2 * t] = f[0];
  d[g * 8 + 2 * t + 1] = f[1];
  d[(g + 8) * 8 + 2 * t] = f[2];
  d[(g + 8) * 8 + 2 * t + 1] = f[3];
}

static uint32_t pair(float lo, float hi) { return dk_f2bf(lo) | uint32_t{dk_f2bf(hi)} << 16; }

DK_KERNEL(dk_mma_bf, (const float *a, const float *b, float *d)) {
  const int g = dk_lane() / 4, t = dk_lane() % 4 * 2;
  auto ra = [&](int i, int k) { return pair(a[i * 16 + k], a[i * 16 + k + 1]); };
  auto rb = [&](int k) { return pair(b[k * 8 + g], b[(k + 1) * 8 + g]); };
  uint32_t fa[4] = {ra(g, t), ra(g + 8, t), ra(g, t + 8), ra(g + 8, t + 8)};
  uint32_t fb[2] = {rb(t), rb(t + 8)};
  float f[4] = {};
  dk_mma_bf16_m16n8k16(f, fa, fb);
  d[g * 8 + t] = f[0];
  d[g * 8 + t + 1] = f[1];
  d[(g + 8) * 8 + t] = f[2];
  d[(g + 8) * 8 + t + 1] = f[3];
}

/* What the lanes of a warp do together, once all of a mask have arrived. */
#include "../host.h"

namespace dk {

void meet(void *const *, uint32_t) {}

void vote(void *const lane[32], uint32_t mask) {
  uint32_t yes = 0;
  for (int i = 0; i < 32; i++)
    if (mask >> i & 1 && static_cast<Vote *>(lane[i])->yes) yes |= uint32_t{1} << i;
  for (int i = 0; i < 32; i++)
    if (mask >> i & 1) static_cast<Vote *>(lane[i])->out = yes;
}

static float tf32(uint32_t bits) {
  bits &= ~uint32_t{0x1fff};
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}

/* d(i,j) += sum over k of a(i,k)·b(k,j), with the fragments' places as in host.h. */
template <int K, class A, class B> static void product(void *const lane[32], A a, B b) {
  auto frag = [&](int l) { return static_cast<Mma *>(lane[l]); };
  float sum[16][8];
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 8; j++) {
      sum[i][j] = frag((i % 8) * 4 + j / 2)->d[(i / 8) * 2 + j % 2];
      for (int k = 0; k < K; k++) sum[i][j] += a(frag, i, k) * b(frag, k, j);
    }
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 8; j++) frag((i % 8) * 4 + j / 2)->d[(i / 8) * 2 + j % 2] = sum[i][j];
}

void mma_tf32(void *const lane[32], uint32_t) {
  product<8>(
      lane, [](auto frag, int i, int k) { return tf32(frag((i % 8) * 4 + k % 4)->a[(k / 4) * 2 + i / 8]); },
      [](auto frag, int k, int j) { return tf32(frag(j * 4 + k % 4)->b[k / 4]); });
}

/* The half of a word that holds an even or odd k. */
static float half(uint32_t word, int k) { return dk_bf2f(static_cast<uint16_t>(k % 2 ? word >> 16 : word)); }

void mma_bf16(void *const lane[32], uint32_t) {
  product<16>(
      lane, [](auto frag, int i, int k) { return half(frag((i % 8) * 4 + k % 8 / 2)->a[(k / 8) * 2 + i / 8], k); },
      [](auto frag, int k, int j) { return half(frag(j * 4 + k % 8 / 2)->b[k / 8], k); });
}

} // namespace dk

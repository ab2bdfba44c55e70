/* The one source of chance of the emulated device: splitmix64 from the seed. */
#pragma once

#include <cstdint>
#include <utility>

namespace dk {

struct Rng {
  uint64_t state = 1;
  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  /* 0 <= result < n, n < 2^32. */
  uint32_t below(uint32_t n) { return static_cast<uint32_t>((next() >> 32) * n >> 32); }
  template <class T> void shuffle(T *v, uint32_t n) {
    for (uint32_t i = n; i > 1; i--) std::swap(v[i - 1], v[below(i)]);
  }
};

} // namespace dk

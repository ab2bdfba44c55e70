/*
 * The host side of dkernel.h: what a kernel's source sees when g++ compiles it for
 * the emulated device. A CUDA thread is a fiber; the functions that make threads wait
 * for each other (dk_sync and everything with a mask) hand over to another fiber. The
 * kernel's code runs otherwise as it stands, so a kernel may keep no state in
 * variables of static storage: shared memory is declared with DK_SHARED.
 *
 * Stricter than a GPU where a GPU says "undefined":
 *   - dk_sync must be reached by every thread of the block, at the same line; a thread
 *     that ended or waits elsewhere makes the launch end with error 719;
 *   - a mask names lanes that exist, run the same operation and hold the same mask;
 *   - a value fetched from a lane outside the mask is poison (all bits set: NaN);
 *   - shared memory holds poison at the start of each block.
 */
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace dk {

/* The running thread's place. Written by the scheduler at each switch. */
struct Place {
  int32_t tid, bid, bdim, gdim;
};
extern const Place *here;

/* Waits for all threads of the block; line names the place for messages. */
void barrier(int line);

/*
 * Combine sees one pointer per lane of the mask (the others are null) once all of
 * them have arrived, and fills in every lane's result.
 */
using Combine = void (*)(void *const lane[32], uint32_t mask);
void collect(uint32_t mask, Combine combine, void *mine, int line);

/* The block's memory that belongs to key; the same bytes for all of its threads. */
void *shared(const void *key, int64_t bytes);
void *dynamic_shared();

/* Ends the launch with a status of the driver's API; does not return. */
[[noreturn]] void raise(int status, const char *what, const void *where, int line);

/* What the emulator knows of a kernel. types has one letter per argument:
 * p pointer, l int64, i int32, f float, u uint64. */
struct Kernel {
  const char *name;
  const char *types;
  void (*call)(void (*fn)(), const uint64_t *args);
  void (*fn)();
  Kernel *next;
};
void enlist(Kernel *k);

template <class T> constexpr char letter() {
  if constexpr (std::is_pointer_v<T>) return 'p';
  else if constexpr (std::is_same_v<T, int64_t>) return 'l';
  else if constexpr (std::is_same_v<T, int32_t>) return 'i';
  else if constexpr (std::is_same_v<T, float>) return 'f';
  else {
    static_assert(std::is_same_v<T, uint64_t>, "kernel arguments are pointers, int64_t, int32_t, float or uint64_t");
    return 'u';
  }
}

template <class T> T unbox(uint64_t box) {
  T v;
  std::memcpy(&v, &box, sizeof v);
  return v;
}

template <class... A> struct Entry {
  static constexpr char types[] = {letter<A>()..., 0};
  static void call(void (*fn)(), const uint64_t *args) { spread(fn, args, std::index_sequence_for<A...>{}); }
  template <size_t... I> static void spread(void (*fn)(), [[maybe_unused]] const uint64_t *args, std::index_sequence<I...>) {
    reinterpret_cast<void (*)(A...)>(fn)(unbox<A>(args[I])...);
  }
};

struct Enlist {
  Kernel k;
  template <class... A> Enlist(const char *name, void (*fn)(A...))
      : k{name, Entry<A...>::types, Entry<A...>::call, reinterpret_cast<void (*)()>(fn), nullptr} {
    enlist(&k);
  }
};

struct Swap {
  uint32_t in;
  int32_t from; /* lane to read; outside 0..31: the own one */
  uint32_t out;
};

/* One function per Kind, so that lanes in different operations do not match. */
template <int Kind> void swap(void *const lane[32], uint32_t mask) {
  for (uint32_t m = mask; m; m &= m - 1) {
    const int i = __builtin_ctz(m);
    Swap *s = static_cast<Swap *>(lane[i]);
    int from = s->from < 0 || s->from > 31 ? i : s->from;
    s->out = mask >> from & 1 ? static_cast<Swap *>(lane[from])->in : ~uint32_t{0};
    (void)Kind;
  }
}

template <int Kind, class T> T exchange(uint32_t mask, T v, int from, int line) {
  static_assert(sizeof(T) == 4, "shuffles move 32 bits");
  Swap s{0, from, 0};
  std::memcpy(&s.in, &v, 4);
  collect(mask, swap<Kind>, &s, line);
  std::memcpy(&v, &s.out, 4);
  return v;
}

struct Vote {
  bool yes;
  uint32_t out;
};
void vote(void *const lane[32], uint32_t mask);
void meet(void *const lane[32], uint32_t mask);

struct Mma {
  float *d;
  const uint32_t *a, *b;
};
void mma_tf32(void *const lane[32], uint32_t mask);
void mma_bf16(void *const lane[32], uint32_t mask);

template <class T> void aligned(const T *p, int line) {
  if (reinterpret_cast<uintptr_t>(p) % sizeof(T)) raise(716, "misaligned access", p, line);
}

} // namespace dk

#define DK_DEVICE static inline
#define DK_RESTRICT __restrict__

/* DK_KERNEL(dk_name, (int32_t n, float *y)) { ... } */
#define DK_KERNEL(name, args)                                \
  extern "C" void name args;                                 \
  static ::dk::Enlist name##_enlist{#name, &name};           \
  extern "C" void name args

#define DK_SHARED(type, name, n)                                                       \
  static char name##_key;                                                              \
  type(&name)[n] = *reinterpret_cast<type(*)[n]>(::dk::shared(&name##_key, sizeof(type[n])))
#define DK_DYN_SHARED(type, name) type *const name = static_cast<type *>(::dk::dynamic_shared())

#define DK_LINE int line = __builtin_LINE()

static inline int32_t dk_tid() { return dk::here->tid; }
static inline int32_t dk_bid() { return dk::here->bid; }
static inline int32_t dk_bdim() { return dk::here->bdim; }
static inline int32_t dk_gdim() { return dk::here->gdim; }
static inline int32_t dk_lane() { return dk::here->tid & 31; }
static inline int32_t dk_warp() { return dk::here->tid >> 5; }

static inline void dk_sync(DK_LINE) { dk::barrier(line); }
static inline void dk_syncwarp(uint32_t mask, DK_LINE) { dk::collect(mask, dk::meet, nullptr, line); }

/* v of lane from (of the warp, 0..31). */
template <class T> static inline T dk_shfl(uint32_t mask, T v, int from, DK_LINE) {
  return dk::exchange<0>(mask, v, from & 31, line);
}
/* v of lane ^ m. */
template <class T> static inline T dk_shfl_xor(uint32_t mask, T v, int m, DK_LINE) {
  return dk::exchange<1>(mask, v, dk_lane() ^ m, line);
}
/* v of lane + d; the own one past the warp's end. */
template <class T> static inline T dk_shfl_down(uint32_t mask, T v, int d, DK_LINE) {
  return dk::exchange<2>(mask, v, dk_lane() + d, line);
}
/* Bits of the lanes of the mask whose pred holds. */
static inline uint32_t dk_ballot(uint32_t mask, bool pred, DK_LINE) {
  dk::Vote v{pred, 0};
  dk::collect(mask, dk::vote, &v, line);
  return v.out;
}

/* A load of what no thread writes during the launch, as wide as T and aligned to it. */
template <class T> static inline T dk_ldg(const T *p, DK_LINE) {
  dk::aligned(p, line);
  return *p;
}

static inline float dk_fma(float a, float b, float c) { return std::fma(a, b, c); }
static inline float dk_ex2(float x) { return std::exp2(x); }
static inline float dk_lg2(float x) { return std::log2(x); }
static inline float dk_sqrt(float x) { return std::sqrt(x); }
static inline float dk_rsqrt(float x) { return 1 / std::sqrt(x); }

/* Nearest bf16, ties to even; NaN stays NaN. */
static inline uint16_t dk_f2bf(float x) {
  uint32_t b;
  std::memcpy(&b, &x, 4);
  if ((b & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(b >> 16 | 0x40);
  return static_cast<uint16_t>((b + 0x7fff + (b >> 16 & 1)) >> 16);
}
static inline float dk_bf2f(uint16_t h) {
  uint32_t b = uint32_t{h} << 16;
  float x;
  std::memcpy(&x, &b, 4);
  return x;
}
/* Nearest TF32 (10 bits of mantissa), ties away from zero, as bits. */
static inline uint32_t dk_f2tf(float x) {
  uint32_t b;
  std::memcpy(&b, &x, 4);
  if ((b & 0x7f800000) == 0x7f800000) return b;
  return (b + 0x1000) & ~uint32_t{0x1fff};
}

/*
 * d += a·b by the whole warp; the fragments are those of PTX mma.sync: with g = lane/4
 * and t = lane%4, d holds (g,2t) (g,2t+1) (g+8,2t) (g+8,2t+1). TF32: a holds (g,t)
 * (g+8,t) (g,t+4) (g+8,t+4), b holds (t,g) (t+4,g), low 13 bits ignored. bf16: two
 * neighbours in k per word, a at (g,2t) (g+8,2t) (g,2t+8) (g+8,2t+8), b at (2t,g) (2t+8,g).
 */
static inline void dk_mma_tf32_m16n8k8(float *d, const uint32_t *a, const uint32_t *b, DK_LINE) {
  dk::Mma m{d, a, b};
  dk::collect(0xffffffff, dk::mma_tf32, &m, line);
}
static inline void dk_mma_bf16_m16n8k16(float *d, const uint32_t *a, const uint32_t *b, DK_LINE) {
  dk::Mma m{d, a, b};
  dk::collect(0xffffffff, dk::mma_bf16, &m, line);
}

/* Whole numbers only: sums of floats by atomics would depend on the order. */
template <class T> static inline T dk_atomic_add(T *p, T v) {
  static_assert(std::is_integral_v<T>, "no atomics on floats");
  T old = *p;
  *p = old + v;
  return old;
}
static inline void dk_fence() {}

/*
 * Target attributes. Every function that uses instructions beyond x86-64's
 * baseline carries its own attribute, so that no file needs compiler flags and
 * the linker can never pick an AVX copy of a shared function.
 */
#ifndef DK_ISA_H
#define DK_ISA_H

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

#ifdef DK_SIMDE /* emulated vectors: a test builds this without any attribute */
#define DK_AVX2
#define DK_AVX512
#else
#define DK_AVX2 __attribute__((target("avx2,fma")))
#define DK_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma")))
#endif

#define DK_ALWAYS_INLINE static inline __attribute__((always_inline, unused))

/* Ask for the line of p to be brought into the second-level cache. One core
 * keeps about twice as many lines in flight there as into the first level. */
#define DK_PREFETCH(p) __builtin_prefetch((p), 0, 2)

#endif

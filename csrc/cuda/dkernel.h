// dkernel.h is all that a kernel may use: one vocabulary for clang and nvcc, which
// compile for a device, and for g++ with DK_HOST, which compiles for the emulated
// one (../cuemu/host.h). Intrinsics and inline PTX are here and nowhere else.
//
// A kernel is
//
//	DK_KERNEL(dk_name, (float *dst, const float *x, int64_t n)) { ... }
//
// one-dimensional, of DK_THREADS threads a block; its arguments are pointers, int64_t,
// int32_t, uint64_t and float. No launch bounds: 256 threads of 255 registers fit every
// device, and told of a bound, ptxas spills a few registers for occupancy.
#ifndef DKERNEL_H
#define DKERNEL_H

#define DK_THREADS 256

#if defined(DK_HOST)
#include "../cuemu/host.h"
#define DK_MMA 1
#define DK_UNROLL
#define DK_NO_UNROLL
#ifndef DK_FN
#define DK_FN static inline
#endif
#ifndef DK_METHOD
#define DK_METHOD inline
#endif
#else

#ifdef __CUDACC_RTC__
#error "run-time compilation is not supported"
#endif

#if defined(__clang__)
typedef signed int int32_t;
typedef long long int64_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#define DK_GLOBAL extern "C" __attribute__((global))
#define DK_DEVICE __attribute__((device))
#define DK_INLINE inline __attribute__((always_inline))
#define DK_SHARED_MEMORY __attribute__((shared))
#else
#include <stdint.h>
#define DK_GLOBAL extern "C" __global__ void
#define DK_DEVICE __device__
#define DK_INLINE __forceinline__
#define DK_SHARED_MEMORY __shared__
#endif

#define DK_UNROLL _Pragma("unroll")
#define DK_NO_UNROLL _Pragma("unroll 1")
#define DK_FN static DK_DEVICE DK_INLINE
#define DK_METHOD DK_DEVICE DK_INLINE
#if defined(__clang__)
#define DK_KERNEL(name, args) DK_GLOBAL void name args
#else
#define DK_KERNEL(name, args) DK_GLOBAL name args
#endif
#define DK_SHARED(type, name, n) DK_SHARED_MEMORY type name[n]
#define DK_DYN_SHARED(type, name) extern DK_SHARED_MEMORY type name[]

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define DK_MMA 1
#endif

#define DK_SREG(fn, reg)                          \
	DK_FN int32_t fn()                        \
	{                                         \
		int32_t v;                        \
		asm("mov.u32 %0, %%" reg ";" : "=r"(v)); \
		return v;                         \
	}
DK_SREG(dk_tid, "tid.x")
DK_SREG(dk_bid, "ctaid.x")
DK_SREG(dk_bdim, "ntid.x")
DK_SREG(dk_gdim, "nctaid.x")
#undef DK_SREG
DK_FN int32_t dk_lane() { return dk_tid() & 31; }
DK_FN int32_t dk_warp() { return dk_tid() >> 5; }

DK_FN void dk_sync() { __syncthreads(); }
DK_FN void dk_syncwarp(uint32_t mask) { asm volatile("bar.warp.sync %0;" ::"r"(mask) : "memory"); }

#define DK_SHUFFLE(fn, mode, clamp)                                                        \
	DK_FN uint32_t fn(uint32_t mask, uint32_t v, int32_t by)                           \
	{                                                                                  \
		uint32_t r;                                                                \
		asm volatile("shfl.sync." mode ".b32 %0, %1, %2, " clamp ", %3;"           \
			     : "=r"(r)                                                     \
			     : "r"(v), "r"(by), "r"(mask));                                \
		return r;                                                                  \
	}                                                                                  \
	DK_FN int32_t fn(uint32_t mask, int32_t v, int32_t by) { return (int32_t)fn(mask, (uint32_t)v, by); } \
	DK_FN float fn(uint32_t mask, float v, int32_t by)                                 \
	{                                                                                  \
		float r;                                                                   \
		asm volatile("shfl.sync." mode ".b32 %0, %1, %2, " clamp ", %3;"           \
			     : "=f"(r)                                                     \
			     : "f"(v), "r"(by), "r"(mask));                                \
		return r;                                                                  \
	}
DK_SHUFFLE(dk_shfl, "idx", "0x1f")
DK_SHUFFLE(dk_shfl_xor, "bfly", "0x1f")
DK_SHUFFLE(dk_shfl_down, "down", "0x1f")
#undef DK_SHUFFLE

DK_FN uint32_t dk_ballot(uint32_t mask, bool pred)
{
	uint32_t r;
	asm volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0; vote.sync.ballot.b32 %0, p, %2; }"
		     : "=r"(r)
		     : "r"((int32_t)pred), "r"(mask));
	return r;
}

#if defined(__clang__)
DK_FN float dk_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DK_FN float dk_sqrt(float v) { return __nvvm_sqrt_rn_f(v); }
#else
DK_FN float dk_fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
DK_FN float dk_sqrt(float v) { return __fsqrt_rn(v); }
#endif

#define DK_APPROX(fn, op)                                       \
	DK_FN float fn(float v)                                 \
	{                                                       \
		float r;                                        \
		asm(op ".f32 %0, %1;" : "=f"(r) : "f"(v));      \
		return r;                                       \
	}
DK_APPROX(dk_ex2, "ex2.approx")
DK_APPROX(dk_lg2, "lg2.approx")
DK_APPROX(dk_rsqrt, "rsqrt.approx")
#undef DK_APPROX

// dk_f2bf rounds to bfloat16, nearest even; a NaN stays one.
DK_FN uint16_t dk_f2bf(float v)
{
	union { float f; uint32_t u; } b = {v};
	if (v != v)
		return (uint16_t)((b.u >> 16) | 0x40);
	return (uint16_t)((b.u + 0x7fffu + ((b.u >> 16) & 1u)) >> 16);
}
DK_FN float dk_bf2f(uint16_t v)
{
	union { uint32_t u; float f; } b = {(uint32_t)v << 16};
	return b.f;
}

#ifdef DK_MMA
// dk_mma_tf32_m16n8k8 sets d += a·b for one warp: with g = lane/4 and t = lane%4,
//
//	a = A[g][t], A[g+8][t], A[g][t+4], A[g+8][t+4]      bits of float32, rounded by dk_tf32
//	b = B[t][g], B[t+4][g]
//	d = D[g][2t], D[g][2t+1], D[g+8][2t], D[g+8][2t+1]
DK_FN void dk_mma_tf32_m16n8k8(float *d, const uint32_t *a, const uint32_t *b)
{
	asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
		     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// dk_mma_bf16_m16n8k16 sets d += a·b for one warp; each register holds two bfloat16,
// the lower k in the lower half:
//
//	a = A[g][2t..], A[g+8][2t..], A[g][2t+8..], A[g+8][2t+8..]
//	b = B[2t..][g], B[2t+8..][g]
DK_FN void dk_mma_bf16_m16n8k16(float *d, const uint32_t *a, const uint32_t *b)
{
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
		     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif
#endif // DK_HOST

// dk_f4 is four neighbouring values, read and written as one where they lie on 16
// bytes.
struct alignas(16) dk_f4 {
	float x, y, z, w;
};

#ifndef DK_HOST
#if defined(__clang__)
DK_FN float dk_ldg(const float *p) { return __nvvm_ldg_f(p); }
DK_FN int32_t dk_ldg(const int32_t *p) { return __nvvm_ldg_i(p); }
DK_FN int64_t dk_ldg(const int64_t *p) { return __nvvm_ldg_ll(p); }
DK_FN uint16_t dk_ldg(const uint16_t *p) { return __nvvm_ldg_us(p); }
typedef float dk_v4 __attribute__((ext_vector_type(4)));
DK_FN dk_f4 dk_ldg(const dk_f4 *p)
{
	dk_v4 v = __nvvm_ldg_f4((const dk_v4 *)p);
	return dk_f4{v.x, v.y, v.z, v.w};
}
#else
DK_FN float dk_ldg(const float *p) { return __ldg(p); }
DK_FN int32_t dk_ldg(const int32_t *p) { return __ldg(p); }
DK_FN int64_t dk_ldg(const int64_t *p) { return *p; }
DK_FN uint16_t dk_ldg(const uint16_t *p) { return __ldg(p); }
DK_FN dk_f4 dk_ldg(const dk_f4 *p)
{
	float4 v = __ldg((const float4 *)p);
	return dk_f4{v.x, v.y, v.z, v.w};
}
#endif
#endif

#include "dkmath.h"
#include "dkcommon.h"
#endif

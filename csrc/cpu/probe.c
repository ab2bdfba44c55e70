//go:build cgo && amd64

/*
 * Which instruction sets may be used. Built for the baseline, so that it runs
 * on every x86-64. A set counts only if the operating system saves its registers
 * (XCR0), whatever the processor can do.
 */
#include "dk.h"
#include <cpuid.h>
#include <string.h>

static uint64_t saved_registers(void)
{
	uint32_t lo, hi;
	__asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
	return (uint64_t)hi << 32 | lo;
}

unsigned dk_probe(void)
{
	unsigned have = 1u << DK_ISA_SCALAR;
	uint32_t a, b, c, d;
	if (!__get_cpuid(1, &a, &b, &c, &d))
		return have;
	const uint32_t osxsave = 1u << 27, avx = 1u << 28, fma = 1u << 12;
	if ((c & (osxsave | avx | fma)) != (osxsave | avx | fma))
		return have;
	const uint64_t saved = saved_registers();
	if ((saved & 0x6) != 0x6) /* xmm, ymm */
		return have;
	if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & 1u << 5))
		return have;
	have |= 1u << DK_ISA_AVX2;
	const uint32_t f = 1u << 16, dq = 1u << 17, bw = 1u << 30, vl = 1u << 31;
	if ((saved & 0xe0) == 0xe0 && (b & (f | dq | bw | vl)) == (f | dq | bw | vl)) /* opmask, zmm */
		have |= 1u << DK_ISA_AVX512;
	return have;
}

void dk_cpu_name(char *brand)
{
	uint32_t r[12] = {0};
	uint32_t a, b, c, d;
	memset(brand, 0, 49);
	if (!__get_cpuid(0x80000000u, &a, &b, &c, &d) || a < 0x80000004u)
		return;
	for (uint32_t i = 0; i < 3; i++)
		__get_cpuid(0x80000002u + i, &r[4 * i], &r[4 * i + 1], &r[4 * i + 2], &r[4 * i + 3]);
	memcpy(brand, r, 48);
}

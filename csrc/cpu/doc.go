// Package native is the C code of the CPU kernels and its one door to Go.
//
// Each op is one loop in a *_body.h, written over the vector functions of a
// vec_*.h, and compiled once per instruction set: scalar (plain C), avx2 (with
// FMA) and avx512. probe.c asks what may run here. A Table starts as the scalar
// functions and is overwritten by better ones up to the set asked for.
//
// Kernels are single-threaded, allocate nothing and trust their arguments: the
// callers (kernels/cpu) check shapes, indices and labels first. Functions here
// tell the race detector what a kernel reads and writes.
package native

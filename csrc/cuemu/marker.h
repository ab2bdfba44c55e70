/*
 * What only the emulated device exports: a driver with these names is no GPU, and
 * every output says so. All functions are thread-safe and work before cuInit.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 1. What a program looks for to know that no driver answers. */
extern const int dorylus_cuda_emulated_device;

/* "emulated device, kernels HASH". */
const char *dorylus_cuemu_marker(void);

/* The hash of the kernel sources this library was compiled from. */
const char *dorylus_cuemu_kernels(void);

/* The name of kernel i, NULL after the last. */
const char *dorylus_cuemu_kernel(int i);

/* One letter per argument of a kernel: p pointer, l int64, i int32, f float, u uint64.
 * NULL if there is no such kernel. */
const char *dorylus_cuemu_signature(const char *kernel);

/*
 * Applies "key=value" entries separated by ';', as the environment variable
 * DORYLUS_CUEMU does at the first call. 0, or 1 and dorylus_cuemu_detail says why.
 *   reset           first of all: new devices, no faults, the defaults below
 *   seed=N          1; order of blocks, warps, lanes, streams, placement of memory
 *   devices=N       1; 0..16, read by cuInit
 *   memory=BYTES    1073741824 on each device; memory in use is really taken from the host
 *   cc=MAJOR.MINOR  8.0
 *   driver=N        12080, as cuDriverGetVersion
 *   peer=0|1        1; whether devices can reach each other
 *   terminated=0|1  0; 1: the launcher ends kernelParams with NULL, which is checked
 *   early=PERCENT   0; how often enqueuing runs an operation of any stream, which finds
 *                   what overwrites bytes that late work still reads
 *   fault=CALL[@N][+]:EFFECT   may be repeated; the N-th call (1), '+': and all later
 *     CALL    an entry point without _v2; "kernel", a kernel's name: its N-th run on the
 *             device; "copy", "memset": the device's part of them, late
 *     EFFECT  a status; "hang"; "slow/MS"
 */
int dorylus_cuemu_configure(const char *spec);

/*
 * A counter by name, -1 for an unknown one.
 *   launches, launches/KERNEL, calls, calls/ENTRY
 *   bytes_to_device, bytes_to_host, bytes_on_device, bytes_between_devices
 *   pageable_copies          asynchronous copies from or to memory that is not pinned
 *   memory_live, memory_peak, allocations_live     device memory, all devices
 *   pinned_live, streams_live, events_live, modules_live, contexts_live
 *   work_pending             operations that wait in streams
 */
int64_t dorylus_cuemu_counter(const char *name);

/* Sets what counts up to 0, memory_peak to memory_live. */
void dorylus_cuemu_counters_reset(void);

/* What the last status other than 0 was about; "" if there was none. Valid until the
 * calling thread asks again. */
const char *dorylus_cuemu_detail(void);

#ifdef __cplusplus
}
#endif

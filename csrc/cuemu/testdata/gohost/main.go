// Gohost opens the emulated device in a Go process and lets it fault while goroutines
// run, collect garbage and dereference nil.
package main

/*
#cgo CFLAGS: -I${SRCDIR}/../../../include
#cgo LDFLAGS: -ldl
#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void *lib;
static void *sym(const char *name) { return dlsym(lib, name); }
static int open_lib(const char *path) { lib = dlopen(path, RTLD_NOW | RTLD_LOCAL); return lib != 0; }

static const char *image =
	".version 7.0\n.target sm_80\n.visible .entry dk_write(\n.visible .entry dk_block_sum(\n";

typedef CUresult (*any)();

static int configure(const char *s) { return ((int (*)(const char *))sym("dorylus_cuemu_configure"))(s); }

static int start(int device, CUcontext *ctx, CUstream *stream, CUmodule *module) {
	int r = ((CUresult (*)(unsigned))sym("cuInit"))(0);
	if (!r) r = ((CUresult (*)(CUcontext *, int))sym("cuDevicePrimaryCtxRetain"))(ctx, device);
	if (!r) r = ((CUresult (*)(CUcontext))sym("cuCtxSetCurrent"))(*ctx);
	if (!r) r = ((CUresult (*)(CUmodule *, const void *))sym("cuModuleLoadData"))(module, image);
	if (!r) r = ((CUresult (*)(CUstream *, unsigned))sym("cuStreamCreate"))(stream, 1);
	return r;
}

static int launch(CUstream s, CUmodule m, const char *name, int grid, int block, uint64_t a, uint64_t b) {
	CUfunction f;
	void *params[] = {&a, &b, NULL};
	int r = ((CUresult (*)(CUfunction *, CUmodule, const char *))sym("cuModuleGetFunction"))(&f, m, name);
	if (!r)
		r = ((CUresult (*)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
			void **, void **))sym("cuLaunchKernel"))(f, grid, 1, 1, block, 1, 1, 0, s, params, NULL);
	if (!r) r = ((CUresult (*)(CUstream))sym("cuStreamSynchronize"))(s);
	return r;
}

static int alloc(CUdeviceptr *p, size_t n) { return ((CUresult (*)(CUdeviceptr *, size_t))sym("cuMemAlloc_v2"))(p, n); }
static int put(CUdeviceptr p, const void *v, size_t n) {
	return ((CUresult (*)(CUdeviceptr, const void *, size_t))sym("cuMemcpyHtoD_v2"))(p, v, n);
}
static int get(void *v, CUdeviceptr p, size_t n) {
	return ((CUresult (*)(void *, CUdeviceptr, size_t))sym("cuMemcpyDtoH_v2"))(v, p, n);
}
static void crash(void) { *(volatile int *)8 = 1; }
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"unsafe"
)

func main() {
	if C.open_lib(C.CString(os.Args[1])) == 0 {
		die("open %s", os.Args[1])
	}
	seed, err := strconv.Atoi(os.Args[2])
	if C.configure(C.CString(fmt.Sprintf("reset;devices=4;seed=%d", seed))) != 0 {
		die("configure")
	}
	var all sync.WaitGroup
	for device := range 4 {
		all.Go(func() { work(device) })
		all.Go(churn)
	}
	all.Wait()
	if err != nil { // "crash"
		C.crash()
	}
}

// work runs kernels on one device, right ones first, then one that ends its context.
func work(device int) {
	runtime.LockOSThread()
	var (
		ctx    C.CUcontext
		stream C.CUstream
		module C.CUmodule
		x, out C.CUdeviceptr
	)
	check("start", C.start(C.int(device), &ctx, &stream, &module))
	const blocks = 8
	v := make([]float32, 256*blocks)
	for i := range v {
		v[i] = float32(i)
	}
	check("alloc", C.alloc(&x, 4*256*blocks))
	check("alloc", C.alloc(&out, 4*blocks))
	check("put", C.put(x, unsafe.Pointer(&v[0]), 4*256*blocks))
	sum := C.CString("dk_block_sum")
	for range 20 {
		check("launch", C.launch(stream, module, sum, blocks, 256, C.uint64_t(x), C.uint64_t(out)))
		recoverable()
	}
	got := make([]float32, blocks)
	check("get", C.get(unsafe.Pointer(&got[0]), out, 4*blocks))
	for b, g := range got {
		if want := float32(256*256*b + 255*128); g != want {
			die("device %d: block %d sums to %v, want %v", device, b, g, want)
		}
	}
	if r := C.launch(stream, module, C.CString("dk_write"), 1, 64, C.uint64_t(x), 1<<20); r != 700 {
		die("device %d: a bad access ended with %d, want 700", device, r)
	}
	recoverable()
}

// churn makes garbage and faults of the runtime's own.
func churn() {
	var keep [][]byte
	for i := range 2000 {
		keep = append(keep, make([]byte, 1<<12))
		if i%100 == 0 {
			keep = nil
			runtime.GC()
			recoverable()
		}
	}
}

func recoverable() {
	defer func() {
		if recover() == nil {
			die("nil pointer without a panic")
		}
	}()
	var p *int
	*p = 1
}

func check(what string, r C.int) {
	if r != 0 {
		die("%s: status %d", what, r)
	}
}

func die(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

//go:build cuda && cgo && linux && (amd64 || arm64)

package cublas

/*
#cgo CFLAGS: -O2 -std=gnu11
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

// How the functions are called: status is cublasStatus_t, handle cublasHandle_t, stream
// cudaStream_t, which is the driver's CUstream. All enumerations are int.
typedef int (*create_fn)(void **handle);
typedef int (*destroy_fn)(void *handle);
typedef int (*set_stream_fn)(void *handle, void *stream);
typedef int (*set_int_fn)(void *handle, int value);
typedef int (*set_workspace_fn)(void *handle, void *workspace, size_t bytes);
typedef int (*property_fn)(int which, int *value);
typedef const char *(*status_fn)(int status);
typedef int (*gemm_fn)(void *handle, int transa, int transb, int m, int n, int k, const void *alpha,
                       const void *a, int atype, int lda, const void *b, int btype, int ldb,
                       const void *beta, void *c, int ctype, int ldc, int compute, int algo);

// The reason of a failure is the calling thread's: it is asked for in the same call.
static void *load(const char *file, const char **why) {
  void *lib = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  *why = lib ? NULL : dlerror();
  return lib;
}

static int create(void *f, uintptr_t *handle) {
  void *h = NULL;
  int status = ((create_fn)f)(&h);
  *handle = (uintptr_t)h;
  return status;
}
static int destroy(void *f, uintptr_t h) { return ((destroy_fn)f)((void *)h); }
static int set_stream(void *f, uintptr_t h, uintptr_t s) { return ((set_stream_fn)f)((void *)h, (void *)s); }
static int set_int(void *f, uintptr_t h, int v) { return ((set_int_fn)f)((void *)h, v); }
static int set_workspace(void *f, uintptr_t h, uintptr_t p, size_t n) { return ((set_workspace_fn)f)((void *)h, (void *)p, n); }
static int property(void *f, int which) {
  int v = 0;
  return ((property_fn)f)(which, &v) ? -1 : v;
}
static const char *status_text(void *f, int status) { return ((status_fn)f)(status); }

// The scalars are read before the call returns. Types are CUDA_R_32F, the algorithm is
// CUBLAS_GEMM_DEFAULT.
static int gemm(void *f, uintptr_t h, int ta, int tb, int m, int n, int k, uintptr_t a, int lda, uintptr_t b, int ldb,
                float beta, uintptr_t c, int ldc, int compute) {
  const float one = 1;
  return ((gemm_fn)f)((void *)h, ta, tb, m, n, k, &one, (const void *)a, 0, lda, (const void *)b, 0, ldb, &beta,
                      (void *)c, 0, ldc, compute, -1);
}
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// The functions of the library that are called; those before statusString have to be
// there.
const (
	fnCreate = iota
	fnDestroy
	fnSetStream
	fnSetMathMode
	fnSetAtomicsMode
	fnSetWorkspace
	fnGemmEx
	fnGetProperty
	fnStatusString // since CUDA 11.5
	functions
)

var names = [functions]string{"cublasCreate_v2", "cublasDestroy_v2", "cublasSetStream_v2", "cublasSetMathMode", "cublasSetAtomicsMode",
	"cublasSetWorkspace_v2", "cublasGemmEx", "cublasGetProperty", "cublasGetStatusString"}

// emulatedMark is what the library of the tests, which computes on the emulated device,
// has and a real one has not.
const emulatedMark = "dorylus_cublas_emulated"

// Library is cuBLAS, loaded. It stays loaded until the process ends.
type Library struct {
	file     string
	version  string
	emulated bool
	at       [functions]unsafe.Pointer
}

// Open loads the first library of files that can be loaded and has the functions that are
// called here. The error of none is a *Missing.
func Open(files []string) (*Library, error) {
	var e Missing
	for _, file := range files {
		l, why := load(file)
		if l != nil {
			return l, nil
		}
		e.Tried, e.Reasons = append(e.Tried, file), append(e.Reasons, why)
	}
	return nil, &e
}

// load loads a library, or says why it cannot be used.
func load(file string) (_ *Library, why string) {
	s := C.CString(file)
	defer C.free(unsafe.Pointer(s))
	var reason *C.char
	lib := C.load(s, &reason)
	if lib == nil {
		return nil, C.GoString(reason)
	}
	find := func(name string) unsafe.Pointer {
		s := C.CString(name)
		defer C.free(unsafe.Pointer(s))
		return C.dlsym(lib, s)
	}
	l := &Library{file: file, emulated: find(emulatedMark) != nil}
	for i, name := range names {
		if l.at[i] = find(name); l.at[i] == nil && i < fnStatusString {
			return nil, fmt.Sprintf("%s lacks %s", file, name)
		}
	}
	var v [3]int
	for i := range v {
		v[i] = int(C.property(l.at[fnGetProperty], C.int(i)))
	}
	l.version = fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2])
	return l, ""
}

// File is the name by which the library was opened.
func (l *Library) File() string { return l.file }

// Version is "12.8.4".
func (l *Library) Version() string { return l.version }

// Emulated says that the library is that of the tests, for the emulated device.
func (l *Library) Emulated() bool { return l.emulated }

func (l *Library) failed(fn int, status C.int) error {
	if status == 0 {
		return nil
	}
	e := &Error{Op: names[fn], Status: int(status)}
	if f := l.at[fnStatusString]; f != nil {
		e.Text = C.GoString(C.status_text(f, status))
	}
	return e
}

// Handle is what products of one device are made with: on one stream, in its order. It
// belongs to the thread whose current context it was made in.
type Handle struct {
	l *Library
	h C.uintptr_t
}

// Create makes a handle in the current context. Its products run on stream, a CUstream,
// and have workspace, bytes of device memory on 256 bytes, for what they need besides.
// With one stream, a workspace of its own and no atomics a library gives the same bits
// each time.
func (l *Library) Create(stream, workspace uintptr, bytes int64) (*Handle, error) {
	h := &Handle{l: l}
	if err := l.failed(fnCreate, C.create(l.at[fnCreate], &h.h)); err != nil {
		return nil, err
	}
	// Setting the stream forgets the workspace: it comes first. Mode 0 is the default of
	// both: no reduced precision but what a product's Compute allows, no atomics.
	err := l.failed(fnSetStream, C.set_stream(l.at[fnSetStream], h.h, C.uintptr_t(stream)))
	if err == nil {
		err = l.failed(fnSetWorkspace, C.set_workspace(l.at[fnSetWorkspace], h.h, C.uintptr_t(workspace), C.size_t(bytes)))
	}
	for _, fn := range []int{fnSetMathMode, fnSetAtomicsMode} {
		if err == nil {
			err = l.failed(fn, C.set_int(l.at[fn], h.h, 0))
		}
	}
	if err != nil {
		_ = h.Destroy() // of what never was
		return nil, err
	}
	return h, nil
}

// GEMM queues a product on the handle's stream.
func (h *Handle) GEMM(p Product) error {
	flag := func(b bool) C.int {
		if b {
			return 1
		}
		return 0
	}
	return h.l.failed(fnGemmEx, C.gemm(h.l.at[fnGemmEx], h.h, flag(p.TransA), flag(p.TransB), C.int(p.M), C.int(p.N), C.int(p.K),
		C.uintptr_t(p.A), C.int(p.LDA), C.uintptr_t(p.B), C.int(p.LDB), C.float(flag(p.Add)), C.uintptr_t(p.C), C.int(p.LDC), C.int(p.Compute)))
}

// Destroy gives back what the handle has of the device.
func (h *Handle) Destroy() error {
	return h.l.failed(fnDestroy, C.destroy(h.l.at[fnDestroy], h.h))
}

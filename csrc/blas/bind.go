//go:build cgo && amd64 && !noblas

package blas

/*
#cgo CFLAGS: -O2 -std=c11
#cgo LDFLAGS: -l:libopenblas.a -lm -lpthread
// The few declarations that we use, so that no header need be installed.
enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };
void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b,
                 int ldb, float beta, float *c, int ldc);
void openblas_set_num_threads(int n);
char *openblas_get_config(void);
char *openblas_get_corename(void);

// OpenBLAS's own pool of work buffers, which all its releases of the last years have. Weak: without them products only are slower.
__attribute__((weak)) void *blas_memory_alloc(int);
__attribute__((weak)) void blas_memory_free(void *);
int madvise(void *, unsigned long, int);
enum { HUGEPAGE = 14, MOST = 64 };

// Asks for huge pages below the first n work buffers, and returns how many got the advice.
static int huge(int n)
{
	const unsigned long page = 2ul << 20, least = 16ul << 20; // no buffer is smaller than least
	void *taken[MOST];
	int given = 0;
	if (!blas_memory_alloc || !blas_memory_free)
		return 0;
	for (int i = 0; i < n; i++) {
		const unsigned long at = (unsigned long)(taken[i] = blas_memory_alloc(0)), lo = (at + page - 1) & ~(page - 1);
		if (at)
			given += madvise((void *)lo, (at + least - lo) & ~(page - 1), HUGEPAGE) == 0;
	}
	for (int i = 0; i < n; i++)
		if (taken[i])
			blas_memory_free(taken[i]);
	return given;
}
*/
import "C"

import (
	"os"
	"runtime"
	"strings"
	"sync"
	"unsafe"
)

// Built says whether OpenBLAS is in this binary.
const Built = true

// slots bounds the calls in flight: OpenBLAS ends the process when more callers
// than its compiled-in number of work buffers (at least 128) are inside it.
var slots = make(chan struct{}, C.MOST)

var once sync.Once

// hugePages is how many work buffers have been advised to lie in huge pages, one
// for each thread of Go. Packed operands lie there, and are read at strides: on
// pages of 4 KiB under a hypervisor, misses of the TLB took two thirds of the time
// of products whose packed part exceeds some 100 KiB (602 x 128 weights).
var hugePages int

func start() {
	once.Do(func() {
		C.openblas_set_num_threads(1)
		hugePages = int(C.huge(C.int(min(runtime.GOMAXPROCS(0), C.MOST))))
	})
}

// Version is OpenBLAS's release, such as "0.3.21".
func Version() string {
	f := strings.Fields(C.GoString(C.openblas_get_config()))
	if len(f) > 1 {
		return f[1]
	}
	return "unknown"
}

// Core is the processor kernel in use, such as "Zen".
func Core() string { return C.GoString(C.openblas_get_corename()) }

// Forced is the value of OPENBLAS_CORETYPE, which changes speed and last bits;
// "" if OpenBLAS chose by itself.
func Forced() string { return os.Getenv("OPENBLAS_CORETYPE") }

// SGEMM sets c = op(a)·op(b), all row-major: c is m x n, op(a) m x k, op(b) k x n,
// and ld* are row distances in values of the matrices as they are stored. k must
// be positive. Shapes are checked by the caller.
func SGEMM(transA, transB bool, m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int) {
	sgemm(transA, transB, m, n, k, a, lda, b, ldb, 0, c, ldc)
}

// AddSGEMM adds to c what SGEMM sets it to.
func AddSGEMM(transA, transB bool, m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int) {
	sgemm(transA, transB, m, n, k, a, lda, b, ldb, 1, c, ldc)
}

func sgemm(transA, transB bool, m, n, k int, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	if m == 0 || n == 0 {
		return
	}
	start()
	slots <- struct{}{}
	C.cblas_sgemm(C.ROW_MAJOR, trans(transA), trans(transB), C.int(m), C.int(n), C.int(k), 1, f32(a), C.int(lda),
		f32(b), C.int(ldb), C.float(beta), f32(c), C.int(ldc))
	<-slots
}

func f32(s []float32) *C.float { return (*C.float)(unsafe.Pointer(unsafe.SliceData(s))) }

func trans(t bool) C.int {
	if t {
		return C.TRANS
	}
	return C.NO_TRANS
}

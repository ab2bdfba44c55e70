//go:build cuda && cgo && linux && (amd64 || arm64)

package cudashim

/*
#cgo CFLAGS: -O2 -std=gnu11 -I${SRCDIR}/../include
#cgo LDFLAGS: -L${SRCDIR}/lib -ldl
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unsafe"
)

// Built says whether this program can open a driver.
const Built = true

// needed are the functions without which there is no computing: those that
// kernels/cuda calls.
var needed = strings.Fields(`cuInit cuDriverGetVersion cuDeviceGetCount cuDeviceGet cuDeviceGetName cuDeviceTotalMem_v2
	cuDeviceGetAttribute cuDevicePrimaryCtxRetain cuDevicePrimaryCtxRelease_v2 cuCtxSetCurrent cuCtxSynchronize
	cuModuleLoadDataEx cuModuleUnload cuModuleGetFunction cuLaunchKernel cuFuncSetAttribute cuMemGetInfo_v2 cuMemAlloc_v2
	cuMemFree_v2 cuMemHostAlloc cuMemFreeHost cuMemcpyHtoD_v2 cuMemcpyDtoH_v2 cuMemcpyHtoDAsync_v2 cuMemcpyDtoHAsync_v2
	cuMemcpyDtoDAsync_v2 cuMemsetD8Async cuStreamCreate cuStreamDestroy_v2 cuStreamSynchronize
	cuStreamQuery cuStreamWaitEvent cuEventCreate cuEventDestroy_v2 cuEventRecord cuEventSynchronize cuEventQuery
	cuEventElapsedTime`)

var opened struct {
	sync.Mutex
	done bool
	path string
	err  error
	Status
}

// Open opens the driver's library at path, or where path is "" the one of this
// machine, and initialises it. It does so once: later calls return what the first
// returned, or an error if they name another path. A failure is an *Error with the
// driver's code. It waits as long as the driver's cuInit takes, which is for ever
// where a driver hangs: a process that must not hang asks a child first.
func Open(path string) error {
	opened.Lock()
	defer opened.Unlock()
	if opened.done {
		if path != opened.path {
			return fmt.Errorf("open the CUDA driver %q: %q has been opened already", path, opened.path)
		}
		return opened.err
	}
	opened.done, opened.path = true, path
	opened.err = open(path)
	return opened.err
}

// open does the work of Open.
func open(path string) error {
	if C.dorylus_cuda_load(C.CString(path)) == 0 { // which keeps the string
		opened.LoadError = C.GoString(C.dorylus_cuda_dlerror())
		return &Error{Op: "open", Code: NoLibrary, Detail: opened.LoadError}
	}
	opened.Library = C.GoString(C.dorylus_cuda_library())
	opened.Emulated, opened.Version = C.dorylus_cuda_emulated() != 0, int(C.dorylus_cuda_version())
	for i := C.int(0); ; i++ {
		name := C.dorylus_cuda_name(i)
		if name == nil {
			break
		}
		if C.dorylus_cuda_has(name) == 0 {
			opened.Missing = append(opened.Missing, C.GoString(name))
		}
	}
	var lacks []string
	for _, name := range needed {
		s := C.CString(name)
		if C.dorylus_cuda_has(s) == 0 {
			lacks = append(lacks, name)
		}
		C.free(unsafe.Pointer(s))
	}
	if len(lacks) > 0 {
		return &Error{Op: "open", Code: Incomplete, Detail: opened.Library + " lacks " + strings.Join(lacks, ", ")}
	}
	if code := int(C.dorylus_cuda_start()); code != 0 {
		return &Error{Op: "cuInit", Code: code}
	}
	return nil
}

// State is what Open has found so far.
func State() Status {
	opened.Lock()
	defer opened.Unlock()
	s := opened.Status
	s.Missing = slices.Clone(s.Missing)
	return s
}

// Describe is the driver's own name and sentence for a code, such as
// "CUDA_ERROR_NO_DEVICE" and "no CUDA-capable device is detected"; "" where it has
// none or none is open.
func Describe(code int) (name, text string) {
	var p *C.char
	if C.cuGetErrorName(C.CUresult(code), &p) == C.CUDA_SUCCESS && p != nil {
		name = C.GoString(p)
	}
	p = nil
	if C.cuGetErrorString(C.CUresult(code), &p) == C.CUDA_SUCCESS && p != nil {
		text = C.GoString(p)
	}
	return name, text
}

// Loads says whether a shared library of that name can be loaded; it stays loaded.
func Loads(name string) bool {
	s := C.CString(name)
	defer C.free(unsafe.Pointer(s))
	return C.dorylus_loads(s) != 0
}

// The functions below are those of the driver that gorgonia.org/cu lacks. They need
// a current context and return the driver's code, 0 for success.

// HostAlloc gives n bytes of pinned memory, which every context can copy from and
// to; cu.MemFreeHost takes them back.
func HostAlloc(n int) (p unsafe.Pointer, code int) {
	code = int(C.cuMemHostAlloc(&p, C.size_t(n), C.CU_MEMHOSTALLOC_PORTABLE))
	return p, code
}

// AllowShared lets a function (a CUfunction) use bytes of dynamic shared memory,
// which is needed above 48 KiB.
func AllowShared(function uintptr, bytes int) int {
	return int(C.dorylus_allow_shared(C.uintptr_t(function), C.int(bytes)))
}

// LoadModule loads a PTX text or a cubin, and returns a CUmodule or a code and what
// the compiler has to say.
func LoadModule(image []byte) (module uintptr, log string, code int) {
	const size = 16 << 10
	text := C.CBytes(append(slices.Clone(image), 0)) // PTX ends with a zero byte
	defer C.free(text)
	buf := (*C.char)(C.malloc(size))
	defer C.free(unsafe.Pointer(buf))
	var m C.uintptr_t
	code = int(C.dorylus_module_load(text, buf, size, &m))
	return uintptr(m), strings.TrimSpace(C.GoString(buf)), code
}

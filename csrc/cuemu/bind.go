//go:build cuda && cgo && linux && (amd64 || arm64)

package cuemu

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

static void *library(const char *path) { return dlopen(path, RTLD_NOW | RTLD_NOLOAD); }
static int configure(void *f, const char *spec) { return ((int (*)(const char *))f)(spec); }
static int64_t counter(void *f, const char *name) { return ((int64_t (*)(const char *))f)(name); }
static const char *text(void *f, const char *name) { return ((const char *(*)(const char *))f)(name); }
static const char *plain(void *f) { return ((const char *(*)(void))f)(); }
static const char *kernel(void *f, int i) { return ((const char *(*)(int))f)(i); }
static void call(void *f) { ((void (*)(void))f)(); }
static int init(void *f) { return ((int (*)(unsigned))f)(0); }
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// Control sets up the emulated device of a library that this process has opened, and
// asks what it has counted: marker.h from Go.
type Control struct{ library unsafe.Pointer }

// Loaded is the device of the library at path. The process has opened it.
func Loaded(path string) (*Control, error) {
	p := C.CString(path)
	defer C.free(unsafe.Pointer(p))
	l := C.library(p)
	if l == nil {
		return nil, fmt.Errorf("control the emulated device: %s is not loaded", path)
	}
	return &Control{l}, nil
}

func (d *Control) symbol(name string) unsafe.Pointer {
	s := C.CString("dorylus_cuemu_" + name)
	defer C.free(unsafe.Pointer(s))
	f := C.dlsym(d.library, s)
	if f == nil {
		panic("the emulated device lacks dorylus_cuemu_" + name)
	}
	return f
}

// Configure applies settings as marker.h describes them.
func (d *Control) Configure(spec string) error {
	s := C.CString(spec)
	defer C.free(unsafe.Pointer(s))
	if C.configure(d.symbol("configure"), s) != 0 {
		return fmt.Errorf("set up the emulated device: %s", d.Detail())
	}
	return nil
}

// Restart begins anew, with the settings of spec alone: nothing that was made on the
// device is there any more.
func (d *Control) Restart(spec string) error {
	if err := d.Configure("reset;" + spec); err != nil {
		return err
	}
	name := C.CString("cuInit")
	defer C.free(unsafe.Pointer(name))
	if code := C.init(C.dlsym(d.library, name)); code != 0 {
		return fmt.Errorf("restart the emulated device: status %d, %s", code, d.Detail())
	}
	return nil
}

// Counter is a counter of marker.h, -1 for an unknown one.
func (d *Control) Counter(name string) int64 {
	s := C.CString(name)
	defer C.free(unsafe.Pointer(s))
	return int64(C.counter(d.symbol("counter"), s))
}

// Reset sets what counts up to 0.
func (d *Control) Reset() { C.call(d.symbol("counters_reset")) }

// Detail is what the last failure of this process was about.
func (d *Control) Detail() string { return C.GoString(C.plain(d.symbol("detail"))) }

// Signature is the letters of a kernel's arguments; "" if there is no such kernel.
func (d *Control) Signature(kernel string) string {
	s := C.CString(kernel)
	defer C.free(unsafe.Pointer(s))
	return C.GoString(C.text(d.symbol("signature"), s))
}

// Kernels are the names of all kernels.
func (d *Control) Kernels() []string {
	var names []string
	for i := C.int(0); ; i++ {
		name := C.kernel(d.symbol("kernel"), i)
		if name == nil {
			return names
		}
		names = append(names, C.GoString(name))
	}
}

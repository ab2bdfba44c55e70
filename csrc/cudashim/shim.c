//go:build cuda && cgo && linux && (amd64 || arm64)

#include "shim.h"

#include <dlfcn.h>
#include <string.h>

#pragma GCC visibility push(hidden)

typedef CUresult (*entry)(void);

static CUresult no_driver(void) { return CUDA_ERROR_NO_DEVICE; }
static CUresult no_function(void) { return CUDA_ERROR_NOT_FOUND; }

static const char *const names[] = {
#define SYMBOL(name) #name,
#include "symbols.h"
#undef SYMBOL
};

enum { slots = sizeof(names) / sizeof(names[0]) };

// What the trampolines jump to.
entry dorylus_cuda_slots[slots] = {
#define SYMBOL(name) no_driver,
#include "symbols.h"
#undef SYMBOL
};

static CUresult (*init)(unsigned int); // the driver's; NULL before it is opened
static void *handle;
static const char *library = "";
static char why[1024];
static int emulated;
static int version;

// Where a driver's library is: on the linker's path; on WSL; in older container
// runtimes; on hosted notebooks.
static const char *const usual[] = {
    "libcuda.so.1",
    "/usr/lib/wsl/lib/libcuda.so.1",
    "/usr/local/nvidia/lib64/libcuda.so.1",
    "/usr/local/nvidia/lib/libcuda.so.1",
    "/usr/lib64-nvidia/libcuda.so.1",
    NULL,
};

CUresult cuInit(unsigned int flags) { return init ? init(flags) : CUDA_SUCCESS; }

// load opens the library at path. The first reason of a failure is kept.
static void *load(const char *path) {
  void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (lib) {
    library = path;
    return lib;
  }
  const char *text = dlerror();
  if (!why[0] && text) strncpy(why, text, sizeof(why) - 1);
  return NULL;
}

int dorylus_cuda_load(const char *path) {
  if (path[0]) {
    handle = load(path);
  } else {
    for (int i = 0; !handle && usual[i]; i++) handle = load(usual[i]);
  }
  if (!handle) return 0;
  emulated = dlsym(handle, "dorylus_cuda_emulated_device") != NULL;
  CUresult (*ask)(int *) = (CUresult(*)(int *))dlsym(handle, "cuDriverGetVersion");
  if (!ask || ask(&version) != CUDA_SUCCESS) version = 0;
  return 1;
}

int dorylus_cuda_start(void) {
  CUresult (*start)(unsigned int) = (CUresult(*)(unsigned int))dlsym(handle, "cuInit");
  // A driver starts threads: its library stays open, whatever it says.
  int code = start ? (int)start(0) : CUDA_ERROR_NOT_FOUND;
  if (code != CUDA_SUCCESS) return code;
  for (int i = 0; i < slots; i++) {
    entry f = (entry)dlsym(handle, names[i]);
    dorylus_cuda_slots[i] = f ? f : no_function;
  }
  init = start;
  return CUDA_SUCCESS;
}

const char *dorylus_cuda_library(void) { return library; }
const char *dorylus_cuda_dlerror(void) { return why; }
const char *dorylus_cuda_name(int i) { return i < slots ? names[i] : NULL; }
int dorylus_cuda_has(const char *name) { return dlsym(handle, name) != NULL; }
int dorylus_cuda_emulated(void) { return emulated; }
int dorylus_cuda_version(void) { return version; }

int dorylus_loads(const char *name) { return dlopen(name, RTLD_LAZY | RTLD_LOCAL) != NULL; }

int dorylus_allow_shared(uintptr_t function, int bytes) {
  return cuFuncSetAttribute((CUfunction)function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
}

int dorylus_module_load(void *image, char *log, size_t size, uintptr_t *module) {
  CUmodule m = NULL;
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, (void *)(uintptr_t)size};
  log[0] = 0;
  int code = cuModuleLoadDataEx(&m, image, 2, options, values);
  log[size - 1] = 0;
  *module = (uintptr_t)m;
  return code;
}

#pragma GCC visibility pop

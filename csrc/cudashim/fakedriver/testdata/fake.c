// A CUDA driver that computes nothing: enough of one to be opened and asked. What it
// does is set by macros, see fakedriver.go.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long long ptr;

static const struct {
  const char *name;
  int major, minor;
  size_t bytes;
} devices[] = {FAKE_DEVICES};

enum { count = sizeof(devices) / sizeof(devices[0]) };

#ifndef OMIT_cuInit
int cuInit(unsigned int flags) {
#ifdef FAKE_HANG
  for (;;) pause();
#endif
#ifdef FAKE_CRASH
  abort();
#endif
  const char *code = getenv("FAKE_DRIVER_INIT");
  return flags ? 1 : code ? atoi(code) : FAKE_INIT;
}
#endif

#ifndef OMIT_cuDriverGetVersion
int cuDriverGetVersion(int *v) { return *v = FAKE_VERSION, 0; }
#endif
int cuDeviceGetCount(int *n) { return *n = count, 0; }
int cuDeviceGet(int *dev, int i) { return *dev = i, i >= 0 && i < count ? 0 : 101; }
int cuDeviceGetName(char *name, int len, int dev) { return strncpy(name, devices[dev].name, len), 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int dev) { return *bytes = devices[dev].bytes, 0; }

int cuDeviceGetAttribute(int *v, int attribute, int dev) {
  switch (attribute) {
  case 16: return *v = 132, 0;               // multiprocessors
  case 38: return *v = 50 << 20, 0;          // bytes of L2
  case 75: return *v = devices[dev].major, 0;
  case 76: return *v = devices[dev].minor, 0;
  case 97: return *v = 227 << 10, 0;         // bytes of shared memory that a block may ask for
  }
  return 1;
}

int cuDevicePrimaryCtxRetain(void **ctx, int dev) { return *ctx = (void *)(intptr_t)(dev + 1), FAKE_RETAIN; }
int cuMemGetInfo_v2(size_t *free, size_t *total) { return *total = devices[0].bytes, *free = *total / 4 * 3, 0; }

#ifndef OMIT_cuMemAlloc_v2
int cuMemAlloc_v2(ptr *p, size_t n) { return n > 1 << 30 ? 2 : (*p = (ptr)(uintptr_t)malloc(n), 0); }
#endif
int cuMemFree_v2(ptr p) { return free((void *)(uintptr_t)p), 0; }
int cuMemHostAlloc(void **p, size_t n, unsigned int flags) { return *p = malloc(n), flags == 1 ? 0 : 1; }
int cuMemFreeHost(void *p) { return free(p), 0; }
int cuMemcpyHtoD_v2(ptr to, const void *from, size_t n) { return memcpy((void *)(uintptr_t)to, from, n), 0; }
int cuMemcpyDtoH_v2(void *to, ptr from, size_t n) { return memcpy(to, (void *)(uintptr_t)from, n), 0; }

int cuModuleLoadDataEx(void **module, const char *image, unsigned int n, const int *options, void **values) {
  if (n != 2 || options[0] != 5 || options[1] != 6) return 1;
  *module = (void *)8;
  if (!strncmp(image, "good", 4)) return 0;
  strncpy(values[0], "ptxas: line 7: unknown opcode\n", (size_t)values[1]);
  return 218;
}

int cuModuleGetFunction(void **f, void *module, const char *name) {
  return *f = (void *)16, module == (void *)8 && !strncmp(name, "dk_", 3) ? 0 : 500;
}
int cuModuleUnload(void *module) { return module == (void *)8 ? 0 : 400; }
int cuFuncSetAttribute(void *f, int attribute, int v) { return f == (void *)16 && attribute == 8 && v <= 227 << 10 ? 0 : 1; }

// A launch of any kernel adds up the arguments after the first and stores the sum
// where the first points to.
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void *stream, void **args, void **extra) {
  if (f != (void *)16 || gx < 1 || gy != 1 || gz != 1 || by != 1 || bz != 1 || bx > 1024 || shared > 227 << 10 || !stream || extra) return 1;
  uint64_t *to = *(uint64_t **)args[0];
  *to = *(uint64_t *)args[1] + *(uint64_t *)args[2];
  return FAKE_LAUNCH;
}

int cuStreamCreate(void **s, unsigned int flags) { return *s = (void *)24, flags == 1 ? 0 : 1; }
int cuEventCreate(void **e, unsigned int flags) { return *e = (void *)32, flags == 0 || flags == 2 ? 0 : 1; }
int cuEventElapsedTime(float *ms, void *start, void *end) { return *ms = 1.5f, start == end ? 0 : 400; }
int cuMemcpyHtoDAsync_v2(ptr to, const void *from, size_t n, void *s) { return s ? cuMemcpyHtoD_v2(to, from, n) : 400; }
int cuMemcpyDtoHAsync_v2(void *to, ptr from, size_t n, void *s) { return s ? cuMemcpyDtoH_v2(to, from, n) : 400; }
int cuMemcpyDtoDAsync_v2(ptr to, ptr from, size_t n, void *s) { return s ? (memmove((void *)(uintptr_t)to, (void *)(uintptr_t)from, n), 0) : 400; }
int cuMemsetD8Async(ptr to, unsigned char v, size_t n, void *s) { return s ? (memset((void *)(uintptr_t)to, v, n), 0) : 400; }

#ifndef OMIT_cuGetErrorString
int cuGetErrorString(int code, const char **text) { return *text = code == 2 ? "out of memory" : 0, code == 2 ? 0 : 1; }
#endif

#ifdef FAKE_EMULATED
const int dorylus_cuda_emulated_device = 1;
#endif

// All others succeed without doing anything.
#define NOTHING(name) int name(void) { return 0; }
NOTHING(cuDevicePrimaryCtxRelease_v2)
NOTHING(cuCtxSetCurrent)
NOTHING(cuCtxSynchronize)
NOTHING(cuMemcpyPeerAsync)
NOTHING(cuStreamDestroy_v2)
NOTHING(cuStreamSynchronize)
NOTHING(cuStreamQuery)
NOTHING(cuStreamWaitEvent)
NOTHING(cuEventDestroy_v2)
NOTHING(cuEventRecord)
NOTHING(cuEventSynchronize)
NOTHING(cuEventQuery)

// Jump tests the shim's trampolines alone, without Go: functions that it defines jump to
// those of the library that is opened, with all arguments, in registers and on the stack.
//
//	jump LIBRARY        LIBRARY is jump_driver.c
#include "../shim.h"

#include <stdio.h>
#include <stdlib.h>

static int failures;

#define WANT(got, want)                                                                                      \
  do {                                                                                                       \
    long long g = (long long)(got), w = (long long)(want);                                                   \
    if (g != w) printf("line %d: %s is %lld, want %lld\n", __LINE__, #got, g, w), failures++;                 \
  } while (0)

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  int version = 0;
  WANT(cuDriverGetVersion(&version), CUDA_ERROR_NO_DEVICE); // nothing is open
  WANT(cuInit(0), CUDA_SUCCESS);
  if (!dorylus_cuda_load(argv[1])) {
    printf("open %s: %s\n", argv[1], dorylus_cuda_dlerror());
    return 1;
  }
  WANT(dorylus_cuda_start(), CUDA_SUCCESS);
  WANT(cuDriverGetVersion(&version), CUDA_SUCCESS);
  WANT(version, 12080);
  int value = 0;
  WANT(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 3), CUDA_SUCCESS);
  WANT(value, 76 * 10 + 3);
  void *params[1] = {&value};
  // Each digit of what comes back is an argument; three are on the stack on amd64, more than
  // that on arm64.
  WANT(cuLaunchKernel((CUfunction)1, 2, 3, 4, 5, 6, 7, 8, (CUstream)9, params, NULL), CUDA_SUCCESS);
  WANT(value, 123456789);
  float ms = 0;
  WANT(cuEventElapsedTime(&ms, (CUevent)6, (CUevent)2), CUDA_SUCCESS);
  WANT(ms * 2, 8);
  WANT(cuTexRefSetMipmapLevelClamp((CUtexref)1, 2.5f, 7.5f), 10); // floats keep their registers
  WANT(cuGraphDestroy(NULL), CUDA_ERROR_NOT_FOUND);               // the library lacks it
  if (failures == 0) printf("ok\n");
  return failures != 0;
}

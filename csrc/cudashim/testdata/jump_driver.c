// A library with a few of a driver's functions, which tell what arguments they were given.
#include "../../include/cuda.h"

CUresult cuInit(unsigned int flags) { return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

CUresult cuDriverGetVersion(int *version) {
  *version = 12080;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attrib, CUdevice dev) {
  *value = (int)attrib * 10 + dev;
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
    unsigned int bz, unsigned int shared, CUstream stream, void **params, void **extra) {
  unsigned long long digits[9] = {(uintptr_t)f, gx, gy, gz, bx, by, bz, shared, (uintptr_t)stream};
  int all = 0;
  for (int i = 0; i < 9; i++) all = all * 10 + (int)digits[i];
  *(int *)params[0] = all;
  return extra ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  *milliseconds = (float)((long)start - (long)end);
  return CUDA_SUCCESS;
}

CUresult cuTexRefSetMipmapLevelClamp(CUtexref ref, float min, float max) {
  return ref == (CUtexref)1 ? (CUresult)(int)(min + max) : CUDA_ERROR_INVALID_VALUE;
}
